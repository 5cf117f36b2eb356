//! `nodewhy diagnose --logs`: bundles, hostile archives, logs of other machines, healthy machines with alarming logs.

use assert_cmd::Command;
use chrono::{DateTime, Utc};
use engine::api::judged::JudgedBy;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::survey::Survey;
use engine::objects::MachineLog;
use engine::objects::input::Object;
use flate2::Compression;
use flate2::write::GzEncoder;
use nodewhy::ingest::logs::{Bounds, Logs, load};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const HOST: &str = "ip-10-0-2-20.eu-west-1.compute.internal";
const INSTANCE: &str = "i-0a0000000000000b1";

/// A kubelet that asks in vain.
fn refused() -> String {
    let mut log = format!(
        "Jan 15 11:51:00 {HOST} nodeadm[1591]: {{\"level\":\"info\",\"ts\":1768477860.1,\"msg\":\"Instance details \
         populated\",\"details\":{{\"id\":\"{INSTANCE}\"}}}}\n"
    );
    for minute in 51..59 {
        let _ = writeln!(
            log,
            "Jan 15 11:{minute}:34 {HOST} kubelet[1629]: E0115 11:{minute}:34.123456    1629 \
             kubelet_node_status.go:108] \"Unable to register node with API server\" err=\"Post \
             \\\"https://10.0.3.7:443/api/v1/nodes\\\": dial tcp 10.0.3.7:443: i/o timeout\""
        );
    }
    log
}

/// What every healthy machine says, some of it alarming.
fn healthy(host: &str) -> String {
    let lines = [
        "cloud-init[1200]: 2026-01-15 11:50:50,123 - __init__.py[WARNING]: Unhandled unknown content-type \
         (application/node.eks.aws) userdata: 'b'apiVersion: node.'...'",
        "containerd[2061]: time=\"2026-01-15T11:51:00.903360061Z\" level=error msg=\"failed to load cni during init, \
         please check CRI plugin status before setting up network for pods\" error=\"cni config load failed: no \
         network config found in /etc/cni/net.d\"",
        "kubelet[1629]: W0115 11:51:02.123456    1629 reflector.go:569] k8s.io/client-go/informers/factory.go:160: \
         failed to list *v1.Node: Get \"https://x.eks.amazonaws.com/api/v1/nodes\": dial tcp 10.0.3.7:443: connect: \
         connection refused",
        "kubelet[1629]: E0115 11:51:02.123456    1629 kubelet_node_status.go:108] \"Unable to register node with API \
         server\" err=\"Post \\\"https://10.0.3.7:443/api/v1/nodes\\\": dial tcp 10.0.3.7:443: connect: connection \
         refused\"",
        "kubelet[1629]: E0115 11:51:03.123456    1629 kubelet.go:3117] \"Container runtime network not ready\" \
         networkReady=\"NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni \
         plugin not initialized\"",
        "kubelet[1629]: I0115 11:51:04.123456    1629 kubelet_node_status.go:78] \"Successfully registered node\" \
         node=\"HOST\"",
        "kubelet[1629]: I0115 11:51:24.123456    1629 kubelet_node_status.go:431] \"Fast updating node status as it \
         just became ready\"",
        "kubelet[1629]: E0115 11:58:24.123456    1629 kuberuntime_image.go:42] \"Failed to pull image\" err=\"failed \
         to pull and unpack image \\\"example.com/x:1\\\": dial tcp 10.9.9.9:443: i/o timeout\" \
         image=\"example.com/x:1\"",
    ];
    lines.iter().fold(String::new(), |mut log, line| {
        let _ = writeln!(log, "Jan 15 11:51:00 {host} {}", line.replace("HOST", host));
        log
    })
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(1_768_478_400);
        archive.append_data(&mut header, name, *content).expect("memory");
    }
    archive.into_inner().expect("memory")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("it is ours");
    fs::write(&path, bytes).expect("it is ours");
    path
}

