//! The kinds that nodewhy reads. Reading, writing, RBAC, watches, readiness and the docs follow from this one table.

use crate::objects::former::{self, Former};
use crate::objects::json_fields::fields;
use crate::objects::{
    AwsObservation, CertificateSigningRequest, ClusterService, ConfigMap, CustomResourceDefinition, DaemonSet,
    Deployment, EniConfig, Event, MachineLog, Meta, Node, NodeClaim, NodeClass, NodeOverlay, NodePool, Pod,
    PodDisruptionBudget, ServiceAccount, SubjectAccessReview, VolumeAttachment, WebhookConfiguration,
};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::ops::ControlFlow;

/// A kind of input that a rule may read: its name, the command that shows it, and its API sources.
#[derive(Debug, Clone, Copy)]
struct Spec {
    name: &'static str,
    command: &'static str,
    may_be_absent: bool,
    sources: &'static [ApiSource],
}

impl Spec {
    const fn new(name: &'static str, command: &'static str) -> Self {
        Self { name, command, may_be_absent: false, sources: &[] }
    }

    const fn optional(mut self) -> Self {
        self.may_be_absent = true;
        self
    }
}

/// One row a kind: its input, its view, what it is called and where it is. The view says which fields are read, and so
/// which leave the cluster with `nodewhy collect`.
macro_rules! kinds {
    ($($input:ident: $object:ident($view:ty) = $spec:expr => [
        $($source:expr),* $(,)?
    ];)*) => {
        /// One kind of object that a rule may read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Input {
            $($input,)*
        }

        /// One foreign object, read. It is written as its view is.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Object {
            $($object($view),)*
        }

        impl Input {
            pub const ALL: [Self; [$(Self::$input),*].len()] = [$(Self::$input),*];

            const fn spec(self) -> Spec {
                match self {
                    $(Self::$input => const { Spec { sources: const { &[$($source),*] }, ..$spec } },)*
                }
            }
        }

        impl Object {
            /// Reads an object of the given input. The error is the format's own, which names the field. The views are
            /// compiled again for each format, so the program calls [`Object::from_json`] alone.
            pub fn read<'de, D: Deserializer<'de>>(input: Input, from: D) -> Result<Self, D::Error> {
                Ok(match input {
                    $(Input::$input => Self::$object(Deserialize::deserialize(from)?),)*
                })
            }

            /// Which input it belongs to.
            pub const fn input(&self) -> Input {
                match self {
                    $(Self::$object(_) => Input::$input,)*
                }
            }

            /// Its metadata.
            pub const fn meta(&self) -> &Meta {
                match self {
                    $(Self::$object(object) => &object.metadata,)*
                }
            }
        }
    };
}

