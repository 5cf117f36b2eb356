//! Bad input through the command: each complaint names file, document, line and remedy, and the rest is still judged.

use assert_cmd::Command;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use tempfile::TempDir;

/// A machine that is stuck, so that an answer shows that the rest was judged.
const STUCK: &str = "\
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-7xk2p, creationTimestamp: \"2026-01-15T11:50:00Z\", labels: {karpenter.sh/nodepool: general}}
spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
status:
  providerID: aws:///eu-west-1a/i-0abc
  conditions:
  - {type: Launched, status: \"True\", reason: Launched, lastTransitionTime: \"2026-01-15T11:50:05Z\"}
  - {type: Registered, status: Unknown, reason: NodeNotFound, lastTransitionTime: \"2026-01-15T11:50:00Z\"}
";
const STUCK_JSON: &str = r#"{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "general-7xk2p", "creationTimestamp": "2026-01-15T11:50:00Z"},
  "status": {"providerID": "aws:///eu-west-1a/i-0abc", "conditions": [{"type": "Launched", "status": "True", "lastTransitionTime": "2026-01-15T11:50:05Z"}]}}"#;
const NOW: &str = "2026-01-15T12:00:00Z";

struct Answer {
    code: i32,
    out: String,
    err: String,
}

impl Answer {
    /// Bad input, said so in these words.
    #[track_caller]
    fn complains(&self, words: &[&str]) -> &Self {
        assert_eq!(self.code, 2, "{}\n{}", self.err, self.out);
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in:\n{}", self.err);
        }
        self
    }

    #[track_caller]
    fn judges_the_rest(&self) {
        assert!(self.out.contains("general-7xk2p"), "the rest was not judged:\n{}\n{}", self.err, self.out);
    }
}

struct Dump(TempDir);

impl Dump {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// Judges one file.
    fn judge(content: impl AsRef<[u8]>) -> Answer {
        Self::judge_as("dump.yaml", content)
    }

    fn judge_as(name: &str, content: impl AsRef<[u8]>) -> Answer {
        let dump = Self::new();
        let path = dump.file(name, content);
        run(&["-f", path.to_str().expect("a path")], "")
    }
}

fn run(args: &[&str], stdin: &str) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    let output =
        command.args(["diagnose", "--now", NOW]).args(args).write_stdin(stdin).output().expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Answer { code: output.status.code().expect("no signal"), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn an_unparsable_document_in_the_middle() {
    let text = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: a}}\n---\nkind: Node\nmetadata:\n  name: b\n bad: \
         [unclosed\n---\n{STUCK}"
    );
    let answer = Dump::judge(&text);
    answer.complains(&["dump.yaml:8:", "document 2", "this is no YAML"]).judges_the_rest();
}

#[test]
fn a_kind_that_nobody_knows_is_no_error() {
    let answer = Dump::judge(format!("apiVersion: example.com/v1\nkind: Wombat\nmetadata: {{name: w}}\n---\n{STUCK}"));
    assert_eq!(answer.code, 0, "{}", answer.err);
    answer.judges_the_rest();
}

#[test]
fn a_node_claim_without_status_waits_for_its_launch() {
    let answer = Dump::judge(
        "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: \
         {name: general-7xk2p, creationTimestamp: \"2026-01-15T11:50:00Z\"}\n",
    );
    assert_eq!(answer.code, 0, "{}", answer.err);
    answer.judges_the_rest();
}

#[test]
fn old_versions_are_named_with_the_served_one() {
    let old = "apiVersion: karpenter.sh/v1alpha4\nkind: Provisioner\nmetadata: {name: old}\n";
    Dump::judge(format!("{old}---\n{STUCK}"))
        .complains(&["dump.yaml:1: document 1", "Provisioner of karpenter.sh/v1alpha4", "karpenter.sh/v1alpha5"])
        .judges_the_rest();
}

