//! Differences between the failing machines and those that work, from the first failure on.
//!
//! Machines of the same class are compared by their counted values. If none of the class ever joined, the class is
//! compared with the class that differs least from it and whose nodes join.

use crate::api::Stage;
use crate::case::Case;
use crate::cluster_state::class_members::{ClassMembers, DIMENSIONS};
use crate::cluster_state::memo::Memo;
use crate::facts::node_tallies::{self, NodeTallies};
use crate::facts::{aws_auth_role, kubelet_without_node, node_role, recent_edits, role_in_use};
use crate::objects::{Condition, Node, NodeClass, Template};
use readers::source_text::{Span, excerpt, mask};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One machine compared with those that work.
#[allow(clippy::struct_excessive_bools, reason = "each is a separate observation")]
#[derive(Debug)]
pub struct Differential<'w> {
    /// A node of the class joined at some time.
    pub class_joins: bool,
    /// A node created from the same text of the class joined.
    pub text_joins: bool,
    /// The node role, or the instance profile if only that is known.
    pub role: Option<&'w str>,
    /// Evidence shows that the role is authorized.
    pub is_let_in: bool,
    /// The name that this machine's kubelet uses in its events: it runs and reaches the API server, whatever keeps its
    /// Node away.
    pub reporting: Option<String>,
    /// If no node of this class joined, the nearest class whose nodes join.
    nearest: Option<Arc<Nearest>>,
    members: Option<&'w ClassMembers>,
    /// The nodes whose values are compared: of this class, else of the nearest.
    reference: Option<&'w ClassMembers>,
    /// The NodePool's nodes have registered lately, whatever happened to them since.
    pool_registers: bool,
    nodes: Arc<NodeTallies>,
}

/// A value that this machine shares with no working node.
#[derive(Debug)]
pub struct Separation {
    pub value: String,
    /// A value of working nodes.
    pub elsewhere: String,
    /// More than one machine of this value failed.
    pub repeated: bool,
}

/// A class whose nodes join, and the difference between it and this class.
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
            reporting: reporting(case).map(str::to_owned),
            reference: if class_joins { members } else { of_nearest() },
            nearest,
            members,
            pool_registers: case
                .pool()
                .and_then(|pool| pool.condition("NodeRegistrationHealthy"))
                .is_some_and(Condition::is_true),
            nodes: node_tallies::tallies(case),
        }
    }

    /// Also `None` if a node with the value works, or if one with another value fails as well.
    pub fn split(&self, case: &Case, what: &str) -> Option<Separation> {
        if !compares_claims(case.stage()) {
            return self.nodes_split(case.node?, what);
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

    /// A sibling of the same text, image and zone works, and of the same type if more than one failed: what they share
    /// is not the cause.
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

    /// A value that all Nodes that are not Ready have, and no Ready Node has.
    fn nodes_split(&self, node: &Node, what: &str) -> Option<Separation> {
        let all = self.nodes.all(what);
        let (elsewhere, _) = self.nodes.by(what).find(|(_, tally)| tally.ready > 0).unwrap_or(("others", all));
        let own = node_tallies::values(node, what);
        let own = self.nodes.by(what).filter(|(value, _)| own.iter().any(|own| own == value));
        let mut separates = own.filter(|(_, own)| own.ready == 0 && own.not_ready == all.not_ready && all.ready > 0);
        let (value, own) = separates.next()?;
        Some(Separation { value: value.to_owned(), elsewhere: elsewhere.to_owned(), repeated: own.not_ready > 1 })
    }

    /// A Node with this value is Ready, whatever created it.
    pub fn has_ready_node(&self, what: &str, value: &str) -> bool {
        self.nodes.by(what).any(|(of, tally)| of == value && tally.ready > 0)
    }

    /// A Node that Karpenter made is Ready.
    pub fn own_node_is_ready(&self) -> bool {
        self.nodes.own_ready
    }

    /// A Node that Karpenter did not make is Ready.
    pub fn foreign_node_is_ready(&self) -> bool {
        self.nodes.foreign_ready
    }

    /// Nodes of this class or of this NodePool have joined at some time.
    pub fn worked_before(&self) -> Option<&'static str> {
        (self.class_joins || self.pool_registers).then_some("nodes of this class or NodePool have joined before")
    }

    /// Labels and taints that the NodePool gives its Nodes and a NodePool with joining nodes does not, if the NodePool
    /// separates them.
    pub fn template(&self, case: &Case) -> Option<String> {
        let split = self.split(case, "NodePool")?;
        let given = |pool: &str| Some(given(&case.cluster.pool(pool)?.spec.template));
        let (own, theirs) = (given(&split.value)?, given(&split.elsewhere)?);
        let only: Vec<&str> = own.difference(&theirs).map(String::as_str).collect();
        let (pool, other) = (split.value, split.elsewhere);
        let said =
            || format!("NodePool {pool} gives its Nodes {}, but {other}, whose nodes join, does not", only.join(", "));
        (!only.is_empty()).then(said)
    }

    /// The class whose nodes join, if this class differs from it in `field`.
    pub fn differs(&self, field: &str) -> Option<(&Nearest, &Difference)> {
        let nearest = self.nearest.as_deref()?;
        Some((nearest, nearest.differences.iter().find(|difference| difference.field == field)?))
    }

    /// Nodes of another class join with the same value of `field`.
    pub fn same_elsewhere(&self, field: &str) -> bool {
        self.nearest.is_some() && self.differs(field).is_none()
    }

    /// Used if several machines fail that were all launched after the last node joined: what they share has changed.
    fn stopped(&self) -> Option<&'static str> {
        let members = self.members.filter(|members| members.waiting() > 1)?;
        let (first, _) = members.launched_in_vain().next()?;
        (members.last_joined()?.0 < *first).then_some("nodes of this class joined before, but none launched since")
    }

    /// Used if anything that the machines of the class share may be at fault.
    pub fn together(&self) -> Option<&'static str> {
        self.nothing_joined().or_else(|| self.stopped())
    }

    /// Used if no node of this class joined, and none of a class to compare it with.
    pub fn nothing_joined(&self) -> Option<&'static str> {
        let none = !self.class_joins && !self.pool_registers && self.nearest.is_none();
        none.then_some("no node that Karpenter launched has ever joined")
    }
}