kinds! {
    Nodes: Node(Node) = Spec::new("Nodes", "kubectl get nodes -o yaml") => [ApiSource::new("", "v1", "Node", "nodes")];
    NodeClaims: NodeClaim(NodeClaim) = Spec::new("NodeClaims", "kubectl get nodeclaims -o yaml") => [
        ApiSource::new("karpenter.sh", "v1", "NodeClaim", "nodeclaims"),
    ];
    NodePools: NodePool(NodePool) = Spec::new("NodePools", "kubectl get nodepools -o yaml") => [
        ApiSource::new("karpenter.sh", "v1", "NodePool", "nodepools"),
    ];
    NodeClasses: NodeClass(NodeClass) = Spec::new("EC2NodeClasses", "kubectl get ec2nodeclasses -o yaml") => [
        ApiSource::new("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses"),
    ];
    // core pkg/apis/v1alpha1/nodeoverlay.go (since v1.7.0)
    NodeOverlays: NodeOverlay(NodeOverlay) =
        Spec::new("NodeOverlays", "kubectl get nodeoverlays -o yaml").optional() => [
        ApiSource::new("karpenter.sh", "v1alpha1", "NodeOverlay", "nodeoverlays"),
    ];
    AwsAuth: AwsAuth(ConfigMap) =
        Spec::new("ConfigMap kube-system/aws-auth", "kubectl get configmap -n kube-system aws-auth -o yaml") => [
        ApiSource::new("", "v1", "ConfigMap", "configmaps").only("kube-system", "aws-auth"),
    ];
    // EKS writes its endpoint into it; clusters that replace kube-proxy have none.
    KubeProxyConfig: KubeProxyConfig(ConfigMap) =
        Spec::new("ConfigMap kube-system/kube-proxy", "kubectl get configmap -n kube-system kube-proxy -o \
            yaml").optional() => [
        ApiSource::new("", "v1", "ConfigMap", "configmaps").only("kube-system", "kube-proxy"),
    ];
    // The settings of the control plane's VPC resource controller. The VPC CNI's add-on, chart or manifest writes them.
    VpcCniConfig: VpcCniConfig(ConfigMap) = Spec::new(
        "ConfigMap kube-system/amazon-vpc-cni",
        "kubectl get configmap -n kube-system amazon-vpc-cni -o yaml",
    ).optional() => [
        ApiSource::new("", "v1", "ConfigMap", "configmaps").only("kube-system", "amazon-vpc-cni"),
    ];
    // Events about Pods are most of a cluster's events: only the reasons that a rule reads.
    Events: Event(Event) = Spec::new("Events", "kubectl get events -A -o yaml") => [
        ApiSource::new("", "v1", "Event", "events").fields("involvedObject.kind=NodeClaim"),
        ApiSource::new("", "v1", "Event", "events").fields("involvedObject.kind=Node"),
        ApiSource::new("", "v1", "Event", "events").fields("involvedObject.kind=DaemonSet"),
        ApiSource::new("", "v1", "Event", "events").fields("involvedObject.kind=Pod,reason=FailedCreatePodSandBox"),
        ApiSource::new("", "v1", "Event", "events").fields("involvedObject.kind=Pod,reason=FailedMount"),
        ApiSource::new("", "v1", "Event", "events").fields("involvedObject.kind=Pod,reason=FailedAttachVolume"),
        // The scheduler says the same of every pod that waits.
        ApiSource::new("", "v1", "Event", "events")
            .fields("involvedObject.kind=Pod,reason=FailedScheduling,source=karpenter"),
        ApiSource::new("", "v1", "Event", "events").fields("involvedObject.kind=Pod,reason=MissingIAMPermissions"),
        ApiSource::new("", "v1", "Event", "events").fields("involvedObject.kind=Pod,reason=BranchAllocationFailed"),
        // Load balancers that find two groups with the cluster's tag.
        ApiSource::new("", "v1", "Event", "events").fields("involvedObject.kind=TargetGroupBinding"),
        ApiSource::new("", "v1", "Event", "events")
            .fields("involvedObject.kind=PersistentVolumeClaim,reason=ProvisioningFailed"),
    ];
    CertificateSigningRequests: CertificateSigningRequest(CertificateSigningRequest) =
        Spec::new("CertificateSigningRequests", "kubectl get csr -o yaml") => [
        ApiSource::new("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests"),
    ];
    // All pods of a cluster are too many: those of a stuck machine are listed when a rule wants them.
    Pods: Pod(Pod) = Spec::new("Pods", "kubectl get pods -n kube-system -o yaml") => [
        ApiSource::new("", "v1", "Pod", "pods").listed(),
    ];
    DaemonSets: DaemonSet(DaemonSet) = Spec::new("DaemonSets", "kubectl get daemonsets -A -o yaml") => [
        ApiSource::new("apps", "v1", "DaemonSet", "daemonsets"),
    ];
    Deployments: Deployment(Deployment) =
        Spec::new("Karpenter's Deployment", "kubectl get deployments -A -l app.kubernetes.io/name=karpenter -o \
                                             yaml") => [
        ApiSource::new("apps", "v1", "Deployment", "deployments").labels(KARPENTER),
    ];
    ServiceAccounts: ServiceAccount(ServiceAccount) =
        Spec::new(
            "Karpenter's ServiceAccount",
            "kubectl get serviceaccounts -A -l app.kubernetes.io/name=karpenter -o yaml",
        ) => [
        ApiSource::new("", "v1", "ServiceAccount", "serviceaccounts").labels(KARPENTER),
    ];
    // Which versions of its kinds are there for Karpenter, and who converts them.
    CustomResources: CustomResource(CustomResourceDefinition) = Spec::new(
        "Karpenter's CustomResourceDefinitions",
        "kubectl get crd nodepools.karpenter.sh nodeclaims.karpenter.sh ec2nodeclasses.karpenter.k8s.aws -o yaml",
    ).optional() => [custom_resource("nodepools.karpenter.sh"), custom_resource("nodeclaims.karpenter.sh"), custom_resource("ec2nodeclasses.karpenter.k8s.aws")];
    // Whom those that convert have for an address.
    Services: Service(ClusterService) =
        Spec::new("Karpenter's Services", "kubectl get services -A -l app.kubernetes.io/name=karpenter -o \
                                           yaml").optional() => [
        ApiSource::new("", "v1", "Service", "services").labels(KARPENTER),
    ];
    // amazon-vpc-cni-k8s v1.20.4 config/master/aws-k8s-cni.yaml
    EniConfigs: EniConfig(EniConfig) = Spec::new("ENIConfigs", "kubectl get eniconfigs -o yaml").optional() => [
        ApiSource::new("crd.k8s.amazonaws.com", "v1alpha1", "ENIConfig", "eniconfigs"),
    ];
    // Which of them holds a webhook that refuses pods: an Event names the webhook only.
    MutatingWebhooks: MutatingWebhooks(WebhookConfiguration) =
        Spec::new("MutatingWebhookConfigurations", "kubectl get mutatingwebhookconfigurations -o yaml").optional() => [
        ApiSource::new(
            "admissionregistration.k8s.io",
            "v1",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        ),
    ];
    ValidatingWebhooks: ValidatingWebhooks(WebhookConfiguration) =
        Spec::new("ValidatingWebhookConfigurations", "kubectl get validatingwebhookconfigurations -o \
            yaml").optional() => [
        ApiSource::new(
            "admissionregistration.k8s.io",
            "v1",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        ),
    ];
    DisruptionBudgets: DisruptionBudget(PodDisruptionBudget) =
        Spec::new("PodDisruptionBudgets", "kubectl get poddisruptionbudgets -A -o yaml").optional() => [
        ApiSource::new("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ];
    // What a Node that goes is waited for, and which driver has not let go of it.
    VolumeAttachments: VolumeAttachment(VolumeAttachment) =
        Spec::new("VolumeAttachments", "kubectl get volumeattachments -o yaml").optional() => [
        ApiSource::new("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments"),
    ];
    // The API server answers, and keeps nothing. Who is asked about stands in aws-auth.
    AccessReviews: AccessReview(SubjectAccessReview) =
        Spec::new("SubjectAccessReviews", "kubectl create -f subjectaccessreview.yaml -o yaml") => [
        ApiSource::new("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews").created(),
    ];
    // No object of a cluster: nodewhy asks AWS where it may.
    AwsObservations: AwsObservation(AwsObservation) = Spec::new("answers of AWS", "nodewhy collect \
        --aws").optional() => [];
    // No object of a cluster either: the user gives files.
    Logs: MachineLog(MachineLog) = Spec::new("logs", "nodewhy diagnose --logs").optional() => [];
}

const KARPENTER: &str = "app.kubernetes.io/name=karpenter";

const fn custom_resource(name: &'static str) -> ApiSource {
    ApiSource::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions").named(name)
}

impl Input {
    /// What a user calls it.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// The input that is called so.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|input| input.name() == name)
    }

    /// The command that shows it.
    pub const fn command(self) -> &'static str {
        self.spec().command
    }

    /// Whether clusters without this kind are as good as others: it belongs to an add-on.
    pub const fn may_be_absent(self) -> bool {
        self.spec().may_be_absent
    }

    /// The API resources that hold its objects. Watches, RBAC and readiness follow from them.
    pub const fn sources(self) -> &'static [ApiSource] {
        self.spec().sources
    }
}

