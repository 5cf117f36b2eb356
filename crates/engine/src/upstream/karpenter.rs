//! Karpenter: its version, the words it writes, and what it does when.
//!
//! "core" is sigs.k8s.io/karpenter, "aws" is github.com/aws/karpenter-provider-aws. Their patch numbers differ, and the
//! Deployment's image carries the provider's.

use crate::objects::{Deployment, Meta, Pod, Written};
use chrono::{DateTime, TimeDelta, Utc};
use std::fmt;

/// core pkg/apis/v1/taints.go (v1.14.3).
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";
/// The taint of a Node that is not usable yet. Karpenter up to 0.10 removes it: karpenter-provider-aws
/// pkg/controllers/node/initialization.go (v0.10.0).
pub const NOT_READY_TAINT: &str = "karpenter.sh/not-ready";
/// core pkg/apis/v1/labels.go (v1.14.3); since v1.5.0.
pub const DO_NOT_SYNC_TAINTS_LABEL: &str = "karpenter.sh/do-not-sync-taints";
/// core pkg/scheduling/taints.go `KnownEphemeralTaints` (v1.14.3); set by the kubelet, removed by the cloud controller.
pub const UNINITIALIZED_TAINT: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Whether Kubernetes or Karpenter itself sets and removes a taint with this key.
pub fn is_own_taint(key: &str) -> bool {
    const PREFIXES: [&str; 3] = ["karpenter.sh/", "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
    PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// The taints of a Node that Karpenter drains before it terminates the instance, since 1.0 and before.
/// core pkg/apis/v1/taints.go (v1.14.3), pkg/apis/v1beta1/taints.go (v0.37.0).
pub const DISRUPTED_TAINTS: [&str; 2] = ["karpenter.sh/disrupted", "karpenter.sh/disruption"];
/// Of a Node that Karpenter reboots, until its boot id changes: core pkg/apis/v1/taints.go `RebootingTaintKey`
/// (v1.15.0).
pub const REBOOTING_TAINT: &str = "karpenter.sh/rebooting";
/// How long the drain before a reboot may take; without it, there is no limit.
/// core pkg/apis/v1/labels.go `RebootTerminationGracePeriodAnnotationKey` (v1.15.0).
pub const REBOOT_GRACE_PERIOD: &str = "karpenter.sh/reboot-termination-grace-period";
/// core pkg/apis/v1/labels.go `TerminationFinalizer` (v1.14.3).
pub const TERMINATION_FINALIZER: &str = "karpenter.sh/termination";
/// The time by which Karpenter deletes every pod of a terminating Node. core pkg/apis/v1/labels.go
/// `NodeClaimTerminationTimestampAnnotationKey` (v1.0.5, v1.14.3).
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// Karpenter's finalizer on an EC2NodeClass. karpenter-provider-aws pkg/apis/v1/labels.go `TerminationFinalizer`
/// (v1.14.1).
pub const CLASS_TERMINATION_FINALIZER: &str = "karpenter.k8s.aws/termination";

/// The hash of the node class from which the NodeClaim was created. karpenter-provider-aws pkg/apis/v1/labels.go
/// (v1.14.1).
pub const CLASS_HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
/// Hashes of different versions are not comparable.
pub const CLASS_HASH_VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";
/// The hash of the NodePool's template from which the NodeClaim was created. core pkg/apis/v1/labels.go (v1.14.3).
pub const POOL_HASH: &str = "karpenter.sh/nodepool-hash";
pub const POOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
/// core pkg/apis/v1/labels.go (v1.14.3); of pods too.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// core pkg/apis/v1/labels.go `DoNotRepairAnnotationKey` (v1.15.0).
pub const DO_NOT_REPAIR: &str = "karpenter.sh/do-not-repair";

/// core pkg/controllers/nodeclaim/lifecycle/liveness.go `registrationTimeout`: a constant in every version.
pub const REGISTRATION_TIMEOUT: TimeDelta = TimeDelta::minutes(15);
/// core pkg/controllers/nodeclaim/lifecycle/liveness.go `LaunchTimeout`, since v1.7.0.
pub const LAUNCH_TIMEOUT: TimeDelta = TimeDelta::minutes(5);

/// How long Karpenter tries to get a reboot accepted, before it replaces the machine.
/// core pkg/controllers/nodeclaim/reboot/controller.go `issuanceTimeout` (v1.15.0).
pub const REBOOT_ISSUANCE: TimeDelta = TimeDelta::minutes(5);
/// How long Karpenter waits for a rebooted Node to be Ready, before it replaces the machine.
/// core pkg/controllers/nodeclaim/reboot/controller.go `observationWindow` (v1.15.0).
pub const REBOOT_RECOVERY: TimeDelta = TimeDelta::minutes(20);

/// major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// Reads `1.0.6`, `v1.14.1`, `1.2.0-rc.1`.
    pub fn parse(text: &str) -> Option<Self> {
        let core = text.trim().trim_start_matches('v').split(['-', '+', '@']).next()?;
        let mut numbers = core.split('.').map(|n| n.parse().ok());
        let version = Self(numbers.next()??, numbers.next()??, numbers.next().unwrap_or(Some(0))?);
        numbers.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The first version of the AWS provider that supports a minor version of Kubernetes 1.
/// karpenter-provider-aws hack/docs/compatibilitymatrix_gen/compatibility.yaml (1d92708),
/// pkg/providers/version/version.go `MaxK8sVersion` (v1.15.0).
const SUPPORTS: [(u32, Version); 8] = [
    (30, Version(0, 37, 0)),
    (31, Version(1, 0, 5)),
    (32, Version(1, 2, 0)),
    (33, Version(1, 5, 0)),
    (34, Version(1, 6, 0)),
    (35, Version(1, 9, 0)),
    (36, Version(1, 13, 0)),
    (37, Version(1, 15, 0)),
];

/// The first version of the AWS provider that supports Kubernetes 1.`minor`; `None` if nodewhy does not know.
pub fn first_for(minor: u32) -> Option<Version> {
    SUPPORTS.iter().find(|(supported, _)| *supported == minor).map(|(_, first)| *first)
}

/// The Karpenter that runs here, as its Deployment says.
#[derive(Debug, Clone, PartialEq)]
pub struct Karpenter {
    pub version: Version,
    /// The place where nodewhy read the version, for sentences.
    pub source: String,
    /// `namespace/name` of the Deployment.
    pub deployment: String,
    /// The Deployment's name, namespace and UID, and nothing that changes.
    pub metadata: Meta,
    /// The environment variables of the container, as written.
    pub cluster_name: Option<String>,
    pub cluster_endpoint: Option<String>,
    /// In base64, if it is set. Otherwise Karpenter uses the one of its own connection.
    // karpenter-provider-aws v1.14.1 pkg/operator/operator.go GetCABundle
    pub cluster_ca_bundle: Option<String>,
    /// The last change of the Deployment: an upgrade, or other settings.
    pub written: Option<Written>,
    /// No replica of it runs.
    pub stopped: Option<Stopped>,
    /// FEATURE_GATES and AWS_FEATURE_GATES: its feature gates, as written.
    pub feature_gates: [Option<String>; 2],
    /// LEGACY_NODE_REPAIR, as written.
    pub legacy_node_repair: Option<String>,
    /// RESERVED_ENIS: network interfaces that Karpenter leaves out when it computes maxPods.
    pub reserved_enis: Option<String>,
    /// The version of the chart that installed it, as the chart's label has it.
    pub chart: Option<Version>,
    /// VM_MEMORY_OVERHEAD_PERCENT: what Karpenter counts less of memory than EC2 tells, as a fraction.
    pub memory_overhead: Option<String>,
    /// AWS_ENABLE_POD_ENI, as written.
    pub enable_pod_eni: Option<String>,
    /// DISABLE_WEBHOOK, as written.
    pub disable_webhook: Option<String>,
    /// The SQS queue that tells of interruptions.
    pub interruption_queue: Option<String>,
}

/// A Deployment without a replica that is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Since when; `None` where it was scaled to zero, which leaves no time.
    pub since: Option<DateTime<Utc>>,
    pub wanted: u32,
}

impl Stopped {
    fn of(deployment: &Deployment) -> Option<Self> {
        let wanted = deployment.spec.replicas.unwrap_or(1);
        if wanted == 0 {
            return Some(Self { since: None, wanted });
        }
        // Source: kubernetes v1.36.3 pkg/controller/deployment/progress.go, sync.go `calculateStatus`
        // (MinimumReplicasUnavailable).
        let status = &deployment.status;
        let Some(available) = crate::objects::conditions(&status.conditions, "Available") else {
            // What was cut by hand may have its numbers only.
            let is_none = status.conditions.is_empty() && status.unavailable_replicas >= wanted;
            return (is_none && status.available_replicas == 0).then_some(Self { since: None, wanted });
        };
        (available.is_false() && status.available_replicas == 0)
            .then_some(Self { since: available.last_transition_time, wanted })
    }
}

impl Karpenter {
    /// Recognizes the Deployment by its image's repository, not by its name: charts are renamed.
    pub fn from_deployment(deployment: &Deployment) -> Option<Self> {
        let container = deployment.spec.template.spec.containers.iter().find(|c| is_karpenter_image(&c.image))?;
        let tag = image_tag(&container.image);
        let label = deployment.metadata.label("app.kubernetes.io/version");
        let version = tag.and_then(Version::parse).or_else(|| label.and_then(Version::parse))?;
        let namespace = deployment.metadata.namespace.as_deref().unwrap_or("default");
        let env = |name: &str| container.env.iter().find(|e| e.name == name).map(|e| e.value.clone());
        let name = format!("{namespace}/{}", deployment.metadata.name);
        Some(Self {
            version,
            source: format!("image {} of Deployment {name}", container.image),
            deployment: name,
            metadata: Meta {
                name: deployment.metadata.name.clone(),
                namespace: deployment.metadata.namespace.clone(),
                uid: deployment.metadata.uid.clone(),
                ..Meta::default()
            },
            cluster_name: env("CLUSTER_NAME"),
            cluster_endpoint: env("CLUSTER_ENDPOINT"),
            cluster_ca_bundle: env("CLUSTER_CA_BUNDLE"),
            stopped: Stopped::of(deployment),
            feature_gates: ["FEATURE_GATES", "AWS_FEATURE_GATES"].map(env),
            legacy_node_repair: env("LEGACY_NODE_REPAIR"),
            reserved_enis: env("RESERVED_ENIS"),
            chart: deployment.metadata.label("helm.sh/chart").and_then(chart_version),
            memory_overhead: env("VM_MEMORY_OVERHEAD_PERCENT"),
            enable_pod_eni: env("AWS_ENABLE_POD_ENI"),
            disable_webhook: env("DISABLE_WEBHOOK"),
            interruption_queue: env("INTERRUPTION_QUEUE"),
            written: deployment.metadata.last_written(),
        })
    }

    /// Whether this version refuses a Node without the unregistered taint (`Registered=False
    /// UnregisteredTaintNotFound`).
    ///
    /// core v1.0.0–v1.0.5, v1.1.0–v1.1.1, v1.2.0 do (registration.go read tag by tag; removed by core#1991), which the
    /// AWS provider ships as 1.0.0–1.0.8, 1.1.0–1.1.3, 1.2.0–1.2.1 (its go.mod read tag by tag).
    pub fn blocks_on_missing_taint(&self, provider: Provider) -> bool {
        let Version(major, minor, patch) = self.version;
        let last = match (provider, minor) {
            (Provider::Aws, 0) => 8,
            (Provider::Core, 0) => 5,
            (Provider::Aws, 1) => 3,
            (Provider::Aws, 2) | (Provider::Core, 1) => 1,
            (Provider::Core, 2) => 0,
            _ => return false,
        };
        major == 1 && patch <= last
    }

    /// Whether this version leaves the Node's taints alone at registration when the kubelet carries the do-not-sync
    /// label. core#2125 and aws#8029, first tags v1.5.0.
    pub fn knows_do_not_sync_taints(&self) -> bool {
        self.version >= Version(1, 5, 0)
    }

    /// Whether AMI discovery takes images that are not available yet.
    /// aws#7672 (DescribeImages filter `state=available`): in v1.2.2 and v1.3.0, never in 1.0.x, 1.1.x, 1.2.0, 1.2.1.
    pub fn takes_pending_images(&self) -> bool {
        self.version < Version(1, 2, 2)
    }

    /// The namespace and the name of its Deployment.
    pub fn place(&self) -> (&str, &str) {
        self.deployment.split_once('/').unwrap_or(("", &self.deployment))
    }

    /// Whether a feature gate is on; `None` where the Deployment does not say.
    /// karpenter-provider-aws v1.14.1 charts/karpenter/templates/deployment.yaml: one list of all gates; since v1.15.0
    /// AWS's own are in a list of their own (pkg/operator/options/options.go `ParseFeatureGates`).
    pub fn gate(&self, name: &str) -> Option<bool> {
        let mut gates = self.feature_gates.iter().flatten().flat_map(|list| list.split(','));
        gates.find_map(|gate| {
            let (own, value) = gate.trim().split_once('=')?;
            (own == name).then(|| value.eq_ignore_ascii_case("true"))
        })
    }

    /// Whether a DaemonSet that selects this label is counted for machines that do not exist yet, though it is
    /// Karpenter that labels them once they do.
    /// core pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go `schedulingSimulationKeys`: not in v1.13.0, in
    /// v1.14.1.
    pub fn counts_on_label(&self, key: &str) -> bool {
        self.version >= Version(1, 14, 0) && matches!(key, "karpenter.sh/registered" | "karpenter.sh/initialized")
    }

    /// Whether the template of a NodePool may have this label of kubernetes.io or k8s.io, if it is no
    /// well-known one. Up to 1.8 only a few domains there are free.
    /// core pkg/apis/v1/labels.go `LabelDomainExceptions` and the schema of NodePools (v1.8.2), without them in v1.9.0
    /// (core#2586); karpenter-provider-aws v1.8.7 ships v1.8.2, v1.9.0 ships v1.9.0.
    pub fn takes_kubernetes_label(&self, key: &str) -> bool {
        const FREE: [&str; 3] = ["kops.k8s.io", "node.kubernetes.io", "node-restriction.kubernetes.io"];
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        self.version >= Version(1, 9, 0) || FREE.iter().any(|free| domain.ends_with(free))
    }

    /// Whether it leaves vpc.amazonaws.com/pod-eni out of what instance types have: before 0.19 unless its environment
    /// says otherwise, up to 0.31 unless the ConfigMap karpenter-global-settings does, which is not read.
    /// Sources: karpenter-provider-aws pkg/utils/options/options.go (v0.18.1), pkg/apis/config/settings/settings.go
    /// (v0.19.0).
    pub fn leaves_out_pod_eni(&self) -> bool {
        self.version < Version(0, 19, 0) && self.enable_pod_eni.as_deref() != Some("true")
    }

    /// Whether it may take NodeOverlays into account. If its Deployment does not show the feature gates, it may.
    /// core pkg/apis/v1alpha1/nodeoverlay.go, since v1.7.0; alpha.
    pub fn has_overlays(&self) -> bool {
        self.version >= Version(1, 7, 0) && !self.ignores_overlays()
    }

    /// Whether the feature gate NodeOverlay is off: it is by default if FEATURE_GATES has other gates only.
    /// core v1.14.1, v1.15.0 pkg/operator/options/options.go `DefaultFeatureGates`, `ParseFeatureGates`.
    pub fn ignores_overlays(&self) -> bool {
        let is_listed = self.feature_gates[0].as_deref().is_some_and(|list| list.contains('='));
        self.gate("NodeOverlay").map_or(is_listed, |is_on| !is_on)
    }

    /// Whether it leaves the zones of a NodePool out of a pod's topology spread if the pod selects the NodePool by
    /// name. It compares the pod's selection only with the NodePool's own requirements and labels, which do not include
    /// the name.
    /// core v1.8.1 pkg/controllers/provisioning/scheduling/topologydomaingroup.go `matches` (core#2639), taken back in
    /// v1.8.2 (core#2791), not in v1.9.0; the AWS provider ships v1.8.1 as 1.8.4 (its go.mod read tag by tag).
    pub fn forgets_zones_of_named_pools(&self) -> bool {
        self.version == Version(1, 8, 4)
    }

    /// The version of its kinds that it reads. core pkg/apis/v1beta1 (v0.32.0 to v0.37), pkg/apis/v1 (since v1.0.0).
    pub fn reads(&self) -> &'static str {
        if self.version < Version(1, 0, 0) { "v1beta1" } else { "v1" }
    }

    /// Whether it is a version of 0.33 to 0.37 that converts objects for a later 1.0, unless a setting turns that off.
    /// core pkg/operator/options/options.go `DISABLE_WEBHOOK`, pkg/webhooks/webhooks.go `ValidateConversionEnabled`
    /// (read tag by tag; the AWS provider has the same numbers).
    fn prepares_for_v1(&self) -> bool {
        const SINCE: [Version; 5] =
            [Version(0, 33, 8), Version(0, 34, 9), Version(0, 35, 8), Version(0, 36, 5), Version(0, 37, 3)];
        SINCE.iter().any(|since| (since.0, since.1) == (self.version.0, self.version.1) && self.version >= *since)
    }

    /// Whether it reads v1beta1, also lists NodePools as v1 after its start, and panics if that fails for two minutes
    /// for any reason.
    /// core pkg/webhooks/webhooks.go `ValidateConversionEnabled` (v0.37.3); core#1914, in v0.33.12, v0.34.13, v0.35.12,
    /// v0.36.9 and v0.37.7, leaves it alone where v1 is not served.
    pub fn ends_without_v1(&self) -> bool {
        const UNTIL: [Version; 5] =
            [Version(0, 33, 12), Version(0, 34, 13), Version(0, 35, 12), Version(0, 36, 9), Version(0, 37, 7)];
        let before = |until: &Version| until.1 == self.version.1 && self.version < *until;
        self.prepares_for_v1() && UNTIL.iter().any(before) && self.answers_webhooks()
    }

    /// Whether it serves admission and conversion webhooks. No version since 1.1 does. Earlier versions have a setting
    /// that turns them off, which is the default of most versions from 0.33 to 0.37.
    /// core pkg/operator/options/options.go `DISABLE_WEBHOOK` (v0.32.9, v0.33.0, v0.37.0, v0.37.3, v1.0.5),
    /// pkg/webhooks (gone in v1.1.0).
    pub fn answers_webhooks(&self) -> bool {
        let (from_0_33, from_1) = (Version(0, 33, 0), Version(1, 0, 0));
        let by_default = self.version < from_0_33 || self.version >= from_1 || self.prepares_for_v1();
        let told = self.disable_webhook.as_deref().filter(|value| !value.is_empty());
        self.version < Version(1, 1, 0) && told.map_or(by_default, |value| value.eq_ignore_ascii_case("false"))
    }

    /// Whether it repairs nodes within disruption budgets, and launches the replacement first. Since 1.15, unless it is
    /// told to repair as before.
    /// core pkg/controllers/disruption/repair.go, pkg/operator/options/options.go `LegacyNodeRepair` (v1.15.0).
    pub fn repairs_within_budgets(&self) -> bool {
        let as_before = self.legacy_node_repair.as_deref().is_some_and(|value| value.eq_ignore_ascii_case("true"));
        self.version >= Version(1, 15, 0) && !as_before
    }

    /// Whether it defers, without an Event, a pod for which all reservations that fit are in use.
    /// core pkg/controllers/provisioning/scheduling/nodeclaim.go `offeringsToReserve`, not in v1.14.1, in v1.15.0.
    pub fn defers_for_reservations(&self) -> bool {
        self.version >= Version(1, 15, 0) && self.gate("ReservedCapacity") != Some(false)
    }

    /// core#2349, first tag v1.7.0.
    pub fn has_launch_timeout(&self) -> bool {
        self.version >= Version(1, 7, 0)
    }
}

/// The project that assigned the version number in the image tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    Aws,
    Core,
}

