//! The answer of `nodewhy lint` about an upgrade: what blocks it, what it changes, and what is not known.

use crate::report::counted_as;
use crate::report::text::wrap;
use crate::report::visible::in_a_line;
use engine::lint::upgrade::{Changed, Upgrade};
use engine::lint::{Level, LintFinding, Report};
use serde_json::{Value, json};
use std::fmt::Write;

/// The answer as JSON.
pub fn json(report: &Report, upgrade: &Upgrade) -> Value {
    let changes: Vec<Value> =
        upgrade.changes.iter().map(|change| json!({"what": change.what, "objects": change.objects})).collect();
    json!({
        "kubernetes": upgrade.to.kubernetes.map(|minor| format!("1.{minor}")),
        "karpenter": upgrade.to.karpenter.map(|version| version.to_string()),
        "ready": is_ready(report, upgrade),
        "obstacles": upgrade.obstacles,
        "changes": changes,
        "unknowns": upgrade.unknowns,
    })
}

/// False if nodewhy found something, true if it found nothing and knows all that it needs, else `None`.
fn is_ready(report: &Report, upgrade: &Upgrade) -> Option<bool> {
    if !upgrade.obstacles.is_empty() || !report.findings.is_empty() {
        return Some(false);
    }
    (report.looked_at > 0 && upgrade.unknowns.is_empty()).then_some(true)
}

/// The answer for people, below the findings.
pub fn text(report: &Report, upgrade: &Upgrade, color: bool) -> String {
    let kubernetes = upgrade.to.kubernetes.map(|minor| format!("Kubernetes 1.{minor}"));
    let karpenter = upgrade.to.karpenter.map(|version| format!("Karpenter {version}"));
    let to = kubernetes.into_iter().chain(karpenter).collect::<Vec<_>>().join(" and ");
    let title = format!("Upgrade to {to}: {}", answer(report, upgrade));
    let mut out = if color { format!("\x1b[1m{title}\x1b[0m\n") } else { format!("{title}\n") };
    list(&mut out, "before the upgrade", upgrade.obstacles.iter().cloned());
    list(&mut out, "changes that come with it", upgrade.changes.iter().map(changed));
    list(&mut out, "not known", upgrade.unknowns.iter().cloned());
    out
}

fn answer(report: &Report, upgrade: &Upgrade) -> String {
    let count = |level: Level| report.findings.iter().filter(|finding: &&LintFinding| finding.level == level).count();
    let counts =
        [(count(Level::Error), "error"), (count(Level::Warning), "warning"), (upgrade.obstacles.len(), "obstacle")];
    let counted: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted_as(*count, what)).collect();
    if !counted.is_empty() {
        return format!("not ready: {}", counted.join(", "));
    }
    if report.looked_at == 0 {
        return "nothing could be judged".to_owned();
    }
    format!("no obstacle found in {}", counted_as(report.looked_at, "object"))
}

fn changed(change: &Changed) -> String {
    if change.objects.is_empty() {
        return format!("{}.", change.what);
    }
    format!("New nodes of {}: {}.", change.objects.join(", "), change.what)
}

fn list(out: &mut String, heading: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_some() {
        let _ = writeln!(out, "  {heading}");
    }
    for item in items {
        for (at, line) in wrap(&in_a_line(&item), crate::report::WIDTH - 6).into_iter().enumerate() {
            let _ = writeln!(out, "    {} {line}", if at == 0 { "-" } else { " " });
        }
    }
}

/// The obstacles as annotations of a GitHub workflow, which belong to no line.
pub fn annotations(upgrade: &Upgrade) -> String {
    upgrade.obstacles.iter().fold(String::new(), |mut out, obstacle| {
        let _ = writeln!(out, "::warning title=Upgrade::{}", super::data(obstacle));
        out
    })
}
