//! Keeps diagnoses within the schema's limits. The API server rejects the whole object if one limit is exceeded. The
//! texts of conditions and Events that nodewhy quotes have no limit.

use super::{Evidence, Grounds, NodeDiagnosisStatus, Suspect, Text};
use std::sync::Arc;

/// Maximum characters of a sentence or a command. The API server counts characters, not bytes.
pub const SENTENCE: usize = 1024;
/// Maximum characters of a kind and of a name, as in Kubernetes. They bound the cost of the CEL rule that joins both.
pub const KIND: usize = 63;
pub const NAME: usize = 253;
/// Maximum characters of a quoted line.
pub const EXCERPT: usize = 512;
pub const EVIDENCE: usize = 32;
pub const CHAIN: usize = 6;
pub const RULED_OUT: usize = 100;
pub const UNKNOWNS: usize = 32;
pub const ALTERNATIVES: usize = 16;
pub const STEPS: usize = 16;
pub const SUSPECTS: usize = 5;
/// Maximum causes of a NodePool's machines.
pub const CAUSES: usize = 10;
pub const EARLIER: usize = 10;
/// Maximum observations for or against one suspect.
pub const OBSERVATIONS: usize = 8;

impl NodeDiagnosisStatus {
    /// Cuts texts and lists to the limits of the schema. Lists keep their first items, which are the strongest. Unused
    /// capacity is freed, because a verdict is kept for as long as its machine is stuck.
    #[must_use]
    pub fn within_limits(mut self) -> Self {
        cut_text(&mut self.summary, SENTENCE);
        if let Some(excerpt) = self.blame.as_mut().and_then(|blame| blame.excerpt.as_mut()) {
            cut(excerpt, EXCERPT);
        }
        self.evidence.truncate(EVIDENCE);
        self.evidence = self.evidence.into_iter().map(Evidence::within_limits).collect();
        self.evidence.shrink_to_fit();
        self.chain.truncate(CHAIN);
        self.chain.shrink_to_fit();
        for link in &mut self.chain {
            cut(&mut link.says, SENTENCE);
        }
        self.ruled_out.truncate(RULED_OUT);
        self.ruled_out.shrink_to_fit();
        for ruled_out in &mut self.ruled_out {
            cut_text(&mut ruled_out.because, SENTENCE);
        }
        self.unknowns.truncate(UNKNOWNS);
        self.unknowns.shrink_to_fit();
        for unknown in &mut self.unknowns {
            cut_text(&mut unknown.question, SENTENCE);
            cut_text(&mut unknown.command, SENTENCE);
        }
        self.alternatives.truncate(ALTERNATIVES);
        for alternative in &mut self.alternatives {
            cut(&mut alternative.summary, SENTENCE);
        }
        self.suspects.truncate(SUSPECTS);
        self.suspects.shrink_to_fit();
        for Suspect { grounds, command } in &mut self.suspects {
            if !grounds.is_within_limits() {
                Arc::make_mut(grounds).cut();
            }
            cut_text(command, SENTENCE);
        }
        if let Some(machines) = &mut self.machines {
            machines.causes.truncate(CAUSES);
        }
        self.earlier.truncate(EARLIER);
        for earlier in &mut self.earlier {
            cut_text(&mut earlier.summary, SENTENCE);
        }
        if let Some(fix) = &mut self.fix {
            cut_text(&mut fix.summary, SENTENCE);
            if let Some(disruption) = &mut fix.disruption {
                cut_text(disruption, SENTENCE);
            }
            fix.steps.truncate(STEPS);
            for step in &mut fix.steps {
                cut_text(&mut step.text, SENTENCE);
                if let Some(command) = &mut step.command {
                    cut(command, SENTENCE);
                }
            }
        }
        // The schema does not limit it, but it repeats the summary.
        for condition in &mut self.conditions {
            cut_text(&mut condition.message, SENTENCE);
        }
        self
    }
}

impl Evidence {
    /// Cuts one observation to the limits of the schema.
    #[must_use]
    pub fn within_limits(mut self) -> Self {
        cut(&mut self.observed, SENTENCE);
        cut_text(&mut self.because, SENTENCE);
        self.figures = self.figures.map(|figures| {
            let mut figures = String::from(figures);
            cut(&mut figures, SENTENCE);
            figures.into_boxed_str()
        });
        self
    }
}

impl Grounds {
    /// Checked before cutting, because most are within the limits and shared with other verdicts.
    fn is_within_limits(&self) -> bool {
        let Self { cause: _, summary, speaks_for, against, look_for } = self;
        let mut texts = [summary, look_for].into_iter().chain(speaks_for).chain(against);
        speaks_for.len().max(against.len()) <= OBSERVATIONS && texts.all(|text| text.len() <= SENTENCE)
    }

    fn cut(&mut self) {
        let Self { cause: _, summary, speaks_for, against, look_for } = self;
        speaks_for.truncate(OBSERVATIONS);
        against.truncate(OBSERVATIONS);
        let texts = [summary, look_for].into_iter().chain(speaks_for).chain(against);
        texts.for_each(|text| cut_text(text, SENTENCE));
    }
}