/// One kind of object in a cluster, and which of its objects are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiSource {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    /// The namespace that is read; `None` for all, and for kinds that have none.
    pub namespace: Option<&'static str>,
    /// The name of the one object that is read.
    pub only: Option<&'static str>,
    /// Field selector.
    pub fields: Option<&'static str>,
    /// Label selector.
    pub labels: Option<&'static str>,
    /// Watched, or only read when somebody asks.
    pub watched: bool,
    /// The verbs that reading it takes.
    pub verbs: &'static [&'static str],
}

impl ApiSource {
    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    const fn new(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            namespace: None,
            only: None,
            fields: None,
            labels: None,
            watched: true,
            verbs: &["list", "watch"],
        }
    }

    const fn only(self, namespace: &'static str, name: &'static str) -> Self {
        Self { namespace: Some(namespace), ..self.named(name) }
    }

    const fn named(mut self, name: &'static str) -> Self {
        self.only = Some(name);
        self
    }

    /// The field selector of its list.
    pub fn field_selector(&self) -> Option<String> {
        self.only.map(|name| format!("metadata.name={name}")).or_else(|| self.fields.map(str::to_owned))
    }

    const fn fields(mut self, selector: &'static str) -> Self {
        self.fields = Some(selector);
        self
    }

    const fn labels(mut self, selector: &'static str) -> Self {
        self.labels = Some(selector);
        self
    }

    const fn listed(mut self) -> Self {
        self.watched = false;
        self.verbs = &["list"];
        self
    }

    const fn created(mut self) -> Self {
        self.watched = false;
        self.verbs = &["create"];
        self
    }
}

