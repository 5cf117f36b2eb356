//! What separates the machines that fail from those that joined, and what was changed in between, stands in the
//! evidence.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use engine::api::{Evidence, NodeDiagnosis};
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::diagnose::diagnose;
use testkit::objects::cluster;

fn now() -> DateTime<Utc> {
    "2026-01-15T12:00:00Z".parse().expect("a time")
}

fn ago(minutes: i64) -> String {
    (now() - TimeDelta::minutes(minutes)).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A machine of class `default`, launched so many minutes ago; one that joined did so two minutes later.
fn machine(name: &str, image: &str, type_: &str, launched: i64, joined: bool) -> String {
    let (family, id) = (type_.split('.').next().expect("a family"), format!("aws:///eu-west-1a/i-{name}"));
    let registered = if joined {
        format!(
            "{{type: Registered, status: \"True\", reason: Registered, lastTransitionTime: \"{}\"}}, {{type: \
             Initialized, status: \"True\", reason: Initialized, lastTransitionTime: \"{}\"}}",
            ago(launched - 2),
            ago(launched - 2)
        )
    } else {
        format!(
            "{{type: Registered, status: Unknown, reason: NodeNotFound, message: Node not registered with cluster, \
             lastTransitionTime: \"{}\"}}",
            ago(launched)
        )
    };
    let claim = format!(
        "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {{name: {name}, creationTimestamp: \"{0}\", labels: \
         {{karpenter.sh/nodepool: general, node.kubernetes.io/instance-type: {type_}, \
         karpenter.k8s.aws/instance-family: {family}, topology.kubernetes.io/zone: eu-west-1a}}}}\nspec: \
         {{nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}\nstatus: {{providerID: \
         \"{id}\", imageID: {image}, conditions: [{{type: Launched, status: \"True\", reason: Launched, \
         lastTransitionTime: \"{0}\"}}, {registered}]}}\n---\n",
        ago(launched)
    );
    let node = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}.node, creationTimestamp: \"{0}\", labels: \
         {{karpenter.sh/registered: \"true\"}}}}\nspec: {{providerID: \"{id}\"}}\nstatus: {{conditions: [{{type: \
         Ready, status: \"True\", reason: KubeletReady, lastTransitionTime: \"{0}\"}}]}}\n---\n",
        ago(launched - 2)
    );
    if joined { claim + &node } else { claim }
}

