//! From a cluster to verdicts: which subjects are stuck, and the strongest explanation for each.
//!
//! Pure and deterministic: the same state at the same time gives the same bytes.

mod agent_reports;
mod aws_denials;
pub mod differences;
pub(crate) mod disruption;
mod in_service;
pub mod log_source;
mod managed_by;
mod named;
pub mod survey;
pub mod timeline;

use crate::api::judged::JudgedBy;
use crate::api::{
    Alternative, Condition, Confidence, Evidence, Fix, FixStep, NodeDiagnosis, NodeDiagnosisStatus, Outcome, RuledOut,
    Stage, Text, Unknown, Witness,
};
use crate::case::deletion_reason;
use crate::case::finding::{Finding, Opinion};
use crate::case::judging::Judging;
use crate::case::karpenter_line;
use crate::case::stage::{self, Thresholds};
use crate::case::thresholds;
use crate::case::timeout;
use crate::case::{Case, duration};
use crate::cluster_state::Subject;
use crate::cluster_state::memo::Memo;
use crate::explain;
use crate::explain::unwrapped::unwrapped;
use crate::facts;
use crate::objects::former::inline_of;
use crate::objects::input::Input;
use crate::rules::{self, Rule};
use crate::suspects;
use crate::upstream::former_words::Words;
use chrono::{DateTime, TimeDelta, Utc};
use survey::Survey;

/// The result of judging one subject.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// Nothing is wrong, or the subject does not exist.
    Healthy,
    /// It waits at a stage, for no longer than normal. Judge it again at this time. `None` if only a change can show
    /// more.
    Waiting(Option<DateTime<Utc>>),
    /// It is stuck, with its diagnosis. Judge it again at this time even if nothing changes.
    Sick(Box<NodeDiagnosis>, Option<DateTime<Utc>>),
}

/// Every diagnosis of this cluster at this time, in the order of [`Case::all`].
pub fn diagnose(judging: Judging) -> Vec<NodeDiagnosis> {
    Survey::of(judging, JudgedBy::Given).diagnoses
}

/// Judges one subject.
pub fn judge(judging: Judging, subject: &Subject) -> Judgement {
    Case::of(judging, subject).map_or(Judgement::Healthy, |case| judge_case(&case, judging.thresholds))
}

/// Judges one case.
pub fn judge_case(case: &Case, thresholds: &Thresholds) -> Judgement {
    let now = case.now;
    let waited = now - case.wait.since;
    let at = |patience| case.wait.since.checked_add_signed(patience);
    if waited < case.wait.proven {
        return Judgement::Waiting(at(case.wait.proven));
    }
    let evaluated = evaluate(case, |_| true);
    let ripe = waited >= case.wait.patience || follows_a_stuck_sibling(case, thresholds);
    let proven = evaluated.findings.first().is_some_and(|(_, f)| f.confidence == Confidence::Certain);
    if !ripe && !proven {
        return Judgement::Waiting(at(case.wait.patience).into_iter().chain(evaluated.look_again).min());
    }
    let in_line = karpenter_line::in_line_until(case, thresholds);
    if evaluated.findings.is_empty() && in_line.is_some() {
        return Judgement::Waiting(in_line);
    }
    let met = case.rejected_by_earlier_aws_auth().map(|(_, met)| met);
    let look_again = evaluated.look_again.into_iter().chain(in_line).chain(met).filter(|at| *at > now).min();
    if evaluated.findings.is_empty() && look_again.is_some() {
        // A rule is about to find something, which is better than Unknown.
        return Judgement::Waiting(look_again);
    }
    Judgement::Sick(Box::new(verdict(case, evaluated)), look_again)
}

/// The findings of the rules for this stage that are wanted, the strongest first.
pub fn findings(case: &Case, is_wanted: impl Fn(&Rule) -> bool) -> Vec<(&'static Rule, Finding)> {
    evaluate(case, is_wanted).findings
}

