//! How many nodes a change of a NodePool or a node class can replace.

use crate::cluster_state::ClusterState;
use crate::cluster_state::class_members::ClassMembers;
use crate::cluster_state::memo::Memo;
use crate::objects::input::Input;
use std::collections::BTreeSet;

/// The nodes that Karpenter compares with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// nodewhy has not seen all of them.
    Uncounted,
    NoneJoined,
    /// Some joined. None of them is in service.
    OutOfService,
    InService(u32),
}

/// The NodePools of Nodes whose NodeClaim is not there, as in a dump that somebody cut by hand.
static WITHOUT_CLAIM: Memo<BTreeSet<String>> = Memo::new("the NodePools of Nodes without a NodeClaim");

/// Counts the nodes of a NodePool, or of a node class of this kind.
pub fn compared_with(cluster: &ClusterState, kind: &str, name: &str) -> Compared {
    let is_pool = kind == "NodePool";
    let tally = if is_pool { of_pool(cluster, name) } else { of_class(cluster.class_members(kind, name)) };
    let Counted { joined, in_service, out_of_service } = tally;
    if in_service > 0 {
        return Compared::InService(in_service);
    }
    if joined > 0 {
        return if out_of_service == joined { Compared::OutOfService } else { Compared::Uncounted };
    }
    let is_unread = |input: Input| cluster.missing(input).is_some();
    if is_unread(Input::NodeClaims) || is_unread(Input::Nodes) || cluster.is_before_machines() {
        return Compared::Uncounted;
    }
    let without_claim = cluster.once(&WITHOUT_CLAIM, "", || {
        let nodes = cluster.nodes().filter(|node| cluster.claim_of_node(node).is_none());
        nodes.filter_map(|node| node.metadata.label("karpenter.sh/nodepool").map(str::to_owned)).collect()
    });
    let is_of = |pool: &String| if is_pool { pool == name } else { may_use(cluster, pool, kind, name) };
    if without_claim.iter().any(is_of) { Compared::Uncounted } else { Compared::NoneJoined }
}

#[derive(Debug, Default)]
struct Counted {
    joined: u32,
    in_service: u32,
    out_of_service: u32,
}

fn of_pool(cluster: &ClusterState, name: &str) -> Counted {
    sum(cluster.all_class_members(), |pool| pool == name)
}

fn of_class(members: Option<&ClassMembers>) -> Counted {
    let counted = sum(members.into_iter(), |_| true);
    // A NodeClaim without a NodePool is in no tally.
    let joined = members.map_or(0, |members| u32::try_from(members.joined().len()).unwrap_or(u32::MAX));
    Counted { joined, ..counted }
}

fn sum<'c>(members: impl Iterator<Item = &'c ClassMembers>, is_wanted: impl Fn(&str) -> bool) -> Counted {
    let tallies = members.flat_map(ClassMembers::tallies).filter(|(dimension, _)| dimension.what == "NodePool");
    let wanted = tallies.flat_map(|(_, tallies)| tallies).filter(|(pool, _)| is_wanted(pool)).map(|(_, tally)| tally);
    wanted.fold(Counted::default(), |sum, tally| Counted {
        joined: sum.joined.saturating_add(tally.joined),
        in_service: sum.in_service.saturating_add(tally.in_service),
        out_of_service: sum.out_of_service.saturating_add(tally.out_of_service),
    })
}

/// Whether a NodePool refers to a node class, as far as nodewhy knows.
fn may_use(cluster: &ClusterState, pool: &str, kind: &str, class: &str) -> bool {
    cluster.pool(pool).is_none_or(|pool| {
        let reference = &pool.spec.template.spec.node_class_ref;
        reference.kind.as_str() == kind && reference.name.as_str() == class
    })
}

#[cfg(test)]
mod tests {
    use super::{Compared, compared_with};
    use crate::cluster_state::{Availability, ClusterState};
    use crate::objects::input::{Input, Object};
    use chrono::DateTime;
    use serde_json::{Value, json};

    fn cluster(claims: &[Value], nodes: &[Value]) -> ClusterState {
        let mut state = ClusterState::default();
        for input in [Input::NodeClaims, Input::Nodes, Input::NodePools] {
            state.mark(input, Availability::Read);
        }
        let claims = claims.iter().map(|claim| (Input::NodeClaims, claim));
        for (input, object) in claims.chain(nodes.iter().map(|node| (Input::Nodes, node))) {
            state.apply(Object::from_value(input, object.clone()).unwrap(), DateTime::UNIX_EPOCH);
        }
        state
    }

    fn claim(name: &str, joined: bool) -> Value {
        let status = if joined { "True" } else { "Unknown" };
        let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status });
        json!({
            "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": "general" } },
            "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" } },
            "status": { "providerID": format!("aws:///a/i-{name}"), "conditions":
                [condition("Launched", "True"), condition("Registered", status), condition("Initialized", status)] },
        })
    }

    fn node(name: &str, ready: &str) -> Value {
        json!({
            "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": "general" } },
            "spec": { "providerID": format!("aws:///a/i-{name}") },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        })
    }

    fn counted(cluster: &ClusterState) -> [Compared; 2] {
        [compared_with(cluster, "NodePool", "general"), compared_with(cluster, "EC2NodeClass", "default")]
    }

    #[test]
    fn only_nodes_that_joined_count() {
        let none = cluster(&[claim("a", false)], &[]);
        assert_eq!(counted(&none), [Compared::NoneJoined; 2]);
        let one = cluster(&[claim("a", false), claim("b", true)], &[node("b", "True")]);
        assert_eq!(counted(&one), [Compared::InService(1); 2]);
        let dead = cluster(&[claim("b", true)], &[node("b", "Unknown")]);
        assert_eq!(counted(&dead), [Compared::OutOfService; 2]);
    }

    #[test]
    fn what_was_not_read_is_not_counted_as_none() {
        assert_eq!(counted(&ClusterState::default()), [Compared::Uncounted; 2]);
        let without_nodes = cluster(&[claim("b", true)], &[]);
        assert_eq!(counted(&without_nodes), [Compared::Uncounted; 2]);
        let without_claim = cluster(&[claim("a", false)], &[node("b", "True")]);
        assert_eq!(counted(&without_claim), [Compared::Uncounted; 2]);
    }
}
