//! The standing check: lints the configuration of the cluster after it changed, and says which findings came and went.
//!
//! The check waits until changes stop for a moment, because people apply a class and its NodePools together. If nothing
//! changes, nothing is linted. A finding is known by its object, level, cause, field and text, so a line that moves is
//! no news.

use crate::api::ObjectRef;
use crate::cluster_state::ClusterState;
use crate::lint::introduced::{self, Key};
use crate::lint::upgrade;
use crate::lint::{self, Level, LintFinding};
use crate::objects::input::{Input, Object};
use crate::objects::{Meta, Written};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;

/// The check begins when no change has followed for this long.
const QUIET: TimeDelta = TimeDelta::seconds(10);
/// The check waits no longer than this, even if changes go on.
const LATEST: TimeDelta = TimeDelta::minutes(1);

/// What to say on an object about a finding that came or went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingNotice {
    /// The object, with its UID.
    pub regarding: ObjectRef,
    /// The namespace of the object. `None` if its kind has none.
    pub namespace: Option<String>,
    pub cause: String,
    pub note: String,
    /// Whether the finding came. Otherwise it is gone.
    pub is_found: bool,
    /// Two replicas, and one before and after a restart, give the same finding about the same text the same identity.
    pub identity: String,
}

/// The object of a finding, as it was when the finding was made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    reference: ObjectRef,
    namespace: Option<String>,
    /// When the spec of the object was last written.
    written: Option<DateTime<Utc>>,
}

#[derive(Debug)]
struct Found {
    finding: LintFinding,
    target: Target,
}

/// The findings of the last check, and what changed since.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// The times of the first and the last change that no check has seen.
    changed: Option<(DateTime<Utc>, DateTime<Utc>)>,
    found: BTreeMap<Key, Found>,
    revision: u64,
}

impl Standing {
    /// Whether the object is configuration and says something that the cluster does not show yet.
    pub(super) fn is_news(&self, object: &Object, cluster: &ClusterState) -> bool {
        match object {
            Object::NodeClass(class) => {
                cluster.class(&class.kind, class.name()).is_none_or(|known| known.class != *class)
            }
            Object::NodePool(pool) => cluster.pool(pool.name()).is_none_or(|known| known != pool),
            Object::NodeOverlay(overlay) => cluster.node_overlays().all(|known| known != overlay),
            Object::AwsAuth(map) => {
                let roles = map.data.map_roles.as_deref().unwrap_or_default();
                let users = map.data.map_users.as_deref().unwrap_or_default();
                cluster.aws_auth().is_none_or(|known| known.map_roles != roles || known.map_users != users)
            }
            // A node that joins may contradict a finding.
            Object::NodeClaim(claim) => {
                let joined_before = || cluster.claim(claim.name()).is_some_and(|known| known.is_true("Registered"));
                !self.found.is_empty() && claim.is_true("Registered") && !joined_before()
            }
            _ => false,
        }
    }

    /// Whether objects of this input are configuration.
    pub(super) const fn concerns(input: Input) -> bool {
        matches!(input, Input::NodeClasses | Input::NodePools | Input::NodeOverlays | Input::AwsAuth)
    }

    /// The configuration changed.
    pub(super) fn change(&mut self, now: DateTime<Utc>) {
        let first = self.changed.map_or(now, |(first, _)| first);
        self.changed = Some((first, now));
    }

    /// When to check. `None` if nothing has changed since the last check.
    pub(super) fn due(&self) -> Option<DateTime<Utc>> {
        self.changed.map(|(first, last)| (last + QUIET).min(first + LATEST))
    }

    /// Changes whenever the findings change.
    pub(super) const fn revision(&self) -> u64 {
        self.revision
    }

    /// The findings of the last check, by object.
    pub(super) fn findings(&self) -> impl Iterator<Item = &LintFinding> {
        self.found.values().map(|found| &found.finding)
    }

    /// Notices of all findings. The replica that led before may not have sent them.
    pub(super) fn all(&self) -> Vec<FindingNotice> {
        self.found.iter().map(|(key, found)| found.notice(key, true)).collect()
    }

