//! What only AWS can tell: opt-in, read-only, and never inside a rule.
//!
//! A machine's verdict leaves [`questions`] open; [`Client::answer`] asks them and gives documents, which the cluster
//! takes in as it takes objects. Then the machine is judged again.

mod console;
mod ec2;
mod eks;
mod iam;
mod images;
mod kms;
mod network;
mod policy;
pub mod questions;
mod quotas;
mod transport;

use chrono::{DateTime, SubsecRound, Utc};
use engine::case::Case;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::{self, Judgement};
use engine::objects::input::Object;
use engine::objects::{Ami, AmiTerm, Answer, AwsObservation, AwsRefusal, Meta};
use http::Uri;
use questions::{Call, Question};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use transport::{CallFailure, Transport};

/// How AWS is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// The region of the cluster; that of its Nodes, else `$AWS_REGION` or `$AWS_DEFAULT_REGION`, where it is not said.
    pub region: Option<String>,
    /// Another address than AWS's own, for all services.
    pub endpoint: Option<Uri>,
    /// The most calls in a minute.
    pub calls_per_minute: usize,
}

/// Why nobody can be asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("--aws: nodewhy does not know the region, because no Node names it. Set it with --aws-region")]
    NoRegion,
    #[error("--aws: cannot create a client: {0}")]
    Client(#[from] std::io::Error),
}

/// Who asks AWS: at the most so many calls in a minute, each thing again only when its answer may have changed.
#[derive(Debug)]
pub struct Client {
    transport: Transport,
    fresh: BTreeMap<Question, Instant>,
    /// Actions that IAM denies, until when, and its words.
    denied: BTreeMap<Call, (Instant, String)>,
    /// Services that do not answer, or not to us, until when, and why.
    down: BTreeMap<&'static str, (Instant, String)>,
    /// The budget of a minute was spent.
    spent: bool,
}

/// A service that does not answer is left alone for so long.
const DOWN_FOR: Duration = Duration::from_mins(1);

/// What a machine becomes in the next minute, an image, a policy: how long an answer is good.
fn good_for(answer: &Answer) -> Duration {
    Duration::from_secs(match answer {
        Answer::Instance(instance) if instance.state == "terminated" => 600,
        Answer::Console(console) if !console.journey.open().is_empty() => 600,
        Answer::Image(image) if image.state == "available" => 600,
        // Nothing of it ever changes.
        Answer::InstanceType(_) => 86_400,
        Answer::Checks(_) | Answer::Console(_) => 120,
        Answer::Cluster(_)
        | Answer::AccessEntry(_)
        | Answer::InstanceProfile(_)
        | Answer::RolePolicies(_)
        | Answer::Key(_)
        | Answer::KeyUsers(_)
        | Answer::Quota(_)
        | Answer::Vpc(_)
        | Answer::Dns(_)
        | Answer::DhcpOptions(_)
        | Answer::Subnets(_)
        | Answer::RouteTables(_)
        | Answer::NetworkAcls(_)
        | Answer::SecurityGroup(_)
        | Answer::VpcEndpoints(_)
        | Answer::NatGateways(_) => 300,
        Answer::Refused(refusal) if refusal.denied => 900,
        Answer::Instance(_) | Answer::Image(_) | Answer::Absent | Answer::Refused(_) => 60,
    })
}

impl Client {
    /// Nothing is asked yet.
    pub fn new(options: &Options, cluster: &ClusterState) -> Result<Self, Error> {
        let named = |name: &str| std::env::var(name).ok().filter(|region| !region.is_empty());
        let region = options
            .region
            .clone()
            .or_else(|| region_of(cluster))
            .or_else(|| named("AWS_REGION"))
            .or_else(|| named("AWS_DEFAULT_REGION"));
        let transport =
            Transport::new(region.ok_or(Error::NoRegion)?, options.endpoint.clone(), options.calls_per_minute)?;
        Ok(Self { transport, fresh: BTreeMap::new(), denied: BTreeMap::new(), down: BTreeMap::new(), spent: false })
    }

    /// The region that is asked.
    pub fn region(&self) -> &str {
        self.transport.region()
    }

    /// Whether something was left out because too many calls were made.
    pub const fn is_spent(&self) -> bool {
        self.spent
    }

