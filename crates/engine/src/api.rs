//! The contract: the `NodeDiagnosis` kind that nodewhy writes and prints.
//!
//! The engine makes these very types, so what `kubectl` shows, what `-o json` prints and what the tests compare are one
//! thing. EKS ships a kind called `NodeDiagnostic`; that one captures logs and has nothing to do with this.

pub mod crd;
pub mod judged;
pub mod pool_machines;
pub mod schema_limits;
pub mod text;

use chrono::{DateTime, TimeDelta, Utc};
use judged::Judged;
use kube_derive::{CustomResource, KubeSchema};
use pool_machines::PoolMachines;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
pub use text::Text;

/// The field manager of every write, and the reporter of every Event.
pub const FIELD_MANAGER: &str = "nodewhy";

/// The annotation of a Node or NodePool that keeps nodewhy from removing taints there.
pub const PAUSE_ANNOTATION: &str = "nodewhy.dev/pause-remediation";

/// The annotation of a Node from which nodewhy has removed a taint, written by the very patch that removes it. Its
/// value is the time.
pub const REMOVED_ANNOTATION: &str = "nodewhy.dev/taint-removed";

/// The type of the condition of a Node that carries its verdict, where that is asked for.
pub const NODE_CONDITION: &str = "NodewhyDiagnosed";

/// The label that carries the cause, so that `kubectl get ndx -l nodewhy.dev/cause=…` works.
pub const CAUSE_LABEL: &str = "nodewhy.dev/cause";

/// The label that carries the outcome of one that has ended; `-l '!nodewhy.dev/outcome'` selects what is stuck now.
pub const OUTCOME_LABEL: &str = "nodewhy.dev/outcome";

#[allow(clippy::duplicated_attributes, reason = "every printcolumn has the same keys")]
/// Which machine (or NodePool, or node class) a diagnosis is about.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "nodewhy.dev",
    version = "v1alpha1",
    kind = "NodeDiagnosis",
    plural = "nodediagnoses",
    shortname = "ndx",
    category = "nodewhy",
    status = "NodeDiagnosisStatus",
    doc = "Why a node never became usable: one machine, one verdict, with its evidence.",
    derive = "PartialEq",
    crates(kube_core = "kube_core"),
    printcolumn(name = "Cause", type_ = "string", json_path = ".status.cause", description = "The root cause"),
    printcolumn(
        name = "Stage",
        type_ = "string",
        json_path = ".status.stage",
        description = "The stage the machine waits at"
    ),
    printcolumn(
        name = "Machines",
        type_ = "integer",
        json_path = ".status.machines.stuck",
        description = "Number of stuck machines of the NodePool. Empty if it is about one machine"
    ),
    printcolumn(name = "NodePool", type_ = "string", json_path = ".spec.nodePool.name"),
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.node.name"),
    printcolumn(
        name = "Terminates",
        type_ = "string",
        json_path = ".status.terminatesAt",
        description = "When Karpenter deletes the machine and with it the evidence"
    ),
    printcolumn(
        name = "Outcome",
        type_ = "string",
        json_path = ".status.outcome",
        description = "How it ended. Empty while the machine is stuck"
    ),
    printcolumn(name = "Ended", type_ = "date", json_path = ".status.endedAt", description = "How long ago it ended"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Confidence", type_ = "string", json_path = ".status.confidence", priority = 1),
    printcolumn(name = "Blame", type_ = "string", json_path = ".status.blame.object", priority = 1),
    printcolumn(name = "Summary", type_ = "string", json_path = ".status.summary", priority = 1),
    selectable = ".spec.nodePool.name",
    selectable = ".spec.node.name",
    selectable = ".status.cause",
    selectable = ".status.stage",
    selectable = ".status.confidence",
    selectable = ".status.outcome"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(crates(kube_core = "kube_core"))]
#[x_kube(validation = Rule::new("self.subject == oldSelf.subject").message("the subject of a diagnosis never changes; \
    delete the NodeDiagnosis instead"))]
pub struct NodeDiagnosisSpec {
    /// The diagnosed object. It is a NodeClaim, a Node without NodeClaim, or a NodePool or node class that launches
    /// nothing.
    pub subject: ObjectRef,
    /// The machine's NodeClaim, if it has or had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<NamedUid>,
    /// The machine's Node, if it has or had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NamedUid>,
    /// The NodePool that the machine belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_pool: Option<Named>,
    /// The node class (an EC2NodeClass on EKS) that describes the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class: Option<Named>,
}

