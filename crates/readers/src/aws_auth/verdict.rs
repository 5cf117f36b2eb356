//! How a node role fares with the mappings: whom the authenticator takes it for, or why no entry matches.
//!
//! The caller is known by the ARN that STS reports, `arn:P:sts::ACCOUNT:assumed-role/ROLE/SESSION`, turned into
//! `arn:P:iam::ACCOUNT:role/ROLE` (pkg/arn/arn.go `Canonicalize`) and compared whole, without regard to case
//! (pkg/config/mapper.go `Matches`). STS leaves the role's path out, and the entries are never canonicalised.

use super::{AwsAuth, Broken, MappingDefect, NODES_GROUP, RoleMapping};

/// How a role fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// An entry matches and makes a node of the caller. Which node name it implies is [`RoleMapping::node_name`];
    /// groups that are usual but not needed are [`RoleMapping::missing_node_groups`].
    Mapped(&'a RoleMapping),
    /// An entry matches, but its username is no node's.
    WrongUsername {
        entry: &'a RoleMapping,
        flaw: UsernameFlaw,
    },
    /// An entry matches, but [`NODES_GROUP`] is missing, perhaps others with it.
    MissingGroups {
        entry: &'a RoleMapping,
        missing: Vec<&'static str>,
    },
    /// `entry` would do, but `by`, a later entry of the same ARN that will not, replaces it.
    Shadowed {
        entry: &'a RoleMapping,
        by: &'a RoleMapping,
    },
    /// The text has an entry of that role which the authenticator drops.
    Dropped {
        defect: &'a MappingDefect,
    },
    /// No entry matches, but this one is about that role.
    NearMiss {
        entry: &'a RoleMapping,
        miss: Miss,
    },
    /// `mapRoles` cannot be read, so no role is mapped by it.
    Broken(&'a Broken),
    Unmapped,
}

/// Why an entry for the role never matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// `role/some/path/NAME`: the authenticator compares with `role/NAME`.
    PathInArn,
    /// `:instance-profile/NAME`
    InstanceProfileArn,
    /// `arn:aws:sts::…:assumed-role/NAME/…`
    AssumedRoleArn,
    /// White space around the ARN, which nobody trims.
    Blank,
    /// The name of the role without an ARN around it.
    NotAnArn,
    /// An ARN that no IAM role can have; the text says which part is wrong.
    Malformed(&'static str),
    /// The role of that name in another account.
    OtherAccount,
    /// The role of that name in another partition.
    OtherPartition,
    /// Another name, this many letters away: a typing error, or just a sibling.
    Similar { distance: usize },
}

/// What is wrong with a username, where nodes need `system:node:NODENAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsernameFlaw {
    /// Missing, empty, or not a string.
    Empty,
    /// It does not start with `system:node:`.
    NoNodePrefix,
    /// A template that stays as it is written: wrong in case or in spelling.
    UnknownTemplate(String),
    /// The same, or another name, for all nodes: what follows the prefix is not the node's name.
    NotTheNodeName,
}

/// The node name that a username admits; a kubelet with another name may not register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeName {
    /// `{{EC2PrivateDNSName}}`, what kubelets on EKS use.
    PrivateDns,
    /// `{{SessionName}}`: right for nodeadm's `InstanceIdNodeName` and for Fargate only.
    InstanceId,
}

impl RoleMapping {
    /// The node name its username admits, or why it makes no node.
    pub fn node_name(&self) -> Result<NodeName, UsernameFlaw> {
        if self.username.is_empty() {
            return Err(UsernameFlaw::Empty);
        }
        // Kubernetes v1.36 pkg/auth/nodeidentifier/default.go
        let name = self.username.strip_prefix("system:node:").ok_or(UsernameFlaw::NoNodePrefix)?;
        // pkg/server/server.go renderTemplate()
        match name {
            "{{EC2PrivateDNSName}}" => Ok(NodeName::PrivateDns),
            "{{SessionName}}" | "{{SessionNameRaw}}" => Ok(NodeName::InstanceId),
            _ => Err(unknown_template(name).map_or(UsernameFlaw::NotTheNodeName, UsernameFlaw::UnknownTemplate)),
        }
    }

