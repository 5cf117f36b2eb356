//! containerd 2 from its module and 1.6 from Debian's package, each with configurations that it does not take.

use crate::real_logs::{assert_complete, contained, judge, rows_in, said};
use logs::fact::Trouble;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use testkit::control_plane::Process;
use testkit::programs::agents;

/// A configuration, what containerd 2 says of it, and what 1.6 says; `HEALTHY` where it goes on.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("plain", "version = 2", HEALTHY, HEALTHY),
    ("unknown field", "version = 2\nnonsense = true", HEALTHY, HEALTHY),
    (
        "table",
        "version = 2\n[plugins",
        "containerd: failed to unmarshal TOML{error}",
        "containerd: failed to load TOML: {error}",
    ),
    (
        "type",
        "version = 2\nroot = 5",
        "containerd: failed to unmarshal TOML{error}",
        "containerd: failed to unmarshal TOML{error}",
    ),
    ("version", "version = 9", "expected containerd config version equal to or less than {version}", HEALTHY),
    (
        "import",
        "version = 2\nimports = ['/none/x.toml']",
        "containerd: open {path}: no such file",
        "containerd: failed to load TOML: {error}",
    ),
    (
        "CRI type",
        "version = 2\n[plugins.'io.containerd.grpc.v1.cri']\nsandbox_image = 5",
        "containerd: toml: {error}",
        "containerd: {place}: Can't convert {value}",
    ),
    (
        "mirrors",
        "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.registry]\nconfig_path = '/x'\n\
         [plugins.'io.containerd.grpc.v1.cri'.registry.mirrors.x]\nendpoint = ['http://x']",
        "invalid cri image config: {error}",
        "invalid plugin config: {error}",
    ),
    (
        "runtime",
        "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\ndefault_runtime_name = 'nvidia'",
        "invalid plugin config: {error}",
        "invalid plugin config: {error}",
    ),
    (
        "snapshotter",
        "version = 3\n[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'soci'",
        "failed to find snapshotter \"{snapshotter}\"",
        HEALTHY,
    ),
    (
        "old snapshotter",
        "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\nsnapshotter = 'soci'",
        HEALTHY,
        "failed to find snapshotter \"{snapshotter}\"",
    ),
    (
        "CNI",
        "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.cni]\nconf_dir = '/proc/none'",
        "failed to load plugin{}error=\"{error}\" id=io.containerd.grpc.v1.cri",
        "failed to load plugin io.containerd.grpc.v1.cri{}error=\"{error}\"",
    ),
    ("name", "version = 2\nrequired_plugins = ['x.y']", "required plugin {plugin} not included", "failed to load TOML"),
    (
        "required",
        "version = 2\nrequired_plugins = ['io.containerd.none.v1.x']",
        "required plugin {plugin} not included",
        "required plugin {plugin} not included",
    ),
];

/// What it says last when it goes on, alarming lines before it included.
const HEALTHY: &str = "containerd successfully booted";

const NOT_HERE: &[(&str, &str)] = &[(
    "failed to reload cni configuration after receiving fs change event(REMOVE{}/etc/cni/net.d/{removed}){}no network config found in /etc/cni/net.d
        RunPodSandbox for {}failed, error{}failed to get sandbox image \"{image}\"{error}
        RunPodSandbox for {}failed, error{}runc did not terminate successfully: exit status {status}
        RunPodSandbox for {}unable to start container process: {init}
        failed to setup network for sandbox{error}
        PullImage \"{image}\" failed{}failed to extract layer {layer}: operation not permitted
        PullImage \"{image}\" failed{}failed to extract layer {layer}: permission denied
        PullImage \"{image}\" failed{error}",
    "it needs pods, and cgroups to run them in, or a plugin that is taken away",
)];

/// What it says until it goes on, or ends.
fn run(program: &Path, folder: &Path, config: &str) -> String {
    fs::create_dir_all(folder).expect("it is ours");
    fs::write(folder.join("config.toml"), config).expect("it is ours");
    let path = |name: &str| folder.join(name).display().to_string();
    let (config, root, state, socket) = (path("config.toml"), path("root"), path("state"), path("socket"));
    let arguments = ["--config", &config, "--root", &root, "--state", &state, "--address", &socket];
    said(Process::spawn(&contained(program, &arguments), folder.join("log")), |log| log.contains(HEALTHY))
}

#[test]
fn what_containerd_says_in_trouble_is_known() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let (mut wrong, mut printed) = (Vec::new(), BTreeSet::new());
    for (version, program) in agents::containerds() {
        for (name, config, second, first) in CASES {
            let says = if version == "2" { *second } else { *first };
            let name = format!("{name} in {version}");
            let log = run(&program, &folder.path().join(&name), config);
            let trouble = (says != HEALTHY).then_some((Trouble::RuntimeNotUp, None));
            wrong.extend(judge(&name, &log, says, trouble));
            printed.extend(rows_in(&log));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_complete("containerd", &printed, NOT_HERE);
}