/// An object's apiVersion and kind, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TypeMeta {
    pub api_version: String,
    pub kind: String,
}

/// The kind of Karpenter's that this word means: itself, in another case, or as a plural.
pub fn kind_of_karpenter(word: &str) -> Option<&'static str> {
    const OWN: [&str; 4] = ["EC2NodeClass", "NodeClaim", "NodeOverlay", "NodePool"];
    let singular = [Some(word), word.strip_suffix('s'), word.strip_suffix("es")];
    OWN.into_iter().find(|own| singular.iter().flatten().any(|word| own.eq_ignore_ascii_case(word)))
}

/// How nodewhy takes an object of some type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    As(Input),
    /// A kind of before Karpenter 0.32.
    Former(Former),
    /// A kind that no rule reads.
    Ignored,
    /// A version that the rules do not know: say so instead of misreading it.
    Outdated {
        served: &'static str,
    },
    /// A kind of Karpenter's, written in another way than the API server knows it.
    Misspelt {
        kind: &'static str,
    },
}

impl Reading {
    /// Reads an object that is taken so; one that is not taken at all is an error.
    pub fn read(self, json: &str) -> serde_json::Result<Object> {
        match self {
            Self::As(input) => Object::from_json(input, json),
            Self::Former(former) => former.read(json),
            Self::Ignored | Self::Outdated { .. } | Self::Misspelt { .. } => {
                Err(serde_json::Error::custom("nothing reads it"))
            }
        }
    }
}

impl Former {
    /// What it is read as.
    pub const fn input(self) -> Input {
        match self {
            Self::Provisioner => Input::NodePools,
            Self::Machine => Input::NodeClaims,
            Self::NodeTemplate => Input::NodeClasses,
        }
    }

    fn read(self, json: &str) -> serde_json::Result<Object> {
        Ok(match self {
            Self::Provisioner => Object::NodePool(former::provisioner(json)?),
            Self::Machine => Object::NodeClaim(former::machine(json)?),
            Self::NodeTemplate => Object::NodeClass(former::node_template(json)?),
        })
    }
}

