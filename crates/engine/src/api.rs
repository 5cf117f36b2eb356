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

/// The annotation of a Node from which nodewhy has removed a taint, written by the very patch that removes it. Its value
/// is the time.
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
        description = "How many machines of the NodePool are stuck; empty where it is about one machine"
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
        description = "How it ended; empty while the machine is stuck"
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
#[x_kube(validation = Rule::new("self.subject == oldSelf.subject").message("the subject of a diagnosis never changes; delete the NodeDiagnosis instead"))]
pub struct NodeDiagnosisSpec {
    /// The object that is diagnosed: a NodeClaim, a Node without NodeClaim, or the NodePool or node class where nothing
    /// can launch.
    pub subject: ObjectRef,
    /// The machine's NodeClaim, where one exists or existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<NamedUid>,
    /// The machine's Node, where one exists or existed.
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

    /// Ended for good: what recovered may fall ill again.
    pub fn is_final(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Terminated | Outcome::Deleted))
    }

    pub fn cause(&self) -> Option<&str> {
        self.status.as_ref().map(|s| &*s.cause)
    }

    /// The labels that it is written and printed with: they repeat what the verdict says, which holds none itself.
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

    /// Of a NodePool, with the verdict of one of its machines.
    pub fn speaks_for_machines(&self) -> bool {
        self.status.as_ref().and_then(|s| s.machines.as_ref()).is_some_and(|machines| machines.example.is_some())
    }

    /// For how long at least an instance ran that was deleted without having joined; `None` where there was none, or it
    /// had joined.
    pub fn ran_in_vain(&self) -> Option<TimeDelta> {
        let status = self.status.as_ref().filter(|s| matches!(s.stage, Stage::Join | Stage::Register))?;
        self.is_final().then_some(status.ended_at? - status.first_observed_at)
    }
}

/// A reference that survives the object it names.
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
    /// Whether it names the object of this UID. Objects written by hand may have none: then the name alone counts.
    pub fn stands_for(&self, uid: &str) -> bool {
        self.uid.is_empty() || uid.is_empty() || self.uid == uid
    }
}

/// A name and the UID it stood for.
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
    /// Stable CamelCase identifier of the root cause; Unknown where nothing fits.
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
    /// What was seen, where, and why it matters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::EVIDENCE))]
    pub evidence: Vec<Evidence>,
    /// What explains what: the symptom first, the deepest link that the objects show last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::CHAIN))]
    pub chain: Vec<Link>,
    /// Causes that something excludes, each with the object that was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::RULED_OUT))]
    pub ruled_out: Vec<RuledOut>,
    /// What is still open, each question with the command that answers it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::UNKNOWNS))]
    pub unknowns: Vec<Unknown>,
    /// Weaker explanations that also fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::ALTERNATIVES))]
    pub alternatives: Vec<Alternative>,
    /// What may be behind a verdict that proves no root cause, the best first. Suspects are no verdict: cause, metrics
    /// and Events do not follow them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::SUSPECTS))]
    pub suspects: Vec<Suspect>,
    /// How to mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Since when the machine has been waiting at this stage.
    pub first_observed_at: DateTime<Utc>,
    /// When Karpenter deletes the machine; absent where no timeout applies, and once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminates_at: Option<DateTime<Utc>>,
    /// When the machine recovered or went away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// How it ended; absent while the machine is stuck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Of a NodePool: how many of its machines are stuck by which cause. The verdict is then that of one of them,
    /// unless the NodePool has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<Box<PoolMachines>>,
    /// What was said under this name before, the last first: of another machine that was called so, of this one before
    /// it fell ill again, of an earlier incident of the NodePool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::EARLIER))]
    pub earlier: Vec<EarlierVerdict>,
    /// Earlier machines of the same NodePool and node class with the same cause.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(with = "i32", range(min = 0))]
    pub recurrences: u32,
    /// Conditions after the Kubernetes conventions: Judged (True once there is a verdict, whatever it says; the reason is
    /// the cause), Diagnosed (True once a cause other than Unknown is named), Ended, and Remediated (True once nodewhy
    /// has removed a cloud-provider taint; the reason says what it did or why it did not).
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
    /// A Node is there, but Karpenter does not accept it.
    Register,
    /// The Node is registered, but not initialized.
    Initialize,
    /// The Node was usable and is not Ready, or Ready and of no use: a taint, pressure, no addresses, a broken device.
    Ready,
    /// The machine is going away.
    Terminate,
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Confidence {
    /// One of several explanations.
    Possible,
    /// The best explanation; something that cannot be seen from here could contradict it.
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
    /// It was deleted for another reason; of a NodePool, its machines were.
    Deleted,
}