/// The answers of rules for this stage.
struct Evaluated {
    /// Strongest first: by confidence, then in the order of the rules.
    findings: Vec<(&'static Rule, Finding)>,
    ruled_out: Vec<RuledOut>,
    look_again: Option<DateTime<Utc>>,
}

/// No rule waits longer before it can tell. A later moment was reckoned from a time in the future, which a clock that is
/// wrong has written, and nothing waits for it.
const LATEST_LOOK: TimeDelta = TimeDelta::hours(1);

fn evaluate(case: &Case, is_wanted: impl Fn(&Rule) -> bool) -> Evaluated {
    let latest = case.wait.proven.checked_mul(2).and_then(|long| case.now.checked_add_signed(LATEST_LOOK.max(long)));
    let mut evaluated = Evaluated { findings: Vec::new(), ruled_out: Vec::new(), look_again: None };
    let of_stage = rules::of_stage(case.stage()).into_iter().flat_map(|of_stage| &of_stage.rules);
    for &rule in of_stage.filter(|rule| is_wanted(rule)) {
        let Some(opinion) = (rule.check)(case) else { continue };
        match opinion {
            Opinion::RuledOut { because, witness } => {
                evaluated.ruled_out.push(RuledOut { cause: rule.cause.into(), because, witness: witness.into() });
            }
            Opinion::LookAgain(at) if latest.is_some_and(|latest| at > latest) => {}
            Opinion::LookAgain(at) => evaluated.look_again = evaluated.look_again.into_iter().chain([at]).min(),
            Opinion::Found(finding) => evaluated.findings.push((rule, case.within_what_is_known(*finding))),
        }
    }
    // A stable sort: among equals the more specific rule, which stands first in the list, wins.
    evaluated.findings.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.confidence));
    evaluated
}

/// The topic of an open question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// What a rule or an answer of AWS leaves open about the subject.
    Subject,
    /// A missing input. Every verdict that is not Certain has such questions if a dump lacks a kind, whether or not the
    /// kind has to do with the cause.
    UnreadInput(Input),
}

/// The topic of a question, by its command: no rule asks with the command that reads a whole input. The words do not
/// tell it, because another version of nodewhy may have written the NodeDiagnosis.
pub fn topic(unknown: &Unknown) -> Topic {
    let asks_for = |input: Input| Words::ALL.iter().any(|words| words.said(input.command()) == *unknown.command);
    let mut inputs = Input::ALL.into_iter().filter(|input| may_be_missing(*input));
    inputs.find(|input| asks_for(*input)).map_or(Topic::Subject, Topic::UnreadInput)
}

/// An absent add-on is not missing. For an input that is read for one machine only, its rule asks in its own words.
fn may_be_missing(input: Input) -> bool {
    !input.may_be_absent() && input != Input::AccessReviews
}

/// The missing inputs that a rule for this stage would have read. Only an open verdict lists them, so rules do not look
/// for them one by one.
fn missing(case: &Case) -> impl Iterator<Item = Unknown> {
    static QUESTION: Memo<Option<Text>> = Memo::new("what an input would tell");
    let is_usual = |input: &&Input| may_be_missing(**input) && case.goes_by(**input);
    let wanted =
        rules::of_stage(case.stage()).into_iter().flat_map(|of_stage| of_stage.reads(case.cluster)).filter(is_usual);
    wanted.filter_map(|input| {
        let question = case.cluster.once(&QUESTION, input.name(), || {
            let why = case.cluster.missing(*input)?;
            Some(format!("Would {} change the verdict? nodewhy could not read this input: {why}.", input.name()).into())
        });
        Some(Unknown { source: Witness::Cluster, question: (*question).clone()?, command: input.command().into() })
    })
}

/// An older machine of the same class is stuck at the same stage, and none has passed it since. So this one is stuck
/// too.
///
/// Machines that were in service fail one by one. There, one says nothing about the next.
fn follows_a_stuck_sibling(case: &Case, thresholds: &Thresholds) -> bool {
    let Some(overdue) = case.now.checked_sub_signed(thresholds::least_patience(case.stage(), thresholds)) else {
        return false;
    };
    case.stage() != Stage::Ready
        && case.unfinished_siblings(case.wait.since.min(overdue)).any(|sibling| {
            let wait = stage::claim_wait(sibling, &case.cluster.nodes_of(sibling), |_| None, thresholds);
            wait.is_some_and(|wait| {
                wait.stage == case.stage()
                    && wait.since <= case.wait.since
                    && case.now - wait.since >= wait.patience
                    && !case.sibling_joined_since(wait.since)
            })
        })
}