#[test]
fn a_misspelt_kind_of_karpenter_is_named_with_the_right_one() {
    for (group, written, kind) in [
        ("karpenter.sh", "Nodepool", "NodePool"),
        ("karpenter.sh", "NodePools", "NodePool"),
        ("karpenter.k8s.aws", "Ec2NodeClass", "EC2NodeClass"),
        ("karpenter.k8s.aws", "EC2NodeClasses", "EC2NodeClass"),
    ] {
        let wrong = format!("apiVersion: {group}/v1\nkind: {written}\nmetadata: {{name: general}}\n");
        Dump::judge(format!("{wrong}---\n{STUCK}"))
            .complains(&["dump.yaml:1: document 1", &format!("no kind {written}; write kind: {kind}")])
            .judges_the_rest();
        let dump = Dump::new();
        let file = dump.file("dump.yaml", &wrong);
        let output = Command::new(env!("CARGO_BIN_EXE_nodewhy")).arg("lint").arg(file).output().expect("lint runs");
        assert_eq!(output.status.code(), Some(2));
        let err = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(err.contains(&format!("write kind: {kind}")), "{err}");
    }
    // Another provider's kinds have names of their own.
    let other = "apiVersion: kubernetes.example.com/v1\nkind: Nodepool\nmetadata: {name: general}\n";
    let answer = Dump::judge(format!("{other}---\n{STUCK}"));
    assert!(!answer.err.contains("write kind"), "{}", answer.err);
}

#[test]
fn empty_blank_and_comment_only_files() {
    for content in ["", " \n\n", "# nothing\n", "---\n---\n"] {
        Dump::judge(content).complains(&["dump.yaml", "empty", "kubectl get", "nothing to judge"]);
    }
}

#[test]
fn a_list_without_items_says_so() {
    for content in ["apiVersion: v1\nkind: List\nitems: []\n", r#"{"apiVersion": "v1", "kind": "List", "items": []}"#] {
        let answer = Dump::judge(content);
        answer.complains(&["nothing to judge"]);
    }
}

#[test]
fn binary_and_gzip_and_utf_16() {
    Dump::judge([0x7f, b'E', b'L', b'F', 0, 1, 2]).complains(&["dump.yaml", "no text"]);
    Dump::judge([0x1f, 0x8b, 8, 0, 0]).complains(&["dump.yaml", "gzip", "zcat"]);
    // What `>` writes in Windows PowerShell.
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(STUCK.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    Dump::judge(utf16).complains(&["dump.yaml", "UTF-16", "UTF-8"]);
}

#[test]
fn missing_files_and_folders_without_dumps() {
    let dump = Dump::new();
    let good = dump.file("good.yaml", STUCK);
    let missing = dump.0.path().join("missing.yaml");
    run(&["-f", missing.to_str().unwrap(), "-f", good.to_str().unwrap()], "")
        .complains(&["missing.yaml", "cannot be read", "No such file"])
        .judges_the_rest();
    let empty = tempfile::tempdir().unwrap();
    std::fs::write(empty.path().join("notes.txt"), "x").unwrap();
    run(&["-f", empty.path().to_str().unwrap()], "").complains(&["no .yaml, .yml or .json file"]);
}

#[test]
fn a_folder_is_read_with_its_folders_and_one_bad_file_hides_nothing() {
    let dump = Dump::new();
    dump.file("a.yaml", ": [");
    dump.file("ignored.txt", ": [");
    std::fs::create_dir(dump.0.path().join("deeper")).unwrap();
    std::fs::write(dump.0.path().join("deeper/b.yml"), STUCK).unwrap();
    let answer = run(&["-f", dump.0.path().to_str().unwrap()], "");
    answer.complains(&["a.yaml:1"]).judges_the_rest();
    assert!(!answer.err.contains("ignored.txt"));
}

#[test]
fn a_folder_that_holds_itself_ends() {
    let dump = Dump::new();
    dump.file("a.yaml", STUCK);
    std::os::unix::fs::symlink(dump.0.path(), dump.0.path().join("again")).unwrap();
    run(&["-f", dump.0.path().to_str().unwrap()], "").judges_the_rest();
}

#[test]
fn standard_input() {
    let answer = run(&["-f", "-"], STUCK);
    assert_eq!(answer.code, 0, "{}", answer.err);
    answer.judges_the_rest();
    run(&["-f", "-"], "").complains(&["standard input", "empty"]);
    run(&["-f", "-"], "{").complains(&["standard input:1: document 1"]);
}

#[test]
fn sixteen_kilobytes_of_noise_as_user_data() {
    let noise: String = (0..16_384_u32)
        .map(|i| char::from(b' ' + u8::try_from(i.wrapping_mul(2_654_435_761) >> 16 & 0x5f).unwrap_or(0).min(94)))
        .collect();
    for family in ["AL2", "AL2023", "Bottlerocket", "Windows2022", "Custom"] {
        let class = serde_json::json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {"amiFamily": family, "userData": noise}});
        let answer = run(&["-f", "-"], &format!("{class}\n{STUCK_JSON}"));
        assert_eq!(answer.code, 0, "{}", answer.err);
        answer.judges_the_rest();
        assert!(answer.out.lines().all(|l| l.chars().count() < 1_200), "the noise is shown");
    }
}

