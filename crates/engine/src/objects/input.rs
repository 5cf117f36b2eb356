//! The kinds that nodewhy reads. RBAC, watches, readiness and the docs follow from this one table.

use crate::objects::json_fields::fields;
use crate::objects::{
    AwsAuthConfigMap, AwsObservation, CertificateSigningRequest, DaemonSet, Deployment, EniConfig, Event, Node, NodeClaim, NodeClass,
    NodePool, Pod, ServiceAccount, SubjectAccessReview,
};
use serde::{Deserialize, Deserializer};
use std::ops::ControlFlow;

/// One kind of object that a rule may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Input {
    Nodes,
    NodeClaims,
    NodePools,
    NodeClasses,
    AwsAuth,
    Events,
    CertificateSigningRequests,
    Pods,
    DaemonSets,
    Deployments,
    ServiceAccounts,
    EniConfigs,
    AccessReviews,
    AwsObservations,
}

impl Input {
    pub const ALL: [Self; 14] = [
        Self::Nodes,
        Self::NodeClaims,
        Self::NodePools,
        Self::NodeClasses,
        Self::AwsAuth,
        Self::Events,
        Self::CertificateSigningRequests,
        Self::Pods,
        Self::DaemonSets,
        Self::Deployments,
        Self::ServiceAccounts,
        Self::EniConfigs,
        Self::AccessReviews,
        Self::AwsObservations,
    ];

    /// What a user calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nodes => "Nodes",
            Self::NodeClaims => "NodeClaims",
            Self::NodePools => "NodePools",
            Self::NodeClasses => "EC2NodeClasses",
            Self::AwsAuth => "ConfigMap kube-system/aws-auth",
            Self::Events => "Events",
            Self::CertificateSigningRequests => "CertificateSigningRequests",
            Self::Pods => "Pods",
            Self::DaemonSets => "DaemonSets",
            Self::Deployments => "Karpenter's Deployment",
            Self::ServiceAccounts => "Karpenter's ServiceAccount",
            Self::EniConfigs => "ENIConfigs",
            Self::AccessReviews => "SubjectAccessReviews",
            Self::AwsObservations => "answers of AWS",
        }
    }

    /// The command that shows it.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Self::Nodes => "kubectl get nodes -o yaml",
            Self::NodeClaims => "kubectl get nodeclaims -o yaml",
            Self::NodePools => "kubectl get nodepools -o yaml",
            Self::NodeClasses => "kubectl get ec2nodeclasses -o yaml",
            Self::AwsAuth => "kubectl get configmap -n kube-system aws-auth -o yaml",
            Self::Events => "kubectl get events -A -o yaml",
            Self::CertificateSigningRequests => "kubectl get csr -o yaml",
            Self::Pods => "kubectl get pods -n kube-system -o yaml",
            Self::DaemonSets => "kubectl get daemonsets -A -o yaml",
            Self::Deployments => "kubectl get deployments -A -l app.kubernetes.io/name=karpenter -o yaml",
            Self::ServiceAccounts => "kubectl get serviceaccounts -A -l app.kubernetes.io/name=karpenter -o yaml",
            Self::EniConfigs => "kubectl get eniconfigs -o yaml",
            Self::AccessReviews => "kubectl create -f subjectaccessreview.yaml -o yaml",
            Self::AwsObservations => "nodewhy collect --aws",
        }
    }

    /// Whether clusters without this kind are as good as others: it belongs to an add-on.
    #[must_use]
    pub const fn may_be_absent(self) -> bool {
        matches!(self, Self::EniConfigs | Self::AwsObservations)
    }

    /// Where its objects are in a cluster. Watches, RBAC and readiness follow from this.
    #[must_use]
    pub const fn sources(self) -> &'static [Source] {
        const KARPENTER: &str = "app.kubernetes.io/name=karpenter";
        match self {
            Self::Nodes => const { &[Source::new("", "v1", "Node", "nodes")] },
            Self::NodeClaims => const { &[Source::new("karpenter.sh", "v1", "NodeClaim", "nodeclaims")] },
            Self::NodePools => const { &[Source::new("karpenter.sh", "v1", "NodePool", "nodepools")] },
            Self::NodeClasses => const { &[Source::new("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses")] },
            Self::AwsAuth => const { &[Source::new("", "v1", "ConfigMap", "configmaps").only("kube-system", "aws-auth")] },
            // Events about Pods are most of a cluster's events: only the reasons that a rule reads.
            Self::Events => {
                const {
                    &[
                        Source::new("", "v1", "Event", "events").fields("involvedObject.kind=NodeClaim"),
                        Source::new("", "v1", "Event", "events").fields("involvedObject.kind=Node"),
                        Source::new("", "v1", "Event", "events").fields("involvedObject.kind=DaemonSet"),
                        Source::new("", "v1", "Event", "events").fields("involvedObject.kind=Pod,reason=FailedCreatePodSandBox"),
                        Source::new("", "v1", "Event", "events").fields("involvedObject.kind=Pod,reason=MissingIAMPermissions"),
                    ]
                }
            }
            Self::CertificateSigningRequests => {
                const { &[Source::new("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests")] }
            }
            // All pods of a cluster are too many: those of a stuck machine are listed when a rule wants them.
            Self::Pods => const { &[Source::new("", "v1", "Pod", "pods").listed()] },
            Self::DaemonSets => const { &[Source::new("apps", "v1", "DaemonSet", "daemonsets")] },
            Self::Deployments => const { &[Source::new("apps", "v1", "Deployment", "deployments").labels(KARPENTER)] },
            Self::ServiceAccounts => const { &[Source::new("", "v1", "ServiceAccount", "serviceaccounts").labels(KARPENTER)] },
            // amazon-vpc-cni-k8s v1.20.4 config/master/aws-k8s-cni.yaml
            Self::EniConfigs => const { &[Source::new("crd.k8s.amazonaws.com", "v1alpha1", "ENIConfig", "eniconfigs")] },
            // The API server answers, and keeps nothing. Who is asked about stands in aws-auth.
            Self::AccessReviews => {
                const { &[Source::new("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews").created()] }
            }
            // No object of a cluster: nodewhy asks AWS where it may.
            Self::AwsObservations => &[],
        }
    }
}