impl NodeDiagnosis {
    /// How it ended; `None` while the machine is stuck.
    pub fn outcome(&self) -> Option<Outcome> {
        self.status.as_ref().and_then(|s| s.outcome)
    }

    pub fn is_open(&self) -> bool {
        self.outcome().is_none()
    }

    /// Whether it ended for good. A machine that recovered may get stuck again.
    pub fn is_final(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Terminated | Outcome::Deleted))
    }

    pub fn cause(&self) -> Option<&str> {
        self.status.as_ref().map(|s| &*s.cause)
    }

    /// The labels that nodewhy writes and prints it with. They repeat the verdict. A diagnosis in memory has none.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let outcome = self.outcome().map(|outcome| format!("{outcome:?}"));
        let pool = self.spec.node_pool.as_ref().map(|pool| pool.name.clone());
        let labels =
            [(CAUSE_LABEL, self.cause().map(str::to_owned)), (OUTCOME_LABEL, outcome), ("karpenter.sh/nodepool", pool)];
        labels.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }

    pub fn recurrences(&self) -> u32 {
        self.status.as_ref().map_or(0, |s| s.recurrences)
    }

    /// Whether it is about a NodePool and shows the verdict of one of its machines.
    pub fn speaks_for_machines(&self) -> bool {
        self.status.as_ref().and_then(|s| s.machines.as_ref()).is_some_and(|machines| machines.example.is_some())
    }

    /// The minimum time that the instance ran if the machine was deleted before it joined. `None` if it joined or had
    /// no instance.
    pub fn ran_in_vain(&self) -> Option<TimeDelta> {
        let status = self.status.as_ref().filter(|s| matches!(s.stage, Stage::Join | Stage::Register))?;
        self.is_final().then_some(status.ended_at? - status.first_observed_at)
    }
}

/// A reference that stays valid after the object is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Group and version, for example karpenter.sh/v1.
    pub api_version: String,
    /// Kind, for example NodeClaim.
    #[schemars(length(max = schema_limits::KIND))]
    pub kind: String,
    /// Name of the object.
    #[schemars(length(max = schema_limits::NAME))]
    pub name: String,
    /// UID of the object, so that a new object of the same name is not mistaken for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

impl ObjectRef {
    /// Whether it names the object of this UID. If either UID is empty, as in objects written by hand, only the name
    /// counts.
    pub fn stands_for(&self, uid: &str) -> bool {
        self.uid.is_empty() || uid.is_empty() || self.uid == uid
    }
}

/// A name, and the UID of the object that had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedUid {
    /// Name of the object.
    pub name: String,
    /// UID of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// A name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    /// Name of the object.
    pub name: String,
}

/// The verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDiagnosisStatus {
    /// The stage that the machine waits at, or died at.
    pub stage: Stage,
    /// Stable CamelCase identifier of the root cause. Unknown if no rule finds one.
    #[schemars(regex(pattern = r"^[A-Z][A-Za-z0-9]*$"), length(max = 63))]
    pub cause: Text,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// One sentence that says what is wrong, with the real names in it.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub summary: Text,
    /// The object to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Box<Blame>>,
    /// The observations that the verdict rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::EVIDENCE))]
    pub evidence: Vec<Evidence>,
    /// The links from the symptom (first) to the deepest cause that objects show (last).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::CHAIN))]
    pub chain: Vec<Link>,
    /// Causes that an observed object excludes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::RULED_OUT))]
    pub ruled_out: Vec<RuledOut>,
    /// Open questions, each with the command that answers it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::UNKNOWNS))]
    pub unknowns: Vec<Unknown>,
    /// Weaker explanations that also fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::ALTERNATIVES))]
    pub alternatives: Vec<Alternative>,
    /// Possible causes if the verdict proves no root cause, the best one first. Suspects are not a verdict: the cause,
    /// metrics and Events ignore them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::SUSPECTS))]
    pub suspects: Vec<Suspect>,
    /// How to fix the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Since when the machine has been waiting at this stage.
    pub first_observed_at: DateTime<Utc>,
    /// When Karpenter deletes the machine. Absent if no timeout applies or it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminates_at: Option<DateTime<Utc>>,
    /// When the machine recovered or went away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// How it ended; absent while the machine is stuck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Only for a NodePool: how many of its machines are stuck, by cause. The verdict is that of one of these machines,
    /// unless the NodePool has its own verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<Box<PoolMachines>>,
    /// Earlier verdicts under this name, the latest first. They are about a former machine of this name, the same
    /// machine before it recovered, or an earlier incident of the NodePool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::EARLIER))]
    pub earlier: Vec<EarlierVerdict>,
    /// Earlier machines of the same NodePool and node class with the same cause.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "i32", range(min = 0))]
    pub recurrences: u32,
    /// Conditions by the Kubernetes API conventions.
    /// Judged: True once there is any verdict. The reason is the cause.
    /// Diagnosed: True once a cause other than Unknown is named.
    /// Ended: True once the machine has recovered or is gone.
    /// Remediated: True once nodewhy has removed a cloud-provider taint. The reason says what it did or why it did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The stages of a machine's life, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Stage {
    /// The cloud has not started an instance.
    Launch,
    /// The instance runs, but no Node has appeared.
    Join,
    /// A Node exists, but Karpenter does not accept it.
    Register,
    /// The Node is registered, but not initialized.
    Initialize,
    /// The Node was usable. It is now NotReady, or Ready but unusable (taint, pressure, no addresses, broken device).
    Ready,
    /// The machine is being deleted.
    Terminate,
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Confidence {
    /// One of several explanations.
    Possible,
    /// The best explanation. Something that nodewhy cannot see could contradict it.
    Likely,
    /// The objects prove it.
    Certain,
}

