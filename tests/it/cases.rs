//! Real cases from public reports: right subject, right cause, right object to change, no false alarm.

use crate::surveys::{self, Judged};
use chrono::{DateTime, Utc};
use engine::api::{Confidence, NodeDiagnosis, Suspect};
use engine::case::Case;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::objects::MachineLog;
use engine::objects::input::Object;
use engine::objects::sink::Sink;
use engine::rules::unknown;
use engine::suspects::{self, Stated, frequency, ranked};
use nodewhy::ingest::collect;
use nodewhy::ingest::dump::{self, Summary};
use nodewhy::ingest::logs::{self, Bounds};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use testkit::corpus::{case_folders, load_case};
use testkit::objects::Objects;

#[derive(Deserialize)]
struct Expect {
    now: DateTime<Utc>,
    sick: BTreeSet<String>,
    #[serde(default)]
    sick_other: BTreeSet<String>,
    /// Subjects that may be diagnosed instead of the sick: the NodePool or class that makes them.
    #[serde(default)]
    sick_alternatives: BTreeSet<String>,
    /// What may be diagnosed besides.
    #[serde(default)]
    also_ok: BTreeSet<String>,
    #[serde(default)]
    must_mention: Vec<String>,
    /// The verdict on a sick subject has all of these, or one of its first three suspects.
    #[serde(default)]
    suspect_words: Vec<String>,
    #[serde(default)]
    must_not_blame: Vec<String>,
    /// The causes that fit what the case turned out to be.
    #[serde(default)]
    must_not_rule_out: Vec<String>,
    object_to_fix: String,
    /// What may be blamed just as well.
    #[serde(default)]
    object_to_fix_alternatives: BTreeSet<String>,
    observable: String,
}

fn names(diagnosis: &NodeDiagnosis) -> Vec<String> {
    let spec = &diagnosis.spec;
    let machine = spec.node_claim.iter().chain(&spec.node).map(|n| n.name.clone());
    let node = spec.node.iter().map(|n| format!("Node/{}", n.name));
    machine
        .chain(node)
        .chain([spec.subject.name.clone(), format!("{}/{}", spec.subject.kind, spec.subject.name)])
        .collect()
}

/// `nat|route`: one of them.
fn has(text: &str, words: &str) -> bool {
    words.split('|').any(|word| text.contains(word))
}

/// At which place the first suspect stands that has all the words, from 1.
fn place(suspects: &[Suspect], words: &[String]) -> Option<usize> {
    let text = |suspect: &Suspect| serde_json::to_string(suspect).expect("JSON").to_lowercase();
    let at = suspects.iter().map(text).position(|text| words.iter().all(|word| has(&text, word)))?;
    Some(at + 1)
}

fn expectation(folder: &Path) -> Expect {
    serde_json::from_str(&std::fs::read_to_string(folder.join("expect.json")).expect("expect.json"))
        .expect("an expectation")
}

/// Takes in the logs of a case, as `--logs` does.
fn read_logs(folder: &Path, state: &mut ClusterState) {
    let given = ["logs", "logs.tar.gz"].map(|name| folder.join(name)).into_iter().filter(|path| path.exists());
    for journey in logs::load(&given.collect::<Vec<_>>(), state, Bounds::default()).journeys {
        state.apply(Object::MachineLog(MachineLog::new(journey)), DateTime::UNIX_EPOCH);
    }
}