    /// Checks the cluster, and says what came and what went since the last check.
    pub(super) fn check(
        &mut self,
        cluster: &mut ClusterState,
        now: DateTime<Utc>,
        tells: &dyn Fn(),
    ) -> Vec<FindingNotice> {
        self.changed = None;
        let mut found = BTreeMap::new();
        for finding in lint::lint_cluster(cluster, upgrade::Target::default(), now, tells).findings {
            let Some(target) = target(&finding, cluster) else { continue };
            found.insert(introduced::key(&finding), Found { finding, target });
        }
        let before = std::mem::replace(&mut self.found, found);
        let mut notices = Vec::new();
        for (key, found) in &self.found {
            // Written again with the same mistake, the object gets another notice.
            if before.get(key).is_none_or(|known| known.target != found.target) {
                notices.push(found.notice(key, true));
            }
        }
        for (key, gone) in before.iter().filter(|(key, _)| !self.found.contains_key(*key)) {
            let target = target(&gone.finding, cluster);
            // An object that is gone itself needs no notice, and another object of its name never had the mistake.
            if let Some(target) = target.filter(|target| target.reference == gone.target.reference) {
                let finding = gone.finding.clone();
                notices.push(Found { finding, target }.notice(key, false));
            }
        }
        let is_same = before.len() == self.found.len()
            && before.iter().zip(&self.found).all(|(old, new)| old.0 == new.0 && old.1.finding == new.1.finding);
        if !is_same {
            self.revision += 1;
        }
        notices
    }
}

impl Found {
    fn notice(&self, (level, cause, _, field, text): &Key, is_found: bool) -> FindingNotice {
        let LintFinding { message, fix, documentation, .. } = &self.finding;
        let fix = fix.as_deref().map_or_else(String::new, |fix| format!(" Fix: {fix}"));
        let more = documentation.as_ref().map_or_else(String::new, |_| format!(" More: nodewhy explain {cause}"));
        let note = if is_found {
            let sure = if *level == Level::Error { "New nodes will fail" } else { "New nodes may fail" };
            format!("{sure}: {message}{fix}{more}")
        } else {
            format!("nodewhy no longer finds this: {message}")
        };
        let written = self.target.written.map(|at| at.to_rfc3339()).unwrap_or_default();
        let identity =
            format!("{level:?} {cause} {} {text} {written} {is_found}", field.as_deref().unwrap_or_default());
        FindingNotice {
            regarding: self.target.reference.clone(),
            namespace: self.target.namespace.clone(),
            cause: cause.clone(),
            note,
            is_found,
            identity,
        }
    }
}

