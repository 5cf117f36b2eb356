//! Answers that one can trust in ordinary commands: no all-clear over what was not judged, and what was judged is said.

use crate::surveys::{Judged, cases, shown};
use assert_cmd::Command;
use chrono::{DateTime, TimeDelta, Utc};
use engine::diagnose::survey::Survey;
use engine::objects::ApiServerFacts;
use engine::objects::input::{Object, Reading, TypeMeta};
use nodewhy::ingest::collect;
use nodewhy::report::{self, Format};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::path::PathBuf;
use tempfile::TempDir;
use testkit::objects::{examples, over_cluster};

const LAUNCHED: &str = "2026-01-15T11:50:05Z";

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}

fn claim(name: &str, instance: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-15T11:50:00Z", "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
        "status": {"providerID": format!("aws:///eu-west-1a/{instance}"), "conditions": [
            {"type": "Launched", "status": "True", "reason": "Launched", "lastTransitionTime": LAUNCHED},
            {"type": "Registered", "status": "Unknown", "reason": "NodeNotFound", "lastTransitionTime": "2026-01-15T11:50:00Z"},
        ]},
    })
}

/// What `kubectl get nodeclaims,nodepools,ec2nodeclasses` prints of a quiet cluster: two machines that wait since
/// 11:50:05, and nothing newer. The class gives the kubelet a label that it may not set.
fn quiet() -> Vec<Value> {
    let user_data = "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--node-labels=kubernetes.io/x=y'\n";
    vec![
        json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default", "uid": "c"},
            "spec": {"amiFamily": "AL2", "userData": user_data}}),
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general", "uid": "p"},
            "spec": {"template": {"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}}}),
        claim("general-a", "i-0a"),
        claim("general-b", "i-0b"),
    ]
}

/// A Node whose kubelet reported at this time.
fn reporting(time: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker", "uid": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": time, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
}

struct Dump {
    _folder: TempDir,
    file: PathBuf,
}

impl Dump {
    /// A file of these objects, written at this time.
    fn of(objects: &[Value], written: &str) -> Self {
        let text: String = objects
            .iter()
            .map(|object| serde_saphyr::to_string(object).expect("YAML"))
            .collect::<Vec<_>>()
            .join("---\n");
        Self::text(&text, written)
    }

    fn text(text: &str, written: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("dump.yaml");
        std::fs::write(&file, text).expect("a file");
        File::options()
            .write(true)
            .open(&file)
            .and_then(|file| file.set_modified(at(written).into()))
            .expect("its time can be set");
        Self { _folder: folder, file }
    }

    fn diagnose(&self, args: &[&str]) -> Answer {
        let file = self.file.to_str().expect("a path");
        run(&[&["diagnose", "-f", file], args].concat(), "")
    }
}

struct Answer {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Answer {
    #[track_caller]
    fn says(&self, words: &[&str]) -> &Self {
        // Lines are wrapped where they are long.
        let out = self.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(out.contains(word), "no {word:?} in:\n{}\n{}", self.out, self.err);
        }
        self
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).expect("JSON")
    }
}