impl Difference {
    /// `image: here gpu-1, but cpu-1 in EC2NodeClass cpu, whose nodes join`.
    pub fn shown(&self, nearest: &Nearest) -> String {
        let Self { field, own, theirs } = self;
        format!("{field}: here {own}, but {theirs} in {}, whose nodes join", nearest.class)
    }
}

/// Before a Node exists, only NodeClaims can be compared.
fn compares_claims(stage: Stage) -> bool {
    matches!(stage, Stage::Launch | Stage::Join | Stage::Register)
}

fn role<'w>(case: &Case<'w>) -> Option<&'w str> {
    node_role::name(case).or_else(|| node_role::identity(case.class()?))
}

pub fn is_let_in(case: &Case) -> bool {
    case.stage() == Stage::Join && (aws_auth_role::mapped(case).is_some() || role_in_use::is_let_in(case).is_some())
}

/// The name under which a kubelet reports that may be this machine's and has no Node.
pub fn reporting<'w>(case: &Case<'w>) -> Option<&'w str> {
    if case.stage() != Stage::Join {
        return None;
    }
    let launched = case.claim?.true_since("Launched")?;
    kubelet_without_node::of_this_machine(case, launched).map(|(name, ..)| name)
}

/// The change between the last node that joined and the first that did not, in one line.
pub fn changed(case: &Case) -> Option<String> {
    let change = recent_edits::evidence(case).into_iter().next()?;
    Some(format!("{} was changed since the last node joined ({})", change.object, change.observed))
}

/// The class that differs least from this one, of those whose nodes join.
fn nearest(case: &Case) -> Option<Arc<Nearest>> {
    static NEAREST: Memo<Option<Arc<Nearest>>> = Memo::new("the nearest class whose nodes join");
    let (class, cluster) = (case.class()?, case.cluster);
    let nearest = cluster.once(&NEAREST, &format!("{} {}", class.name(), case.texts()), || {
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

/// The labels and taints with which the kubelet registers its Node for Karpenter.
fn given(template: &Template) -> BTreeSet<String> {
    let labels = template.metadata.labels.iter().map(|(key, value)| format!("label {key}={value}"));
    let taints = template.spec.taints.iter().chain(&template.spec.startup_taints);
    labels.chain(taints.map(|taint| format!("taint {taint}"))).collect()
}

fn differences(own: &NodeClass, other: &NodeClass) -> Vec<Difference> {
    let of_sets = FIELDS.iter().filter_map(|(field, values)| {
        let (own, theirs) = (values(own), values(other));
        (own != theirs).then(|| Difference { field, own: only(&own, &theirs), theirs: only(&theirs, &own) })
    });
    of_sets.chain(user_data(own, other)).collect()
}

type Values = fn(&NodeClass) -> BTreeSet<Cow<'_, str>>;

const FIELDS: [(&str, Values); 9] = [
    ("role", |c| node_role::identity(c).into_iter().map(Cow::from).collect()),
    ("image", |c| {
        let shown = c.status.amis.iter().map(|ami| if ami.name.is_empty() { &*ami.id } else { &*ami.name });
        shown.map(Cow::from).collect()
    }),
    ("subnets", |c| c.status.subnets.iter().map(|subnet| Cow::from(&*subnet.id)).collect()),
    ("security groups", |c| c.status.security_groups.iter().map(|group| Cow::from(&*group.id)).collect()),
    ("volume key", |c| key(c).into_iter().map(Cow::from).collect()),
    ("httpTokens", |c| c.spec.metadata_options.http_tokens.as_deref().into_iter().map(Cow::from).collect()),
    ("proxy", |c| c.https_proxy().into_iter().map(|proxy| Cow::from(mask(proxy))).collect()),
    ("certificates", |c| c.spec.certificate_bundles.iter().map(|bundle| Cow::from(&*bundle.name)).collect()),
    ("kubelet", |c| c.spec.kubelet.iter().map(|(setting, value)| Cow::from(format!("{setting}: {value}"))).collect()),
];

/// The entries that only one of two classes has, in short.
fn only(of: &BTreeSet<Cow<str>>, than: &BTreeSet<Cow<str>>) -> String {
    const SHOWN: usize = 3;
    let only: Vec<&str> = of.difference(than).map(|value| &**value).collect();
    match only.len() {
        0 => "nothing else".to_owned(),
        SHOWN.. if only.len() > SHOWN => format!("{} and others", only[..SHOWN].join(", ")),
        _ => only.join(", "),
    }
}

/// The key with which the class encrypts its volumes.
pub fn key(class: &NodeClass) -> Option<&str> {
    class.spec.block_device_mappings.iter().find_map(|device| device.ebs.as_ref()?.kms_key_id.as_deref())
}

/// The first line of each that the other does not have, masked like all text that users write.
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
