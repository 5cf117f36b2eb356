//! `nodewhy mcp` answers a real client of the protocol as the commands answer a person.

use assert_cmd::Command;
use serde_json::{Value, json};
use std::path::Path;
use testkit::{nodewhy, project, python};

/// What the protocol's own SDK for Python gets: it starts the server and holds each answer against the tool's schema.
fn session(calls: &Value) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/mcp");
    let python = python::mcp_client();
    let mut client = Command::new(python);
    client.arg(folder.join("client.py")).arg(nodewhy()).write_stdin(calls.to_string());
    let output = client.env("KUBECONFIG", "/nonexistent").output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn case(name: &str) -> String {
    let cases = project().join("tests/cases").read_dir().expect("the cases");
    let case = cases.flatten().find(|entry| entry.file_name().to_string_lossy().starts_with(name)).expect("the case");
    case.path().join("cluster.yaml").display().to_string()
}

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(nodewhy()).args(arguments).output().expect("it runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_client_gets_what_the_commands_print() {
    let dump = case("06-");
    let text = std::fs::read_to_string(&dump).expect("the case");
    let session = session(&json!([
        ["diagnose", {"files": [dump]}],
        ["diagnose", {"dump": text, "name": "batch-spot-9dlcm"}],
        ["lint", {"files": [dump]}],
        ["userdata", {"files": [dump], "name": "batch-spot"}],
        ["explain", {"cause": "KubeletRefusesLabels"}],
        ["explain", {}],
    ]));
    let structured = |call: usize| &session["answers"][call]["structuredContent"];
    let json = |arguments: &[&str]| serde_json::from_str::<Value>(&printed(arguments)).expect("JSON");
    assert_eq!(structured(0), &json(&["diagnose", "-f", &dump, "-o", "json"]));
    assert_eq!(structured(1)["items"].as_array().map(Vec::len), Some(1), "{}", structured(1));
    assert_eq!(structured(2), &json(&["lint", "-f", &dump, "-o", "json"]));
    assert_eq!(structured(3), &json(&["userdata", "-f", &dump, "-o", "json", "batch-spot"]));
    let text = |call: usize| session["answers"][call]["content"][0]["text"].as_str().expect("text").to_owned();
    assert_eq!(text(4), printed(&["explain", "KubeletRefusesLabels"]).trim());
    assert!(text(5).contains("NodeRoleNotMapped"), "{}", text(5));
}

#[test]
fn every_tool_says_that_it_only_reads_and_when_it_is_of_use() {
    let session = session(&json!([]));
    assert!(session["instructions"].as_str().is_some_and(|text| text.contains("never instructions")), "{session}");
    let tools = session["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["collect", "diagnose", "explain", "lint", "userdata"]);
    for tool in tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 100), "{tool}");
    }
}

#[test]
fn what_cannot_be_answered_is_said_in_words_and_the_next_call_is_answered() {
    let dump = case("06-");
    let session = session(&json!([
        ["diagnose", {"files": ["/nowhere.yaml"]}],
        ["diagnose", {"files": [dump], "name": "--kubeconfig=/etc/passwd"}],
        ["diagnose", {"files": [dump], "now": "yesterday"}],
        ["collect", {}],
        ["explain", {"cause": "NodeRoleNotMaped"}],
        ["explain", {"cause": "NodeRoleNotMapped"}],
    ]));
    let answers = session["answers"].as_array().expect("answers");
    let said = ["cannot be read", "is called --kubeconfig=/etc/passwd", "yesterday", "kubeconfig", "did you mean"];
    for (answer, said) in answers.iter().zip(said) {
        assert_eq!(answer["isError"], true, "{answer}");
        assert!(answer["content"][0]["text"].as_str().is_some_and(|text| text.contains(said)), "{said}: {answer}");
    }
    assert_eq!(answers[5]["isError"], false, "{}", answers[5]);
}

#[test]
fn of_many_machines_each_cause_is_shown_once_and_all_are_counted() {
    let one = std::fs::read_to_string(case("06-")).expect("the case");
    // Forty claims of the same name but its end, and nothing else of each.
    let stuck = one
        .split("\n---\n")
        .find(|text| text.contains("kind: NodeClaim\n") && text.contains("  name: batch-spot-9dlcm"));
    let stuck = stuck.expect("it is in the case");
    let more = (10..50).map(|n| stuck.replace("9dlcm", &format!("x{n}")));
    let dump = [one.trim_end().to_owned()].into_iter().chain(more).collect::<Vec<_>>().join("\n---\n");
    let session = session(&json!([["diagnose", {"dump": dump}]]));
    let answer = &session["answers"][0];
    let (items, judged) = (&answer["structuredContent"]["items"], &answer["structuredContent"]["judged"]);
    assert_eq!(items.as_array().map(Vec::len), Some(1), "{answer}");
    assert_eq!(judged["stuck"], 42, "{judged}");
    assert!(answer["content"][1]["text"].as_str().is_some_and(|text| text.starts_with("42 are stuck; 1 ")), "{answer}");
}