fn run(args: &[&str], stdin: &str) -> Answer {
    let output =
        Command::new(env!("CARGO_BIN_EXE_nodewhy")).args(args).write_stdin(stdin).output().expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Answer { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_quiet_dump_is_judged_when_it_was_written() {
    let dump = Dump::of(&quiet(), "2026-01-15T12:00:00Z");
    dump.diagnose(&[]).says(&[
        "KubeletRefusesLabels (Certain)",
        "Judged 2 NodeClaims, 0 Nodes at 2026-01-15T12:00:00Z (when the dump was written): 2 are stuck",
        "At another time, 2026-01-15T11:50:05Z (the newest time in the dump), the answer is different: not stuck yet: \
         general-a, general-b. Pass the right time with --now.",
    ]);
    assert_eq!(dump.diagnose(&["--fail-on", "certain"]).code, Some(1));
    let judged = &dump.diagnose(&["-o", "json"]).json()["judged"];
    assert_eq!(judged["clock"], "Written");
    assert_eq!(judged["otherwise"]["notStuck"], json!(["general-a", "general-b"]));
}

#[test]
fn of_an_old_copy_both_times_are_told_and_fail_on_takes_the_worse() {
    let dump = Dump::of(&quiet(), "2026-03-15T12:00:00Z");
    let answer = dump.diagnose(&["--fail-on", "certain"]);
    answer.says(&[
        "at 2026-01-15T11:50:05Z (the newest time in the dump): nothing is stuck; 2 wait, the longest for 0s at Join.",
        "At another time, 2026-03-15T12:00:00Z (when the dump was written), the answer is different: also stuck: \
         general-a (KubeletRefusesLabels Certain), general-b",
    ]);
    assert_eq!(answer.code, Some(1));
    assert_eq!(dump.diagnose(&[]).code, Some(0));
    assert_eq!(dump.diagnose(&["-o", "json"]).json()["items"], json!([]));
}

#[test]
fn kubelets_that_report_settle_the_time() {
    let objects: Vec<Value> = quiet().into_iter().chain([reporting("2026-01-15T11:51:00Z")]).collect();
    let answer = Dump::of(&objects, "2026-01-16T12:00:00Z").diagnose(&["--fail-on", "possible"]);
    answer.says(&[
        "Judged 2 NodeClaims, 1 Node at 2026-01-15T11:51:00Z (the newest time in the dump): nothing is stuck; 2 wait",
    ]);
    assert!(!answer.out.contains("Pass the right time with --now"), "{}", answer.out);
    assert_eq!(answer.code, Some(0));
    Dump::of(&objects, "2026-01-15T11:56:00Z")
        .diagnose(&[])
        .says(&["at 2026-01-15T11:56:00Z (when the dump was written): 2 are stuck"]);
}

#[test]
fn what_is_piped_is_of_now_where_that_is_plausible() {
    let just_now = (Utc::now() - TimeDelta::minutes(20)).to_rfc3339();
    let yaml = serde_saphyr::to_string(&quiet()[2])
        .expect("YAML")
        .replace(LAUNCHED, &just_now)
        .replace("2026-01-15T11:50:00Z", &just_now);
    run(&["diagnose", "-f", "-"], &yaml).says(&["(when the dump was written): 1 is stuck"]);
}

#[test]
fn collect_says_when_it_looked() {
    let read = |object: Value| {
        let type_ = TypeMeta::deserialize(&object).expect("a type");
        let Reading::As(input) = type_.reading() else { panic!("{type_:?} is not read") };
        Object::from_value(input, object).expect("an object")
    };
    let objects: Vec<Object> = quiet().into_iter().map(read).collect();
    let list = collect::list(&objects, [], &ApiServerFacts::default(), at("2026-01-15T12:04:00Z")).expect("a list");
    let yaml = serde_saphyr::to_string(&serde_json::from_str::<Value>(&list).expect("JSON")).expect("YAML");
    for text in [&list, &yaml] {
        let answer = Dump::text(text, "2020-01-01T00:00:00Z").diagnose(&[]);
        answer.says(&["at 2026-01-15T12:04:00Z (when it was collected): 2 are stuck."]);
        assert!(!answer.out.contains("Pass the right time with --now"), "{}", answer.out);
    }
}

#[test]
fn an_all_clear_says_what_it_is_about_in_every_format() {
    let dump = Dump::of(&[reporting("2026-01-15T11:50:00Z")], "2026-01-15T11:50:00Z");
    let judged = "Judged 0 NodeClaims, 1 Node at 2026-01-15T11:50:00Z (the newest time in the dump): nothing is stuck.";
    let lacks = "The dump lacks NodeClaims: run nodewhy collect to include them.";
    for format in ["text", "wide"] {
        dump.diagnose(&["-o", format]).says(&[judged, lacks]);
    }
    for format in ["json", "yaml"] {
        let answer = dump.diagnose(&["-o", format]);
        let list: Value = serde_saphyr::from_str(&answer.out).expect("YAML");
        assert_eq!(list["judged"]["nodes"], 1, "{format}");
        assert_eq!(list["judged"]["missing"], json!(["NodeClaims"]), "{format}");
        assert_eq!(list["judged"]["stuck"], 0, "{format}");
    }
}

/// Only a rule in doubt asks for a review, so its absence tells nothing.
#[test]
fn a_review_that_no_rule_asked_for_is_not_called_missing() {
    let answer = Dump::of(&quiet()[1..], "2026-01-15T12:00:00Z").diagnose(&["-o", "json"]);
    let list: Value = serde_json::from_str(&answer.out).expect("JSON");
    assert_eq!(list["items"][0]["status"]["cause"], "Unknown", "{list:#}");
    let missing = list["judged"]["missing"].as_array().expect("a list");
    assert!(missing.contains(&json!("Events")) && !missing.contains(&json!("SubjectAccessReviews")), "{missing:?}");
}

#[test]
fn a_pool_and_a_class_list_their_machines_by_cause_and_themselves_where_they_are_to_blame() {
    let dump = Dump::of(&quiet(), "2026-01-15T12:00:00Z");
    let pool = "NodePool general has 2 NodeClaims; stuck: 2 KubeletRefusesLabels.";
    dump.diagnose(&["general"]).says(&[
        "NodeClaim general-a and 1 more",
        "Judged NodePool general at",
        "2 are stuck",
        pool,
        "evidence",
    ]);
    let class = "EC2NodeClass default has 2 NodeClaims; stuck: 2 KubeletRefusesLabels; it is to blame for 2.";
    dump.diagnose(&["nodepool-general"]).says(&[pool]);
    for name in ["default", "ec2nodeclass/default", "EC2NodeClasses/default", "ec2nodeclass-default"] {
        dump.diagnose(&[name]).says(&["NodeClaim general-a and 1 more", class]);
    }
    assert_eq!(dump.diagnose(&["nodepool/default"]).code, Some(2), "no NodePool is called so");
}

/// One NodeClaim and two Nodes without one: the same Deployment is to blame for all three.
#[test]
fn a_cause_is_told_once_for_nodes_of_a_pool_and_of_none() {
    const CASE: &str = "tests/cases/671-typha-does-not-tolerate-what-calico-node-set/cluster.yaml";
    let answer = run(&["diagnose", "-f", CASE], "");
    answer.says(&["NodeClaim default-ctx5r and 2 more, unusable for 26m 45s", "3 are stuck"]);
    answer.says(&["risk: A change of Deployment calico-typha restarts its pods.", "check: $ kubectl "]);
    assert!(!answer.out.contains("changes the cluster"), "its command only reads: {}", answer.out);
    assert_eq!(answer.out.matches("NetworkUnavailable (Certain)").count(), 1, "{}", answer.out);
}

#[test]
fn evidence_that_karpenter_soon_deletes_has_the_command_that_keeps_it() {
    const CERTAIN: &str = "tests/cases/06-node-label-refused-by-kubelet/cluster.yaml";
    const OPEN: &str = "tests/cases/125-custom-al2023-image-without-nodeconfig/cluster.yaml";
    let answer = run(&["diagnose", "-f", OPEN, "--now", "2025-12-17T19:10:00Z"], "");
    let fate = "Karpenter deletes custom-4fm7z first, in 1m (2025-12-17T19:11:00Z), and the evidence with it.";
    answer.says(&[format!("{fate} save it now: $ nodewhy collect > nodewhy-dump.json").as_str()]);
    let answer = run(&["diagnose", "-f", CERTAIN], "");
    answer.says(&["Karpenter deletes batch-spot-tn4j8 first, in 3m 27s (2024-12-18T13:43:02Z)."]);
    assert!(!answer.out.contains("save it now"), "it is proven: {}", answer.out);
}

#[test]
fn a_command_that_changes_the_cluster_says_so() {
    let dump = Dump::of(&quiet(), "2026-01-15T12:00:00Z");
    dump.diagnose(&[]).says(&["fix (changes the cluster): $ kubectl edit ec2nodeclass default"]);
}

#[test]
fn a_machine_is_found_by_its_name_its_instance_and_its_provider_id() {
    let dump = Dump::of(&quiet(), "2026-01-15T12:00:00Z");
    for name in ["general-b", "nodeclaim/general-b", "i-0b", "aws:///eu-west-1a/i-0b"] {
        let answer = dump.diagnose(&[name]);
        answer.says(&["NodeClaim general-b, stuck at Join", "Judged NodeClaim general-b at", "1 is stuck"]);
        assert!(!answer.out.contains("general-a"), "{name}: {}", answer.out);
    }
    let waiting = dump.diagnose(&["general-b", "--now", "2026-01-15T11:51:05Z"]);
    waiting.says(&[
        "nothing is stuck; general-b has waited at Join for 1m (normal for 2m, until 2026-01-15T11:52:05Z): the \
         instance was launched, but no Node with its providerID has appeared.",
    ]);
    let nobody = dump.diagnose(&["nobody"]);
    assert_eq!(nobody.code, Some(2));
    assert!(nobody.err.contains("is called nobody"), "{}", nobody.err);
}

/// A pod that no machine is made for is no verdict, and no all-clear either.
#[test]
fn pods_that_karpenter_refuses_are_told_where_no_verdict_explains_them() {
    let pod = |name: &str, made: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": made},
            "spec": {"containers": [{"name": "c"}]},
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are \
                    available"}]}})
    };
    let refusal = |pod: &str, seen: &str| {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": pod, "namespace": "shop"}, "reason": "FailedScheduling",
            "involvedObject": {"kind": "Pod", "name": pod, "namespace": "shop", "uid": pod}, "lastTimestamp": seen,
            "message": "Failed to schedule pod, incompatible with nodepool \"general\", daemonset overhead={}, did not \
                        tolerate taint a=b:NoSchedule"})
    };
    let pods = [
        pod("old", "2026-01-15T11:40:00Z"),
        pod("older", "2026-01-15T11:30:00Z"),
        pod("told-long-ago", "2026-01-15T11:00:00Z"),
        pod("young", "2026-01-15T11:58:00Z"),
        refusal("old", "2026-01-15T11:59:00Z"),
        refusal("older", "2026-01-15T11:59:00Z"),
        refusal("told-long-ago", "2026-01-15T11:20:00Z"),
        refusal("young", "2026-01-15T11:59:00Z"),
    ];
    let with = |mut objects: Vec<Value>| {
        objects.extend(pods.iter().cloned());
        Dump::of(&objects, "2026-01-15T12:00:00Z").diagnose(&["--now", "2026-01-15T12:00:00Z"])
    };
    with(vec![reporting("2026-01-15T11:59:30Z")]).says(&[
        "nothing is stuck",
        "Karpenter launches no node for 2 pods, and no verdict explains why. Pod shop/older waits longest, for 30m",
        "did not tolerate taint a=b:NoSchedule",
        "kubectl describe pod -n shop older",
    ]);
    // Nothing can be launched with such a class, whatever pods ask for.
    let unready = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default", "uid": "c"},
        "spec": {"amiFamily": "AL2"}, "status": {"conditions": [
            {"type": "SubnetsReady", "status": "False", "reason": "SubnetsNotFound", "message": "SubnetSelector did \
                not match any Subnets",
                "lastTransitionTime": "2026-01-15T11:00:00Z"},
            {"type": "Ready", "status": "False", "reason": "UnhealthyDependents", "message": "SubnetsReady=False", "lastTransitionTime": "2026-01-15T11:00:00Z"}]}});
    let told = with(vec![reporting("2026-01-15T11:59:30Z"), unready]);
    told.says(&["Judged 1 node class, 0 NodeClaims, 1 Node at", "EC2NodeClass default is stuck."]);
    assert!(!told.out.contains("no verdict explains"), "{}", told.out);
}