    /// The account in the ARN, where it is one.
    pub fn account(&self) -> Option<&str> {
        Arn::parse(&self.role_arn).map(|arn| arn.account).filter(|account| is_account(account))
    }
}

impl AwsAuth {
    /// How the node role fares: its name, or its ARN where that is known (an account other than the role's is then
    /// noticed).
    pub fn judge(&self, role: &str) -> Verdict<'_> {
        let role = Role::new(role);
        // Every entry is weighed once; the strongest finding speaks.
        let misses = || self.entries().filter_map(|entry| Some((entry, role.miss(entry)?)));
        self.judge_match(&role)
            .or_else(|| self.broken.as_ref().map(Verdict::Broken))
            .or_else(|| {
                let about = |scalar: &String| role.is_named_by(scalar.trim());
                let dropped = self.dropped.iter().find(|dropped| dropped.scalars.iter().any(about))?;
                Some(Verdict::Dropped { defect: &dropped.defect })
            })
            .or_else(|| {
                misses().min_by_key(|(_, miss)| miss.rank()).map(|(entry, miss)| Verdict::NearMiss { entry, miss })
            })
            .unwrap_or(Verdict::Unmapped)
    }

    /// The entries about a role of this name, whatever else is wrong with their ARN.
    pub fn entries_with_role_name(&self, name: &str) -> impl Iterator<Item = &RoleMapping> {
        let role = Role::new(name);
        self.entries().filter(move |entry| role.is_named_by(entry.role_arn.trim()))
    }

    /// In the order in which they are asked: pkg/mapper/configmap/mapper.go `Map`.
    fn entries(&self) -> impl Iterator<Item = &RoleMapping> {
        self.roles.iter().chain(&self.users)
    }

    fn judge_match(&self, role: &Role<'_>) -> Option<Verdict<'_>> {
        let mut verdict = None;
        for entry in self.entries().filter(|entry| entry.shadowed_by.is_none() && role.matches(entry)) {
            match fitness(entry) {
                Verdict::Mapped(entry) => return Some(Verdict::Mapped(entry)),
                unfit => verdict = verdict.or(Some((entry, unfit))),
            }
        }
        let (by, unfit) = verdict?;
        let replaced = self
            .entries()
            .find(|entry| self.winner_over(entry) == Some(by) && matches!(fitness(entry), Verdict::Mapped(_)));
        Some(replaced.map_or(unfit, |entry| Verdict::Shadowed { entry, by }))
    }

    fn winner_over(&self, entry: &RoleMapping) -> Option<&RoleMapping> {
        let list = if entry.key == super::DataKey::MapUsers { &self.users } else { &self.roles };
        list.get(entry.shadowed_by?)
    }
}

/// What a matching entry makes of its caller.
fn fitness(entry: &RoleMapping) -> Verdict<'_> {
    match entry.node_name() {
        Err(flaw) => Verdict::WrongUsername { entry, flaw },
        Ok(_) if !entry.has_group(NODES_GROUP) => {
            Verdict::MissingGroups { entry, missing: entry.missing_node_groups() }
        }
        Ok(_) => Verdict::Mapped(entry),
    }
}

/// The first `{{…}}` that no template is.
fn unknown_template(text: &str) -> Option<String> {
    const KNOWN: &[&str] =
        &["{{EC2PrivateDNSName}}", "{{AccountID}}", "{{SessionName}}", "{{SessionNameRaw}}", "{{AccessKeyID}}"];
    let mut rest = text;
    while let Some((_, from)) = rest.split_once("{{") {
        let Some((name, after)) = from.split_once("}}") else { return Some(format!("{{{{{from}")) };
        let template = format!("{{{{{name}}}}}");
        if !KNOWN.contains(&template.as_str()) {
            return Some(template);
        }
        rest = after;
    }
    None
}