/// What is wrong with the answer to one case.
fn faults(folder: &Path) -> Vec<String> {
    let expect = expectation(folder);
    let Judged { survey, summary } = surveys::case(folder);
    let mut faults: Vec<String> = summary.complaints.iter().map(ToString::to_string).collect();
    let diagnoses = &survey.diagnoses;
    let named: BTreeSet<String> = diagnoses.iter().flat_map(names).collect();
    if expect.sick_alternatives.is_disjoint(&named) {
        faults.extend(expect.sick.difference(&named).map(|name| format!("{name} is sick and was not found")));
    }
    let is_named = [&expect.sick_other, &expect.sick_alternatives].iter().any(|names| !names.is_disjoint(&named));
    if !expect.sick_other.is_empty() && !is_named {
        faults.push(format!("one of {:?} is sick and was not found", expect.sick_other));
    }
    for diagnosis in diagnoses {
        let status = diagnosis.status.as_ref().expect("a status");
        let known = [&expect.sick, &expect.sick_other, &expect.sick_alternatives, &expect.also_ok];
        if !names(diagnosis).iter().any(|name| known.iter().any(|names| names.contains(name))) {
            faults.push(format!("{} is a false alarm: {}", diagnosis.spec.subject.name, status.summary));
        }
        faults.extend(
            status
                .ruled_out
                .iter()
                .filter(|r| expect.must_not_rule_out.iter().any(|truth| **truth == *r.cause))
                .map(|r| format!("the true cause {} is ruled out: {}", r.cause, r.because)),
        );
        let stated = format!("{} {}", status.cause, status.summary).to_lowercase();
        let fix = status.fix.as_ref().map_or_else(String::new, |f| {
            f.steps.iter().fold(f.summary.to_string(), |all, s| {
                format!("{all} {} {}", s.text, s.command.as_deref().unwrap_or_default())
            })
        });
        let all = format!("{stated} {}", fix.to_lowercase());
        if expect.observable == "full" {
            faults.extend(
                expect
                    .must_mention
                    .iter()
                    .filter(|m| !has(&all, m))
                    .map(|m| format!("{m:?} is not mentioned in: {all}")),
            );
            let blamed = status.blame.as_ref().map_or("none", |b| b.object.as_str());
            if blamed != expect.object_to_fix && !expect.object_to_fix_alternatives.contains(blamed) {
                faults.push(format!("{blamed} is blamed, {} is to be changed", expect.object_to_fix));
            }
        }
        let told = expect.suspect_words.iter().all(|words| has(&all, words));
        if !told && place(&status.suspects, &expect.suspect_words).is_none_or(|at| at > 3) {
            let named: Vec<_> =
                status.suspects.iter().map(|s| format!("{}: {}", s.grounds.cause, s.grounds.summary)).collect();
            faults.push(format!("{:?} is none of the first three suspects: {named:#?}", expect.suspect_words));
        }
        if expect.observable == "none" && status.confidence == Confidence::Certain {
            faults.push(format!("the objects cannot tell, and this is called certain: {stated}"));
        }
        faults.extend(
            expect.must_not_blame.iter().filter(|m| has(&stated, m)).map(|m| format!("{m:?} is blamed: {stated}")),
        );
    }
    faults
}

#[test]
fn what_is_collected_of_a_real_case_gives_the_same_verdict_to_the_byte() {
    for folder in case_folders() {
        let (mut objects, mut live) = (Objects::default(), ClusterState::default());
        for sink in [&mut objects as &mut dyn Sink, &mut live] {
            load_case(&folder, sink);
        }
        let (mut offline, mut summary) = (ClusterState::default(), Summary::default());
        let dump =
            collect::list(&objects.0, live.inputs_read(), live.api_server(), DateTime::UNIX_EPOCH).expect("a list");
        dump::load_from("the dump", dump.as_bytes(), &mut offline, &mut summary);
        assert_eq!((summary.complaints, summary.objects), (Vec::new(), objects.0.len()), "{}", folder.display());
        let now = expectation(&folder).now;
        let judged = |state: &ClusterState| {
            serde_json::to_string(&diagnose(Judging::new(state, now, &Thresholds::default()))).expect("JSON")
        };
        assert_eq!(judged(&live), judged(&offline), "{}", folder.display());
    }
}

#[test]
fn every_real_case_comes_out_right() {
    let folders = case_folders();
    assert!(folders.len() >= 40, "cases are missing");
    let mut report = String::new();
    let mut still_wrong = STILL_WRONG.to_vec();
    for folder in &folders {
        let name = folder.file_name().unwrap_or_default().display().to_string();
        let faults = faults(folder);
        if let Some(at) = still_wrong.iter().position(|(case, _)| *case == name) {
            still_wrong.remove(at);
            let harms =
                |fault: &String| ["false alarm", "is ruled out", "is blamed:"].iter().any(|of| fault.contains(of));
            assert!(!faults.is_empty(), "{name} comes out right: take it off the list");
            assert!(!faults.iter().any(harms), "{name}: {faults:#?}");
            continue;
        }
        for fault in faults {
            let _ = writeln!(report, "{name}: {fault}");
        }
    }
    assert!(report.is_empty(), "\n{report}");
    assert!(still_wrong.is_empty(), "not among the cases: {still_wrong:?}");
}

