//! What AWS was asked and answered, by call and by what it was about.

use crate::objects::{
    AccessEntry, Answer, AwsObservation, AwsRefusal, Checks, Console, DhcpOptions, DnsAttributes, EksCluster,
    GroupRules, Image, Instance, InstanceProfile, InstanceType, KeyUsers, KmsKey, NatGateway, NetworkAcl, NodeClass,
    RolePolicies, RouteTable, ServiceQuota, Vpc, VpcEndpoint, VpcSubnet,
};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// The calls whose answers rules read.
pub const IMAGE: &str = "ec2:DescribeImages";
pub const INSTANCE_TYPE: &str = "ec2:DescribeInstanceTypes";
pub const INSTANCE: &str = "ec2:DescribeInstances";
pub const CHECKS: &str = "ec2:DescribeInstanceStatus";
pub const CONSOLE: &str = "ec2:GetConsoleOutput";
pub const CLUSTER: &str = "eks:DescribeCluster";
pub const ENTRY: &str = "eks:DescribeAccessEntry";
pub const PROFILE: &str = "iam:GetInstanceProfile";
pub const ROLE_POLICIES: &str = "iam:ListAttachedRolePolicies";
pub const KEY: &str = "kms:DescribeKey";
pub const KEY_USERS: &str = "kms:GetKeyPolicy";
pub const QUOTA: &str = "servicequotas:GetServiceQuota";
pub const VPC: &str = "ec2:DescribeVpcs";
pub const DNS: &str = "ec2:DescribeVpcAttribute";
pub const DHCP_OPTIONS: &str = "ec2:DescribeDhcpOptions";
pub const SUBNETS: &str = "ec2:DescribeSubnets";
pub const ROUTE_TABLES: &str = "ec2:DescribeRouteTables";
pub const NETWORK_ACLS: &str = "ec2:DescribeNetworkAcls";
pub const SECURITY_GROUP: &str = "ec2:DescribeSecurityGroups";
pub const VPC_ENDPOINTS: &str = "ec2:DescribeVpcEndpoints";
pub const NAT_GATEWAYS: &str = "ec2:DescribeNatGateways";

/// The answer of AWS to a question.
#[derive(Debug, PartialEq)]
pub enum AwsAnswer<'w, T> {
    /// nodewhy has not asked.
    NotAsked,
    Refused(&'w AwsRefusal),
    /// There is no such thing, as of then.
    Absent(Option<DateTime<Utc>>),
    Found(&'w T, Option<DateTime<Utc>>),
}

impl<T> Clone for AwsAnswer<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for AwsAnswer<'_, T> {}

impl<'w, T> AwsAnswer<'w, T> {
    pub fn refusal(self) -> Option<&'w AwsRefusal> {
        if let Self::Refused(refusal) = self { Some(refusal) } else { None }
    }

    pub fn known(self) -> Option<(&'w T, Option<DateTime<Utc>>)> {
        match self {
            Self::Found(fact, at) => Some((fact, at)),
            _ => None,
        }
    }
}

/// The answers.
#[derive(Debug, Clone, Default)]
pub struct Aws {
    /// By what they are about, then by call.
    answers: BTreeMap<String, BTreeMap<String, AwsObservation>>,
}

impl Aws {
    /// Keeps an answer; false where it is the one that stands. What AWS says again keeps the time at which it said so
    /// first, so that a verdict does not change because somebody asked again.
    pub(super) fn insert(&mut self, observation: AwsObservation) -> bool {
        let of_thing = self.answers.entry(observation.about.clone()).or_default();
        let known =
            of_thing.get(&observation.call).is_some_and(|old| observation.answer.tells_no_more_than(&old.answer));
        if !known {
            of_thing.insert(observation.call.clone(), observation);
        }
        !known
    }

    pub(super) fn forget(&mut self, about: &str) {
        self.answers.remove(about);
    }

    pub(super) fn remove(&mut self, name: &str) {
        for of_thing in self.answers.values_mut() {
            of_thing.retain(|_, observation| observation.metadata.name != *name);
        }
        self.answers.retain(|_, of_thing| !of_thing.is_empty());
    }

    /// The answer as it was given.
    pub fn observation(&self, call: &str, about: &str) -> Option<&AwsObservation> {
        self.answers.get(about)?.get(call)
    }