fn read(bytes: &[u8], bounds: Bounds) -> Logs {
    let folder = TempDir::new().expect("a folder");
    load(&[write(folder.path(), "given", bytes)], &ClusterState::default(), bounds)
}

fn nodewhy(args: &[&str]) -> (String, String, i32) {
    let output = Command::cargo_bin("nodewhy").expect("it is built").args(args).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().unwrap_or(-1))
}

#[test]
fn a_bundle_is_judged_however_it_is_packed() {
    let folder = TempDir::new().expect("a folder");
    let log = refused();
    let files: [(&str, &[u8]); 3] =
        [("kubelet/kubelet.log", log.as_bytes()), ("system/ps.txt", b"PID TTY\n"), ("pprof/heap", b"\0\x01\x02")];
    let tar = tar(&files);
    let packed = [
        write(folder.path(), "plain.log", log.as_bytes()),
        write(folder.path(), "bundle.tar", &tar),
        write(folder.path(), "bundle.tar.gz", &gzip(&tar)),
        write(folder.path(), "kubelet.log.gz", &gzip(log.as_bytes())),
        write(
            folder.path(),
            "utf-16.log",
            &format!("\u{FEFF}{log}").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
        ),
    ];
    for path in packed {
        let (out, err, code) = nodewhy(&["diagnose", "--logs", &path.display().to_string()]);
        assert!(
            out.starts_with(&format!("ApiServerUnreachable (Certain): Instance {INSTANCE}")),
            "{path:?}\n{out}{err}"
        );
        assert!(out.contains("because nothing answers in time (logged 8"), "{out}");
        assert_eq!(code, 0, "{err}");
    }
}

/// As the EKS node monitoring agent uploads it, and asked for by an object that is in the dump.
/// Source: aws/eks-node-monitoring-agent pkg/log_collector/collect (kubernetes.go, instance.go), api/v1alpha1.
#[test]
fn what_a_node_diagnostic_uploads_is_read_and_the_object_itself_is_no_news() {
    let folder = TempDir::new().expect("a folder");
    let line = |minute: u32| {
        format!(
            "2026-01-15T11:{minute}:34.123456+00:00 {HOST} kubelet[1629]: E0115 11:{minute}:34.123456    1629 \
             kubelet_node_status.go:108] \"Unable to register node with API server\" err=\"Post \
             \\\"https://10.0.3.7:443/api/v1/nodes\\\": dial tcp 10.0.3.7:443: i/o timeout\"\n"
        )
    };
    let kubelet: String = (51..59).map(line).collect();
    let id = format!("{INSTANCE}\n");
    let bundle = gzip(&tar(&[("kubelet/kubelet.log", kubelet.as_bytes()), ("system/instance-id.txt", id.as_bytes())]));
    let bundle = write(folder.path(), "node.tar.gz", &bundle);
    let dump = format!(
        "apiVersion: eks.amazonaws.com/v1alpha1\nkind: NodeDiagnostic\nmetadata: {{name: {HOST}}}\nspec: {{logCapture: {{destination: 'https://logs.s3.amazonaws.com/x?X-Amz-Signature=5ec2e7'}}}}\n---\n\
         apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {{name: general-a, uid: a, creationTimestamp: '2026-01-15T11:40:00Z'}}\nspec: {{nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}\n\
         status: {{providerID: 'aws:///eu-west-1a/{INSTANCE}', conditions: [{{type: Launched, status: 'True', lastTransitionTime: '2026-01-15T11:41:00Z'}}]}}\n"
    );
    let dump = write(folder.path(), "dump.yaml", dump.as_bytes());
    let [dump, bundle] = [dump, bundle].map(|path| path.display().to_string());
    let (out, err, _) = nodewhy(&["diagnose", "-f", &dump, "--logs", &bundle, "--now", "2026-01-15T12:00:00Z"]);
    assert!(out.starts_with("ApiServerUnreachable (Certain): NodeClaim general-a"), "{out}{err}");
    assert!(!format!("{out}{err}").contains("NodeDiagnostic"), "{out}{err}");
}