/// What nodewhy does not find, though it can be seen, and why not. It does no harm: nothing else is blamed for it.
const STILL_WRONG: &[(&str, &str)] = &[
    ("693-user-data-waits-for-a-private-name", "a machine without a log is not judged by one that says little"),
    ("694-policy-agent-drops-the-traffic-of-pods", "nothing leads from the driver to the agent that drops its packets"),
    ("722-documented-role-name-in-aws-auth", "its third machine is a minute old, as healthy ones are"),
    ("825-a-host-name-of-their-own", "one log stands for two machines, the other of which is young"),
    ("812-launch-templates-fail-in-the-whole-region", "its third machine is too young, as above"),
    ("1034-machines-vanish-within-a-minute", "a third machine of the same log is too young"),
    ("1065-ready-since-noon-and-yet-nothing-starts", "what the kernel says of a network namespace that does not go"),
    (
        "1085-new-nodes-silent-since-the-control-plane-upgrade",
        "a Provisioner that asks for docker, which images from 1.24 on do not have",
    ),
    ("1093-transcoding-pool-stays-empty", "what a pod asks for without naming the NodePool is its owners affair"),
    ("1095-one-node-takes-no-more-pods", "a cordon of the update operator of Bottlerocket"),
    ("1096-clickhouse-waits-on-auto-mode", "a StorageClass whose provisioner is not there"),
    ("1111-logs-and-exec-refused", "serving certificates that nobody signs, on Ready Nodes"),
    ("1116-on-prem-machine-fell-silent", "the status of the nodeadm of a hybrid node"),
    ("1173-empty-group-is-not-woken", "cluster-autoscaler is none of what is judged"),
    ("1175-second-group-never-healthy", "the Node is named, where nothing in the cluster is to be changed"),
    ("1179-one-machine-without-pod-logs", "many dumps leave out the addresses of Nodes, so none is told by that"),
    ("1181-large-machine-stays-after-the-job", "cluster-autoscaler is none of what is judged"),
    ("1187-second-wake-up-does-not-happen", "cluster-autoscaler is none of what is judged"),
    ("1216-no-instance-is-created-since-the-upgrade", "what a decoded message of AWS says is not read"),
    ("1218-a-pool-of-new-instance-types-makes-nothing", "which labels Karpenter has for which instance type"),
    ("1220-new-pods-on-karpenter-nodes-hang-in-containercreating", "a label that a network plugin of Azure looks for"),
    ("1231-meshed-and-plain-pods-stuck-containercreating", "a plugin that a proxy answers in place of the API server"),
    (
        "1234-node-group-update-fails-old-node-stays-cordoned",
        "cordoned for less than half an hour, and no label tells of another version",
    ),
    (
        "1236-containers-on-new-windows-nodes-have-no-network",
        "containers without network, which nothing says but their own programs",
    ),
    ("1238-rebooted-node-starts-no-pods", "one log line of a plugin in front of the others"),
    ("1246-node-lost-while-a-runtime-was-being-installed", "that a DaemonSet stopped the kubelet"),
    ("1261-bottlerocket-second-pool", "how Karpenter 0.6 writes a taint into Bottlerocket's settings"),
    ("1264-two-node-objects-per-instance", "that Karpenter 0.19 itself makes Nodes, and under which name"),
    ("1269-same-hour-every-morning", "who ended machines that are gone: CloudTrail alone says it"),
    (
        "1277-old-claims-are-never-replaced",
        "NodeClaims in service whose updates are refused, of which only a log tells",
    ),
    (
        "1294-one-of-three-new-batch-machines",
        "of two ways in which a driver's taint comes to stay, objects do not tell which",
    ),
    ("1299-disk-pressure-after-two-days", "what fills a disk, listed by hand on the machine"),
    (
        "1334-spot-machines-live-fifteen-minutes",
        "machines that aws-node-termination-handler empties for a recommendation",
    ),
    ("1352-two-b200-machines-after-the-move", "a driver that finds no fabric, of which only logs of other agents tell"),
    ("1356-ubuntu-group-pods-have-no-network", "pods without network, which nothing says but their own programs"),
    ("1366-some-pods-on-the-newest-machine", "routes that another program takes away, seen on the machine only"),
    ("1387-own-registry-fails-on-the-newest-machine", "one machine with one image is no pattern"),
    ("1390-first-pool-cannot-be-made", "that the control plane cannot reach pods of an overlay network"),
    ("1391-machines-live-two-minutes", "who ends the instances of NodeClaims: CloudTrail alone says it"),
    ("1397-auto-mode-starts-one-after-the-other", "machines that are gone before a look at the cluster"),
    (
        "1373-volumes-attach-nowhere-since-the-morning",
        "that the Nodes of a controller without credentials are to blame",
    ),
    ("1423-workers-of-the-new-image", "what Cilium's own ConfigMap says of interfaces"),
    ("1426-new-volumes-on-the-older-hosts", "a file system that one kernel does not mount, told on the machine only"),
    ("1438-the-metrics-host-since-four-o-clock", "a node group's machine that was stopped ten minutes ago"),
    ("1464-lookups-fail-on-one-kind-of-machine", "a DNS server of each Node that does not tolerate a taint"),
    ("1465-half-of-the-runners-vanish-at-once", "machines in order that all go at once, as their NodePool permits"),
    ("1469-teardown-does-not-end", "a drain that Karpenter forgot"),
    ("1471-controller-works-on-some-machines-only", "pods of other workloads that do not reach the metadata service"),
    ("1512-machines-fall-over-one-by-one", "NotReady for three minutes, and the console of another machine"),
    ("1513-ready-machine-whose-pods-lose-touch", "routes that another program takes away, seen on the machine only"),
    ("1514-old-image-will-not-go", "a drifted machine that works is not stuck"),
    ("1515-second-old-machine-waits-for-nobody", "a drifted machine that works is not stuck"),
    ("1533-leaving-takes-for-ever", "a cluster that is taken down, whose Nodes are all cordoned"),
    ("1548-smaller-bill-fewer-machines", "its second machine, of which there is no log, is in another zone"),
    ("1554-accelerated-machine-nobody-takes-away", "that Karpenter 0.10 waits for the devices of an instance type"),
    ("1562-newer-family-is-refused", "which branches Karpenter 0.11 knows of an instance type"),
    ("1632-each-try-leaves-something-behind", "its third machine is two seconds too young"),
    ("1633-first-three-of-the-new-cluster", "that no ENIConfig is there, where the dump lists none: it is suspected"),
    ("1635-one-of-the-evening-burst", "of two ways in which a driver's taint comes to stay, objects do not tell which"),
    ("1872-staging-gpu", "that a DaemonSet, and not this one Node, fails to remove a taint"),
    ("1879-apps-qa", "that the subnet is to be changed, and not the DaemonSet that asks it for addresses"),
    ("1918-frstg2", "that a quota of the account is to be changed, and not the EC2NodeClass"),
    ("1934-argo-boot", "that the access entry is to be changed, and not the NodeClass"),
    ("1837-workers-eu", "that bootstrap.sh of an old image takes an option that it does not know for the name"),
    ("1865-spot-sep29", "the newest of its NodeClaims has not drifted yet, as in an ordinary rollout"),
    ("1737-ops-cluster-name-nobody-knows", "the private hosted zone that answers for the API server's name"),
    (
        "1973-platform-apse1",
        "AWS's provider reports no error for a class that does not exist (v1.12.2 cloudprovider.go `GetInstanceTypes`)",
    ),
    ("1977-media-usw2", "only the log of a driver tells that pods of a Ready Node reach nothing"),
    ("1993-fcos-next-stream", "one node with a newer kernel is no pattern"),
    ("2012-b200-smoke", "what a pod asks for is its owners affair, and no family is checked there"),
    ("2013-capacity-spread", "domains of a spread over a label of one NodePool"),
    ("2015-vllm-gpu", "the refused launches of Auto Mode are seen, and not told while the pod is refused for room"),
    ("2016-workshop-lab", "the NodePool of a class that does not go has a verdict of its own"),
    ("2017-ledger", "a budget may keep a drifted node: that is its owners wish"),
    ("2102-runtime-handler-in-the-wrong-table", "a RuntimeClass counts as the pod's own choice"),
    ("2104-cpu-limits-that-do-not-round", "its second node has failed for too short a time"),
    ("2105-the-database-that-takes-its-node-down", "a node that reboots every half hour is Ready in between"),
    ("2106-builds-that-cannot-be-killed", "pods that do not end are no case of their Node"),
    ("2109-a-vpn-agent-takes-the-name-service", "what a Ready Node cannot pull counts as the pods' own trouble"),
    ("2110-service-address-dead-until-kube-proxy-restarts", "pods of users that do not reach the API server"),
    ("2121-notebooks-wait-for-a-meshed-scheduler", "a pod that names another scheduler is not Karpenter's yet"),
    ("2127-skyhook-taint-stays-tuning-profile-missing", "a DaemonSet is told to tolerate a taint that goes by itself"),
    ("2128-cluster-security-group-does-not-admit-dns", "pods of users that resolve no name"),
    ("2130-log-agent-keeps-off-karpenter-nodes", "nothing fails where only the log agent is missing"),
    ("2144-metadata-says-401-once", "a trace of bootstrap.sh in which the metadata service answers with a page"),
    ("2161-an-agent-that-leaves-its-dead", "one agent that suffers is named, and not what uses up the process ids"),
    ("2164-binaries-of-no-length", "what pods print is in their logs only, of which no line is known"),
    ("2166-wherever-the-old-program-runs", "pods of three workloads fail on one node in the same words"),
    ("2167-shares-that-hang-since-the-upgrade", "pods that hang without an event"),
    ("2168-a-condition-written-at-parting", "the limit of the NodePool is real, and is told too"),
    ("2174-no-inotify-instance-left-for-kubelet", "it has been NotReady for less than five minutes"),
    ("2185-readiness-taint-that-nobody-removes", "a Node of a node group, and a rule that is completed"),
    ("2186-profile-sized-for-the-older-machine", "what a pod asks for is its owner's affair"),
    ("2190-taint-remover-wants-the-control-plane", "the NodePool is told of its pod too, without the taint"),
    ("2229-cilium-keeps-single-addresses", "what a CiliumNode says of the addresses of its interfaces"),
    ("2235-one-name-two-machines", "two boot ids that a Node reports by turns"),
    ("2245-nth-cordons-but-cannot-drain", "a drain that the termination handler gives up, and its log"),
    ("2262-image-tag-of-tuesday", "a spread over capacity types of a pod that allows only one of them"),
    ("2264-first-hosts-behind-the-proxy", "which unit has the proxy, and which one lacks it"),
    ("2267-short-jobs-on-a-big-host", "pods of one owner, of which some start"),
    ("2268-aggregator-three", "an instance type that takes fewer volumes than its pod mounts"),
    ("2271-volume-helper-finds-no-room", "the pod that mounts a bucket has no room beside the pod that reads it"),
    ("2274-two-name-servers-on-one-port", "a DNS cache on each Node, and what it means for its pods"),
    ("2275-the-helper-that-must-be-last", "a drifted node that a PodDisruptionBudget keeps has its pods"),
    ("2276-asked-where-nobody-answers", "a call that AWS does not offer in the region"),
    ("2279-a-class-that-was-only-a-name", "a pod that Karpenter ignores, as its log says"),
];

