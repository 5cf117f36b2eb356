//! What the failing machines do not share with those that work, from the first failure on.
//!
//! Machines of the same class are compared by their counted values. Where none of the class ever joined, the class is
//! compared with the one whose machines join and that differs from it the least.

use crate::api::Stage;
use crate::case::Case;
use crate::cluster_state::class_members::{ClassMembers, DIMENSIONS};
use crate::cluster_state::memo::Memo;
use crate::objects::{Condition, Node, NodeClass};
use crate::rules::shared::{aws_auth_role, change, kubelet_without_node, node_role, role_in_use};
use readers::source_text::{Span, excerpt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One machine against those that work.
#[allow(clippy::struct_excessive_bools, reason = "each is an observation of its own")]
#[derive(Debug)]
pub struct Differential<'w> {
    /// A machine of the class joined at some time.
    pub class_joins: bool,
    /// A machine made from the same text of the class joined.
    pub text_joins: bool,
    /// The node role, or the instance profile where only that is known.
    pub role: Option<&'w str>,
    /// Something shows that the role is let in.
    pub is_let_in: bool,
    /// A kubelet of this machine reports: it came up and reaches the API server, whatever keeps its Node away.
    pub kubelet_reports: bool,
    /// The nearest class whose machines join, where none of this class did.
    nearest: Option<Arc<Nearest>>,
    members: Option<&'w ClassMembers>,
    /// The machines whose values are compared: of this class, else of the nearest.
    reference: Option<&'w ClassMembers>,
    /// The NodePool's machines have registered lately, whatever has become of them.
    pool_registers: bool,
    by_node: Arc<ByNode>,
}

/// A value that this machine shares with no machine that works.
#[derive(Debug)]
pub struct Separation {
    pub value: String,
    /// A value of machines that work.
    pub elsewhere: String,
    /// More than one machine of this value failed.
    pub repeated: bool,
}

/// A class whose machines join, and in what this one differs from it.
#[derive(Debug)]
pub struct Nearest {
    /// `EC2NodeClass cpu`.
    pub class: String,
    name: String,
    differences: Vec<Difference>,
}

/// One field in which two classes differ.
#[derive(Debug)]
pub struct Difference {
    pub field: &'static str,
    pub own: String,
    pub theirs: String,
}

impl<'w> Differential<'w> {
    pub fn of(case: &Case<'w>) -> Self {
        let joins = compares_claims(case.stage());
        let members = case.class_members();
        let class_joins = members.is_some_and(|members| !members.joined().is_empty());
        let nearest = if joins && !class_joins { nearest(case) } else { None };
        let of_nearest = || case.cluster.class_members(&case.class()?.kind, &nearest.as_ref()?.name);
        Self {
            class_joins,
            text_joins: case.same_spec_sibling_joined().is_some(),
            role: role(case),
            is_let_in: is_let_in(case),
            kubelet_reports: kubelet_reports(case),
            reference: if class_joins { members } else { of_nearest() },
            nearest,
            members,
            pool_registers: case
                .pool()
                .and_then(|pool| pool.condition("NodeRegistrationHealthy"))
                .is_some_and(Condition::is_true),
            by_node: by_node(case),
        }
    }

    /// `None` too where a machine with the value works, or one with another value fails as well.
    pub fn split(&self, case: &Case, what: &str) -> Option<Separation> {
        if !compares_claims(case.stage()) {
            return self.by_node.split(case.node?, what);
        }
        let dimension = DIMENSIONS.iter().find(|dimension| dimension.what == what)?;
        let value = dimension.value(case.claim?)?;
        let tallies = |members: &'w ClassMembers| members.tallies().find(|(d, _)| d.what == what).map(|(_, t)| t);
        let (members, reference) = (self.members?, tallies(self.reference?)?);
        let failed = tallies(members)?.get(value)?.not_joined;
        if reference.get(value).is_some_and(|tally| tally.joined > 0) || members.waiting() > failed as usize {
            return None;
        }
        let (elsewhere, _) = reference.iter().find(|(_, tally)| tally.joined > 0)?;
        Some(Separation { value: value.to_owned(), elsewhere: elsewhere.clone(), repeated: failed > 1 })
    }

    /// A sibling of the same text, image and zone works, and of the same type where more than one failed: what they
    /// share is not the cause.
    pub fn is_single(&self, case: &Case) -> bool {
        let joined_with = |what: &str| {
            let dimension = DIMENSIONS.iter().find(|dimension| dimension.what == what);
            let value = dimension.zip(case.claim).and_then(|(dimension, claim)| dimension.value(claim));
            value.is_none_or(|value| self.members.is_some_and(|members| members.joined_with(what, value) > 0))
        };
        if self.stopped().is_some() {
            return false;
        }
        let alone = || self.members.is_some_and(|members| members.waiting() == 1) || joined_with("instance type");
        self.text_joins && joined_with("image") && joined_with("zone") && alone()
    }

