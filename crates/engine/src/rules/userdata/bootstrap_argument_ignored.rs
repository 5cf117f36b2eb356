//! Arguments for the kubelet that stand in userData and never reach it.

use crate::facts::missing_taints;
use crate::rules::prelude::*;
use readers::source_text;
use readers::userdata::{Argument, Fate, Loss, kubelet_flags};

rule! {
    cause: BootstrapArgumentIgnored,
    summary: "userData names the taints, but in a form that bootstrap.sh, systemd or nodeadm drops before the kubelet \
              sees it",
    stages: [Register],
    reads: [NodeClasses, Deployments],
    lint: true,
    versions: "AWS provider 1.0.0–1.0.8, 1.1.0–1.1.3, 1.2.0–1.2.1 refuses the Node; 1.5.0 and later say nothing",
}

fn check(case: &Case) -> Option<Opinion> {
    let question = match missing_taints::ask(case) {
        Ok(question) => question,
        Err(answer) => return answer,
    };
    let ((user_data, text), class) = (case.user_data()?, case.class()?);
    if missing_taints::registered(user_data).is_some_and(|taints| question.covered_by(&taints)) {
        return None;
    }
    let would_help = |a: &&Argument| {
        a.name() == "register-with-taints"
            && kubelet_flags::parse_taints(&a.value).is_ok_and(|taints| question.covered_by(&taints))
    };
    let (argument, loss) = user_data.lost().find(would_help).and_then(|a| match a.fate {
        Fate::Lost(loss) => Some((a, loss)),
        _ => None,
    })?;
    let place = source_text::position(text, argument.span.start);
    let name = class.name();
    let summary = format!(
        "userData of {} {name}, line {}, names the taints, but the kubelet never sees them: {loss}; {}.",
        class.kind,
        place.line,
        question.outcome(case)
    );
    let confidence = if argument.exact { Confidence::Certain } else { Confidence::Likely };
    let fix = match loss {
        Loss::EqualsForm => {
            "Write --kubelet-extra-args and its value as two words: a blank instead of the '='. The quotes inside are \
             harmless."
        }
        Loss::LooseWord => "Quote the whole value of --kubelet-extra-args, so that it is one word.",
        Loss::RepeatedOption => "Write --kubelet-extra-args once, with all arguments in one value.",
        Loss::AssignmentDropped | Loss::NotStarted => {
            "Use double quotes, or none, inside the value of --kubelet-extra-args."
        }
        Loss::KubeletRunsAlready => "Call bootstrap.sh once.",
        _ => "Move the argument to where the node reads it.",
    };
    Finding::new(
        confidence,
        summary,
        Evidence::new(
            format!("{}/{name}", class.kind),
            format!("spec.userData:{}:{}", place.line, place.column),
            source_text::quoted(text, argument.span),
            loss.to_string(),
        ),
    )
    .with_all(question.evidence(case))
    .blaming(Blame::class(class).field("spec.userData").at(text, argument.span))
    .fix(fix)
    .change("Correct userData. New nodes will be correct", format!("kubectl edit ec2nodeclass {name}"))
    .into()
}
