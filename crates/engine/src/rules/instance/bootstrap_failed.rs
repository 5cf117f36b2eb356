//! The machine's console or log says that its bootstrap failed.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::logged;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "BootstrapFailed",
    summary: "nodeadm, bootstrap.sh, a script or another step of the boot says that it failed, so no kubelet starts",
    stages: &[Stage::Join],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::AwsObservations, Input::Logs],
    lint: false,
    versions: "all; seen only in logs, or where nodewhy may ask EC2 for the console (--aws)",
    page: include_str!("../../../pages/BootstrapFailed.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let told = logged::root(case, &[Trouble::ScriptFailed, Trouble::BootstrapFailed, Trouble::DiskFails]);
    told.map_or_else(|| by_console(case), |root| by_log(case, &root))
}

fn by_log(case: &Case, root: &logged::Root) -> Opinion {
    let finding = root
        .finding(case)
        .fix("Correct what the line names: the script of the user data, the image, or a disk of the machine.")
        .step(Risk::Inspect, "Read the whole console", logged::command(case));
    match root.user_data(case) {
        Some(blame) => finding.blaming(blame).into(),
        None => finding.into(),
    }
}

fn by_console(case: &Case) -> Opinion {
    let Some(id) = case.instance_id() else { return Opinion::Silent };
    let Some((console, at)) = case.cluster.aws().console(id).known() else { return Opinion::Silent };
    let Some(line) = console.lines.last() else {
        return Opinion::Silent;
    };
    // A script that fails under cloud-init need not be the one that starts the kubelet.
    let confidence = if line.program == "cloud-init" { Confidence::Likely } else { Confidence::Certain };
    let object = format!("ec2:GetConsoleOutput {id}");
    let evidence = console.lines.iter().map(|line| {
        Evidence::new(
            object.clone(),
            "Output",
            line.text.clone(),
            format!("{} printed this while the instance booted", line.program),
        )
        .told_by_aws(at)
    });
    let mut evidence = evidence.rev();
    let Some(first) = evidence.next() else { return Opinion::Silent };
    let finding = Finding::new(
        confidence,
        format!("{} failed on {id} before a kubelet could start: {}", line.program, line.text),
        first,
    )
    .with_all(evidence)
    .fix("Correct what the line names: user data, the image, or the way to the EC2 and EKS endpoints.")
    .step(
        Risk::Inspect,
        "Read the whole console",
        Some(format!("aws ec2 get-console-output --latest --output text --instance-id {id}")),
    );
    match case.class().filter(|class| class.spec.user_data.is_some()) {
        Some(class) => {
            finding.blaming(Blame::object(&class.api_version, &class.kind, class.name()).field("spec.userData")).into()
        }
        None => finding.into(),
    }
}