    /// Whoever made it, a Node with this value is Ready.
    pub fn has_ready_node(&self, what: &str, value: &str) -> bool {
        let mut of_value = self.by_node.counted.iter().filter(|((name, of), _)| *name == what && of == value);
        of_value.any(|(_, (ready, _))| *ready > 0)
    }

    /// A Node that Karpenter made is Ready.
    pub fn own_node_is_ready(&self) -> bool {
        self.by_node.own
    }

    /// A Node that Karpenter did not make is Ready.
    pub fn foreign_node_is_ready(&self) -> bool {
        self.by_node.foreign
    }

    /// Machines of this class or of this NodePool have joined at some time.
    pub fn worked_before(&self) -> Option<&'static str> {
        (self.class_joins || self.pool_registers).then_some("machines of this class or NodePool have joined before")
    }

    /// The class whose machines join, where this one differs from it in `field`.
    pub fn differs(&self, field: &str) -> Option<(&Nearest, &Difference)> {
        let nearest = self.nearest.as_deref()?;
        Some((nearest, nearest.differences.iter().find(|difference| difference.field == field)?))
    }

    /// Machines of another class join with the same value of `field`.
    pub fn same_elsewhere(&self, field: &str) -> bool {
        self.nearest.is_some() && self.differs(field).is_none()
    }

    /// Said where several machines fail that were all launched after the last one joined: what they share has changed.
    fn stopped(&self) -> Option<&'static str> {
        let members = self.members.filter(|members| members.waiting() > 1)?;
        let (first, _) = members.launched_in_vain().next()?;
        (members.last_joined()?.0 < *first).then_some("machines of this class joined before, and none launched since")
    }

    /// Said where whatever the machines of the class share may be at fault.
    pub fn together(&self) -> Option<&'static str> {
        self.nothing_joined().or_else(|| self.stopped())
    }

    /// Said where no machine of this class joined, and none of a class to compare it with.
    pub fn nothing_joined(&self) -> Option<&'static str> {
        let none = !self.class_joins && !self.pool_registers && self.nearest.is_none();
        none.then_some("no machine that Karpenter launched has ever joined")
    }
}

impl Difference {
    /// `image: here gpu-1; in EC2NodeClass cpu, whose machines join, cpu-1`.
    pub fn shown(&self, nearest: &Nearest) -> String {
        let Self { field, own, theirs } = self;
        format!("{field}: here {own}; in {}, whose machines join, {theirs}", nearest.class)
    }
}

/// Before a Node is there, NodeClaims are all that can be compared.
fn compares_claims(stage: Stage) -> bool {
    matches!(stage, Stage::Launch | Stage::Join | Stage::Register)
}

fn role<'w>(case: &Case<'w>) -> Option<&'w str> {
    node_role::name(case).or_else(|| node_role::identity(case.class()?))
}

fn is_let_in(case: &Case) -> bool {
    case.stage() == Stage::Join && (aws_auth_role::mapped(case).is_some() || role_in_use::is_let_in(case).is_some())
}

fn kubelet_reports(case: &Case) -> bool {
    let launched = case.claim.filter(|_| case.stage() == Stage::Join).and_then(|claim| claim.true_since("Launched"));
    launched.is_some_and(|at| kubelet_without_node::of_this_machine(case, at).is_some())
}

/// What was changed between the last machine that joined and the first that did not, in one line.
pub fn changed(case: &Case) -> Option<String> {
    let change = change::evidence(case).into_iter().next()?;
    Some(format!("{} was changed since the last machine joined ({})", change.object, change.observed))
}

/// The class that differs least from this one, of those whose machines join.
fn nearest(case: &Case) -> Option<Arc<Nearest>> {
    static NEAREST: Memo<Option<Arc<Nearest>>> = Memo::new("the nearest class whose machines join");
    let (class, cluster) = (case.class()?, case.cluster);
    let nearest = cluster.once(&NEAREST, class.name(), || {
        let classes = cluster.classes().map(|facts| &facts.class);
        let joins = |c: &&NodeClass| cluster.joined_of_class(&c.kind, c.name()).next().is_some();
        let others = classes.filter(|c| c.kind == class.kind && c.name() != class.name()).filter(joins);
        let compared = others.map(|other| Nearest {
            class: format!("{} {}", other.kind, other.name()),
            name: other.name().to_owned(),
            differences: differences(class, other),
        });
        compared.min_by(|a, b| (a.differences.len(), &a.name).cmp(&(b.differences.len(), &b.name))).map(Arc::new)
    });
    (*nearest).clone()
}

fn differences(own: &NodeClass, other: &NodeClass) -> Vec<Difference> {
    let of_sets = FIELDS.iter().filter_map(|(field, values)| {
        let (own, theirs) = (values(own), values(other));
        (own != theirs).then(|| Difference { field, own: only(&own, &theirs), theirs: only(&theirs, &own) })
    });
    of_sets.chain(user_data(own, other)).collect()
}