/// One kind of object in a cluster, and which of its objects are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    /// The one object that is read, by namespace and name.
    pub only: Option<(&'static str, &'static str)>,
    /// Field selector.
    pub fields: Option<&'static str>,
    /// Label selector.
    pub labels: Option<&'static str>,
    /// Watched, or only read when somebody asks.
    pub watched: bool,
    /// The verbs that reading it takes.
    pub verbs: &'static [&'static str],
}

impl Source {
    const fn new(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { group, version, kind, plural, only: None, fields: None, labels: None, watched: true, verbs: &["list", "watch"] }
    }

    const fn only(mut self, namespace: &'static str, name: &'static str) -> Self {
        self.only = Some((namespace, name));
        self
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

/// One foreign object, read.
#[derive(Debug, Clone, PartialEq)]
pub enum Object {
    Node(Node),
    NodeClaim(NodeClaim),
    NodePool(NodePool),
    NodeClass(NodeClass),
    AwsAuth(AwsAuthConfigMap),
    Event(Event),
    CertificateSigningRequest(CertificateSigningRequest),
    Pod(Pod),
    DaemonSet(DaemonSet),
    Deployment(Deployment),
    ServiceAccount(ServiceAccount),
    EniConfig(EniConfig),
    AccessReview(SubjectAccessReview),
    AwsObservation(AwsObservation),
}

/// What an object says it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TypeMeta {
    pub api_version: String,
    pub kind: String,
}

/// How nodewhy takes an object of some type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    As(Input),
    /// A kind that no rule reads.
    Ignored,
    /// A version that the rules do not know: say so instead of misreading it.
    Outdated {
        served: &'static str,
    },
}

impl TypeMeta {
    /// What a JSON object says it is. It reads no further than it must: where `apiVersion` and `kind` stand first, as kubectl prints
    /// them, that is two lines. Empty where the object does not say, or is none.
    #[must_use]
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