/// Adds to the questions of a finding that is not Certain what nodewhy could not read, and what AWS denied. `named` are
/// the denied calls that a question of the finding names already.
fn with_unread(case: &Case, mut unknowns: Vec<Unknown>, named: &[String]) -> Vec<Unknown> {
    unknowns.splice(..0, case.changed_since_launch());
    unknowns.extend(missing(case));
    for denial in aws_denials::refusals(case) {
        if !named.contains(&denial.action) {
            unknowns.push(Unknown {
                source: Witness::Aws,
                question: format!("What would {} tell? ({denial}.)", denial.action).into(),
                command: "aws sts get-caller-identity".into(),
            });
        }
    }
    unknowns
}

/// The evidence of a finding with what every verdict shows: why the machine counts as stuck, how it differs from those
/// that joined, what changed, and what agents report.
fn completed(case: &Case, mut evidence: Vec<Evidence>) -> Vec<Evidence> {
    let is_of = |e: &Evidence, other: &Evidence| (&e.object, &e.field) == (&other.object, &other.field);
    // The rule may have said it already.
    if !evidence.iter().any(|e| is_of(e, &case.wait.evidence)) {
        evidence.insert(0, case.wait.evidence.clone());
    }
    evidence.extend(explain::contrast::evidence(case));
    evidence.extend(facts::recent_edits::evidence(case));
    for report in agent_reports::evidence(case) {
        if !evidence.iter().any(|e| is_of(e, &report)) {
            evidence.push(report);
        }
    }
    evidence
}

fn verdict(case: &Case, evaluated: Evaluated) -> NodeDiagnosis {
    let mut findings = evaluated.findings.into_iter();
    let (rule, finding) = match findings.next() {
        Some((rule, finding)) => (Some(rule), finding),
        None => (None, rules::unknown::finding(case)),
    };
    let finding = explain::spent_budget::told(case, finding);
    let cause = rule.map_or(rules::unknown::CAUSE, |r| r.cause);
    // A proven cause needs no weaker explanation beside it.
    let alternatives: Vec<Alternative> = findings
        .filter(|(_, other)| finding.confidence != Confidence::Certain || other.confidence == Confidence::Certain)
        // A chain that ends at the same object is the same explanation, from another symptom.
        .filter(|(_, other)| other.chain.is_empty() || finding.chain.is_empty() || other.blame != finding.blame)
        .map(|(rule, f)| Alternative {
            cause: rule.cause.into(),
            confidence: f.confidence,
            summary: unwrapped(f.summary),
        })
        .collect();
    let stated = suspects::Stated { cause, confidence: finding.confidence };
    let excluded = |suspect: &str| {
        evaluated.ruled_out.iter().any(|r| r.cause == suspect)
            || alternatives.iter().any(|a| a.cause == suspect)
            || rule.is_some() && suspects::repeats(&finding.evidence, &finding.chain, suspect)
    };
    let suspects = suspects::most_likely(case, stated, excluded);
    let unknowns = match finding.confidence {
        Confidence::Certain => finding.unknowns,
        _ => with_unread(case, finding.unknowns, &finding.denied),
    };
    let evidence = completed(case, finding.evidence);
    let known = rule.is_some();
    let summary = Text::from(unwrapped(finding.summary));
    let condition = |type_: &'static str, holds: bool, reason: &'static str, message: Text| Condition {
        type_: type_.into(),
        status: if holds { "True" } else { "False" }.into(),
        last_transition_time: case.now,
        reason: reason.into(),
        message,
        observed_generation: None,
    };
    let conditions = vec![
        condition("Judged", true, cause, Text::default()),
        condition("Diagnosed", known, if known { cause } else { "CauseUnknown" }, summary.clone()),
    ];
    let owners = managed_by::step(case, finding.blame.as_deref());
    let steps: Vec<FixStep> = finding.steps.into_iter().chain(owners).collect();
    let disruption = disruption::of_fix(&finding.fix, &steps, finding.blame.as_deref(), case.cluster);
    let documentation = rules::documentation(cause);
    let status = NodeDiagnosisStatus {
        stage: case.stage(),
        cause: cause.into(),
        confidence: finding.confidence,
        summary,
        blame: finding.blame,
        evidence,
        chain: finding.chain,
        ruled_out: evaluated.ruled_out,
        unknowns,
        alternatives,
        suspects,
        fix: Some(Fix { summary: finding.fix, disruption, steps, documentation }),
        first_observed_at: case.wait.since,
        // Who does not run deletes nothing.
        terminates_at: case
            .claim
            .filter(|_| case.karpenter().is_none_or(|k| k.stopped.is_none()))
            .and_then(|c| timeout::terminates_at(c, case.karpenter())),
        ended_at: None,
        outcome: None,
        machines: None,
        earlier: Vec::new(),
        recurrences: finding.recurrences,
        conditions,
    }
    .within_limits();
    let mut diagnosis = NodeDiagnosis::new(&case.diagnosis_name(), case.spec());
    diagnosis.status = Some(status);
    // What hangs in its deletion has not ended yet.
    if let Some(claim) = case.claim.filter(|_| case.stage() != Stage::Terminate)
        && let Some(deleted) = claim.metadata.deletion_timestamp
    {
        let why = deletion_reason::reason(case.cluster, claim, deleted);
        close(&mut diagnosis, timeout::outcome(claim, deleted), deleted, why.as_deref());
    }
    in_words(diagnosis, case.words())
}