impl TypeMeta {
    /// The apiVersion and kind of a JSON object. It reads no further than it must: if they come first, as kubectl
    /// prints them, it reads two lines. Empty if the object lacks them, or the text is no object.
    pub fn of_json(text: &str) -> Self {
        let (mut api_version, mut kind) = (None, None);
        fields(text, |field, value| {
            let wanted = match field {
                "apiVersion" => &mut api_version,
                "kind" => &mut kind,
                _ => return ControlFlow::Continue(()),
            };
            let Ok(said) = serde_json::from_str(value.get()) else { return ControlFlow::Break(()) };
            *wanted = Some(said);
            if api_version.is_some() && kind.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        Self { api_version: api_version.unwrap_or_default(), kind: kind.unwrap_or_default() }
    }

    /// The input that a list of this type holds all of. ConfigMaps may be those of any namespace.
    pub fn lists(&self) -> Option<Input> {
        let kind = self.kind.strip_suffix("List").filter(|kind| !kind.is_empty())?.to_owned();
        match (Self { api_version: self.api_version.clone(), kind }).reading() {
            Reading::Former(former) => Some(former.input()),
            Reading::As(input) if !matches!(input, Input::AwsAuth | Input::KubeProxyConfig | Input::VpcCniConfig) => {
                Some(input)
            }
            _ => None,
        }
    }

    /// Which input an object of this type is.
    pub fn reading(&self) -> Reading {
        let (group, version) = self.api_version.rsplit_once('/').unwrap_or(("", &self.api_version));
        if matches!(group, "karpenter.sh" | "karpenter.k8s.aws")
            && let Some(kind) = kind_of_karpenter(&self.kind)
            && kind != self.kind
        {
            return Reading::Misspelt { kind };
        }
        match (group, self.kind.as_str()) {
            // v1beta1 (Karpenter 0.32 and later) says the same in the same fields but for the reference to the class.
            // What came before it is read as if it had their names, and so written by `nodewhy collect`, under its own
            // version.
            ("karpenter.sh", "NodeClaim" | "NodePool") if !matches!(version, "v1" | "v1beta1" | "v1alpha5") => {
                Reading::Outdated { served: "karpenter.sh/v1 (Karpenter 1.0 and later)" }
            }
            ("karpenter.k8s.aws", "EC2NodeClass") if !matches!(version, "v1" | "v1beta1" | "v1alpha1") => {
                Reading::Outdated { served: "karpenter.k8s.aws/v1 (Karpenter 1.0 and later)" }
            }
            ("karpenter.sh", "Provisioner") if version == "v1alpha5" => Reading::Former(Former::Provisioner),
            ("karpenter.sh", "Machine") if version == "v1alpha5" => Reading::Former(Former::Machine),
            ("karpenter.sh", "Provisioner" | "Machine") => {
                Reading::Outdated { served: "karpenter.sh/v1alpha5 (Karpenter 0.5 and later)" }
            }
            ("karpenter.k8s.aws", "AWSNodeTemplate") => Reading::Former(Former::NodeTemplate),
            ("karpenter.sh", "NodeClaim") => Reading::As(Input::NodeClaims),
            // There is none in the other group of Karpenter's, where people look for it: lint says so.
            ("karpenter.sh" | "karpenter.k8s.aws", "NodePool") => Reading::As(Input::NodePools),
            ("karpenter.sh", "NodeOverlay") => Reading::As(Input::NodeOverlays),
            // Each provider has a class of its own, in a group of its own; so has EKS Auto Mode, which runs Karpenter
            // out of sight.
            (group, kind) if !group.is_empty() && kind.ends_with("NodeClass") => Reading::As(Input::NodeClasses),
            ("", "Node") => Reading::As(Input::Nodes),
            ("", "ConfigMap") => Reading::As(Input::AwsAuth),
            ("" | "events.k8s.io", "Event") => Reading::As(Input::Events),
            ("certificates.k8s.io", "CertificateSigningRequest") => Reading::As(Input::CertificateSigningRequests),
            ("", "Pod") => Reading::As(Input::Pods),
            ("apps", "DaemonSet") => Reading::As(Input::DaemonSets),
            ("apps", "Deployment") => Reading::As(Input::Deployments),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Reading::As(Input::CustomResources),
            ("", "Service") => Reading::As(Input::Services),
            ("", "ServiceAccount") => Reading::As(Input::ServiceAccounts),
            ("crd.k8s.amazonaws.com", "ENIConfig") => Reading::As(Input::EniConfigs),
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => Reading::As(Input::MutatingWebhooks),
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
                Reading::As(Input::ValidatingWebhooks)
            }
            ("policy", "PodDisruptionBudget") => Reading::As(Input::DisruptionBudgets),
            ("storage.k8s.io", "VolumeAttachment") => Reading::As(Input::VolumeAttachments),
            ("authorization.k8s.io", "SubjectAccessReview") => Reading::As(Input::AccessReviews),
            ("nodewhy.dev", "AwsObservation") => Reading::As(Input::AwsObservations),
            ("nodewhy.dev", "MachineLog") => Reading::As(Input::Logs),
            _ => Reading::Ignored,
        }
    }
}

impl Object {
    /// The former kind of the object, if it is a kind from before Karpenter 0.32.
    pub fn former_kind(&self) -> Option<&'static str> {
        match self {
            Self::NodePool(pool) if pool.is_provisioner() => Some("Provisioner"),
            Self::NodeClaim(claim) if claim.is_machine() => Some("Machine"),
            Self::NodeClass(class) if class.is_node_template() => Some("AWSNodeTemplate"),
            _ => None,
        }
    }

