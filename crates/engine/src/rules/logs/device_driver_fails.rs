//! The machine's log says that its accelerator's driver does not run.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::{device_reason, logged};
use crate::objects::input::Input;
use crate::rules::Rule;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "DeviceDriverFails",
    summary: "A driver or device plugin logged that it cannot use the accelerator",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/DeviceDriverFails.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::DeviceFails]) else { return Opinion::Silent };
    let line = &root.fact.last;
    let finding = root.finding(case).fix(device_reason::fix(case, line));
    let finding = finding.step(Risk::Inspect, "Read the whole console", logged::command(case));
    let of_image = device_reason::needs_open_modules(line).then(|| case.class_field("spec.amiSelectorTerms"));
    finding.blaming(of_image.unwrap_or_else(|| root.user_data(case))).into()
}