    /// Asks what is not known or not fresh, things of a kind together. What the budget does not allow is left out, and
    /// asked another time.
    pub async fn answer(&mut self, questions: BTreeSet<Question>, now: DateTime<Utc>) -> Vec<AwsObservation> {
        let at = Instant::now();
        self.fresh.retain(|_, until| *until > at);
        self.denied.retain(|_, (until, _)| *until > at);
        self.down.retain(|_, (until, _)| *until > at);
        let mut answers = Vec::new();
        let mut batches: BTreeMap<Call, Vec<Question>> = BTreeMap::new();
        let mut single = Vec::new();
        for question in questions.into_iter().filter(|q| !self.fresh.contains_key(q)) {
            match question {
                question if question.has_batches() => {
                    batches.entry(question.call()).or_default().push(question);
                }
                _ => single.push(question),
            }
        }
        // What few verdicts hang on is asked about last.
        let is_last = |q: &Question| matches!(q, Question::RolePolicies(_) | Question::Console(_));
        let (last, first): (Vec<_>, Vec<_>) = single.into_iter().partition(is_last);
        for question in first {
            let answer = self.one(&question).await;
            answers.extend(answer.map(|answer| (question, answer)));
        }
        for (call, questions) in batches {
            for questions in questions.chunks(ec2::BATCH) {
                answers.extend(self.batch(call, questions).await);
            }
        }
        for question in last {
            let answer = self.one(&question).await;
            answers.extend(answer.map(|answer| (question, answer)));
        }
        for (question, answer) in &answers {
            self.fresh.insert(question.clone(), Instant::now() + good_for(answer));
        }
        answers.into_iter().map(|(question, answer)| observation(&question, answer, now)).collect()
    }

    /// The newest images that the terms of a class take, in the order of the terms. Terms of AWS's own images, which
    /// are available before they are named, are left out.
    pub async fn selected(
        &mut self,
        terms: &[AmiTerm],
        now: DateTime<Utc>,
    ) -> Result<Vec<(Ami, AwsObservation)>, String> {
        let mut selected = Vec::new();
        for term in terms.iter().filter(|term| term.id.is_none() && (term.name.is_some() || !term.tags.is_empty())) {
            let found = images::newest(&mut self.transport, term)
                .await
                .map_err(|failure| format!("{}: {failure}", Call::DescribeImages.action()))?;
            if let Some((id, image)) = found {
                let ami = Ami { id: id.clone(), name: image.name.clone(), ..Ami::default() };
                selected.push((ami, observation(&Question::Image(id), Answer::Image(image), now)));
            }
        }
        Ok(selected)
    }

    async fn one(&mut self, question: &Question) -> Option<Answer> {
        if let Some(refused) = self.foreseen(question) {
            return Some(refused);
        }
        let transport = &mut self.transport;
        let of_call = |failure| (question.call(), failure);
        let answer = match question {
            Question::Cluster(name) => eks::cluster(transport, name).await.map_err(of_call),
            Question::AccessEntry { cluster, role } => eks::access_entry(transport, cluster, role).await,
            Question::InstanceProfile(name) => iam::instance_profile(transport, name).await.map_err(of_call),
            Question::RolePolicies(role) => iam::role_policies(transport, role).await,
            Question::Key(id) => kms::key(transport, id).await.map_err(of_call),
            Question::Quota(code) => quotas::quota(transport, code).await.map_err(of_call),
            Question::KeyUsers(arn) => kms::users(transport, arn).await,
            Question::Console(id) => ec2::console(transport, id).await.map_err(of_call),
            Question::OfVpc(call, vpc) => network::of_vpc(transport, *call, vpc).await.map_err(of_call),
            Question::DhcpOptions(id) => network::dhcp_options(transport, id).await.map_err(of_call),
            Question::Instance(_)
            | Question::Image(_)
            | Question::InstanceType(_)
            | Question::Checks(_)
            | Question::SecurityGroup(_) => return None,
        };
        answer.map_or_else(|(call, failure)| self.refused(call, &failure), Some)
    }

    async fn batch(&mut self, call: Call, questions: &[Question]) -> Vec<(Question, Answer)> {
        let all = |answer: Option<Answer>| {
            let each = |answer: Answer| questions.iter().map(move |q| (q.clone(), answer.clone())).collect();
            answer.map_or_else(Vec::new, each)
        };
        if let Some(refused) = questions.first().and_then(|question| self.foreseen(question)) {
            return all(Some(refused));
        }
        let about: Vec<String> = questions.iter().map(Question::about).collect();
        let ids: Vec<&str> = about.iter().map(String::as_str).collect();
        let found = match call {
            Call::DescribeImages => images::images(&mut self.transport, &ids).await,
            Call::DescribeInstanceTypes => images::instance_types(&mut self.transport, &ids).await,
            Call::DescribeInstanceStatus => ec2::checks(&mut self.transport, &ids).await,
            Call::DescribeSecurityGroups => network::security_groups(&mut self.transport, &ids).await,
            _ => ec2::instances(&mut self.transport, &ids).await,
        };
        match found {
            Ok(found) => questions.iter().cloned().zip(found.into_iter().map(|(_, answer)| answer)).collect(),
            Err(failure) => all(self.refused(call, &failure)),
        }
    }

    /// The refusal that a question would get, without asking.
    fn foreseen(&self, question: &Question) -> Option<Answer> {
        let action = |call: Call| call.action().to_owned();
        if let Some((_, why)) = self.down.get(question.call().service()) {
            return Some(Answer::Refused(AwsRefusal {
                action: action(question.call()),
                why: why.clone(),
                denied: false,
            }));
        }
        let calls = match question {
            Question::AccessEntry { .. } => &[Call::ListAccessEntries, Call::DescribeAccessEntry][..],
            Question::RolePolicies(_) => &[Call::ListAttachedRolePolicies, Call::ListRolePolicies],
            Question::KeyUsers(_) => &[Call::GetKeyPolicy, Call::ListGrants],
            _ => &[question.call()],
        };
        let (call, (_, why)) = calls.iter().find_map(|call| Some((*call, self.denied.get(call)?)))?;
        Some(Answer::Refused(AwsRefusal { action: action(call), why: why.clone(), denied: true }))
    }