/// How a diagnosed machine ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// It became usable.
    Recovered,
    /// Karpenter's registration or launch timeout deleted it.
    Terminated,
    /// It was deleted for another reason. For a NodePool: its stuck machines were deleted.
    Deleted,
}

/// The object to change, and the exact place in its text if there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blame {
    /// Kind and name in one word, for example EC2NodeClass/default.
    pub object: String,
    /// Group and version. Empty for AWS resources.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind, for example EC2NodeClass. AWS resources use kinds such as EC2Tags and IAMRole.
    pub kind: String,
    /// Namespace of a namespaced object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Field, for example spec.userData.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Line in the field's text, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 1))]
    pub line: Option<u32>,
    /// Column in that line, in characters from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 1))]
    pub column: Option<u32>,
    /// Length of the place in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 1))]
    pub length: Option<u32>,
    /// Column of the place in the excerpt. It differs from column if a value is masked or a long line is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 1))]
    pub caret: Option<u32>,
    /// The line, with values that look secret masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = schema_limits::EXCERPT))]
    pub excerpt: Option<String>,
}

/// The source of an observation or an answer. Absent means Cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Witness {
    /// The objects of the cluster, or its machines.
    #[default]
    Cluster,
    /// The API of AWS.
    #[serde(rename = "AWS")]
    Aws,
}

impl Witness {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
    fn is_cluster(&self) -> bool {
        *self == Self::Cluster
    }
}

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The source of the observation. Absent means Cluster.
    #[serde(default, skip_serializing_if = "Witness::is_cluster")]
    pub source: Witness,
    /// Kind and name, for example NodeClaim/general-7xk2p. For an answer from AWS, the call and its subject.
    pub object: String,
    /// Field of that object as a JSONPath without the braces, for example status.conditions[?(@.type=="Registered")].
    pub field: Text,
    /// The observed value.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub observed: String,
    /// Why it matters.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub because: Text,
    /// Counts and times as of the last write. nodewhy does not write the NodeDiagnosis again for a change of these
    /// figures alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub figures: Option<Box<str>>,
}

impl Evidence {
    /// One observation.
    pub fn new(
        object: impl Into<String>,
        field: impl Into<Text>,
        observed: impl Into<String>,
        because: impl Into<Text>,
    ) -> Self {
        Self {
            source: Witness::Cluster,
            object: object.into(),
            field: field.into(),
            observed: observed.into(),
            because: because.into(),
            figures: None,
        }
    }

    /// Adds counts and times that keep changing.
    #[must_use]
    pub fn figures(mut self, figures: impl Into<Box<str>>) -> Self {
        self.figures = Some(figures.into());
        self
    }
}

/// One link between a symptom and its cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Kind and name, for example DaemonSet/aws-node.
    pub object: String,
    /// One fact about this object.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub says: String,
}

