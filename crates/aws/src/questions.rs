//! What AWS is asked, and when: the one table of calls, from which the IAM policy follows, and the questions of one
//! machine. No IO.

use chrono::TimeDelta;
use engine::api::{NodeDiagnosisStatus, Stage};
use engine::case::Case;
use engine::cluster_state::aws::{self, Told};
use engine::rules;
use engine::rules::shared::told_by_aws;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A call that nodewhy makes. All of them only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    DescribeImages,
    DescribeInstances,
    DescribeInstanceStatus,
    GetConsoleOutput,
    DescribeCluster,
    ListAccessEntries,
    DescribeAccessEntry,
    GetInstanceProfile,
}

impl Call {
    pub const ALL: [Self; 8] = [
        Self::DescribeImages,
        Self::DescribeInstances,
        Self::DescribeInstanceStatus,
        Self::GetConsoleOutput,
        Self::DescribeCluster,
        Self::ListAccessEntries,
        Self::DescribeAccessEntry,
        Self::GetInstanceProfile,
    ];

    /// As IAM calls it.
    pub const fn action(self) -> &'static str {
        match self {
            Self::DescribeImages => aws::IMAGE,
            Self::DescribeInstances => aws::INSTANCE,
            Self::DescribeInstanceStatus => aws::CHECKS,
            Self::GetConsoleOutput => aws::CONSOLE,
            Self::DescribeCluster => aws::CLUSTER,
            Self::ListAccessEntries => "eks:ListAccessEntries",
            Self::DescribeAccessEntry => aws::ENTRY,
            Self::GetInstanceProfile => aws::PROFILE,
        }
    }

    /// `ec2`, `eks` or `iam`.
    pub fn service(self) -> &'static str {
        self.action().split(':').next().unwrap_or_default()
    }

    /// The resource that the policy permits it on. IAM knows none narrower for the calls that list.
    /// Source: AWS service authorization reference of EC2, EKS and IAM.
    const fn resource(self) -> &'static str {
        match self {
            Self::DescribeImages | Self::DescribeInstances | Self::DescribeInstanceStatus => "*",
            Self::GetConsoleOutput => "arn:aws:ec2:*:*:instance/*",
            Self::DescribeCluster | Self::ListAccessEntries => "arn:aws:eks:*:*:cluster/CLUSTER",
            Self::DescribeAccessEntry => "arn:aws:eks:*:*:access-entry/CLUSTER/*",
            Self::GetInstanceProfile => "arn:aws:iam::*:instance-profile/*",
        }
    }
}

/// The least policy with which every call of the table is permitted.
pub fn policy() -> Value {
    let mut statements: Vec<(&str, Vec<&str>)> = Vec::new();
    for call in Call::ALL {
        match statements.iter_mut().find(|(resource, _)| *resource == call.resource()) {
            Some((_, actions)) => actions.push(call.action()),
            None => statements.push((call.resource(), vec![call.action()])),
        }
    }
    let statement = |(resource, actions): &(&str, Vec<&str>)| {
        let mut statement = json!({"Effect": "Allow", "Action": actions, "Resource": resource});
        // What a machine prints is nobody's business but for those that Karpenter has launched.
        if *resource == Call::GetConsoleOutput.resource() {
            statement["Condition"] = json!({"StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"}});
        }
        statement
    };
    json!({"Version": "2012-10-17", "Statement": statements.iter().map(statement).collect::<Vec<_>>()})
}

/// One thing to be known. In this order they are asked where not all can be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    Cluster(String),
    InstanceProfile(String),
    AccessEntry { cluster: String, role: String },
    Instance(String),
    Image(String),
    Checks(String),
    Console(String),
}

impl Question {
    /// What the answer is about.
    pub fn about(&self) -> String {
        match self {
            Self::Cluster(about)
            | Self::InstanceProfile(about)
            | Self::Instance(about)
            | Self::Image(about)
            | Self::Checks(about)
            | Self::Console(about) => about.clone(),
            Self::AccessEntry { cluster, role } => format!("{cluster}/{role}"),
        }
    }

    /// The call whose answer rules read.
    pub const fn call(&self) -> Call {
        match self {
            Self::Cluster(_) => Call::DescribeCluster,
            Self::InstanceProfile(_) => Call::GetInstanceProfile,
            Self::AccessEntry { .. } => Call::DescribeAccessEntry,
            Self::Instance(_) => Call::DescribeInstances,
            Self::Image(_) => Call::DescribeImages,
            Self::Checks(_) => Call::DescribeInstanceStatus,
            Self::Console(_) => Call::GetConsoleOutput,
        }
    }
}

/// EC2 shows what an instance printed a few minutes late.
const CONSOLE_AFTER: TimeDelta = TimeDelta::minutes(3);

/// What to ask AWS about a machine, given the verdict and what AWS has told already; nothing where the objects of the
/// cluster have settled it.
pub fn of(case: &Case, verdict: &NodeDiagnosisStatus) -> BTreeSet<Question> {
    let mut questions = BTreeSet::new();
    if !told_by_aws::concerns(verdict) {
        return questions;
    }
    match case.stage() {
        Stage::Launch => images(case, &mut questions),
        Stage::Join => {
            instance(case, &mut questions);
            role(case, &mut questions);
        }
        Stage::Register | Stage::Initialize | Stage::Ready => instance(case, &mut questions),
        Stage::Terminate => {}
    }
    questions
}

fn images(case: &Case, questions: &mut BTreeSet<Question>) {
    let Some(image) = rules::shared::machine_image::of(case) else { return };
    if matches!(case.cluster.aws().image(image), Told::Absent(_)) {
        witness(case, questions);
    }
    questions.insert(Question::Image(image.to_owned()));
}

fn instance(case: &Case, questions: &mut BTreeSet<Question>) {
    let Some(id) = case.instance_id() else { return };
    questions.insert(Question::Instance(id.to_owned()));
    match case.cluster.aws().instance(id) {
        Told::Is(instance, _) if instance.state == "running" => {
            questions.insert(Question::Checks(id.to_owned()));
            if case.now - case.wait.since >= CONSOLE_AFTER {
                questions.insert(Question::Console(id.to_owned()));
            }
        }
        Told::Absent(_) => witness(case, questions),
        _ => {}
    }
}

/// An instance that surely runs: where EC2 does not show it, region or account is another one.
fn witness(case: &Case, questions: &mut BTreeSet<Question>) {
    if !case.cluster.aws().sees_instances() {
        let ready = case.cluster.nodes().filter(|node| node.is_ready()).find_map(|node| node.instance_id());
        questions.extend(ready.map(|id| Question::Instance(id.to_owned())));
    }
}

fn role(case: &Case, questions: &mut BTreeSet<Question>) {
    let (Some(class), aws) = (case.class(), case.cluster.aws()) else { return };
    questions.extend(class.instance_profile().map(|name| Question::InstanceProfile(name.to_owned())));
    let Some(cluster) = case.cluster_name() else { return };
    questions.insert(Question::Cluster(cluster.to_owned()));
    // A cluster that reads no entries refuses to list them.
    let may_read = match aws.cluster(cluster) {
        Told::Is(cluster, _) => cluster.reads_entries(),
        Told::Refused(_) => true,
        Told::Nothing | Told::Absent(_) => false,
    };
    if let Some(role) = rules::role_of_machines(case).filter(|_| may_read) {
        questions.insert(Question::AccessEntry { cluster: cluster.to_owned(), role: role.to_owned() });
    }
}
