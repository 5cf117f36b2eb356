//! The kubelet's own flags, from the Kubernetes that `kubelet/go.mod` pins.

use std::{collections::BTreeMap, fs, process::Command};

use readers::userdata::{
    known_flags::{KNOWN, NEWEST, Recognized, is_switch, look_up},
    kubelet_flags::{Flag, command_line, invalid_label, parse_labels, parse_taints, refused_labels},
    traced::Traced,
};
use serde::Deserialize;

use testkit::compare::{Random, ask, compare};
use testkit::programs::oracles;

#[derive(Debug, Deserialize)]
struct Answer {
    flags: Vec<(String, String)>,
    stray: Option<Vec<String>>,
    error: String,
    taints: Option<Vec<Taint>>,
    labels: Option<BTreeMap<String, String>>,
    refused: String,
}

#[derive(Debug, Deserialize)]
struct Taint {
    key: String,
    #[serde(default)]
    value: String,
    effect: String,
}

fn answers(command_lines: &[Vec<String>]) -> Vec<Answer> {
    ask(&mut Command::new(oracles::kubelet()), command_lines)
}

/// What the kubelet's flag set gets on Windows, and from JSON logging, which the oracle does not have.
const ADDED_ELSEWHERE: [&str; 4] =
    ["log-json-info-buffer-size", "log-json-split-stream", "windows-priorityclass", "windows-service"];

#[test]
fn the_flags_that_are_known_are_the_kubelets_own() {
    let output = Command::new(oracles::kubelet()).arg("flags").output().expect("it runs");
    let flags: BTreeMap<String, bool> = serde_json::from_slice(&output.stdout).expect("JSON");
    for (flag, takes_none) in &flags {
        // A later kubelet may lack it.
        let until = if let Recognized::Until(minor) = look_up(flag) { minor } else { 0 };
        assert!(look_up(flag) == Recognized::Yes || until > NEWEST, "--{flag}");
        assert_eq!(is_switch(flag), *takes_none, "--{flag}");
    }
    let others: Vec<&str> = KNOWN.iter().copied().filter(|flag| !flags.contains_key(*flag)).collect();
    assert_eq!(others, ADDED_ELSEWHERE, "no longer flags of the kubelet");
    let go_mod = fs::read_to_string(testkit::project().join("tests/e2e/oracles/kubelet/go.mod")).expect("it is there");
    assert!(go_mod.contains(&format!("k8s.io/kubernetes v1.{NEWEST}.")), "the flags are those of another version");
}

/// The answers to one flag with each of `values`.
fn of_flag(flag: &str, values: &[String]) -> Vec<Answer> {
    answers(&values.iter().map(|value| vec![format!("--{flag}={value}")]).collect::<Vec<_>>())
}

const LONG: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[test]
fn taints_are_taken_and_refused_alike() {
    const KEYS: &[&str] =
        &["a", "a", "b", "A.b/c", "a.b/c", "a/b/c", "/", "", "-a", "a_", "ö", "karpenter.sh/unregistered", LONG];
    const VALUES: &[&str] = &["", "", "", "=", "=x", "=x", "=y_z", "=-", "=x=y", "=\"x\"", "=x y", LONG];
    const EFFECTS: &[&str] = &[
        ":NoSchedule",
        ":NoExecute",
        ":PreferNoSchedule",
        ":noschedule",
        "",
        ":",
        ":NoSchedule-",
        "-",
        ":NoExecute ",
        ":x:NoExecute",
    ];
    let mut random = Random::new();
    let mut values: Vec<String> = Vec::new();
    for _ in 0..4_000 {
        let specs: Vec<String> = (0..=random.below(3))
            .map(|_| {
                if random.below(3) == 0 {
                    [KEYS, VALUES, EFFECTS].map(|from| random.pick(from)).concat()
                } else {
                    ["a", "b", "c.d/e"][random.below(3)].to_owned()
                        + random.pick(&VALUES[..6])
                        + random.pick(&EFFECTS[..3])
                }
            })
            .collect();
        values.push(
            specs.join(random.pick(&[",", ",", ",", ",", ",,", ", ", ";"])) + random.pick(&["", "", "", "", ","]),
        );
    }
    values.sort();
    values.dedup();
    let theirs: Vec<_> = of_flag("register-with-taints", &values)
        .into_iter()
        .map(|answer| {
            let taints =
                answer.taints.unwrap_or_default().into_iter().map(|t| (t.key, t.value, t.effect)).collect::<Vec<_>>();
            answer.error.is_empty().then_some(taints)
        })
        .collect();
    let ours = |value: &str| {
        Some(parse_taints(value).ok()?.into_iter().map(|t| (t.key, t.value, t.effect)).collect::<Vec<_>>())
    };
    assert!(theirs.iter().flatten().filter(|taints| !taints.is_empty()).count() > 100, "many cases are taints");
    compare(&values, &theirs, |value, _| Some(ours(value))).agrees(1_000);
    compare(&values, &theirs, |value, _| Some(ours(value.trim_end_matches(',')))).finds_the_mistake();
    compare(&values, &theirs, |value, _| Some(ours(&value.to_lowercase()))).finds_the_mistake();
}