#[test]
fn broken_json() {
    let answer = Dump::judge_as("dump.json", format!("{STUCK_JSON}\n{{\"kind\": \"Node\",\n \"metadata\": }}"));
    answer.complains(&["dump.json:4: document 2", "this is no JSON"]).judges_the_rest();
    let answer = Dump::judge_as("dump.json", format!("{{\"kind\": \"Node\",\n \"metadata\": }}\n{STUCK_JSON}\n"));
    answer.complains(&["dump.json:2: document 1", "this is no JSON"]).judges_the_rest();
}

#[test]
fn a_json_list_with_one_bad_item() {
    let answer = Dump::judge_as(
        "dump.json",
        format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n{{\"apiVersion\": \"v1\", \"kind\": \"Node\", \
             \"metadata\": {{\"name\": 7}}}},\n{STUCK_JSON}]}}"
        ),
    );
    answer
        .complains(&["dump.json:2: document 1, item 1", "Node 7: metadata.name is a number, but must be text"])
        .judges_the_rest();
}

#[test]
fn a_list_that_is_cut_off_is_judged_as_far_as_it_goes() {
    let cut_off = format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n{STUCK_JSON},\n{{\"apiVersion\": \"v1\", \"ki"
    );
    Dump::judge_as("dump.json", cut_off)
        .complains(&["dump.json:4: document 1, item 2: this is no JSON: EOF"])
        .judges_the_rest();
    let cut_off = format!("apiVersion: v1\nitems:\n- {}", STUCK.trim_end().replace('\n', "\n  "));
    Dump::judge(cut_off)
        .complains(&["dump.yaml:3: document 1: this list does not say its kind", "cut off"])
        .judges_the_rest();
}

#[test]
fn a_yaml_list_with_one_broken_item() {
    let items: String = STUCK.lines().enumerate().fold(String::new(), |mut out, (i, line)| {
        let _ = writeln!(out, "{}{line}", if i == 0 { "- " } else { "  " });
        out
    });
    let text = format!(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: \
         [unclosed\n{items}metadata:\n  resourceVersion: \"\"\n"
    );
    Dump::judge(&text).complains(&["dump.yaml:", "document 1, item 1", "this is no YAML"]).judges_the_rest();
    // The same with a value of the wrong type.
    let text = text.replace("name: [unclosed", "name: {}");
    Dump::judge(&text)
        .complains(&[
            "dump.yaml:7: document 1, item 1",
            "this Node cannot be read: metadata.name is a map, but must be text",
        ])
        .judges_the_rest();
}

#[test]
fn items_of_a_node_list_need_no_kind() {
    let text = "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: \
                {name: old, creationTimestamp: \"2026-01-15T10:00:00Z\"}\n  status: \
                {conditions: [{type: Ready, status: \"False\", lastTransitionTime: \"2026-01-15T11:00:00Z\"}]}\n";
    let json = r#"{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "old", "creationTimestamp": "2026-01-15T10:00:00Z"}}]}"#;
    for text in [text, json] {
        let answer = Dump::judge(text);
        assert!(answer.code == 0 && answer.out.contains("old"), "{}{}", answer.err, answer.out);
    }
}

#[test]
fn an_object_without_kind_or_name() {
    Dump::judge(format!("metadata: {{name: a}}\n---\napiVersion: v1\nkind: Node\n---\nhello\n---\n{STUCK}"))
        .complains(&[
            "document 1: this is no Kubernetes object: it has no kind",
            "dump.yaml:3: document 2: this Node has no metadata.name",
            "document 3: this is no Kubernetes object",
        ])
        .judges_the_rest();
}

#[test]
fn what_kubectl_prints_without_o_yaml_is_recognized() {
    let table = "NAME            TYPE        CAPACITY    ZONE         NODE   READY     AGE\ngeneral-7xk2p   \
                 m6i.large   on-demand   eu-west-1a          Unknown   9m\n";
    Dump::judge(table).complains(&["dump.yaml:1", "-o yaml"]);
}

#[test]
fn of_another_kind_of_file_not_every_line_is_named() {
    let log = r#"{"level": "info", "message": "launched nodeclaim"}"#;
    let answer = Dump::judge_as("karpenter.json", format!("{}{STUCK_JSON}", format!("{log}\n").repeat(2_000)));
    answer
        .complains(&["karpenter.json:100: document 100: this is no Kubernetes object", "karpenter.json: 1900 more"])
        .judges_the_rest();
    assert!(!answer.err.contains("document 101"));
}

#[test]
fn windows_line_ends_and_byte_order_marks() {
    for text in [
        STUCK.replace('\n', "\r\n"),
        format!("\u{feff}{STUCK}"),
        format!("\u{feff}---\r\n{}---\r\n", STUCK.replace('\n', "\r\n")),
    ] {
        let answer = Dump::judge(&text);
        assert_eq!(answer.code, 0, "{}", answer.err);
        answer.judges_the_rest();
    }
}

#[test]
fn deep_nesting_and_alias_bombs_end_soon() {
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    Dump::judge(format!("kind: {nested}\n---\n{STUCK}")).complains(&["dump.yaml:1: document 1"]).judges_the_rest();
    Dump::judge_as("dump.json", format!("{STUCK_JSON}\n{{\"kind\": \"Node\", \"status\": {nested}}}"))
        .complains(&["dump.json:3: document 2"])
        .judges_the_rest();
    Dump::judge_as("dump.json", format!("{nested}\n{STUCK_JSON}"))
        .complains(&["dump.json:1: document 1"])
        .judges_the_rest();
    let mut bomb = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for i in 1..12 {
        let _ = writeln!(bomb, "a{i}: &a{i} [{}]", vec![format!("*a{}", i - 1); 9].join(", "));
    }
    Dump::judge(format!("{bomb}---\n{STUCK}")).complains(&["document 1"]).judges_the_rest();
}

#[test]
fn fifty_megabytes() {
    let dump = Dump::new();
    let path = dump.0.path().join("big.json");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let filler = "x".repeat(1_000);
    for i in 0..50_000 {
        writeln!(file, r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p{i}", "annotations": {{"filler": "{filler}"}}}}}}"#)
            .unwrap();
    }
    writeln!(file, "{STUCK_JSON}").unwrap();
    file.flush().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > 50_000_000);
    let answer = run(&["-f", path.to_str().unwrap()], "");
    assert_eq!(answer.code, 0, "{}", answer.err);
    answer.judges_the_rest();
}

#[test]
fn exit_codes_are_the_documented_ones() {
    let dump = Dump::new();
    let good = dump.file("good.yaml", STUCK);
    let good = good.to_str().unwrap();
    assert_eq!(run(&["-f", good], "").code, 0);
    assert_eq!(run(&["-f", good, "--fail-on", "possible"], "").code, 1);
    assert_eq!(run(&["-f", good, "--fail-on", "certain"], "").code, 0);
    assert_eq!(run(&["-f", good, "--output", "nonsense"], "").code, 2);
    run(&["no-such-machine", "-f", good], "").complains(&["no-such-machine", "is called"]);
    // Bad input outweighs a finding: the answer may be incomplete.
    let bad = dump.file("bad.yaml", ": [");
    assert_eq!(run(&["-f", good, "-f", bad.to_str().unwrap(), "--fail-on", "possible"], "").code, 2);
}

#[test]
fn a_name_may_follow_the_file_and_a_second_file_needs_its_own_flag() {
    let dump = Dump::new();
    let (good, other) = (dump.file("good.yaml", STUCK), dump.file("other.yaml", STUCK));
    let (good, other) = (good.to_str().unwrap(), other.to_str().unwrap());
    let answer = run(&["-f", good, "general-7xk2p"], "");
    assert_eq!(answer.code, 0, "{}", answer.err);
    answer.judges_the_rest();
    run(&["-f", good, "no-such-machine"], "").complains(&["no-such-machine", "is called"]);
    // What a shell makes of `-f *.yaml`.
    run(&["-f", good, other], "").complains(&["other.yaml is a file", "-f a.yaml -f b.yaml"]);
    run(&[good], "").complains(&["good.yaml is a file"]);
    run(&["-f", good, "a", "b"], "").complains(&["one name is expected"]);
}

#[test]
fn what_cannot_be_watched_is_said_with_the_reason() {
    let dump = Dump::new();
    let good = dump.file("good.yaml", STUCK);
    run(&["-f", good.to_str().unwrap(), "--watch"], "").complains(&["--watch needs a cluster", "do not change"]);
    run(&["--watch"], "").complains(&["--watch", "remove --now"]);
}

/// Runs under a limit of memory, as a shell sets it: input that explodes ends there.
fn run_within(kibibytes: u64, arguments: &[&str]) -> Answer {
    let limited = format!("ulimit -v {kibibytes}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    let output =
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_nodewhy")]).args(arguments).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let (out, err) = (text(output.stdout), text(output.stderr));
    Answer { code: output.status.code().unwrap_or_else(|| panic!("a signal ended it: {err}")), out, err }
}

fn named_pipe(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
    assert!(made.success());
}

#[test]
fn a_scalar_that_aliases_repeat_takes_no_more_memory_than_the_file() {
    const MOST: u64 = 2 << 20;
    let scalar = "x".repeat(1_000_000);
    let aliases = vec!["*a"; 3_000].join(", ");
    let bomb = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: bomb, annotations: {{a: &a {scalar}}}}}\nspec: {{taints: \
         [{aliases}]}}\n---\n{STUCK}"
    );
    let dump = Dump::new();
    let path = dump.file("bomb.yaml", &bomb);
    let path = path.to_str().unwrap();
    run_within(MOST, &["diagnose", "--now", NOW, "-f", path]).complains(&["bomb.yaml", "document 1"]).judges_the_rest();
    let linted = run_within(MOST, &["lint", "-f", path]);
    assert!(linted.err.contains("bomb.yaml"), "{}", linted.err);
    // The same as user data, and as a list of NodeDiagnoses.
    let config = format!(
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  a: &a {scalar}\n  kubelet: {{flags: \
         [{aliases}]}}\n"
    );
    let user_data = dump.file("user-data", &config);
    let printed = run_within(MOST, &["userdata", "--ami-family", "AL2023", "-f", user_data.to_str().unwrap()]);
    assert!(!printed.out.is_empty(), "{}", printed.err);
    let history = run_within(MOST, &["history", "-f", path]);
    assert_eq!(history.code, 2, "{}", history.out);
}

#[test]
fn aliases_that_people_write_are_read() {
    let labels = "labels: {karpenter.sh/nodepool: general}}";
    let text = STUCK.replace(labels, "labels: &l {karpenter.sh/nodepool: general}, annotations: *l}");
    assert_ne!(text, STUCK);
    let answer = Dump::judge(text);
    assert_eq!(answer.code, 0, "{}", answer.err);
    answer.judges_the_rest();
}

#[test]
fn a_folder_with_two_links_to_itself_is_read_once() {
    let dump = Dump::new();
    dump.file("a.yaml", STUCK);
    dump.file("kubelet.log", "x\n");
    for link in ["again", "once-more"] {
        std::os::unix::fs::symlink(dump.0.path(), dump.0.path().join(link)).unwrap();
    }
    let path = dump.0.path().to_str().unwrap();
    let answer = run(&["-f", path], "");
    answer.judges_the_rest();
    assert!(answer.err.contains("2 links in this folder are not followed"), "{}", answer.err);
    assert_eq!(answer.err.matches("a.yaml").count(), 0, "{}", answer.err);
    let answer = run(&["-f", path, "--logs", path], "");
    assert!(answer.err.matches("2 links in this folder are not followed").count() >= 2, "{}", answer.err);
}

#[test]
fn a_link_that_is_named_is_followed() {
    let dump = Dump::new();
    let file = dump.file("a.yaml", STUCK);
    let link = dump.0.path().join("link");
    std::os::unix::fs::symlink(file, &link).unwrap();
    run(&["-f", link.to_str().unwrap()], "").judges_the_rest();
}

#[test]
fn a_named_pipe_or_a_device_is_refused_with_the_remedy() {
    let dump = Dump::new();
    let good = dump.file("good.yaml", STUCK);
    let good = good.to_str().unwrap();
    let pipe = dump.0.path().join("pipe.yaml");
    named_pipe(&pipe);
    let pipe = pipe.to_str().unwrap();
    run(&["-f", pipe, "-f", good], "").complains(&["pipe.yaml", "this is a named pipe", "`-f -`"]).judges_the_rest();
    run(&["-f", dump.0.path().to_str().unwrap()], "")
        .complains(&["pipe.yaml", "this is a named pipe"])
        .judges_the_rest();
    run(&["-f", good, "--logs", pipe], "").complains(&["pipe.yaml", "this is a named pipe", "`--logs -`"]);
    run(&["-f", "/dev/zero", "-f", good], "").complains(&["/dev/zero", "this is a device"]).judges_the_rest();
    for arguments in [
        &["lint", "-f", pipe][..],
        &["userdata", "-f", pipe],
        &["userdata", "--ami-family", "AL2023", "-f", pipe],
        &["history", "-f", pipe],
    ] {
        let answer = run_within(u64::from(u32::MAX), arguments);
        assert!(answer.code == 2 && answer.err.contains("this is a named pipe"), "{arguments:?}: {}", answer.err);
    }
}

#[test]
fn standard_input_may_be_named_as_a_file() {
    for name in ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
        let answer = run(&["-f", name], STUCK);
        assert_eq!(answer.code, 0, "{}", answer.err);
        answer.judges_the_rest();
    }
}