impl Link {
    pub fn new(object: impl Into<String>, says: impl Into<String>) -> Self {
        Self { object: object.into(), says: says.into() }
    }
}

/// A cause that does not explain this machine, and the proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuledOut {
    /// The cause.
    pub cause: Text,
    /// Why it is excluded.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub because: Text,
    /// Kind and name of the object that excludes it. For an answer from AWS, the call and its subject.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub witness: Text,
}

/// A question that is still open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    /// The source that can answer it. Absent means Cluster.
    #[serde(default, skip_serializing_if = "Witness::is_cluster")]
    pub source: Witness,
    /// The question.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub question: Text,
    /// The command that answers it.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub command: Text,
}

/// A weaker explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    /// The cause.
    pub cause: Text,
    /// How sure it is.
    pub confidence: Confidence,
    /// One sentence that says what would be wrong.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub summary: String,
}

/// A possible cause that no object proves or excludes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suspect {
    /// The part that all machines of one group share, kept once in memory.
    #[serde(flatten)]
    pub grounds: Arc<Grounds>,
    /// The command that settles it. It only reads.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub command: Text,
}

/// Why a cause is a suspect, and how to read the output of its command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grounds {
    /// The cause.
    pub cause: Text,
    /// One sentence that says what would be wrong, with the real names in it.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub summary: Text,
    /// Observations for it, the strongest first.
    #[serde(rename = "for", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::OBSERVATIONS), inner(length(max = schema_limits::SENTENCE)))]
    pub speaks_for: Vec<Text>,
    /// Observations against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::OBSERVATIONS), inner(length(max = schema_limits::SENTENCE)))]
    pub against: Vec<Text>,
    /// The part of the command's output that settles it.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub look_for: Text,
}

/// How to fix the cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    /// One sentence.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub summary: Text,
    /// What the fix does to running pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub disruption: Option<Text>,
    /// Steps in order, each with its risk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::STEPS))]
    pub steps: Vec<FixStep>,
    /// The page that explains the cause.
    pub documentation: String,
}

/// One step of a fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixStep {
    /// The action, as an imperative.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub text: Text,
    /// The command that does it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub command: Option<String>,
    /// How much the step can disrupt.
    pub risk: Risk,
}

/// How much a step can disrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Risk {
    /// Reads only.
    Inspect,
    /// Changes something that running workloads do not depend on.
    LowRisk,
    /// Changes something that running workloads depend on.
    Mutating,
    /// Deletes or replaces machines.
    Destructive,
}

impl Risk {
    /// What a step of this risk does, in words.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Inspect => "only reads",
            Self::LowRisk => "touches no running workload",
            Self::Mutating => "changes what workloads depend on",
            Self::Destructive => "deletes or replaces machines",
        }
    }
}

/// An earlier verdict in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierVerdict {
    /// UID of the diagnosed object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The stage that the object was stuck at.
    pub stage: Stage,
    /// The cause.
    pub cause: Text,
    /// How sure the verdict was.
    pub confidence: Confidence,
    /// One sentence that says what was wrong.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub summary: Text,
    /// Since when the object had been waiting.
    pub first_observed_at: DateTime<Utc>,
    /// When it ended, or when nodewhy first saw that it had ended.
    pub ended_at: DateTime<Utc>,
    /// How it ended.
    pub outcome: Outcome,
}

/// A condition by the Kubernetes API conventions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub type_: Text,
    /// True, False or Unknown.
    // As kubernetes v1.36.3 staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go `Condition` has it.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: Text,
    /// When the status last changed.
    pub last_transition_time: DateTime<Utc>,
    /// CamelCase reason.
    pub reason: Text,
    /// One sentence.
    pub message: Text,
    /// The generation of the NodeDiagnosis that the condition was set for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The output of `nodewhy diagnose -o json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDiagnosisList {
    pub api_version: String,
    pub kind: String,
    pub judged: Judged,
    pub items: Vec<NodeDiagnosis>,
}

impl NodeDiagnosisList {
    pub fn new(mut items: Vec<NodeDiagnosis>, judged: Judged) -> Self {
        for diagnosis in &mut items {
            diagnosis.metadata.labels = Some(diagnosis.labels());
        }
        Self { api_version: "nodewhy.dev/v1alpha1".into(), kind: "NodeDiagnosisList".into(), judged, items }
    }
}
