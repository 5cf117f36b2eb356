//! Clusters that cannot be read: the error names the server, what refused, and what to do.

use assert_cmd::Command;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Kubeconfig {
    _folder: TempDir,
    file: PathBuf,
}

impl Kubeconfig {
    /// Of a server, with the credentials that `user` is in YAML.
    fn of(server: &str, user: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {{server: \"{server}\"}}}}]\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nusers: [{{name: u, user: {user}}}]\n"
        );
        std::fs::write(&file, text).expect("a file");
        Self { _folder: folder, file }
    }

    /// What each command that reads a cluster says: they fail alike.
    #[track_caller]
    fn says(&self, words: &[&str]) {
        for command in [&["diagnose"][..], &["collect"], &["userdata"], &["diagnose", "--request-timeout", "3"]] {
            let mut process = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
            let output = process.args(command).arg("--kubeconfig").arg(&self.file).output().expect("the command runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{command:?}: {said}");
            for word in words {
                assert!(said.contains(word), "{command:?}: no {word:?} in: {said}");
            }
            assert!(!said.contains("ExitStatus") && !said.contains("Output {"), "{said}");
            assert_eq!(said.lines().count(), 1, "one sentence: {said}");
        }
    }
}

/// An exec plugin in YAML, as `aws eks update-kubeconfig` writes it.
fn exec(command: &str, script: &str) -> String {
    format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1beta1, command: \"{command}\", args: [\"-c\", \
         \"{script}\"], interactiveMode: Never}}}}"
    )
}

#[test]
fn a_plugin_that_is_not_installed() {
    Kubeconfig::of("https://127.0.0.1:1", &exec("aws-iam-authenticator-of-nobody", "")).says(&[
        "https://127.0.0.1:1",
        "cannot be started",
        "install it",
    ]);
}

#[test]
fn a_session_that_has_ended() {
    let script = "echo 'Error loading SSO Token: Token for corp does not exist' >&2; exit 255";
    Kubeconfig::of("https://127.0.0.1:1", &exec("/bin/sh", script)).says(&[
        "exec plugin /bin/sh for https://127.0.0.1:1 ended with exit code 255",
        "Error loading SSO",
        "does not exist",
        "log in again",
    ]);
}

#[test]
fn what_a_plugin_says_is_shown_without_its_secrets() {
    let script = "echo 'refused: AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY' >&2; exit 1";
    let config = Kubeconfig::of("https://127.0.0.1:1", &exec("/bin/sh", script));
    let output = Command::new(env!("CARGO_BIN_EXE_nodewhy"))
        .args(["diagnose", "--kubeconfig"])
        .arg(&config.file)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("refused") && !said.contains("wJalrXUtnFEMI"), "{said}");
}

#[test]
fn a_server_that_refuses() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let server = format!("https://{free}");
    Kubeconfig::of(&server, "{token: t}").says(&[&server, "refuses the connection"]);
}

#[test]
fn a_name_that_nobody_knows() {
    Kubeconfig::of("https://cluster.invalid", "{token: t}").says(&[
        "https://cluster.invalid",
        "is not known here",
        "VPN",
    ]);
}

#[test]
fn a_server_that_is_silent() {
    // It accepts connections, as every listening socket does, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = format!("https://{}", silent.local_addr().expect("its address"));
    let config = Kubeconfig::of(&server, "{token: t}");
    let began = Instant::now();
    let mut process = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    let output = process
        .args(["diagnose", "--request-timeout", "4s", "--kubeconfig"])
        .arg(&config.file)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.first(), Some(&format!("nodewhy: waiting for {server}").as_str()), "{said}");
    assert!(
        lines[1].contains(&server) && lines[1].contains("did not answer within 4s (--request-timeout permits more)"),
        "{said}"
    );
    assert!(
        began.elapsed() < Duration::from_mins(1),
        "it ends, long before the 90 seconds of silence that a connection is given"
    );
}

#[test]
fn of_several_clusters_none_answers() {
    let config = Kubeconfig::of("https://127.0.0.1:1", "{token: t}");
    let ask = |arguments: &[&str]| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        let output = process.arg("diagnose").args(arguments).arg("--kubeconfig").arg(&config.file).output();
        let output = output.expect("the command runs");
        assert!(output.stdout.is_empty(), "nothing was judged");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let (code, said) = ask(&["--contexts", "c,d"]);
    assert_eq!(code, Some(3), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with("nodewhy: c: https://127.0.0.1:1 refuses the connection"), "{said}");
    assert!(lines[1].starts_with("nodewhy: d: ") && lines[1].contains("context"), "{said}");
    for (refused, why) in
        [(&["--all-contexts", "--watch"][..], "--watch"), (&["--contexts=c", "--aws"], "one cluster at a time")]
    {
        let (code, said) = ask(refused);
        assert!(code == Some(2) && said.contains(why), "{refused:?}: {said}");
    }
}