/// The class, written by somebody so many minutes ago.
fn class_written(minutes: i64, subresource: &str) -> String {
    let at = ago(minutes);
    format!(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default, managedFields: [{{manager: \
         kubectl-edit, operation: Update, time: \"{at}\", subresource: \"{subresource}\", fieldsV1: {{\"f:spec\": \
         {{\"f:userData\": {{}}}}}}}}]}}\n"
    )
}

fn evidence(objects: &str) -> Vec<Evidence> {
    let diagnoses: Vec<NodeDiagnosis> = diagnose(Judging::new(&cluster(objects), now(), &Thresholds::default()));
    diagnoses
        .into_iter()
        .find(|d| d.spec.subject.name == "sick1")
        .and_then(|d| d.status)
        .expect("sick1 is diagnosed")
        .evidence
}

fn splits<'e>(evidence: &'e [Evidence], field: &str) -> Option<(&'e str, &'e str)> {
    let split = evidence.iter().find(|e| e.field.contains(field) && e.because.contains("separates"))?;
    Some((&split.observed, split.figures.as_deref()?))
}

fn changed(evidence: &[Evidence]) -> Vec<&str> {
    evidence.iter().filter(|e| e.field == "metadata.managedFields").map(|e| e.object.as_str()).collect()
}

fn fleet(sick_image: &str, sick_type: &str) -> String {
    [
        machine("well1", "ami-old", "m6i.large", 60, true),
        machine("well2", "ami-old", "m6i.xlarge", 50, true),
        machine("sick1", sick_image, sick_type, 12, false),
        machine("sick2", sick_image, sick_type, 11, false),
    ]
    .concat()
}

#[test]
fn an_image_that_never_joined_is_named_with_its_figures() {
    let evidence = evidence(&fleet("ami-new", "m6i.large"));
    let observed = "image ami-new: none joined; other values, such as ami-old: all joined";
    assert_eq!(splits(&evidence, "imageID"), Some((observed, "0 of 2 joined; elsewhere 2 of 2")));
    assert_eq!(splits(&evidence, "instance-type"), None, "m6i.large has joined");
    assert_eq!(splits(&evidence, "instance-family"), None, "m6i has joined");
}

#[test]
fn an_instance_family_that_never_joined_is_named() {
    let evidence = evidence(&fleet("ami-old", "c1.medium"));
    let observed = "instance family c1: none joined; other values, such as m6i: all joined";
    assert_eq!(splits(&evidence, "instance-family"), Some((observed, "0 of 2 joined; elsewhere 2 of 2")));
    assert_eq!(splits(&evidence, "imageID"), None, "the image has joined");
}

/// One with the hash of the class that Karpenter wrote on it.
fn of_text(machine: &str, hash: &str, version: &str) -> String {
    let hash = format!(
        "metadata: {{annotations: {{karpenter.k8s.aws/ec2nodeclass-hash: \"{hash}\", \
         karpenter.k8s.aws/ec2nodeclass-hash-version: {version}}}, name: "
    );
    machine.replacen("metadata: {name: ", &hash, 1)
}

/// Karpenter 1.15 hashes a class in another way (v6), so an equal text has another hash.
#[test]
fn texts_of_a_class_are_compared_only_by_hashes_of_one_version() {
    let fleet = |version: &str| {
        let well = [("well1", 60), ("well2", 50)]
            .map(|(name, launched)| of_text(&machine(name, "ami-old", "m6i.large", launched, true), "111", "v5"));
        let sick = [("sick1", 12), ("sick2", 11)]
            .map(|(name, launched)| of_text(&machine(name, "ami-old", "m6i.large", launched, false), "222", version));
        [well.concat(), sick.concat()].concat()
    };
    let observed = "node class text 222: none joined; other values, such as 111: all joined";
    let evidence_of_one = evidence(&fleet("v5"));
    assert_eq!(splits(&evidence_of_one, "ec2nodeclass-hash"), Some((observed, "0 of 2 joined; elsewhere 2 of 2")));
    assert_eq!(splits(&evidence(&fleet("v6")), "ec2nodeclass-hash"), None);
}

#[test]
fn one_machine_is_no_pattern() {
    let one = [machine("well1", "ami-old", "m6i.large", 60, true), machine("sick1", "ami-new", "m6i.large", 12, false)]
        .concat();
    assert_eq!(splits(&evidence(&one), "imageID"), None);
}

/// One of a kind whose Node is not Ready, or whose machine is not initialized.
fn not_in_service(machine: &str, ready: bool) -> String {
    if ready {
        machine.replace(
            "type: Initialized, status: \"True\", reason: Initialized",
            "type: Initialized, status: Unknown, reason: NodeNotReady",
        )
    } else {
        machine.replace(
            "type: Ready, status: \"True\", reason: KubeletReady",
            "type: Ready, status: \"False\", reason: KubeletNotReady",
        )
    }
}

#[test]
fn an_instance_family_of_which_none_is_in_service_is_named_though_all_joined() {
    let well =
        [machine("well1", "ami-a", "m5.large", 60, true), machine("well2", "ami-a", "r5.large", 50, true)].concat();
    let sick = ["sick1", "sick2"].map(|name| machine(name, "ami-a", "m6i.large", 40, true));
    let observed = "instance family m6i: none in service; other values, such as r5: all in service";
    let figures = "0 of 2 in service; elsewhere 2 of 2";
    for ready in [false, true] {
        let evidence =
            evidence(&(well.clone() + &sick.each_ref().map(|machine| not_in_service(machine, ready)).concat()));
        assert_eq!(splits(&evidence, "instance-family"), Some((observed, figures)), "Ready: {ready}");
        assert_eq!(splits(&evidence, "imageID"), None, "the image is in service");
    }
    let one = well + &not_in_service(&sick[0], false) + &sick[1];
    assert_eq!(splits(&evidence(&one), "instance-family"), None, "another m6i is in service");
}

#[test]
fn a_change_between_the_last_success_and_the_first_failure_is_named() {
    let sick = fleet("ami-old", "m6i.large");
    assert_eq!(changed(&evidence(&(sick.clone() + &class_written(30, "")))), ["EC2NodeClass/default"]);
    for (minutes, why) in [(5, "after the first failure"), (55, "before the last success")] {
        assert!(changed(&evidence(&(sick.clone() + &class_written(minutes, "")))).is_empty(), "{why}");
    }
    assert!(
        changed(&evidence(&(sick + &class_written(30, "status")))).is_empty(),
        "a write of the status changes nothing"
    );
}