    /// Which input an object of this type is.
    #[must_use]
    pub fn reading(&self) -> Reading {
        let (group, version) = self.api_version.rsplit_once('/').unwrap_or(("", &self.api_version));
        match (group, self.kind.as_str()) {
            ("karpenter.sh", "NodeClaim" | "NodePool") if version != "v1" => {
                Reading::Outdated { served: "karpenter.sh/v1 (Karpenter 1.0 and later)" }
            }
            ("karpenter.k8s.aws", "EC2NodeClass") if version != "v1" => {
                Reading::Outdated { served: "karpenter.k8s.aws/v1 (Karpenter 1.0 and later)" }
            }
            ("karpenter.sh", "Provisioner" | "Machine") | ("karpenter.k8s.aws", "AWSNodeTemplate") => {
                Reading::Outdated { served: "karpenter.sh/v1 (Karpenter 1.0 and later)" }
            }
            ("karpenter.sh", "NodeClaim") => Reading::As(Input::NodeClaims),
            ("karpenter.sh", "NodePool") => Reading::As(Input::NodePools),
            (group, kind) if group.starts_with("karpenter.") && kind.ends_with("NodeClass") => Reading::As(Input::NodeClasses),
            ("", "Node") => Reading::As(Input::Nodes),
            ("", "ConfigMap") => Reading::As(Input::AwsAuth),
            ("" | "events.k8s.io", "Event") => Reading::As(Input::Events),
            ("certificates.k8s.io", "CertificateSigningRequest") => Reading::As(Input::CertificateSigningRequests),
            ("", "Pod") => Reading::As(Input::Pods),
            ("apps", "DaemonSet") => Reading::As(Input::DaemonSets),
            ("apps", "Deployment") => Reading::As(Input::Deployments),
            ("", "ServiceAccount") => Reading::As(Input::ServiceAccounts),
            ("crd.k8s.amazonaws.com", "ENIConfig") => Reading::As(Input::EniConfigs),
            ("authorization.k8s.io", "SubjectAccessReview") => Reading::As(Input::AccessReviews),
            ("nodewhy.dev", "AwsObservation") => Reading::As(Input::AwsObservations),
            _ => Reading::Ignored,
        }
    }
}

impl Object {
    /// Reads an object of the given input. The error is the format's own, which names the field.
    pub fn read<'de, D: Deserializer<'de>>(input: Input, from: D) -> Result<Self, D::Error> {
        Ok(match input {
            Input::Nodes => Self::Node(Deserialize::deserialize(from)?),
            Input::NodeClaims => Self::NodeClaim(Deserialize::deserialize(from)?),
            Input::NodePools => Self::NodePool(Deserialize::deserialize(from)?),
            Input::NodeClasses => Self::NodeClass(Deserialize::deserialize(from)?),
            Input::AwsAuth => Self::AwsAuth(Deserialize::deserialize(from)?),
            Input::Events => Self::Event(Deserialize::deserialize(from)?),
            Input::CertificateSigningRequests => Self::CertificateSigningRequest(Deserialize::deserialize(from)?),
            Input::Pods => Self::Pod(Deserialize::deserialize(from)?),
            Input::DaemonSets => Self::DaemonSet(Deserialize::deserialize(from)?),
            Input::Deployments => Self::Deployment(Deserialize::deserialize(from)?),
            Input::ServiceAccounts => Self::ServiceAccount(Deserialize::deserialize(from)?),
            Input::EniConfigs => Self::EniConfig(Deserialize::deserialize(from)?),
            Input::AccessReviews => Self::AccessReview(Deserialize::deserialize(from)?),
            Input::AwsObservations => Self::AwsObservation(Deserialize::deserialize(from)?),
        })
    }

    /// Reads a JSON value of the given input.
    pub fn from_value(input: Input, value: serde_json::Value) -> Result<Self, serde_json::Error> {
        Self::read(input, value)
    }

    /// Which input it belongs to.
    #[must_use]
    pub const fn input(&self) -> Input {
        match self {
            Self::Node(_) => Input::Nodes,
            Self::NodeClaim(_) => Input::NodeClaims,
            Self::NodePool(_) => Input::NodePools,
            Self::NodeClass(_) => Input::NodeClasses,
            Self::AwsAuth(_) => Input::AwsAuth,
            Self::Event(_) => Input::Events,
            Self::CertificateSigningRequest(_) => Input::CertificateSigningRequests,
            Self::Pod(_) => Input::Pods,
            Self::DaemonSet(_) => Input::DaemonSets,
            Self::Deployment(_) => Input::Deployments,
            Self::ServiceAccount(_) => Input::ServiceAccounts,
            Self::EniConfig(_) => Input::EniConfigs,
            Self::AccessReview(_) => Input::AccessReviews,
            Self::AwsObservation(_) => Input::AwsObservations,
        }
    }

    /// Its metadata.
    #[must_use]
    pub const fn meta(&self) -> &crate::objects::Meta {
        match self {
            Self::Node(o) => &o.metadata,
            Self::NodeClaim(o) => &o.metadata,
            Self::NodePool(o) => &o.metadata,
            Self::NodeClass(o) => &o.metadata,
            Self::AwsAuth(o) => &o.metadata,
            Self::Event(o) => &o.metadata,
            Self::CertificateSigningRequest(o) => &o.metadata,
            Self::Pod(o) => &o.metadata,
            Self::DaemonSet(o) => &o.metadata,
            Self::Deployment(o) => &o.metadata,
            Self::ServiceAccount(o) => &o.metadata,
            Self::EniConfig(o) => &o.metadata,
            Self::AccessReview(o) => &o.metadata,
            Self::AwsObservation(o) => &o.metadata,
        }
    }
}
