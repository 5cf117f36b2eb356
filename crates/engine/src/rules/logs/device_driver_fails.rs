//! The machine's log says that its accelerator's driver does not run.

use crate::explain::{device_reason, logged};
use crate::rules::prelude::*;
use logs::fact::Trouble;

rule! {
    cause: DeviceDriverFails,
    summary: "A driver or device plugin logged that it cannot use the accelerator",
    stages: [Initialize, Ready],
    reads: [Nodes, NodeClasses, Pods, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::DeviceFails])?;
    let line = &root.fact.last;
    let finding = root.finding(case).fix(device_reason::fix(case, line));
    let finding = finding.inspect("Read the whole console", logged::command(case));
    let of_image = device_reason::needs_open_modules(line).then(|| case.class_field("spec.amiSelectorTerms"));
    finding.blaming(of_image.unwrap_or_else(|| root.user_data(case))).into()
}