/// Cuts a text. A shared text is copied only if it is too long.
fn cut_text(text: &mut Text, most: usize) {
    if text.len() > most {
        let mut own = text.to_string();
        cut(&mut own, most);
        *text = own.into();
    }
}

/// Shortens a text that is too long, with an ellipsis at its end.
fn cut(text: &mut String, most: usize) {
    // A text has at least as many bytes as characters.
    if text.len() <= most {
        // `format!` reserves twice its own words.
        text.shrink_to_fit();
        return;
    }
    let mut last = text.char_indices().map(|(at, _)| at).skip(most.saturating_sub(1));
    if let (Some(at), Some(_)) = (last.next(), last.next()) {
        text.truncate(at);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::cut;
    use crate::api::{NodeDiagnosis, NodeDiagnosisStatus};
    use crate::case::judging::Judging;
    use crate::case::stage::Thresholds;
    use crate::cluster_state::ClusterState;
    use crate::diagnose::diagnose;
    use crate::objects::input::{Input, Object};
    use kube_core::CustomResourceExt;
    use serde_json::{Value, json};

    #[test]
    fn a_text_is_cut_between_characters_and_only_where_it_is_too_long() {
        for (text, kept) in [("", ""), ("äöü", "äöü"), ("äöüß", "äö…"), ("a\u{1F980}bc", "a\u{1F980}…")]
        {
            let mut text = text.to_owned();
            cut(&mut text, 3);
            assert_eq!(text, kept);
        }
    }

    fn schema() -> Value {
        let crd = serde_json::to_value(NodeDiagnosis::crd()).unwrap();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"].clone()
    }

    /// The fields that the API server would reject, counted as it counts.
    fn refused(schema: &Value, value: &Value, path: &str) -> Vec<String> {
        let longer = |limit: &str, length: Option<usize>| {
            schema[limit].as_u64().zip(length).is_some_and(|(most, has)| has as u64 > most)
        };
        let mut refused = Vec::new();
        if longer("maxLength", value.as_str().map(|text| text.chars().count()))
            || longer("maxItems", value.as_array().map(Vec::len))
        {
            refused.push(path.to_owned());
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            refused.extend(self::refused(field, &value[name], &format!("{path}.{name}")));
        }
        for item in value.as_array().into_iter().flatten() {
            refused.extend(self::refused(&schema["items"], item, &format!("{path}[]")));
        }
        refused.sort();
        refused.dedup();
        refused
    }

    /// A status that is too long wherever the schema lets it be.
    fn overlong(schema: &Value) -> Value {
        match schema["type"].as_str() {
            Some("object") => schema["properties"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, field)| (name.clone(), overlong(field)))
                .collect(),
            Some("array") => vec![overlong(&schema["items"]); 200].into(),
            Some("integer") => 1.into(),
            _ => match (schema["enum"].get(0), schema["format"].as_str()) {
                (Some(first), _) => first.clone(),
                (None, Some("date-time")) => "2026-01-15T12:00:00Z".into(),
                // A cause is an identifier, and never made of what somebody else says.
                (None, _) => {
                    if schema["pattern"].is_string() {
                        "Unknown".into()
                    } else {
                        "ä".repeat(5000).into()
                    }
                }
            },
        }
    }

    #[test]
    fn every_limit_of_the_schema_is_kept() {
        let (schema, overlong) = (schema(), overlong(&schema()));
        assert!(refused(&schema, &overlong, "").len() > 15, "{:?}", refused(&schema, &overlong, ""));
        let status: NodeDiagnosisStatus = serde_json::from_value(overlong).unwrap();
        assert_eq!(refused(&schema, &serde_json::to_value(status.within_limits()).unwrap(), ""), [""; 0]);
    }

    #[test]
    fn a_condition_of_five_thousand_characters_makes_a_verdict_that_can_be_written() {
        let said = "kubelet is posting ".to_owned() + &"ä".repeat(5000);
        let node = json!({
            "metadata": { "name": "ip-10-0-0-1", "uid": "2", "creationTimestamp": "2026-01-15T10:00:00Z" },
            "spec": { "providerID": "aws:///eu-west-1a/i-0a" },
            "status": { "conditions": [
                { "type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": said, "lastTransitionTime": "2026-01-15T11:00:00Z" },
            ] },
        });
        let now = "2026-01-15T12:00:00Z".parse().unwrap();
        let mut cluster = ClusterState::default();
        cluster.apply(Object::from_value(Input::Nodes, node).unwrap(), now);
        let found = diagnose(Judging::new(&cluster, now, &Thresholds::default()));
        let status = serde_json::to_value(found[0].status.as_ref().unwrap()).unwrap();
        assert!(status["evidence"].to_string().contains("kubelet is posting ää"), "{status:#}");
        assert!(status["evidence"].to_string().contains('…'), "{status:#}");
        assert_eq!(refused(&schema(), &status, ""), [""; 0]);
    }
}