/// What a shell makes of `-f <(zcat dump.gz)`.
#[test]
fn what_a_shell_substitutes_for_a_command_is_read() {
    let dump = Dump::new();
    let good = dump.file("good.yaml", STUCK);
    let mut command = Command::new("bash");
    let script = "exec \"$0\" diagnose --now \"$1\" -f <(cat \"$2\")";
    let output = command.args(["-c", script, env!("CARGO_BIN_EXE_nodewhy"), NOW]).arg(good).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("general-7xk2p"), "{output:?}");
}

/// An all-clear says what it lacks, and --fail-on counts it.
#[test]
fn one_odd_field_hides_no_object_and_is_no_all_clear() {
    let class = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: web}\nspec:\n  role: r\n  \
                 metadataOptions:\n    httpPutResponseHopLimit: two\n";
    let answer = Dump::judge(class);
    answer.complains(&[
        "dump.yaml:7: document 1: EC2NodeClass web: spec.metadataOptions.httpPutResponseHopLimit is text, but must be \
         a whole number",
    ]);
    assert!(answer.out.contains("nothing that could be read is stuck"), "{}", answer.out);
    assert!(answer.out.contains("nodewhy could not read and did not judge: "), "{}", answer.out);
    assert!(!answer.out.contains("nothing is stuck"), "{}", answer.out);
    // A quantity is a number or text.
    let volume = class.replace(
        "  metadataOptions:\n    httpPutResponseHopLimit: two\n",
        "  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 80}}]\n",
    );
    let answer = Dump::judge(volume);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(answer.out.contains("nothing is stuck"), "{}", answer.out);
}

#[test]
fn messages_are_about_the_file_and_not_about_a_parser() {
    let twice = STUCK.replace("status:\n  providerID", "metadata: {name: general-7xk2p}\nstatus:\n  providerID");
    Dump::judge(&twice).complains(&["dump.yaml:5: document 1: NodeClaim general-7xk2p: metadata is written twice"]);
    let cut = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\n...\nspec: {}\n";
    let answer = Dump::judge(format!("{cut}---\n{STUCK}"));
    answer.complains(&["dump.yaml:4: document 1: this line `...` ends the document"]).judges_the_rest();
    assert!(!answer.err.contains("from_str"), "{}", answer.err);
}
