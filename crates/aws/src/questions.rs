//! What AWS is asked, and when: the one table of calls, from which the IAM policy follows, and the questions of one
//! machine. No IO.

use chrono::TimeDelta;
use engine::api::{NodeDiagnosisStatus, Stage};
use engine::case::Case;
use engine::cluster_state::aws::{self, AwsAnswer};
use engine::facts::told_by_aws;
use engine::rules;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A call that nodewhy makes. All of them only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    DescribeImages,
    DescribeInstanceTypes,
    DescribeInstances,
    DescribeInstanceStatus,
    DescribeVpcs,
    DescribeVpcAttribute,
    DescribeDhcpOptions,
    DescribeSubnets,
    DescribeRouteTables,
    DescribeNetworkAcls,
    DescribeSecurityGroups,
    DescribeVpcEndpoints,
    DescribeNatGateways,
    GetConsoleOutput,
    DescribeCluster,
    ListAccessEntries,
    DescribeAccessEntry,
    GetInstanceProfile,
    ListAttachedRolePolicies,
    ListRolePolicies,
    DescribeKey,
    GetKeyPolicy,
    ListGrants,
    GetServiceQuota,
}

impl Call {
    pub const ALL: [Self; 24] = [
        Self::DescribeImages,
        Self::DescribeInstanceTypes,
        Self::DescribeInstances,
        Self::DescribeInstanceStatus,
        Self::DescribeVpcs,
        Self::DescribeVpcAttribute,
        Self::DescribeDhcpOptions,
        Self::DescribeSubnets,
        Self::DescribeRouteTables,
        Self::DescribeNetworkAcls,
        Self::DescribeSecurityGroups,
        Self::DescribeVpcEndpoints,
        Self::DescribeNatGateways,
        Self::GetConsoleOutput,
        Self::DescribeCluster,
        Self::ListAccessEntries,
        Self::DescribeAccessEntry,
        Self::GetInstanceProfile,
        Self::ListAttachedRolePolicies,
        Self::ListRolePolicies,
        Self::DescribeKey,
        Self::GetKeyPolicy,
        Self::ListGrants,
        Self::GetServiceQuota,
    ];

    /// As IAM calls it.
    pub const fn action(self) -> &'static str {
        match self {
            Self::DescribeImages => aws::IMAGE,
            Self::DescribeInstanceTypes => aws::INSTANCE_TYPE,
            Self::DescribeInstances => aws::INSTANCE,
            Self::DescribeInstanceStatus => aws::CHECKS,
            Self::DescribeVpcs => aws::VPC,
            Self::DescribeVpcAttribute => aws::DNS,
            Self::DescribeDhcpOptions => aws::DHCP_OPTIONS,
            Self::DescribeSubnets => aws::SUBNETS,
            Self::DescribeRouteTables => aws::ROUTE_TABLES,
            Self::DescribeNetworkAcls => aws::NETWORK_ACLS,
            Self::DescribeSecurityGroups => aws::SECURITY_GROUP,
            Self::DescribeVpcEndpoints => aws::VPC_ENDPOINTS,
            Self::DescribeNatGateways => aws::NAT_GATEWAYS,
            Self::GetConsoleOutput => aws::CONSOLE,
            Self::DescribeCluster => aws::CLUSTER,
            Self::ListAccessEntries => "eks:ListAccessEntries",
            Self::DescribeAccessEntry => aws::ENTRY,
            Self::GetInstanceProfile => aws::PROFILE,
            Self::ListAttachedRolePolicies => aws::ROLE_POLICIES,
            Self::ListRolePolicies => "iam:ListRolePolicies",
            Self::DescribeKey => aws::KEY,
            Self::GetKeyPolicy => aws::KEY_USERS,
            Self::ListGrants => "kms:ListGrants",
            Self::GetServiceQuota => aws::QUOTA,
        }
    }

    /// `ec2`, `eks`, `iam`, `kms` or `servicequotas`.
    pub fn service(self) -> &'static str {
        self.action().split(':').next().unwrap_or_default()
    }

    /// The resource that the policy permits it on. IAM knows none narrower for the calls that list.
    /// Source: AWS service authorization reference of EC2, EKS, IAM, KMS and Service Quotas.
    const fn resource(self) -> &'static str {
        match self {
            Self::GetConsoleOutput => "arn:aws:ec2:*:*:instance/*",
            Self::DescribeCluster | Self::ListAccessEntries => "arn:aws:eks:*:*:cluster/CLUSTER",
            Self::DescribeAccessEntry => "arn:aws:eks:*:*:access-entry/CLUSTER/*",
            Self::GetInstanceProfile => "arn:aws:iam::*:instance-profile/*",
            Self::ListAttachedRolePolicies | Self::ListRolePolicies => "arn:aws:iam::*:role/*",
            Self::DescribeKey | Self::GetKeyPolicy | Self::ListGrants => "arn:aws:kms:*:*:key/*",
            _ => "*",
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
    Key(String),
    /// By the key's ARN.
    KeyUsers(String),
    /// Of EC2, by its code.
    Quota(String),
    AccessEntry {
        cluster: String,
        role: String,
    },
    RolePolicies(String),
    Instance(String),
    Image(String),
    InstanceType(String),
    /// Of a VPC: what this call shows.
    OfVpc(Call, String),
    DhcpOptions(String),
    SecurityGroup(String),
    Checks(String),
    Console(String),
}

