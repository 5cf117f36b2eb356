//! What a rule says: nothing, an exclusion, or a finding with its evidence.

use crate::api::{Blame, Confidence, Evidence, FixStep, Link, Risk, Text, Unknown, Witness};
use crate::case::witness::Sighting;
use crate::objects::NodeClass;
use chrono::{DateTime, Utc};
use readers::source_text::{self, Span};

/// What a rule says of one case, if it has anything to say.
#[derive(Debug, Clone, PartialEq)]
pub enum Opinion {
    /// Something was seen that excludes the cause.
    RuledOut {
        because: Text,
        witness: Sighting,
    },
    /// Too early to tell; look again at this time.
    LookAgain(DateTime<Utc>),
    Found(Box<Finding>),
}

impl Opinion {
    pub fn ruled_out(witness: impl Into<Sighting>, because: impl Into<Text>) -> Self {
        Self::RuledOut { because: because.into(), witness: witness.into() }
    }
}

impl From<Finding> for Opinion {
    fn from(finding: Finding) -> Self {
        Self::Found(Box::new(finding))
    }
}

/// So that a rule can end in `.into()`.
impl From<Finding> for Option<Opinion> {
    fn from(finding: Finding) -> Self {
        Some(finding.into())
    }
}

/// A cause that explains the machine, with what proves it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub confidence: Confidence,
    pub summary: String,
    pub evidence: Vec<Evidence>,
    /// From the symptom to the deepest link.
    pub chain: Vec<Link>,
    pub blame: Option<Box<Blame>>,
    pub fix: Text,
    pub steps: Vec<FixStep>,
    pub unknowns: Vec<Unknown>,
    /// The AWS calls that IAM denied; a question names each.
    pub denied: Vec<String>,
    /// Earlier machines that failed the same way and are gone.
    pub recurrences: u32,
}

impl Finding {
    /// No finding without evidence: the first piece is part of the constructor.
    pub fn new(confidence: Confidence, summary: impl Into<String>, evidence: Evidence) -> Self {
        Self {
            confidence,
            summary: summary.into(),
            evidence: vec![evidence],
            chain: Vec::new(),
            blame: None,
            fix: Text::default(),
            steps: Vec::new(),
            unknowns: Vec::new(),
            denied: Vec::new(),
            recurrences: 0,
        }
    }

    /// One more sentence of what was found.
    #[must_use]
    pub fn adding(mut self, sentence: &str) -> Self {
        // A line of a log may end without.
        if !self.summary.ends_with(['.', '…']) {
            self.summary.push('.');
        }
        self.summary.push(' ');
        self.summary.push_str(sentence);
        self
    }

    #[must_use]
    pub fn with(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    #[must_use]
    pub fn with_all(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    #[must_use]
    pub fn linked(mut self, links: impl IntoIterator<Item = Link>) -> Self {
        self.chain.extend(links);
        self
    }

    /// Names the object to change, where there is one.
    #[must_use]
    pub fn blaming(mut self, blame: impl Into<Option<Blame>>) -> Self {
        self.blame = blame.into().map(Box::new).or(self.blame);
        self
    }

    #[must_use]
    pub fn fix(mut self, summary: impl Into<Text>) -> Self {
        self.fix = summary.into();
        self
    }

    /// A step that only looks.
    #[must_use]
    pub fn inspect(self, text: impl Into<Text>, command: impl Into<Option<String>>) -> Self {
        self.step(Risk::Inspect, text, command)
    }

    /// A step that changes what running workloads depend on.
    #[must_use]
    pub fn change(self, text: impl Into<Text>, command: impl Into<Option<String>>) -> Self {
        self.step(Risk::Mutating, text, command)
    }

    /// A step that deletes or replaces machines.
    #[must_use]
    pub fn destroy(self, text: impl Into<Text>, command: impl Into<Option<String>>) -> Self {
        self.step(Risk::Destructive, text, command)
    }

    #[must_use]
    pub fn step(mut self, risk: Risk, text: impl Into<Text>, command: impl Into<Option<String>>) -> Self {
        self.steps.push(FixStep { text: text.into(), command: command.into(), risk });
        self
    }

    #[must_use]
    pub fn unknown(mut self, question: impl Into<Text>, command: impl Into<Text>) -> Self {
        self.unknowns.push(Unknown { source: Witness::Cluster, question: question.into(), command: command.into() });
        self
    }

    /// A question that AWS answers.
    #[must_use]
    pub fn ask_aws(mut self, question: impl Into<Text>, command: impl Into<Text>) -> Self {
        self.unknowns.push(Unknown { source: Witness::Aws, question: question.into(), command: command.into() });
        self
    }
}

impl Blame {
    /// An object as a whole.
    pub fn object(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            object: format!("{kind}/{name}"),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
            field: None,
            line: None,
            column: None,
            length: None,
            caret: None,
            excerpt: None,
        }
    }

    /// A node class as a whole.
    pub fn class(class: &NodeClass) -> Self {
        Self::object(&class.api_version, &class.kind, class.name())
    }

    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// A place in the field's text, with its one masked line.
    #[must_use]
    pub fn at(mut self, text: &str, span: Span) -> Self {
        let place = source_text::position(text, span.start);
        let excerpt = source_text::excerpt(text, span);
        let on_line = span.of(text).lines().next().unwrap_or_default().chars().count().max(1);
        self.line = Some(place.line);
        self.column = Some(place.column);
        self.length = u32::try_from(on_line).ok();
        self.caret = excerpt.caret;
        self.excerpt = Some(excerpt.shown);
        self
    }
}