#[test]
fn a_console_is_read_as_every_tool_prints_it() {
    let text = format!("{}[FAILED] Failed to start bootstrap container tune.\n", "Booting\n".repeat(40));
    let base64 = {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(&text)
    };
    let json = |output: &str| serde_json::json!({"InstanceId": INSTANCE, "Output": output}).to_string();
    for given in [text.clone(), base64.clone(), json(&text), json(&base64), format!("{INSTANCE}\t{text}\t2026-01-15")] {
        let logs = read(given.as_bytes(), Bounds::default());
        let facts: Vec<&str> = logs
            .journeys
            .iter()
            .flat_map(|journey| &journey.facts)
            .map(|fact| fact.names["container"].as_str())
            .collect();
        assert_eq!(facts, ["tune"], "{given:.80} {:?}", logs.complaints);
        let named = logs.journeys.iter().any(|journey| journey.identity.instances.contains(INSTANCE));
        assert_eq!(named, given.contains(INSTANCE), "{given:.80}");
    }
}

#[test]
fn a_healthy_machine_with_an_alarming_log_is_not_stuck() {
    let folder = TempDir::new().expect("a folder");
    let log = write(folder.path(), "messages", healthy(HOST).as_bytes());
    let (out, err, code) = nodewhy(&["diagnose", "--logs", &log.display().to_string()]);
    assert!(
        out.contains("Judged 1 log at 2026-01-15T11:58:24Z (the newest time in the logs): nothing is stuck."),
        "{out}{err}"
    );
    assert_eq!(code, 0);
}

/// What the kubelet tries every ten seconds fails each time, or once in an hour.
#[test]
fn a_kubelet_that_is_refused_now_and_then_is_not_stuck() {
    let log = |minutes: u32| -> String {
        let line = |at: u32| {
            format!(
                "Jan 30 {:02}:{:02}:21 {HOST} kubelet[4226]: E0130 {:02}:{:02}:21.590612    4226 \
                 kubelet_node_status.go:377] Error updating node status, will retry: error getting node \"{HOST}\": \
                 Unauthorized\n",
                at / 60,
                at % 60,
                at / 60,
                at % 60,
            )
        };
        (0..20).map(|turn| line(60 + turn * minutes)).collect()
    };
    for (minutes, is_open) in [(1, true), (8, true), (12, false), (60, false)] {
        let logs = read(log(minutes).as_bytes(), Bounds::default());
        let open: Vec<bool> = logs.journeys.iter().map(logs::journey::Journey::complains).collect();
        assert_eq!(open, [is_open], "every {minutes} minutes");
    }
}

/// Real ones, whatever else the cluster tells.
#[test]
fn the_logs_of_healthy_cases_alone_call_nobody_stuck() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let folders = fs::read_dir(cases).expect("the cases").map(|entry| entry.expect("an entry").path().join("logs"));
    let healthy = folders.filter(|logs| logs.to_string_lossy().contains("-healthy-") && logs.exists());
    let mut judged = 0;
    for logs in healthy {
        let mut state = ClusterState::default();
        for journey in load(std::slice::from_ref(&logs), &ClusterState::default(), Bounds::default()).journeys {
            state.apply(Object::MachineLog(MachineLog::new(journey)), DateTime::UNIX_EPOCH);
        }
        let newest = state.logs().filter_map(|log| log.journey.ends).max().unwrap_or_else(Utc::now);
        let survey = Survey::of(Judging::new(&state, newest, &Thresholds::default()), JudgedBy::Logged);
        let causes: Vec<_> = survey.diagnoses.iter().filter_map(|d| Some(&d.status.as_ref()?.cause)).collect();
        assert!(causes.is_empty(), "{}: {causes:?}", logs.display());
        judged += 1;
    }
    assert!(judged >= 14, "{judged} healthy cases have logs");
}