impl Question {
    /// What the answer is about.
    pub fn about(&self) -> String {
        match self {
            Self::Cluster(about)
            | Self::InstanceProfile(about)
            | Self::Key(about)
            | Self::KeyUsers(about)
            | Self::Quota(about)
            | Self::Instance(about)
            | Self::Image(about)
            | Self::InstanceType(about)
            | Self::RolePolicies(about)
            | Self::OfVpc(_, about)
            | Self::DhcpOptions(about)
            | Self::SecurityGroup(about)
            | Self::Checks(about)
            | Self::Console(about) => about.clone(),
            Self::AccessEntry { cluster, role } => format!("{cluster}/{role}"),
        }
    }

    /// Whether one call answers many of its kind.
    pub const fn has_batches(&self) -> bool {
        matches!(
            self,
            Self::Instance(_) | Self::Image(_) | Self::InstanceType(_) | Self::Checks(_) | Self::SecurityGroup(_)
        )
    }

    /// The call whose answer rules read.
    pub const fn call(&self) -> Call {
        match self {
            Self::Cluster(_) => Call::DescribeCluster,
            Self::InstanceProfile(_) => Call::GetInstanceProfile,
            Self::RolePolicies(_) => Call::ListAttachedRolePolicies,
            Self::Key(_) => Call::DescribeKey,
            Self::KeyUsers(_) => Call::GetKeyPolicy,
            Self::Quota(_) => Call::GetServiceQuota,
            Self::AccessEntry { .. } => Call::DescribeAccessEntry,
            Self::Instance(_) => Call::DescribeInstances,
            Self::Image(_) => Call::DescribeImages,
            Self::InstanceType(_) => Call::DescribeInstanceTypes,
            Self::OfVpc(call, _) => *call,
            Self::DhcpOptions(_) => Call::DescribeDhcpOptions,
            Self::SecurityGroup(_) => Call::DescribeSecurityGroups,
            Self::Checks(_) => Call::DescribeInstanceStatus,
            Self::Console(_) => Call::GetConsoleOutput,
        }
    }
}

/// EC2 shows what an instance printed a few minutes late.
const CONSOLE_AFTER: TimeDelta = TimeDelta::minutes(3);