/// What the kubelet makes of `--node-labels`: nothing where it exits.
fn labels(value: &str) -> Option<BTreeMap<String, String>> {
    if !refused_labels(value).is_empty() || invalid_label(value).is_some() {
        return None;
    }
    Some(parse_labels(value).map(|(key, value, _)| (key.to_owned(), value.to_owned())).collect())
}

#[test]
fn labels_are_taken_and_refused_alike() {
    const PIECES: &[&str] = &[
        "a",
        "A",
        "0",
        "b=c",
        "a.b/c=",
        "/",
        "=",
        "==",
        ",",
        ",",
        "-",
        "_",
        ".",
        " ",
        "\"",
        "ö",
        "kubernetes.io/",
        "k8s.io/x=y",
        "node.kubernetes.io/",
        "kubelet.kubernetes.io/",
        "x.kubelet.kubernetes.io/y=z",
        "topology.kubernetes.io/zone=a",
        "kubernetes.io/hostname=h",
        "node-role.",
        "node-restriction.",
        "my",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os=b",
        "eks.amazonaws.com/nodegroup=g",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    let values = Random::new().texts(PIECES, 6, 4_000);
    let theirs: Vec<_> = of_flag("node-labels", &values)
        .into_iter()
        .map(|answer| (answer.error.is_empty() && answer.refused.is_empty()).then(|| answer.labels.unwrap_or_default()))
        .collect();
    assert!(theirs.iter().flatten().filter(|labels| !labels.is_empty()).count() > 100, "many cases are labels");
    compare(&values, &theirs, |value, _| Some(labels(value))).agrees(2_000);
    compare(&values, &theirs, |value, _| Some(labels(&value.replace(' ', "")))).finds_the_mistake();
    let without_refusals =
        |value: &String, _: &_| Some(Some(parse_labels(value).map(|(k, v, _)| (k.into(), v.into())).collect()));
    compare(&values, &theirs, without_refusals).finds_the_mistake();
}

/// Flags with their values, and the words that are none.
type Read = (Vec<(String, String)>, Vec<String>);

#[test]
fn words_become_the_same_flags() {
    const WORDS: &[&str] = &[
        "--node-labels",
        "--node_labels=a=b",
        "--register-with-taints=a:NoSchedule",
        "--register-with-taints",
        "--register_with_taints",
        "a:NoExecute",
        "--max-pods=5",
        "--max-pods",
        "5",
        "--register-node",
        "--register-node=false",
        "false",
        "--v=2",
        "-v=2",
        "-v",
        "2",
        "--",
        "-",
        "stray",
        "",
        "--node-ip=::",
        "--hostname-override=x",
        "--seccomp-default",
        "--protect-kernel-defaults",
        "--rotate-server-certificates",
        "--fail-swap-on",
        "--cgroups-per-qos",
        "--enable-server",
        "--image-gc-high-threshold",
        "--eviction-hard=memory.available<5%",
        "--kube-reserved=cpu=1",
        "--a=b",
        "--node-labels=",
        "-node-labels=a=b",
        "--feature-gates=A=true",
        "--cluster-dns=10.0.0.1",
        "--serialize-image-pulls",
        "--cloud-provider=external",
        "--make-iptables-util-chains",
        "--authentication-token-webhook",
        "--anonymous-auth",
        "--cpu-cfs-quota",
        "--logtostderr",
        "--runonce",
        "--exit-on-lock-contention",
        "--enable-debugging-handlers",
        "--allow-privileged",
        "--local-storage-capacity-isolation",
        "--rotate-certificates",
        "--enable-controller-attach-detach",
        "--log-flush-frequency",
        "5s",
        "--kernel-memcg-notification",
        "--contention-profiling",
        "--fail-cgroupv1",
        "--log-text-split-stream",
        "--version",
    ];
    let mut random = Random::new();
    let lines: Vec<Vec<String>> =
        (0..4_000).map(|_| (0..=random.below(5)).map(|_| random.pick(WORDS).to_owned()).collect()).collect();
    let theirs: Vec<Option<Read>> = answers(&lines)
        .into_iter()
        .map(|a| a.error.is_empty().then(|| (a.flags, a.stray.unwrap_or_default())))
        .collect();
    let read = |line: &[String]| -> Read {
        let text = line.concat();
        let mut start = 0;
        let words: Vec<Traced> = line
            .iter()
            .map(|word| {
                start += word.len();
                Traced::written_at(word, start - word.len())
            })
            .collect();
        let read = command_line(&words);
        // A switch without a value is on; of the others only these two are ever given an empty one here.
        let value = |flag: &Flag| match flag.value.as_str() {
            "" if !["node-labels", "register-with-taints"].contains(&flag.name.as_str()) => "true".to_owned(),
            value => value.to_owned(),
        };
        let flags = read.flags.iter().map(|flag| (flag.name.clone(), value(flag))).collect();
        (flags, read.stray.iter().map(|span| span.of(&text).to_owned()).collect())
    };
    // We do not say which flags the kubelet knows and which values it refuses: only what it takes is compared.
    compare(&lines, &theirs, |line, theirs| theirs.as_ref().map(|_| Some(read(line)))).agrees(400);
    let without_switches = |line: &[String]| {
        read(&line.iter().map(|word| word.replace("--register-node", "--node-ip")).collect::<Vec<_>>())
    };
    compare(&lines, &theirs, |line, theirs| theirs.as_ref().map(|_| Some(without_switches(line)))).finds_the_mistake();
}