#[test]
fn of_a_log_without_a_known_line_no_step_is_told() {
    let folder = TempDir::new().expect("a folder");
    let log = write(folder.path(), &format!("{INSTANCE}-console.log"), b"[    0.000000] Linux version 5.8.11\n");
    let (_, err, _) = nodewhy(&["diagnose", "--logs", &log.display().to_string()]);
    assert!(
        err.contains("nodewhy recognizes no line of this file")
            && err.contains(&format!("log of {INSTANCE}: read 1 lines\n")),
        "{err}"
    );
    let log = write(folder.path(), &format!("{INSTANCE}-messages.log"), refused().as_bytes());
    let (_, err, _) = nodewhy(&["diagnose", "--logs", &log.display().to_string()]);
    assert!(
        err.contains("last boot step that succeeded: ") && !err.contains("nodewhy recognizes no line of this file"),
        "{err}"
    );
}

#[test]
fn logs_of_several_machines_in_one_folder_stay_apart() {
    let folder = TempDir::new().expect("a folder");
    write(folder.path(), "a/kubelet.log", refused().as_bytes());
    write(folder.path(), "a/instance-id.txt", INSTANCE.as_bytes());
    write(folder.path(), "b/messages", healthy("ip-10-9-9-9.ec2.internal").as_bytes());
    let (out, err, _) = nodewhy(&["diagnose", "--logs", &folder.path().display().to_string()]);
    assert!(out.contains("Judged 2 logs") && out.contains("1 is stuck"), "{out}{err}");

    let dump = write(
        folder.path(),
        "dump.yaml",
        br#"
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: other-x7k2p, creationTimestamp: "2026-01-15T11:30:00Z"}
spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
status:
  providerID: aws:///eu-west-1a/i-0c0000000000000c1
  conditions:
  - {type: Launched, status: "True", lastTransitionTime: "2026-01-15T11:30:05Z"}
  - {type: Registered, status: Unknown, reason: NodeNotFound, message: Node not registered with cluster, lastTransitionTime: "2026-01-15T11:30:00Z"}
"#,
    );
    let logs = folder.path().join("a").display().to_string();
    let now = "2026-01-15T12:00:00Z";
    let (out, err, _) = nodewhy(&["diagnose", "-f", &dump.display().to_string(), "--logs", &logs, "--now", now]);
    assert!(err.contains(&format!("log of {INSTANCE}: skipped, because no node in the dump has this name")), "{err}");
    assert!(out.starts_with("Unknown"), "{out}");
}