#[test]
fn a_machine_that_died_in_a_series_is_told_with_its_pool() {
    let dump_of = |title: &str| {
        let examples = examples("InstanceDiesAtStart");
        let example = examples.iter().find(|example| example.title.contains(title)).expect("the example");
        Dump::of(&over_cluster(&example.objects), "2026-01-15T12:00:00Z")
    };
    let gone = dump_of("three in a row");
    for name in ["general-aaaaa", "nodeclaim/general-ccccc"] {
        let said = ["NodePool general, stuck at Launch", "InstanceDiesAtStart", "NodePool general is stuck"];
        gone.diagnose(&[name]).says(&said);
    }
    assert_eq!(gone.diagnose(&["general-zzzzz"]).code, Some(2), "one that nobody has seen");
    let deleted = dump_of("another one every two minutes");
    deleted.diagnose(&["general-ccccc"]).says(&["NodePool general, stuck at Launch", "Judged NodeClaim general-ccccc"]);
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let dump = Dump::of(&quiet(), "2026-01-15T12:00:00Z");
    let file = dump.file.to_str().expect("a path");
    let commands: [&[&str]; 6] = [
        &["diagnose", "-f", file, "-o", "json"],
        &["diagnose", "-f", file],
        &["lint", "-f", file],
        &["userdata", "-f", file],
        &["crd"],
        &["explain", "Unknown"],
    ];
    for command in commands {
        let full = File::options().write(true).open("/dev/full").expect("the device");
        let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        let output = process.args(command).stdout(full).output().expect("the command runs");
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left on device"), "{command:?}");
    }
}