/// The table of reports orders suspects that nothing else tells apart, and the cases are such reports: each is judged
/// with its own count taken out.
#[test]
fn the_true_cause_is_suspected_without_the_count_of_its_own_case() {
    let (mut first, mut among_three, mut all) = (0, 0, 0);
    for folder in case_folders() {
        let expect = expectation(&folder);
        if expect.suspect_words.is_empty() {
            continue;
        }
        let mut state = ClusterState::default();
        load_case(&folder, &mut state);
        read_logs(&folder, &mut state);
        let thresholds = Thresholds::default();
        let judged = diagnose(Judging::new(&state, expect.now, &thresholds));
        let sick = judged.iter().find(|d| names(d).iter().any(|name| expect.sick.contains(name)));
        // A verdict that tells the cause needs no suspects.
        let Some(status) = sick.and_then(|d| d.status.as_ref()).filter(|status| !status.suspects.is_empty()) else {
            continue;
        };
        let truth =
            place(&status.suspects, &expect.suspect_words).map(|at| status.suspects[at - 1].grounds.cause.clone());
        let reports = |cause: &str| {
            let own = u32::from(truth.as_deref() == Some(cause));
            frequency::reports(cause).saturating_sub(own)
        };
        let case = Case::all(Judging::new(&state, expect.now, &thresholds))
            .find(|case| sick.is_some_and(|d| d.spec == case.spec()))
            .expect("the case of the verdict");
        let verdict = Stated { cause: &status.cause, confidence: status.confidence };
        let excluded = |cause: &str| status.ruled_out.iter().any(|r| r.cause == cause);
        let at = place(&ranked(&case, verdict, excluded, reports), &expect.suspect_words);
        all += 1;
        first += u32::from(at == Some(1));
        among_three += u32::from(at.is_some_and(|at| at <= 3));
        eprintln!("{}: {at:?}", folder.file_name().unwrap_or_default().display());
    }
    told_in_the_docs(&format!("first in {first} and among the first three in {among_three} of {all} cases"));
}