/// Two Nodes without a network plugin, and the log of one of them, as `kubectl logs POD > POD.log` leaves it.
#[test]
fn a_log_named_after_a_pod_is_of_the_node_that_it_runs_on() {
    let folder = TempDir::new().expect("a folder");
    let mut dump = String::new();
    for (name, pod) in [("ip-10-0-2-20", "aws-node-6sp2m"), ("ip-10-0-2-30", "aws-node-7tq3n")] {
        let _ = write!(
            dump,
            r#"
---
apiVersion: v1
kind: Node
metadata: {{name: {name}, creationTimestamp: "2026-01-15T11:30:00Z"}}
status:
  conditions: [{{type: Ready, status: "False", reason: KubeletNotReady, message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized", lastTransitionTime: "2026-01-15T11:30:00Z", lastHeartbeatTime: "2026-01-15T11:59:00Z"}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: {pod}, namespace: kube-system, ownerReferences: [{{kind: DaemonSet, name: aws-node, controller: true}}]}}
spec: {{nodeName: {name}}}
status: {{phase: Running}}
"#
        );
    }
    let dump = write(folder.path(), "dump.yaml", dump.as_bytes());
    let line = r#"{"level":"error","ts":"TIME","msg":"Failed to CreateNetworkInterface operation error EC2: api error InsufficientFreeAddressesInSubnet: x for subnet subnet-0123456789abcdef0"}"#;
    let lines: Vec<String> = ["57", "58", "59"]
        .iter()
        .map(|minute| line.replace("TIME", &format!("2026-01-15T11:{minute}:02.123Z")))
        .collect();
    let log = write(folder.path(), "aws-node-7tq3n.log", lines.join("\n").as_bytes());
    let [dump, log] = [dump, log].map(|path| path.display().to_string());
    let (out, err, _) =
        nodewhy(&["diagnose", "-f", &dump, "--logs", &log, "--now", "2026-01-15T12:00:00Z", "-o", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&out).expect(&err);
    let of = |name: &str| {
        let all = answer["items"].as_array().expect("a list");
        let own = all.iter().find(|item| item["spec"]["subject"]["name"] == name).expect("a verdict of each");
        own["status"]["cause"].clone()
    };
    assert_eq!(of("ip-10-0-2-30"), "NetworkPluginFails", "{answer:#}");
    assert_ne!(of("ip-10-0-2-20"), "NetworkPluginFails", "{answer:#}");
}

/// It is the control plane's, and tells of a Node that there is no other word of.
#[test]
fn the_log_of_a_cloud_controller_is_enough() {
    let folder = TempDir::new().expect("a folder");
    let line = |minute: u32| {
        format!(
            "E0115 11:{minute}:02.123456       1 node_controller.go:236] error syncing '{HOST}': failed to get \
             instance metadata for node {HOST}: instance not found, requeuing\n"
        )
    };
    let log = write(folder.path(), "ccm.log", (51..54).map(line).collect::<String>().as_bytes());
    let (out, err, _) = nodewhy(&["diagnose", "--logs", &log.display().to_string()]);
    assert!(out.contains("CloudControllerNeverInitialized") && out.contains(HOST), "{out}{err}");
}

#[test]
fn hostile_archives_are_named_and_the_rest_is_read() {
    let log = refused();
    let good: (&str, &[u8]) = ("kubelet.log", log.as_bytes());
    // Text that does not become smaller, so that the cut is in it.
    let filler = (0..60_000_u64).fold(String::new(), |mut filler, n| {
        let _ = writeln!(filler, "{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        filler
    });
    let whole = gzip(&tar(&[good, ("filler.log", filler.as_bytes())]));
    let cut = &whole[..whole.len() / 2];
    let logs = read(cut, Bounds::default());
    assert!(logs.journeys.iter().any(|journey| !journey.facts.is_empty()), "what stands before the cut is lost");
    let cases: [(&str, Vec<u8>, Bounds, &str); 5] = [
        ("gzip that ends early", cut.to_vec(), Bounds::default(), "cannot be read to its end"),
        (
            "many files",
            tar(&[("a", b"x\n"), ("b", b"x\n"), good]),
            Bounds { entries: 2, ..Bounds::default() },
            "more than 2 files",
        ),
        (
            "a bomb",
            gzip(&vec![b'x'; 4 << 20]),
            Bounds { bytes: 1 << 20, ..Bounds::default() },
            "more than 1 MiB of logs",
        ),
        ("archives in archives", gzip(&gzip(&gzip(&gzip(&tar(&[good]))))), Bounds::default(), "is not opened"),
        ("noise", vec![0xff, 0x00, 0x12, 0x00], Bounds::default(), "nodewhy recognizes no line of this file"),
    ];
    for (what, bytes, bounds, wanted) in cases {
        let logs = read(&bytes, bounds);
        assert!(logs.complaints.iter().any(|complaint| complaint.contains(wanted)), "{what}: {:?}", logs.complaints);
    }
}

/// What no file is has to be unpacked too, before what follows it is found.
#[test]
fn one_budget_holds_for_all_that_is_unpacked_also_where_it_is_passed_over() {
    let log = refused();
    let bounds = Bounds { bytes: 1 << 20, ..Bounds::default() };
    let entry = |archive: &mut tar::Builder<Vec<u8>>, type_: tar::EntryType, name: &str, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(type_);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content).expect("memory");
    };
    let with = |type_: tar::EntryType, bytes: usize, count: usize| {
        let mut archive = tar::Builder::new(Vec::new());
        for n in 0..count {
            entry(&mut archive, type_, &format!("filler-{n}"), &vec![0; bytes]);
        }
        entry(&mut archive, tar::EntryType::Regular, "kubelet.log", log.as_bytes());
        archive.into_inner().expect("memory")
    };
    for (what, bytes) in [
        ("a device with a content", gzip(&with(tar::EntryType::Char, 4 << 20, 1))),
        ("a folder with a content", gzip(&with(tar::EntryType::Directory, 4 << 20, 1))),
        ("a binary file", gzip(&with(tar::EntryType::Regular, 4 << 20, 1))),
        ("many small ones", gzip(&with(tar::EntryType::Symlink, 200 << 10, 20))),
        ("the same at two depths", gzip(&tar(&[("inner.tar.gz", &gzip(&with(tar::EntryType::Char, 4 << 20, 1)))]))),
    ] {
        let logs = read(&bytes, bounds);
        let said = logs.complaints.iter().filter(|complaint| complaint.contains("more than 1 MiB of logs")).count();
        assert_eq!(said, 1, "{what}: {:?}", logs.complaints);
        assert!(logs.journeys.iter().all(|journey| journey.facts.is_empty()), "{what}: what follows was read");
        assert!(read(&bytes, Bounds::default()).journeys.iter().any(|j| !j.facts.is_empty()), "{what}: it is not read");
    }
}

#[test]
fn links_devices_and_paths_in_archives_lead_nowhere() {
    let log = refused();
    let mut archive = tar::Builder::new(Vec::new());
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    archive.append_link(&mut link, "kubelet.log", "/etc/passwd").expect("memory");
    let mut header = tar::Header::new_gnu();
    header.set_size(log.len() as u64);
    header.set_mode(0o644);
    header.as_old_mut().name[..28].copy_from_slice(b"../../../../etc/kubelet.log\0");
    header.set_cksum();
    archive.append(&header, log.as_bytes()).expect("memory");
    let logs = read(&archive.into_inner().expect("memory"), Bounds::default());
    let files: Vec<&String> = logs.journeys.iter().flat_map(|journey| journey.files.keys()).collect();
    assert!(files.len() == 1 && files[0].ends_with("given/etc/kubelet.log"), "{files:?}");
}

#[test]
fn secrets_in_logs_are_not_shown() {
    let folder = TempDir::new().expect("a folder");
    let secret = "hunter2hunter2";
    let log = format!(
        "{INSTANCE}\t\n2026-01-15T11:51:02+0000 [eks-bootstrap] ERROR: curl -H 'Authorization: Bearer {secret}' \
         failed, DB_PASSWORD={secret}\n"
    );
    let path = write(folder.path(), "log", log.as_bytes()).display().to_string();
    for format in ["text", "json", "yaml"] {
        let (out, err, _) = nodewhy(&["diagnose", "--logs", &path, "--details", "-o", format]);
        assert!(out.contains("BootstrapFailed"), "{out}");
        assert!(!out.contains(secret) && !err.contains(secret), "{out}{err}");
    }
}

#[test]
fn what_cannot_be_is_said() {
    let (_, err, code) = nodewhy(&["diagnose", "--logs", "/nowhere"]);
    assert!(
        err.contains("/nowhere: cannot be read") && err.contains("nothing to judge: no log could be read"),
        "{err}"
    );
    assert_eq!(code, 2);
    let (_, err, code) = nodewhy(&["diagnose", "-f", "-", "--logs", "-"]);
    assert!(err.contains("standard input can be read only once"), "{err}");
    assert_eq!(code, 2);
}