    /// Reads the JSON text of an object of the given input.
    pub fn from_json(input: Input, text: &str) -> serde_json::Result<Self> {
        Self::read(input, &mut serde_json::Deserializer::from_str(text))
    }

    /// Reads a JSON value of the given input.
    pub fn from_value(input: Input, value: serde_json::Value) -> serde_json::Result<Self> {
        Self::read(input, value)
    }

    /// The same, told by its name where the kind does not tell which input it is.
    #[must_use]
    pub fn by_its_name(self) -> Self {
        match self {
            Self::AwsAuth(map) if map.is("kube-system", "kube-proxy") => Self::KubeProxyConfig(map),
            Self::AwsAuth(map) if map.is("kube-system", "amazon-vpc-cni") => Self::VpcCniConfig(map),
            other => other,
        }
    }

    /// Takes out the inline node class, which a Provisioner may have.
    pub fn provider_apart(&mut self) -> Option<Self> {
        match self {
            Self::NodePool(pool) => pool.provider.take().map(|class| Self::NodeClass(*class)),
            _ => None,
        }
    }

    /// The apiVersion and kind with which nodewhy writes the object. It writes an Event as core/v1, which its fields
    /// match, and a node class as it was read.
    pub fn type_meta(&self) -> TypeMeta {
        let type_ = |api_version: String, kind: &str| TypeMeta { api_version, kind: kind.to_owned() };
        match (self, self.input().sources()) {
            (Self::NodeClass(class), _) => type_(class.api_version.clone(), &class.kind),
            (Self::NodePool(pool), _) if pool.is_provisioner() => type_(pool.api_version.to_string(), "NodePool"),
            (Self::NodeClaim(claim), _) if claim.is_machine() => type_(claim.api_version.to_string(), "NodeClaim"),
            (_, [source, ..]) => type_(source.api_version(), source.kind),
            (Self::MachineLog(_), _) => type_("nodewhy.dev/v1alpha1".to_owned(), "MachineLog"),
            (_, []) => type_("nodewhy.dev/v1alpha1".to_owned(), "AwsObservation"),
        }
    }
}