/// The object to change, down to the character where there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blame {
    /// Kind and name in one word, for example EC2NodeClass/default.
    pub object: String,
    /// Group and version; empty for things that live in AWS.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind, for example EC2NodeClass; EC2Tags, IAMRole and the like for what lives in AWS.
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
    /// Column of the place in the excerpt, which differs where a value is masked or a long line is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>", range(min = 1))]
    pub caret: Option<u32>,
    /// That line, with secret-looking values masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = schema_limits::EXCERPT))]
    pub excerpt: Option<String>,
}

/// Who can tell something; the cluster where it is not said.
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
    /// Who told it: AWS, or the cluster where this is absent.
    #[serde(default, skip_serializing_if = "Witness::is_cluster")]
    pub source: Witness,
    /// Kind and name, for example NodeClaim/general-7xk2p; for what AWS told the call and what it was about.
    pub object: String,
    /// Field of that object as a JSONPath without the braces, for example status.conditions[?(@.type=="Registered")].
    pub field: Text,
    /// What stands there.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub observed: String,
    /// Why it matters.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub because: Text,
    /// How often, how many, seen when, as of the last write: what goes on moving while the cause stays is alone no
    /// reason to write again.
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

    /// Adds what goes on moving.
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
    /// What it says, or what is said of it.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub says: String,
}

impl Link {
    pub fn new(object: impl Into<String>, says: impl Into<String>) -> Self {
        Self { object: object.into(), says: says.into() }
    }
}

/// A cause that does not explain this machine, and what shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuledOut {
    /// The cause.
    pub cause: Text,
    /// What excludes it.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub because: Text,
    /// The object that was seen and excludes it, by kind and name; for what AWS told the call and what it was about.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub witness: Text,
}

/// A question that is still open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    /// Who can answer it: AWS, or the cluster where this is absent.
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
    /// What it would mean.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub summary: String,
}

/// A cause that would explain the machine and that the objects neither prove nor exclude.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suspect {
    /// What the machines of one group have in common, and then only once in memory.
    #[serde(flatten)]
    pub grounds: Arc<Grounds>,
    /// The one command that settles it. It only reads.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub command: Text,
}

/// What makes a cause a suspect, and how its command is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grounds {
    /// The cause.
    pub cause: Text,
    /// What it would mean here, with the real names in it.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub summary: Text,
    /// What speaks for it, the most telling first.
    #[serde(rename = "for", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::OBSERVATIONS), inner(length(max = schema_limits::SENTENCE)))]
    pub speaks_for: Vec<Text>,
    /// What speaks against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::OBSERVATIONS), inner(length(max = schema_limits::SENTENCE)))]
    pub against: Vec<Text>,
    /// What to look for in the command's output.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub look_for: Text,
}

/// How to mend it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fix {
    /// One sentence.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub summary: Text,
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
    /// What to do.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub text: Text,
    /// The command that does it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub command: Option<String>,
    /// What the step can do to the cluster.
    pub risk: Risk,
}

/// What a step can do to the cluster.
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

/// What was said before, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierVerdict {
    /// UID of the object that it was about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The stage that it was stuck at.
    pub stage: Stage,
    /// The cause.
    pub cause: Text,
    /// How sure that was.
    pub confidence: Confidence,
    /// What was wrong.
    #[schemars(length(max = schema_limits::SENTENCE))]
    pub summary: Text,
    /// Since when it had been waiting.
    pub first_observed_at: DateTime<Utc>,
    /// When it ended, or was seen to be over.
    pub ended_at: DateTime<Utc>,
    /// How it ended.
    pub outcome: Outcome,
}

/// A condition after the Kubernetes API conventions.
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

/// What `nodewhy diagnose -o json` prints.
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