/// The object that a finding is about, if it is still there.
fn target(finding: &LintFinding, cluster: &ClusterState) -> Option<Target> {
    let (kind, name) = (finding.blame.kind.as_str(), finding.blame.name.as_str());
    let of = |api_version: &str, uid: &str, namespace: Option<&str>, written: Option<Written>| Target {
        reference: ObjectRef {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        },
        namespace: namespace.map(str::to_owned),
        written: written.map(|written| written.at),
    };
    let without_namespace = |api_version: &str, meta: &Meta| of(api_version, &meta.uid, None, meta.last_written());
    match kind {
        "NodePool" => cluster.pool(name).map(|pool| without_namespace("karpenter.sh/v1", &pool.metadata)),
        "NodeOverlay" => {
            let overlay = cluster.node_overlays().find(|overlay| overlay.name() == name)?;
            Some(without_namespace("karpenter.sh/v1alpha1", &overlay.metadata))
        }
        "ConfigMap" => cluster.aws_auth().map(|auth| of("v1", &auth.uid, Some("kube-system"), auth.written.clone())),
        _ => {
            let class = &cluster.class(kind, name)?.class;
            Some(without_namespace(&class.api_version, &class.metadata))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FindingNotice, QUIET};
    use crate::case::stage::Thresholds;
    use crate::objects::ApiServerFacts;
    use crate::objects::input::{Input, Object};
    use crate::triage::change::Change;
    use crate::triage::{Keep, Order, Triage};
    use chrono::{DateTime, TimeDelta, Utc};
    use serde_json::{Value, json};

    const CONFIG: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n";
    const MISTAKE: &str = "    - --node-labels=node-role.kubernetes.io/batch=true\n";
    const FINE: &str = "    - --v=4\n";

    fn at(seconds: i64) -> DateTime<Utc> {
        "2026-01-15T12:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::seconds(seconds)
    }

    /// The class with this flag. Its spec was last written at this time.
    fn class(flag: &str, written: i64) -> Value {
        json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": {
                "name": "batch", "uid": "1",
                "annotations": {"karpenter.k8s.aws/ec2nodeclass-hash": "1", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4"},
                "managedFields": [{
                    "manager": "kubectl", "operation": "Update", "apiVersion": "karpenter.k8s.aws/v1",
                    "time": at(written), "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:userData": {}}},
                }],
            },
            "spec": {
                "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodes", "userData": format!("{CONFIG}{flag}"),
            },
        })
    }

    fn pool() -> Value {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "batch", "uid": "2"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "batch"},
            }}},
        })
    }

    fn joined() -> Value {
        let condition =
            |type_: &str| json!({"type": type_, "status": "True", "reason": type_, "lastTransitionTime": at(0)});
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": "batch-a", "uid": "3", "creationTimestamp": at(0), "labels": {"karpenter.sh/nodepool": "batch"},
                "annotations": {"karpenter.k8s.aws/ec2nodeclass-hash": "1", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4"},
            },
            "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "batch"}},
            "status": {"providerID": "aws:///eu-west-1a/i-0a", "conditions": [condition("Launched"), condition("Registered")]},
        })
    }

    fn apply(triage: &mut Triage, input: Input, object: Value, now: DateTime<Utc>) {
        triage.take(Change::Applied(Box::new(Object::from_value(input, object).unwrap())), now);
    }

    fn check(triage: &mut Triage, now: DateTime<Utc>) -> Vec<FindingNotice> {
        triage.check_configuration(now, &|| ())
    }

    /// A triage that has begun, in a cluster with this class.
    fn of_class(class: Value) -> Triage {
        let mut triage = Triage::new(Thresholds::default(), Keep::default());
        apply(&mut triage, Input::NodeClasses, class, at(0));
        apply(&mut triage, Input::NodePools, pool(), at(1));
        triage.start();
        triage
    }

    #[test]
    fn a_change_is_checked_once_when_no_other_follows() {
        let mut triage = of_class(class(MISTAKE, 0));
        assert_eq!(triage.next_check(), Some(at(1) + QUIET));
        assert_eq!(check(&mut triage, at(5)), []);
        let notices = check(&mut triage, at(11));
        let [notice] = &*notices else { panic!("{notices:#?}") };
        assert_eq!((&*notice.cause, notice.is_found), ("KubeletRefusesLabels", true));
        assert_eq!((&*notice.regarding.name, &*notice.regarding.uid), ("batch", "1"));
        assert!(
            notice.note.starts_with("New nodes will fail: userData of EC2NodeClass batch, line 6"),
            "{}",
            notice.note
        );
        assert_eq!(triage.next_check(), None);
        assert_eq!(triage.findings().count(), 1);
        // A new list shows the same objects.
        apply(&mut triage, Input::NodeClasses, class(MISTAKE, 0), at(100));
        apply(&mut triage, Input::NodePools, pool(), at(100));
        assert_eq!((triage.next_check(), check(&mut triage, at(200))), (None, Vec::new()));
    }

    #[test]
    fn an_upgrade_of_the_cluster_is_checked_too() {
        let upgraded = |version: &str| {
            let version = Some(version.to_owned());
            Change::ApiServer(ApiServerFacts { address: None, version })
        };
        let mut triage = of_class(class("    - --container-runtime=remote\n", 0));
        triage.take(upgraded("v1.26.5-eks-ecaa3a6"), at(1));
        assert_eq!(check(&mut triage, at(11)), []);
        triage.take(upgraded("v1.27.1-eks-ecaa3a6"), at(20));
        let notices = check(&mut triage, at(31));
        assert_eq!(notices.iter().map(|notice| &*notice.cause).collect::<Vec<_>>(), ["KubeletFlagRemoved"]);
        triage.take(upgraded("v1.27.1-eks-ecaa3a6"), at(40));
        assert_eq!(triage.next_check(), None);
    }

    #[test]
    fn an_overlay_that_karpenter_does_not_apply_is_a_finding_until_it_is_mended() {
        let overlay = |resource: &str| {
            let capacity = json!({resource: "4"});
            json!({"metadata": {"name": "network", "uid": "4"}, "spec": {"requirements": [], "capacity": capacity}})
        };
        let mut triage = of_class(class(FINE, 0));
        apply(&mut triage, Input::NodeOverlays, overlay("vpc.amazonaws.com/efa"), at(1));
        let notices = check(&mut triage, at(11));
        let [notice] = &*notices else { panic!("{notices:#?}") };
        assert_eq!(
            (&*notice.cause, &*notice.regarding.kind, &*notice.regarding.uid),
            ("CapacityOfEc2", "NodeOverlay", "4")
        );
        apply(&mut triage, Input::NodeOverlays, overlay("smarter-devices/fuse"), at(20));
        let notices = check(&mut triage, at(31));
        assert_eq!(notices.iter().map(|notice| notice.is_found).collect::<Vec<_>>(), [false]);
    }

    #[test]
    fn nothing_that_has_not_happened_gets_a_diagnosis() {
        let mut triage = of_class(class(MISTAKE, 0));
        check(&mut triage, at(11));
        assert!(!triage.look(at(3_600)).iter().any(|order| matches!(order, Order::Write(_))));
        assert_eq!((triage.open().count(), triage.findings().count()), (0, 1));
    }

    #[test]
    fn a_finding_that_is_gone_is_told_and_one_whose_object_is_gone_is_not() {
        let mut triage = of_class(class(MISTAKE, 0));
        check(&mut triage, at(11));
        let revision = triage.findings_revision();
        apply(&mut triage, Input::NodeClasses, class(FINE, 20), at(20));
        let notices = check(&mut triage, at(30));
        assert_eq!(notices.iter().map(|notice| notice.is_found).collect::<Vec<_>>(), [false]);
        assert!(notices[0].note.starts_with("nodewhy no longer finds this: userData"), "{}", notices[0].note);
        assert_eq!(triage.findings().count(), 0);
        assert!(triage.findings_revision() > revision);

        let mut triage = of_class(class(MISTAKE, 0));
        check(&mut triage, at(11));
        let last = Some(Box::new(Object::from_value(Input::NodeClasses, class(MISTAKE, 0)).unwrap()));
        for (input, name, last) in [(Input::NodePools, "batch", None), (Input::NodeClasses, "batch", last)] {
            triage.take(Change::Removed { input, namespace: None, name: name.to_owned(), last }, at(20));
        }
        assert_eq!(check(&mut triage, at(30)), []);
        assert_eq!(triage.findings().count(), 0);
    }

    #[test]
    fn a_restart_gives_the_same_notices_and_a_new_write_of_the_mistake_another() {
        let mut triage = of_class(class(MISTAKE, 0));
        let first = check(&mut triage, at(11));
        assert_eq!(check(&mut of_class(class(MISTAKE, 0)), at(900)), first);
        assert_eq!(triage.all_findings(), first, "a new leader sends the same");
        apply(&mut triage, Input::NodeClasses, class(MISTAKE, 20), at(20));
        let again = check(&mut triage, at(30));
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].note, first[0].note);
        assert_ne!(again[0].identity, first[0].identity);
    }

    #[test]
    fn a_node_that_joins_contradicts_a_finding() {
        let mut triage = of_class(class(MISTAKE, 0));
        check(&mut triage, at(11));
        apply(&mut triage, Input::NodeClaims, joined(), at(20));
        let notices = check(&mut triage, at(30));
        assert_eq!(notices.iter().map(|notice| notice.is_found).collect::<Vec<_>>(), [false]);
        // Without findings nothing is to be contradicted.
        let mut triage = of_class(class(FINE, 0));
        check(&mut triage, at(11));
        apply(&mut triage, Input::NodeClaims, joined(), at(20));
        assert_eq!(triage.next_check(), None);
    }

    #[test]
    fn changes_that_go_on_delay_the_check_for_a_minute_at_most() {
        let mut triage = of_class(class(FINE, 0));
        for second in (5..60).step_by(5) {
            let flag = format!("    - --v={second}\n");
            apply(&mut triage, Input::NodeClasses, class(&flag, second), at(second));
            assert_eq!(check(&mut triage, at(second)), []);
        }
        assert_eq!(triage.next_check(), Some(at(60)));
    }
}