    fn told<'w, T>(&'w self, call: &str, about: &str, of: impl Fn(&'w Answer) -> Option<&'w T>) -> AwsAnswer<'w, T> {
        let Some(observation) = self.observation(call, about) else { return AwsAnswer::NotAsked };
        match &observation.answer {
            Answer::Refused(refusal) => AwsAnswer::Refused(refusal),
            Answer::Absent => AwsAnswer::Absent(observation.at),
            answer => of(answer).map_or(AwsAnswer::NotAsked, |fact| AwsAnswer::Found(fact, observation.at)),
        }
    }

    pub fn image(&self, id: &str) -> AwsAnswer<'_, Image> {
        self.told(IMAGE, id, |a| if let Answer::Image(image) = a { Some(image) } else { None })
    }

    pub fn instance_type(&self, name: &str) -> AwsAnswer<'_, InstanceType> {
        self.told(INSTANCE_TYPE, name, |a| if let Answer::InstanceType(type_) = a { Some(type_) } else { None })
    }

    pub fn instance(&self, id: &str) -> AwsAnswer<'_, Instance> {
        self.told(INSTANCE, id, |a| if let Answer::Instance(instance) = a { Some(&**instance) } else { None })
    }

    pub fn checks(&self, id: &str) -> AwsAnswer<'_, Checks> {
        self.told(CHECKS, id, |a| if let Answer::Checks(checks) = a { Some(checks) } else { None })
    }

    pub fn console(&self, id: &str) -> AwsAnswer<'_, Console> {
        self.told(CONSOLE, id, |a| if let Answer::Console(console) = a { Some(&**console) } else { None })
    }

    pub fn cluster(&self, name: &str) -> AwsAnswer<'_, EksCluster> {
        self.told(CLUSTER, name, |a| if let Answer::Cluster(cluster) = a { Some(cluster) } else { None })
    }

    /// The access entry of a role, by the role's name.
    pub fn access_entry(&self, cluster: &str, role: &str) -> AwsAnswer<'_, AccessEntry> {
        // Ten times a machine, and most clusters never ask AWS.
        if self.answers.is_empty() {
            return AwsAnswer::NotAsked;
        }
        self.told(ENTRY, &format!("{cluster}/{role}"), |a| {
            if let Answer::AccessEntry(entry) = a { Some(entry) } else { None }
        })
    }

    pub fn instance_profile(&self, name: &str) -> AwsAnswer<'_, InstanceProfile> {
        self.told(PROFILE, name, |a| if let Answer::InstanceProfile(profile) = a { Some(profile) } else { None })
    }

    /// By the role's name.
    pub fn role_policies(&self, role: &str) -> AwsAnswer<'_, RolePolicies> {
        self.told(ROLE_POLICIES, role, |a| if let Answer::RolePolicies(policies) = a { Some(policies) } else { None })
    }

    pub fn key(&self, id: &str) -> AwsAnswer<'_, KmsKey> {
        self.told(KEY, id, |a| if let Answer::Key(key) = a { Some(key) } else { None })
    }

    /// By the key's ARN.
    pub fn key_users(&self, arn: &str) -> AwsAnswer<'_, KeyUsers> {
        self.told(KEY_USERS, arn, |a| if let Answer::KeyUsers(users) = a { Some(users) } else { None })
    }

    /// A quota of EC2, by its code.
    pub fn quota(&self, code: &str) -> AwsAnswer<'_, ServiceQuota> {
        self.told(QUOTA, code, |a| if let Answer::Quota(quota) = a { Some(quota) } else { None })
    }

    /// The name of the role that the machines of a class have: as the class says, else as IAM says of its profile.
    pub fn role_of<'w>(&'w self, class: &'w NodeClass) -> Option<&'w str> {
        let of_profile = || self.instance_profile(class.instance_profile()?).known()?.0.role_arn.as_deref();
        class.spec.role.as_deref().or_else(of_profile)?.rsplit('/').next()
    }

    pub fn vpc(&self, id: &str) -> AwsAnswer<'_, Vpc> {
        self.told(VPC, id, |a| if let Answer::Vpc(vpc) = a { Some(vpc) } else { None })
    }

    pub fn dns(&self, vpc: &str) -> AwsAnswer<'_, DnsAttributes> {
        self.told(DNS, vpc, |a| if let Answer::Dns(dns) = a { Some(dns) } else { None })
    }

    pub fn dhcp_options(&self, id: &str) -> AwsAnswer<'_, DhcpOptions> {
        self.told(DHCP_OPTIONS, id, |a| if let Answer::DhcpOptions(options) = a { Some(options) } else { None })
    }

    pub fn subnets(&self, vpc: &str) -> AwsAnswer<'_, Vec<VpcSubnet>> {
        self.told(SUBNETS, vpc, |a| if let Answer::Subnets(subnets) = a { Some(subnets) } else { None })
    }

    pub fn route_tables(&self, vpc: &str) -> AwsAnswer<'_, Vec<RouteTable>> {
        self.told(ROUTE_TABLES, vpc, |a| if let Answer::RouteTables(tables) = a { Some(tables) } else { None })
    }

    pub fn network_acls(&self, vpc: &str) -> AwsAnswer<'_, Vec<NetworkAcl>> {
        self.told(NETWORK_ACLS, vpc, |a| if let Answer::NetworkAcls(acls) = a { Some(acls) } else { None })
    }

    pub fn security_group(&self, id: &str) -> AwsAnswer<'_, GroupRules> {
        self.told(SECURITY_GROUP, id, |a| if let Answer::SecurityGroup(group) = a { Some(group) } else { None })
    }

    pub fn vpc_endpoints(&self, vpc: &str) -> AwsAnswer<'_, Vec<VpcEndpoint>> {
        self.told(VPC_ENDPOINTS, vpc, |a| if let Answer::VpcEndpoints(endpoints) = a { Some(endpoints) } else { None })
    }

    pub fn nat_gateways(&self, vpc: &str) -> AwsAnswer<'_, Vec<NatGateway>> {
        self.told(NAT_GATEWAYS, vpc, |a| if let Answer::NatGateways(gateways) = a { Some(gateways) } else { None })
    }

    /// The requests about one AWS resource that AWS denied.
    pub fn refusals_about<'w>(&'w self, about: &str) -> impl Iterator<Item = &'w AwsRefusal> + use<'w> {
        let of_thing = self.answers.get(about).into_iter().flat_map(BTreeMap::values);
        of_thing.filter_map(|o| if let Answer::Refused(refusal) = &o.answer { Some(refusal) } else { None })
    }

    /// Whether EC2 showed an instance that is here: then it was asked in the right region, for the right account.
    pub fn sees_instances(&self) -> bool {
        self.answers.values().flat_map(BTreeMap::values).any(|o| matches!(o.answer, Answer::Instance(_)))
    }
}