/// pkg/endpoints/partitions.go
const PARTITIONS: &[&str] =
    &["aws", "aws-cn", "aws-us-gov", "aws-iso", "aws-iso-b", "aws-iso-e", "aws-iso-f", "aws-eusc"];

/// The role asked about.
struct Role<'r> {
    name: &'r str,
    /// Partition and account, where the role's ARN is known.
    home: Option<(&'r str, &'r str)>,
}

impl<'r> Role<'r> {
    fn new(role: &'r str) -> Self {
        match Arn::parse(role) {
            Some(arn) => Self { name: last_segment(arn.resource), home: Some((arn.partition, arn.account)) },
            None => Self { name: role, home: None },
        }
    }

    fn matches(&self, entry: &RoleMapping) -> bool {
        Arn::parse(&entry.role_arn).is_some_and(|arn| self.arn_miss(&arn).is_none() && self.is_resource(arn.resource))
    }

    fn is_resource(&self, resource: &str) -> bool {
        resource
            .split_once('/')
            .is_some_and(|(kind, name)| kind.eq_ignore_ascii_case("role") && name.eq_ignore_ascii_case(self.name))
    }

    /// Whether the last segment of `text`, an ARN or a bare name, is this role; of an assumed role, the one before.
    fn is_named_by(&self, text: &str) -> bool {
        let name = match text.split_once(":assumed-role/") {
            Some((_, role_and_session)) => role_and_session.split('/').next().unwrap_or_default(),
            None => last_segment(text),
        };
        !name.is_empty() && name.eq_ignore_ascii_case(self.name)
    }

    /// What keeps an entry that does not match from matching, if it is about this role.
    fn miss(&self, entry: &RoleMapping) -> Option<Miss> {
        let text = entry.role_arn.trim();
        if !self.is_named_by(text) {
            let distance = distance(&last_segment(text).to_ascii_lowercase(), &self.name.to_ascii_lowercase(), 2)?;
            return (self.name.chars().count() >= 6).then_some(Miss::Similar { distance });
        }
        let Some(arn) = Arn::parse(text) else {
            return Some(if starts_with_arn(text) {
                Miss::Malformed("it needs six parts, `arn:PARTITION:iam::ACCOUNT:role/NAME`")
            } else {
                Miss::NotAnArn
            });
        };
        let kind = arn.resource.split('/').next().unwrap_or_default().to_ascii_lowercase();
        match kind.as_str() {
            "instance-profile" => Some(Miss::InstanceProfileArn),
            "assumed-role" => Some(Miss::AssumedRoleArn),
            "role" if !self.is_resource(arn.resource) => Some(Miss::PathInArn),
            "role" => self.arn_miss(&arn).or_else(|| (text.len() != entry.role_arn.len()).then_some(Miss::Blank)),
            _ => Some(Miss::Malformed("it does not name a role: `role/NAME` must follow the account")),
        }
    }

    /// What before the resource differs from a role's ARN, or from this role's.
    fn arn_miss(&self, arn: &Arn<'_>) -> Option<Miss> {
        if !arn.prefix.eq_ignore_ascii_case("arn") {
            return Some(Miss::Malformed("it must start with `arn:`"));
        }
        if !arn.service.eq_ignore_ascii_case("iam") {
            return Some(Miss::Malformed("the service of a role's ARN is `iam`"));
        }
        if !arn.region.is_empty() {
            return Some(Miss::Malformed("a role's ARN has no region: two colons follow `iam`"));
        }
        if !is_account(arn.account) {
            return Some(Miss::Malformed("the account must be twelve digits"));
        }
        if !PARTITIONS.iter().any(|partition| partition.eq_ignore_ascii_case(arn.partition)) {
            return Some(Miss::Malformed("there is no such partition"));
        }
        match self.home {
            Some((partition, _)) if !partition.eq_ignore_ascii_case(arn.partition) => Some(Miss::OtherPartition),
            Some((_, account)) if account != arn.account => Some(Miss::OtherAccount),
            _ => None,
        }
    }
}

/// The reason why an entry for nodes authorizes no node, whatever its role is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeFlaw {
    /// No caller has such an ARN.
    Arn(Miss),
    Username(UsernameFlaw),
    /// The group [`NODES_GROUP`] is missing.
    Groups,
}