    /// What a failure tells; nothing where the budget is spent.
    fn refused(&mut self, call: Call, failure: &CallFailure) -> Option<Answer> {
        let why = failure.to_string();
        match failure {
            CallFailure::Budget => {
                self.spent = true;
                return None;
            }
            CallFailure::Denied(_) => {
                // A denial of one thing only, as the console's of a machine without the tag, or a key's by its own
                // policy, says nothing of the next.
                let of_one =
                    matches!(call, Call::GetConsoleOutput | Call::DescribeKey | Call::GetKeyPolicy | Call::ListGrants);
                if !of_one {
                    self.denied.insert(call, (Instant::now() + Duration::from_mins(15), why.clone()));
                }
            }
            CallFailure::Credentials(_) => {
                let until = Instant::now() + DOWN_FOR;
                self.down.extend(Call::ALL.map(|call| (call.service(), (until, why.clone()))));
            }
            CallFailure::Down(_) => {
                self.down.insert(call.service(), (Instant::now() + DOWN_FOR, why.clone()));
            }
            CallFailure::Absent(_) => return Some(Answer::Absent),
            CallFailure::Unanswered(_) | CallFailure::Busy(_) => {}
        }
        let denied = matches!(failure, CallFailure::Denied(_));
        Some(Answer::Refused(AwsRefusal { action: call.action().to_owned(), why, denied }))
    }
}

/// The answer as a document.
fn observation(question: &Question, answer: Answer, now: DateTime<Utc>) -> AwsObservation {
    let (call, about) = (question.call().action(), question.about());
    let name =
        format!("{call}-{about}").to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
    let metadata = Meta { name: name.into(), ..Meta::default() };
    AwsObservation { metadata, call: call.to_owned(), about, at: Some(now.trunc_subsecs(0)), answer }
}

/// The region in which the cluster's machines are, as they say themselves.
pub fn region_of(cluster: &ClusterState) -> Option<String> {
    let label =
        cluster.nodes().find_map(|node| node.metadata.label("topology.kubernetes.io/region").map(str::to_owned));
    let ids = || {
        cluster
            .nodes()
            .map(|n| n.spec.provider_id.as_str())
            .chain(cluster.claims().map(|c| c.status.provider_id.as_str()))
    };
    label.or_else(|| ids().find_map(|id| region_of_zone(id.strip_prefix("aws:///")?.split('/').next()?)))
}

/// `eu-west-1` of `eu-west-1a`, `us-west-2` of the local zone `us-west-2-lax-1a`.
fn region_of_zone(zone: &str) -> Option<String> {
    let parts: Vec<&str> = zone.split('-').collect();
    let number = parts.iter().position(|part| part.starts_with(|c: char| c.is_ascii_digit()))?;
    let digits: String = parts.get(number)?.chars().take_while(char::is_ascii_digit).collect();
    Some(format!("{}-{digits}", parts.get(..number)?.join("-")))
}

/// Rounds of asking: what is asked last follows from what was answered before.
const ROUNDS: usize = 4;

/// Asks all that is open in a cluster that stands still, and takes the answers in; gives them, too.
pub async fn ask(
    aws: &mut Client,
    cluster: &mut ClusterState,
    now: DateTime<Utc>,
    thresholds: &Thresholds,
) -> Vec<AwsObservation> {
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        let questions: BTreeSet<Question> =
            Case::all(Judging::new(cluster, now, thresholds)).flat_map(|case| open(&case, thresholds)).collect();
        let answers = aws.answer(questions, Utc::now()).await;
        if answers.is_empty() {
            break;
        }
        for answer in &answers {
            cluster.apply(Object::AwsObservation(answer.clone()), now);
        }
        all.extend(answers);
    }
    all
}

/// What is open about a machine.
fn open(case: &Case, thresholds: &Thresholds) -> BTreeSet<Question> {
    match diagnose::judge_case(case, thresholds) {
        Judgement::Sick(diagnosis, _) => {
            diagnosis.status.map_or_else(BTreeSet::new, |status| questions::still_open(case, &status))
        }
        Judgement::Healthy | Judgement::Waiting(_) => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_that_of_the_machines() {
        for (zone, region) in [
            ("eu-west-1a", "eu-west-1"),
            ("us-gov-west-1b", "us-gov-west-1"),
            ("us-west-2-lax-1a", "us-west-2"),
            ("ap-southeast-2c", "ap-southeast-2"),
            ("us-east-1-wl1-bos-wlz-1", "us-east-1"),
        ] {
            assert_eq!(region_of_zone(zone).as_deref(), Some(region), "{zone}");
        }
        assert_eq!(region_of_zone("kwok"), None);
    }
}
