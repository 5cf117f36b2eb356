//! The wait of a machine, a NodePool or a node class at a stage.

use super::thresholds::Thresholds;
use crate::api::{Evidence, Stage};
use crate::objects::{Condition, NodeClaim};
use chrono::{DateTime, TimeDelta, Utc};

/// The stage that a machine waits at.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    pub stage: Stage,
    /// Since when, as the objects tell it.
    pub since: DateTime<Utc>,
    /// How long is normal.
    pub patience: TimeDelta,
    /// How long is normal where the cause is proven.
    pub proven: TimeDelta,
    /// What shows that it waits.
    pub evidence: Evidence,
    pub symptom: Symptom,
}

/// Distinguishes a wait from other waits at the same stage, if a rule needs that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Symptom {
    /// The stage is not passed.
    #[default]
    NotPassed,
    /// The cloud controller has deleted the Node.
    NodeDeleted,
    /// The Node is gone, whoever deleted it.
    NodeGone,
    /// The kubelet cannot start the pods that are scheduled there.
    PodsRefused,
    /// The network plugin calls the network of the Node unavailable.
    NetworkUnavailable,
    /// The Node flaps between Ready and NotReady.
    ByTurns,
    /// The kubelet kills a network agent of the Node again and again.
    AgentKilled,
    /// A network agent of the Node has been unready for too long.
    AgentFails,
    /// Pods wait for devices that it does not offer, and what makes them known does not work there.
    DeviceMissing,
    /// Its kubelet rejects the pods that are scheduled there.
    PodsRejected,
    /// Its address is of another IP family than the cluster's.
    OtherFamily,
    /// EC2 attaches no volume more.
    VolumeRefused,
    /// It has no driver for a volume.
    DriverMissing,
    /// Pods of a service mesh fail their check for want of its network plugin.
    MeshPluginMissing,
    /// Pods fail there that run on Nodes of another image.
    PodsFailOnImage,
    /// Pods there are out of reach since an agent of their network was replaced.
    OutOfReach,
    /// The kubelet reaches none of its pods with an interface of their own.
    BranchPodsOutOfReach,
    /// The accelerator is called broken.
    HardwareBroken,
    /// A controller has cordoned it, and left it so.
    Cordoned,
    /// A taint that takes it out of service for a while has stood for longer than that.
    TaintLeft,
    /// It was emptied but for pods that a PodDisruptionBudget lets not go.
    DrainHeld,
    /// It is cordoned and emptied, and pods come back to it that tolerate the cordon.
    DrainRefilled,
    /// Load balancers do not take it, for two of its security groups have the cluster's tag.
    TaggedTwice,
    /// Its instance was stopped.
    InstanceStopped,
    /// Karpenter has decided to reboot it, and has not got the reboot yet.
    RebootPending,
    /// Pods wait for a machine, and Karpenter does not run to make one.
    NobodyLaunches,
    /// Pods wait for a machine, and a webhook refuses the NodeClaim that Karpenter would make.
    ClaimsRefused,
    /// Pods wait for a machine, and Karpenter leaves them alone.
    PodsIgnored,
    /// Pods wait for a machine in a reservation, and Karpenter puts them off without a word.
    PodsDeferred,
    /// Pods wait for a machine, and whatever Karpenter would do for them fails.
    RoundsFail,
    /// Karpenter leaves the NodePool alone.
    Inert(Inert),
    /// Machines of the NodePool have drifted, and there is no room for those that would replace them: under the limit
    /// of a static NodePool, or in a capacity reservation.
    DriftHeld,
    /// Machines of the NodePool drift as soon as they run, and are replaced again and again.
    DriftsAtOnce,
    /// Machines of the NodePool are removed as empty before the pod gets there that they are made for.
    EmptiedEarly,
    /// Machines of the NodePool are consolidated before a pod has started on them.
    ConsolidatedEarly,
    /// On each machine that is made for a pod the port is taken that it asks for.
    PortHeld,
    /// Many machines of the NodePool wait for Karpenter, which takes on one after the other.
    KarpenterBehind,
}

/// Why Karpenter makes no machine of a NodePool, whatever waits for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inert {
    /// It is static, and the feature gate for that is off.
    StaticCapacityOff,
    /// Its node class is of another Karpenter than the one that runs here.
    ClassNotServed,
    /// It is for EKS Auto Mode, and nobody works on anything of Auto Mode's.
    AutoModeOff,
}

impl Wait {
    pub(super) fn new(
        stage: Stage,
        since: DateTime<Utc>,
        patience: TimeDelta,
        thresholds: &Thresholds,
        evidence: Evidence,
    ) -> Self {
        Self { stage, since, patience, proven: thresholds.proven.min(patience), evidence, symptom: Symptom::NotPassed }
    }

    /// Worth a diagnosis only where something proves why.
    pub(super) fn only_with_proof(mut self) -> Self {
        self.patience = TimeDelta::MAX;
        self
    }

    pub(super) fn of_held_drift(claim: &NodeClaim, since: DateTime<Utc>, t: &Thresholds) -> Self {
        let drifted = claim.condition("Drifted").map(Condition::shown).unwrap_or_default();
        let object = format!("NodeClaim/{}", claim.name());
        let because = "the NodeClaim no longer matches its NodePool or node class, and no other one replaces it";
        let evidence = Evidence::new(object, r#"status.conditions[?(@.type=="Drifted")]"#, drifted, because);
        Self { symptom: Symptom::DriftHeld, ..Self::new(Stage::Launch, since, t.terminate, t, evidence) }
    }

    pub(super) fn of_drift_at_once(claim: &NodeClaim, since: DateTime<Utc>, t: &Thresholds) -> Self {
        let drifted = claim.condition("Drifted").map(Condition::shown).unwrap_or_default();
        let object = format!("NodeClaim/{}", claim.name());
        let because = "Karpenter will replace a NodeClaim that it created minutes ago";
        let evidence = Evidence::new(object, r#"status.conditions[?(@.type=="Drifted")]"#, drifted, because);
        Self { symptom: Symptom::DriftsAtOnce, ..Self::new(Stage::Launch, since, t.launch, t, evidence) }
    }

    /// For machines that are going away anyway: they will not wait any longer.
    pub(super) fn leaving(mut self) -> Self {
        self.proven = TimeDelta::zero();
        self.only_with_proof()
    }

    /// For states that no time heals.
    pub(super) fn settled(mut self) -> Self {
        self.patience = TimeDelta::zero();
        self.proven = TimeDelta::zero();
        self
    }
}
