//! What was logged of one machine, written down as a document like any other.
//!
//! No object of a cluster: `nodewhy diagnose --logs` makes these, a dump may hold them, and a console that AWS shows is
//! one. Rules read them as they read objects.

use super::{Answer, AwsObservation, Meta};
use logs::fact::MachineNames;
use logs::journey::Journey;
use serde::{Deserialize, Serialize};

/// The journey of one machine, or what a component says of one NodeClaim. Its texts are masked where they are read.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineLog {
    pub metadata: Meta,
    pub journey: Journey,
}

impl MachineLog {
    /// Called after the machine: its instance id where the log has it, else its host, else the log's file.
    pub fn new(journey: Journey) -> Self {
        let identity = &journey.identity;
        let names = identity.instances.iter().chain(&identity.hosts).chain(&identity.claims).chain(&identity.pods);
        let mut names = names.chain(&identity.classes).chain(&identity.roles).cloned();
        let name = names.next().or_else(|| apart(identity)).or_else(|| journey.files.keys().next().cloned());
        Self::named(name.unwrap_or_default(), journey)
    }

    /// Called after the pod, NodeClaim, node class or NodePool, however much of a machine it names: the next look at
    /// the same component takes its place.
    pub fn of_component(journey: Journey) -> Self {
        let identity = &journey.identity;
        let mut names = identity.pods.iter().chain(&identity.claims).chain(&identity.classes).cloned();
        let name = names.next().or_else(|| apart(identity));
        Self::named(name.unwrap_or_default(), journey)
    }

    /// Called after the answer, which it is a part of. `None` where it says nothing.
    pub fn of_console(answer: &AwsObservation) -> Option<Self> {
        let Answer::Console(console) = &answer.answer else { return None };
        let journey = &console.journey;
        let tells = !journey.facts.is_empty() || !journey.milestones.is_empty();
        tells.then(|| Self { metadata: answer.metadata.clone(), journey: journey.clone() })
    }

    fn named(name: String, journey: Journey) -> Self {
        Self { metadata: Meta { name: name.into(), ..Meta::default() }, journey }
    }
}

/// A NodePool may be called as its node class is, and what a component says of itself is not what its pod does.
fn apart(names: &MachineNames) -> Option<String> {
    let pool = names.pools.first().map(|pool| format!("nodepool/{pool}"));
    pool.or_else(|| names.components.first().map(|pod| format!("controller/{pod}")))
}
