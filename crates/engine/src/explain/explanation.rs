//! Why something fails: the clause for the summary, the object to change, and the proof.

use crate::api::{Blame, Confidence, Evidence, FixStep, Link, Risk, Text, Unknown, Witness};
use crate::case::Case;
use crate::case::finding::Finding;

/// How well the deepest link is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Proof {
    /// Not proven at all: nodewhy could not read the objects that would show it.
    None,
    /// Only one more symptom.
    Open,
    /// It explains the agent, once it has lasted longer than a start takes.
    Lasting,
    /// It does not go away by itself.
    Settled,
}

/// Why something does not work on a Node, as deep as the objects show.
#[derive(Debug)]
pub(crate) struct Explanation {
    /// A clause. Where an agent is to blame, it names the agent's DaemonSet or pod.
    pub why: String,
    pub proof: Proof,
    pub blame: Blame,
    /// Empty where the finding's own fix is the right one.
    pub fix: Text,
    /// From the agent to the deepest link. Without one, the symptom itself is explained.
    pub links: Vec<Link>,
    pub steps: Vec<FixStep>,
    /// The question that the last link leaves open.
    pub open: Option<Unknown>,
    pub evidence: Vec<Evidence>,
}

impl Explanation {
    pub(crate) fn new(proof: Proof, why: impl Into<String>, blame: Blame, link: Link) -> Self {
        Self::unlinked(proof, why, blame).behind(link)
    }

    pub(crate) fn unlinked(proof: Proof, why: impl Into<String>, blame: Blame) -> Self {
        let (why, fix) = (why.into(), Text::default());
        Self { why, proof, blame, fix, links: Vec::new(), steps: Vec::new(), open: None, evidence: Vec::new() }
    }

    pub(crate) fn fix(mut self, fix: impl Into<Text>) -> Self {
        self.fix = fix.into();
        self
    }

    /// A step that only looks.
    pub(crate) fn inspect(self, text: impl Into<Text>, command: String) -> Self {
        self.step(Risk::Inspect, text, command)
    }

    /// A step that changes what running workloads depend on.
    pub(crate) fn change(self, text: impl Into<Text>, command: String) -> Self {
        self.step(Risk::Mutating, text, command)
    }

    /// A step that deletes or replaces machines.
    pub(crate) fn destroy(self, text: impl Into<Text>, command: String) -> Self {
        self.step(Risk::Destructive, text, command)
    }

    pub(crate) fn step(mut self, risk: Risk, text: impl Into<Text>, command: String) -> Self {
        self.steps.push(FixStep { text: text.into(), command: Some(command), risk });
        self
    }

    pub(crate) fn ask(mut self, question: impl Into<Text>, command: impl Into<Text>) -> Self {
        let (question, command) = (question.into(), command.into());
        self.open = Some(Unknown { source: Witness::Cluster, question, command });
        self
    }

    pub(crate) fn with(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    /// A link before those of this one.
    pub(crate) fn after(mut self, link: Link) -> Self {
        self.links.insert(0, link);
        self
    }

    /// One link deeper.
    pub(crate) fn behind(mut self, link: Link) -> Self {
        self.links.push(link);
        self
    }

    pub(crate) fn confidence(&self, case: &Case) -> Confidence {
        match self.proof {
            Proof::Settled => Confidence::Certain,
            Proof::Lasting if case.is_overdue() => Confidence::Certain,
            Proof::Lasting | Proof::Open => Confidence::Likely,
            Proof::None => Confidence::Possible,
        }
    }

    /// The finding of a rule whose symptom it explains.
    pub(crate) fn found(self, case: &Case, summary: String, evidence: Evidence, symptom: Link) -> Finding {
        let confidence = self.confidence(case);
        self.explain(Finding::new(confidence, summary, evidence), symptom)
    }

    /// A finding's chain, blame, fix, steps, question and evidence, after the symptom that it explains.
    pub(crate) fn explain(self, mut finding: Finding, symptom: Link) -> Finding {
        if !self.links.is_empty() {
            finding = finding.linked([symptom]).linked(self.links);
        }
        if !self.fix.is_empty() {
            finding = finding.fix(self.fix);
        }
        finding.steps.extend(self.steps);
        finding.unknowns.extend(self.open);
        finding.with_all(self.evidence).blaming(self.blame)
    }
}