/// Whether a container of this image is Karpenter: by its repository, for charts are renamed.
fn is_karpenter_image(image: &str) -> bool {
    let repository = image.split('@').next().unwrap_or(image);
    repository.contains("karpenter/controller")
        || repository.contains("karpenter/kwok")
        || repository.rsplit('/').next().is_some_and(|last| last.starts_with("karpenter"))
}

/// Whether it is one of Karpenter's own pods.
pub fn is_karpenter(pod: &Pod) -> bool {
    pod.spec.containers.iter().any(|c| is_karpenter_image(&c.image))
}

/// `karpenter-1.0.4`, `karpenter-v0.31.0`.
/// Source: karpenter-provider-aws v1.0.4 charts/karpenter/templates/_helpers.tpl `karpenter.chart`.
fn chart_version(label: &str) -> Option<Version> {
    let begins_with_digit = |part: &&str| part.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    label.split('-').find(begins_with_digit).and_then(Version::parse)
}

/// The tag of `registry:5000/repo/name:tag@sha256:…`.
pub fn image_tag(image: &str) -> Option<&str> {
    let name = image.split('@').next()?.rsplit('/').next()?;
    name.split_once(':').map(|(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_are_read_from_tags() {
        assert_eq!(Version::parse("v1.14.1"), Some(Version(1, 14, 1)));
        assert_eq!(Version::parse("1.2.0-rc.1"), Some(Version(1, 2, 0)));
        assert_eq!(Version::parse("latest"), None);
        assert_eq!(image_tag("public.ecr.aws:443/karpenter/controller:1.0.6@sha256:00"), Some("1.0.6"));
        assert_eq!(image_tag("localhost:5000/karpenter/controller"), None);
        assert_eq!(chart_version("karpenter-1.0.4"), Some(Version(1, 0, 4)));
        assert_eq!(chart_version("my-karpenter-v0.31.0-rc.1"), Some(Version(0, 31, 0)));
        assert_eq!(chart_version("karpenter"), None);
    }

    fn at(text: &str) -> Karpenter {
        Karpenter {
            version: Version::parse(text).unwrap(),
            source: String::new(),
            deployment: String::new(),
            metadata: Meta::default(),
            cluster_name: None,
            cluster_endpoint: None,
            cluster_ca_bundle: None,
            written: None,
            stopped: None,
            feature_gates: [None, None],
            legacy_node_repair: None,
            reserved_enis: None,
            chart: None,
            memory_overhead: None,
            enable_pod_eni: None,
            disable_webhook: None,
            interruption_queue: None,
        }
    }

    #[test]
    fn provider_and_core_patch_numbers_differ() {
        assert!(at("1.0.8").blocks_on_missing_taint(Provider::Aws));
        assert!(!at("1.0.8").blocks_on_missing_taint(Provider::Core));
        assert!(at("1.0.5").blocks_on_missing_taint(Provider::Core));
        assert!(!at("1.0.9").blocks_on_missing_taint(Provider::Aws));
        assert!(at("1.1.3").blocks_on_missing_taint(Provider::Aws));
        assert!(at("1.2.1").blocks_on_missing_taint(Provider::Aws));
        assert!(!at("1.3.0").blocks_on_missing_taint(Provider::Aws));
        assert!(!at("1.14.1").blocks_on_missing_taint(Provider::Aws));
    }

    #[test]
    fn labels_of_kubernetes_are_free_since_1_9() {
        assert!(!at("1.8.7").takes_kubernetes_label("kubernetes.io/lifecycle"));
        assert!(!at("1.8.7").takes_kubernetes_label("node-role.kubernetes.io/worker"));
        assert!(at("1.8.7").takes_kubernetes_label("example.node-restriction.kubernetes.io/team"));
        assert!(at("1.9.0").takes_kubernetes_label("kubernetes.io/lifecycle"));
    }

    #[test]
    fn gates_are_read_from_both_of_their_variables() {
        let deployment = json!({
            "metadata": {"name": "karpenter", "namespace": "kube-system"},
            "spec": {"template": {"spec": {"containers": [{
                "name": "controller", "image": "public.ecr.aws/karpenter/controller:1.15.0",
                "env": [
                    {"name": "FEATURE_GATES", "value": "NodeRepair=true,NodeOverlay=false"},
                    {"name": "AWS_FEATURE_GATES", "value": "NodeClassCEL=false,RebootForRepair=true"},
                    {"name": "LEGACY_NODE_REPAIR", "value": "true"},
                ],
            }]}}},
        });
        let deployment: Deployment = serde_json::from_value(deployment).unwrap();
        let karpenter = Karpenter::from_deployment(&deployment).unwrap();
        assert_eq!(karpenter.gate("NodeRepair"), Some(true));
        assert_eq!(karpenter.gate("NodeOverlay"), Some(false));
        assert_eq!(karpenter.gate("RebootForRepair"), Some(true));
        assert_eq!(karpenter.gate("NodeClassCEL"), Some(false));
        assert_eq!(karpenter.gate("DRAEFA"), None);
        assert!(!karpenter.repairs_within_budgets(), "the Deployment asks for the repair of before");
    }

    #[test]
    fn overlays_are_off_where_other_gates_are_listed() {
        let listed = |list: &str| Karpenter { feature_gates: [Some(list.to_owned()), None], ..at("1.14.1") };
        assert!(listed("NodeRepair=true").ignores_overlays());
        assert!(listed("NodeRepair=true,NodeOverlay=false").ignores_overlays());
        assert!(!listed("NodeRepair=true,NodeOverlay=true").ignores_overlays());
        assert!(!listed("").ignores_overlays());
        assert!(!at("1.14.1").ignores_overlays());
    }

    #[test]
    fn repair_is_as_before_up_to_1_14_or_where_it_is_asked_for() {
        let told = |version: &str, legacy: Option<&str>| Karpenter {
            legacy_node_repair: legacy.map(str::to_owned),
            ..at(version)
        };
        assert!(told("1.15.0", None).repairs_within_budgets());
        assert!(told("1.15.0", Some("false")).repairs_within_budgets());
        assert!(!told("1.15.0", Some("true")).repairs_within_budgets());
        assert!(!told("1.14.1", None).repairs_within_budgets());
    }
}