#[test]
fn a_file_that_may_be_cut_off_is_suspected() {
    let whole = Dump::of(&quiet(), "2026-01-15T12:00:00Z");
    assert!(!whole.diagnose(&[]).err.contains("cut off"));
    let text = std::fs::read_to_string(&whole.file).expect("the dump");
    let status = text.rfind("status:\n").expect("the last claim has a status");
    let cut = Dump::text(&text[..status], "2026-01-15T12:00:00Z").diagnose(&[]);
    assert!(
        cut.err.contains(
            "document 4: the file ends with NodeClaim general-b, whose status is missing: it may be cut off here"
        ),
        "{}",
        cut.err
    );
    let cut = Dump::text(text.trim_end(), "2026-01-15T12:00:00Z").diagnose(&[]);
    assert!(cut.err.contains("document 4: the last line does not end"), "{}", cut.err);
    assert!(cut.out.contains("2 are stuck"), "it is judged all the same");
}

#[test]
fn lint_says_how_much_it_checked() {
    let objects =
        quiet().into_iter().take(2).chain([json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})]);
    let dump = Dump::of(&objects.collect::<Vec<_>>(), "2026-01-15T12:00:00Z");
    let file = dump.file.to_str().expect("a path");
    let answer = run(&["lint", "-f", file], "");
    assert!(answer.err.contains("2 objects checked, 1 not known"), "{}", answer.err);
    let answer = run(&["lint", "-f", file, "-o", "json"], "").json();
    assert_eq!((&answer["checked"], &answer["notKnown"]), (&json!(2), &json!(1)));
}