/// In the words of the kinds that the user has.
fn in_words(mut diagnosis: NodeDiagnosis, words: Words) -> NodeDiagnosis {
    if words == Words::Present {
        return diagnosis;
    }
    let spec = &mut diagnosis.spec;
    if words == Words::BeforeMachines {
        spec.node = spec.node_claim.take().or(spec.node.take());
    }
    spec.node_class = spec.node_class.take().filter(|class| inline_of(&class.name).is_none());
    let told = serde_json::to_value(&diagnosis).and_then(|mut value| {
        words.say(&mut value);
        serde_json::from_value(value)
    });
    told.unwrap_or(diagnosis)
}

/// Marks a diagnosis as ended; `why` says by which design, where it is known.
pub fn close(diagnosis: &mut NodeDiagnosis, outcome: Outcome, at: DateTime<Utc>, why: Option<&str>) {
    let name = diagnosis.spec.subject.name.clone();
    if let Some(status) = &mut diagnosis.status {
        let waited = duration(at - status.first_observed_at);
        let (reason, how) = match outcome {
            Outcome::Recovered => ("Recovered", format!("{name} became usable after {waited}")),
            Outcome::Terminated if status.stage == Stage::Launch => {
                ("LaunchTimeout", format!("Karpenter's launch timeout deleted {name} after {waited}"))
            }
            Outcome::Terminated => {
                ("RegistrationTimeout", format!("Karpenter's registration timeout deleted {name} after {waited}"))
            }
            Outcome::Deleted => (
                "Deleted",
                why.map_or_else(
                    || format!("{name} was deleted after {waited}"),
                    |why| format!("{name} was deleted after {waited}: {why}"),
                ),
            ),
        };
        status.outcome = Some(outcome);
        status.ended_at = Some(at);
        status.terminates_at = None;
        status.conditions.retain(|c| c.type_ != "Ended");
        status.conditions.push(Condition {
            type_: "Ended".into(),
            status: "True".into(),
            last_transition_time: at,
            reason: reason.into(),
            message: how.into(),
            observed_generation: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Topic, topic};
    use crate::api::{Unknown, Witness};
    use crate::objects::input::Input;
    use crate::upstream::former_words::Words;

    #[test]
    fn the_command_tells_what_a_question_is_about_whatever_its_words() {
        let of = |command: &str| {
            topic(&Unknown { source: Witness::Cluster, question: "Is it?".into(), command: command.to_owned().into() })
        };
        assert_eq!(
            of(Input::CertificateSigningRequests.command()),
            Topic::UnreadInput(Input::CertificateSigningRequests)
        );
        let former = Words::BeforeNodePools.said(Input::NodePools.command());
        assert_eq!(former, "kubectl get provisioners -o yaml");
        assert_eq!(of(&former), Topic::UnreadInput(Input::NodePools));
        // A rule asks for an object that clusters may lack, for one machine, and for one object.
        for command in
            [Input::EniConfigs.command(), Input::AccessReviews.command(), "kubectl get nodepool general -o yaml", ""]
        {
            assert_eq!(of(command), Topic::Subject, "{command}");
        }
    }
}
