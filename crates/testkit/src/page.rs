//! The page that `nodewhy diagnose -o html` prints.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The page of a file, written beside it.
#[derive(Debug)]
pub struct Page {
    pub text: String,
    pub file: PathBuf,
    _folder: TempDir,
}

impl Page {
    /// Of a dump, as `diagnose` prints it with these arguments.
    pub fn of(dump: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (input, file) = (folder.path().join("dump.json"), folder.path().join("page.html"));
        std::fs::write(&input, dump).expect("a file");
        let mut command = Command::new(crate::nodewhy());
        command.args(["diagnose", "-o", "html", "-f"]).arg(&input).args(arguments);
        let output = command.output().expect("the command runs");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.starts_with("<!DOCTYPE html>"), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::write(&file, &text).expect("a file");
        Self { text, file, _folder: folder }
    }

    pub fn of_case(name: &str) -> Self {
        let folder = crate::project().join("tests/cases").join(name);
        Self::of(&benchmark::case::dump(&folder).expect("a case"), &[])
    }

    /// Of two machines whose names and messages are the work of an enemy.
    pub fn hostile() -> Self {
        let bad = "<script>document.title = 'run'</script>";
        let claim = |name: String, said: &str| {
            json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {"name": name, "creationTimestamp": "2026-01-15T11:50:00Z", "labels": {"karpenter.sh/nodepool": "a\" \
                    onclick=\"b"}},
                "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "x'><img src=x \
                    onerror=alert(1)>"}},
                "status": {"providerID": "aws:///eu-west-1a/i-0a", "conditions": [
                    {"type": "Launched", "status": "True", "reason": "Launched", "lastTransitionTime": "2026-01-15T11:50:05Z"},
                    {"type": "Registered", "status": "Unknown", "reason": "NodeNotFound", "message": said, "lastTransitionTime": "2026-01-15T11:50:06Z"},
                ]},
            })
        };
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}, "reason": "</svg></title><b>",
            "type": "Warning", "lastTimestamp": "2026-01-15T11:51:00Z",
            "message": format!("\u{1b}[31mred\u{1b}[0m {bad} PASSWORD=hunter2"),
            "involvedObject": {"kind": "NodeClaim", "name": format!("one{bad}")},
        });
        let items: Vec<Value> = vec![
            claim(format!("one{bad}"), "\"><iframe src=//example.com>"),
            claim("two\u{202e}gpj\u{1b}[2J".to_owned(), "zero\u{200b}width & plain"),
            event,
        ];
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        Self::of(&list.to_string(), &["--now", "2026-01-15T12:00:00Z"])
    }
}