fn text(survey: &Survey, width: usize, details: bool) -> String {
    shown(survey, Format::Text, width, details)
}

#[test]
fn one_cause_takes_sixteen_lines_at_most_and_no_line_is_wider_than_the_terminal() {
    let mut seen = 0;
    for (path, Judged { survey, .. }) in cases() {
        let short = text(survey, report::WIDTH, false);
        let begins = |line: &&str| !line.is_empty() && !line.starts_with(' ');
        let causes: Vec<usize> =
            short.lines().enumerate().filter(|(_, line)| begins(line)).map(|(number, _)| number).collect();
        for pair in causes.windows(2) {
            // Without the blank line between two of them.
            let lines = pair[1] - pair[0] - 1;
            assert!(lines <= 16, "{}: {lines} lines\n{short}", path.display());
            seen += 1;
        }
        for width in [60, report::WIDTH] {
            let shown = text(survey, width, false);
            // Commands, names and the user's own words are not broken, so that they can be copied.
            let is_command = |line: &str| {
                ["check: $ ", "save it now: $ ", "fix (changes ", "or (changes ", "meanwhile (changes "]
                    .iter()
                    .any(|begin| line.trim().starts_with(begin))
            };
            let is_whole = |line: &str| !line.trim().contains(' ') || is_command(line) || line.contains(" | ");
            let wide = shown.lines().find(|line| line.chars().count() > width && !is_whole(line));
            assert_eq!(wide, None, "{}", path.display());
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn a_likely_cause_has_its_fix_beside_its_suspects() {
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n1", "uid": "n1", "creationTimestamp": "2026-01-15T09:00:38Z",
            "labels": {"eks.amazonaws.com/nodegroup": "core"}},
        "spec": {"providerID": "aws:///eu-west-1a/i-0a0000000000000b1"},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.", "lastTransitionTime": "2026-01-15T11:41:00Z"}]}});
    let oom = json!({"apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "n1.18a", "namespace": "default", "creationTimestamp": "2026-01-15T11:35:00Z"},
        "involvedObject": {"kind": "Node", "name": "n1", "uid": "n1"}, "reason": "SystemOOM", "type": "Warning",
        "message": "System OOM encountered, victim process: java, pid: 21834", "count": 3,
        "firstTimestamp": "2026-01-15T11:35:00Z", "lastTimestamp": "2026-01-15T11:37:00Z",
        "source": {"component": "kubelet"}});
    Dump::of(&[node, oom], "2026-01-15T12:00:00Z").diagnose(&["--now", "2026-01-15T12:00:00Z"]).says(&[
        "KubeletStopped (Likely)",
        "suspect (not proven): InstanceEnded",
        "fix: Replace the node, which removes its pods. …",
        "more: nodewhy diagnose n1 (the whole fix); nodewhy explain KubeletStopped",
    ]);
}

#[test]
fn a_risk_stands_beside_the_command_that_it_is_about() {
    let mut seen = 0;
    for (path, Judged { survey, .. }) in cases() {
        let text = text(survey, report::WIDTH, false);
        for verdict in text.split("\n\n") {
            for (risk, command) in [
                ("risk: Replaces the node of NodeClaim", "$ kubectl delete nodeclaim"),
                ("risk: The calls to AWS", "$ aws "),
                ("risk: Restarts the pods of", "$ kubectl "),
            ] {
                if verdict.contains(risk) {
                    assert!(verdict.contains(command), "{}: {verdict}", path.display());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn details_tell_all_and_the_short_answer_where_they_are() {
    for (path, Judged { survey, .. }) in cases() {
        let (short, long) = (text(survey, report::WIDTH, false), text(survey, report::WIDTH, true));
        let mut statuses = survey.diagnoses.iter().filter_map(|diagnosis| diagnosis.status.as_ref());
        if statuses.clone().next().is_some() {
            assert!(!short.contains("\n  evidence\n") && long.contains("\n  evidence\n"), "{}", path.display());
            assert!(short.contains("more: nodewhy diagnose "), "{}", path.display());
        }
        let any_ruled_out = statuses.any(|status| !status.ruled_out.is_empty());
        assert!(any_ruled_out || !long.contains("ruled out\n"), "{}", path.display());
    }
}