type Values = fn(&NodeClass) -> BTreeSet<&str>;

const FIELDS: [(&str, Values); 6] = [
    ("role", |c| node_role::identity(c).into_iter().collect()),
    ("image", |c| c.status.amis.iter().map(|ami| if ami.name.is_empty() { &*ami.id } else { &*ami.name }).collect()),
    ("subnets", |c| c.status.subnets.iter().map(|subnet| &*subnet.id).collect()),
    ("security groups", |c| c.status.security_groups.iter().map(|group| &*group.id).collect()),
    ("volume key", |c| key(c).into_iter().collect()),
    ("kubelet", |c| c.spec.kubelet.keys().map(String::as_str).collect()),
];

/// What only one of two classes has, in short.
fn only(of: &BTreeSet<&str>, than: &BTreeSet<&str>) -> String {
    const SHOWN: usize = 3;
    let only: Vec<&str> = of.difference(than).copied().collect();
    match only.len() {
        0 => "nothing else".to_owned(),
        SHOWN.. if only.len() > SHOWN => format!("{} and others", only[..SHOWN].join(", ")),
        _ => only.join(", "),
    }
}

/// The key that the class has its volumes encrypted with.
pub fn key(class: &NodeClass) -> Option<&str> {
    class.spec.block_device_mappings.iter().find_map(|device| device.ebs.as_ref()?.kms_key_id.as_deref())
}

/// The first line of each that the other does not have, masked as all that users write.
fn user_data(own: &NodeClass, other: &NodeClass) -> Option<Difference> {
    let text = |class: &'_ NodeClass| class.spec.user_data.clone().unwrap_or_default();
    let (own, other) = (text(own), text(other));
    let first = |of: &str, than: &str| {
        let known: BTreeSet<&str> = than.lines().map(str::trim).collect();
        let line = of.lines().map(str::trim).find(|line| !line.is_empty() && !known.contains(line))?;
        let start = of.find(line)?;
        Some(format!("`{}`", excerpt(of, Span { start, end: start + line.len() }).shown.trim()))
    };
    let none = || "no such line".to_owned();
    let (only, theirs) = (first(&own, &other), first(&other, &own));
    (only.is_some() || theirs.is_some()).then(|| Difference {
        field: "user data",
        own: only.unwrap_or_else(none),
        theirs: theirs.unwrap_or_else(none),
    })
}

/// How many Nodes with a value are Ready, and how many are not.
#[derive(Debug, Default)]
pub struct ByNode {
    /// By what is compared and the value: those that are Ready, and those that are not.
    counted: BTreeMap<(&'static str, String), (u32, u32)>,
    /// A Node of Karpenter's is Ready, and one of somebody else's.
    own: bool,
    foreign: bool,
}

type Value = fn(&Node) -> Option<&str>;

const OF_NODES: [(&str, Value); 4] = [
    ("instance family", |n| Some(n.metadata.label("node.kubernetes.io/instance-type")?.split_once('.')?.0)),
    ("zone", |n| n.metadata.label("topology.kubernetes.io/zone")),
    ("kubelet", |n| Some(n.status.node_info.kubelet_version.as_str()).filter(|version| !version.is_empty())),
    ("group", |n| {
        n.metadata.label("karpenter.sh/nodepool").or_else(|| n.metadata.label("eks.amazonaws.com/nodegroup"))
    }),
];

fn by_node(case: &Case) -> Arc<ByNode> {
    static BY_NODE: Memo<ByNode> = Memo::new("Nodes that are Ready and not, by value");
    case.cluster.once(&BY_NODE, "", || {
        let mut by_node = ByNode::default();
        for node in case.cluster.nodes() {
            let is_own = node.metadata.label("karpenter.sh/nodepool").is_some();
            by_node.own |= is_own && node.is_ready();
            by_node.foreign |= !is_own && node.is_ready();
            for (what, value) in OF_NODES {
                let Some(value) = value(node) else { continue };
                let (ready, not) = by_node.counted.entry((what, value.to_owned())).or_default();
                *if node.is_ready() { ready } else { not } += 1;
            }
        }
        by_node
    })
}

impl ByNode {
    fn split(&self, node: &Node, what: &str) -> Option<Separation> {
        let (what, value) = OF_NODES.iter().find(|(name, _)| *name == what)?;
        let value = value(node)?;
        let of_what =
            || self.counted.iter().filter(|((name, _), _)| name == what).map(|((_, value), count)| (value, *count));
        let (ready, failed) = of_what().find(|(other, _)| *other == value)?.1;
        let others_fail = of_what().any(|(other, (_, not))| other != value && not > 0);
        let (elsewhere, _) = of_what().find(|(_, (ready, _))| *ready > 0)?;
        (ready == 0 && !others_fail).then(|| Separation {
            value: value.to_owned(),
            elsewhere: elsewhere.clone(),
            repeated: failed > 1,
        })
    }
}