/// Where a rule finds the cause, and a candidate knows it too: whether it would be suspected if no rule knew it.
#[test]
fn what_rules_find_would_be_suspected_without_them() {
    let (mut first, mut among_three, mut all) = (0, 0, 0);
    let thresholds = Thresholds::default();
    for folder in case_folders() {
        // Without its logs: what only a log tells, no candidate knows.
        let (expect, mut state) = (expectation(&folder), ClusterState::default());
        load_case(&folder, &mut state);
        let judged = diagnose(Judging::new(&state, expect.now, &thresholds));
        let sick = judged.iter().find(|d| names(d).iter().any(|name| expect.sick.contains(name)));
        let Some((diagnosis, status)) = sick.and_then(|d| Some((d, d.status.as_ref()?))) else { continue };
        if !suspects::ALL.iter().any(|c| status.cause == c.cause && c.stages.contains(&status.stage)) {
            continue;
        }
        let case = Case::all(Judging::new(&state, expect.now, &thresholds))
            // Before 0.28 a machine is its Node to the user, and a NodeClaim to the rules.
            .find(|case| case.spec().subject.name == diagnosis.spec.subject.name)
            .unwrap_or_else(|| panic!("{}: no case of the verdict", folder.display()));
        let withheld = Stated { cause: unknown::CAUSE, confidence: Confidence::Possible };
        let excluded = |cause: &str| status.ruled_out.iter().any(|r| r.cause == cause);
        let own = |cause: &str| u32::from(status.cause == cause);
        let suspects = ranked(&case, withheld, excluded, |cause| frequency::reports(cause).saturating_sub(own(cause)));
        let at = suspects.iter().position(|suspect| suspect.grounds.cause == status.cause);
        all += 1;
        first += u32::from(at == Some(0));
        among_three += u32::from(at.is_some_and(|at| at < 3));
        eprintln!("{}: {} at {at:?}", folder.file_name().unwrap_or_default().display(), status.cause);
    }
    told_in_the_docs(&format!("first in {first} and among the first three in {among_three} of {all} such cases"));
}

fn told_in_the_docs(figures: &str) {
    let told = std::fs::read_to_string("docs/verdicts.md").expect("the page on verdicts").replace('\n', " ");
    assert!(told.contains(figures), "docs/verdicts.md does not say: {figures}");
}