impl RoleMapping {
    /// The mistake of an entry that itself says that it is one for nodes. Values that a template fills in are not
    /// judged.
    pub fn node_flaw(&self) -> Option<NodeFlaw> {
        let says_node =
            self.username.starts_with("system:node:") || self.groups.iter().any(|g| g.contains(NODES_GROUP));
        let unknown = |text: &str| text.contains('$') || text.contains("{{ ");
        if !says_node || self.shadowed_by.is_some() || unknown(&self.role_arn) || self.role_arn.contains("{{") {
            return None;
        }
        let name = Role::new(self.role_arn.trim()).name;
        let name = match self.role_arn.split_once(":assumed-role/") {
            Some((_, rest)) => rest.split('/').next().unwrap_or_default(),
            None => last_segment(name),
        };
        let role = Role { name, home: None };
        if let Some(miss) = (!role.matches(self)).then(|| role.miss(self)).flatten() {
            return Some(NodeFlaw::Arn(miss));
        }
        if unknown(&self.username) || self.groups.iter().any(|group| unknown(group)) {
            return None;
        }
        match fitness(self) {
            Verdict::WrongUsername { flaw: UsernameFlaw::NotTheNodeName, .. } => None,
            Verdict::WrongUsername { flaw, .. } => Some(NodeFlaw::Username(flaw)),
            Verdict::MissingGroups { .. } => Some(NodeFlaw::Groups),
            _ => None,
        }
    }
}

impl Miss {
    /// Why the ARN matches no caller. `None` if it may be the ARN of another role.
    pub fn why(&self) -> Option<String> {
        Some(match self {
            Self::PathInArn => "has an IAM path, which STS leaves out".to_owned(),
            Self::InstanceProfileArn => "is an instance profile's, but callers have the ARN of the role".to_owned(),
            Self::AssumedRoleArn => {
                "is an assumed role's, but the authenticator compares with the ARN of the role itself".to_owned()
            }
            Self::Blank => "has white space around it, which the authenticator compares too".to_owned(),
            Self::NotAnArn => "is not an ARN".to_owned(),
            Self::Malformed(why) => format!("is malformed: {why}"),
            Self::OtherAccount => "belongs to another account".to_owned(),
            Self::OtherPartition => "belongs to another partition".to_owned(),
            Self::Similar { .. } => return None,
        })
    }

    /// A name that differs says less than the right name in a wrong place.
    fn rank(&self) -> usize {
        match self {
            Self::Similar { distance } => *distance,
            _ => 0,
        }
    }
}

/// The six parts of an ARN, unchecked.
struct Arn<'t> {
    prefix: &'t str,
    partition: &'t str,
    service: &'t str,
    region: &'t str,
    account: &'t str,
    resource: &'t str,
}

impl<'t> Arn<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let mut parts = text.splitn(6, ':');
        Some(Self {
            prefix: parts.next()?,
            partition: parts.next()?,
            service: parts.next()?,
            region: parts.next()?,
            account: parts.next()?,
            resource: parts.next()?,
        })
    }
}

fn starts_with_arn(text: &str) -> bool {
    text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("arn:"))
}

fn is_account(account: &str) -> bool {
    account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit())
}

fn last_segment(text: &str) -> &str {
    text.rsplit(['/', ':']).next().unwrap_or_default()
}

/// The edit distance of two short words, if it is at most `limit`.
pub(super) fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    // IAM allows 64 characters in a role's name; anything longer is no misspelling of one.
    const LONGEST: usize = 64;
    if a.len().max(b.len()) > 4 * LONGEST {
        return None;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(i + 1);
        for (right, above) in b.iter().zip(row.windows(2)) {
            let &[diagonal, up] = above else { continue };
            let beside = next.last().copied().unwrap_or(i);
            next.push((diagonal + usize::from(left != *right)).min(up + 1).min(beside + 1));
        }
        row = next;
    }
    row.last().copied().filter(|&distance| distance <= limit)
}