/// What to ask AWS about a machine, given the verdict and what AWS has told already; nothing where the objects of the
/// cluster have settled it.
pub fn still_open(case: &Case, verdict: &NodeDiagnosisStatus) -> BTreeSet<Question> {
    let mut questions = BTreeSet::new();
    if !told_by_aws::concerns(verdict) {
        return questions;
    }
    match case.stage() {
        Stage::Launch => match rules::quota_in_question(case) {
            Some(code) => _ = questions.insert(Question::Quota(code.to_owned())),
            None => images(case, &mut questions),
        },
        Stage::Join => {
            instance(case, &mut questions);
            questions.extend(rules::encrypted_image_in_question(case).map(|id| Question::Image(id.to_owned())));
            questions.extend(rules::volume_key_in_question(case).map(|key| Question::Key(key.to_owned())));
            questions.extend(rules::key_users_in_question(case).map(|arn| Question::KeyUsers(arn.to_owned())));
            role(case, &mut questions);
            network(case, &mut questions);
        }
        Stage::Initialize => {
            instance(case, &mut questions);
            cluster(case, &mut questions);
            network(case, &mut questions);
        }
        Stage::Register | Stage::Ready => instance(case, &mut questions),
        Stage::Terminate => {}
    }
    questions
}

fn images(case: &Case, questions: &mut BTreeSet<Question>) {
    let Some(image) = engine::facts::machine_image::of(case) else { return };
    if matches!(case.cluster.aws().image(image), AwsAnswer::Absent(_)) {
        witness(case, questions);
    }
    questions.insert(Question::Image(image.to_owned()));
    questions.extend(rules::types_in_question(case).into_iter().map(|name| Question::InstanceType(name.to_owned())));
}

fn instance(case: &Case, questions: &mut BTreeSet<Question>) {
    let Some(id) = case.instance_id() else { return };
    questions.insert(Question::Instance(id.to_owned()));
    match case.cluster.aws().instance(id) {
        AwsAnswer::Found(instance, _) if instance.state == "running" => {
            questions.insert(Question::Checks(id.to_owned()));
            if case.now - case.wait.since >= CONSOLE_AFTER {
                questions.insert(Question::Console(id.to_owned()));
            }
        }
        AwsAnswer::Absent(_) => witness(case, questions),
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

fn cluster<'w>(case: &Case<'w>, questions: &mut BTreeSet<Question>) -> Option<&'w str> {
    let name = case.cluster_name()?;
    questions.insert(Question::Cluster(name.to_owned()));
    Some(name)
}

/// The way to the API server and to AWS: one answer of each kind is that of all machines of the VPC.
fn network(case: &Case, questions: &mut BTreeSet<Question>) {
    const OF_VPC: [Call; 7] = [
        Call::DescribeVpcs,
        Call::DescribeVpcAttribute,
        Call::DescribeSubnets,
        Call::DescribeRouteTables,
        Call::DescribeNetworkAcls,
        Call::DescribeVpcEndpoints,
        Call::DescribeNatGateways,
    ];
    let wanted = rules::network_questions(case);
    questions.extend(wanted.instances.into_iter().map(|id| Question::Instance(id.to_owned())));
    questions.extend(wanted.groups.into_iter().map(|id| Question::SecurityGroup(id.to_owned())));
    questions.extend(wanted.dhcp_options.map(|id| Question::DhcpOptions(id.to_owned())));
    if let Some(vpc) = wanted.vpc {
        questions.extend(OF_VPC.map(|call| Question::OfVpc(call, vpc.to_owned())));
    }
}

fn role(case: &Case, questions: &mut BTreeSet<Question>) {
    let aws = case.cluster.aws();
    questions.extend(rules::profile_of_machine(case).map(|name| Question::InstanceProfile(name.to_owned())));
    questions.extend(rules::policies_in_question(case).map(|role| Question::RolePolicies(role.to_owned())));
    let Some(cluster) = cluster(case, questions) else { return };
    // A cluster that reads no entries refuses to list them.
    let may_read = match aws.cluster(cluster) {
        AwsAnswer::Found(cluster, _) => cluster.reads_entries(),
        AwsAnswer::Refused(_) => true,
        AwsAnswer::NotAsked | AwsAnswer::Absent(_) => false,
    };
    if let Some(role) = rules::role_of_machines(case).filter(|_| may_read) {
        questions.insert(Question::AccessEntry { cluster: cluster.to_owned(), role: role.to_owned() });
    }
}
