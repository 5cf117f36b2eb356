//! `nodewhy history` shows what the operator wrote, of machines that are gone too.

use assert_cmd::Command;
use serde_json::{Value, json};

fn diagnosis(name: &str, pool: &str, cause: &str, since: &str, ended: Option<(&str, &str)>) -> Value {
    let mut status = json!({
        "stage": "Join", "cause": cause, "confidence": "Certain", "summary": format!("{name} cannot join."),
        "evidence": [], "firstObservedAt": since,
    });
    if let Some((outcome, at)) = ended {
        status["outcome"] = json!(outcome);
        status["endedAt"] = json!(at);
        status["conditions"] = json!([{
            "type": "Ended", "status": "True", "lastTransitionTime": at, "reason": outcome,
            "message": format!("{name} was deleted"),
        }]);
    }
    json!({
        "apiVersion": "nodewhy.dev/v1alpha1", "kind": "NodeDiagnosis", "metadata": {"name": name},
        "spec": {
            "subject": {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": name, "uid": name},
            "nodePool": {"name": pool}, "nodeClass": {"name": "default"},
        },
        "status": status,
    })
}

fn written() -> Vec<Value> {
    vec![
        diagnosis("old", "general", "NoRouteOut", "2026-01-15T10:00:00Z", Some(("Deleted", "2026-01-15T10:15:30Z"))),
        diagnosis("stuck", "general", "WrongCluster", "2026-01-15T11:00:00Z", None),
        diagnosis("late", "gpu", "NoRouteOut", "2026-01-15T09:00:00Z", Some(("Recovered", "2026-01-15T11:30:00Z"))),
    ]
}

fn history(input: &str, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("nodewhy")
        .expect("a binary")
        .args(["history", "-f", "-"])
        .args(arguments)
        .write_stdin(input)
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

fn list() -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": written()}).to_string()
}

#[test]
fn the_newest_stands_first_and_what_is_stuck_says_so() {
    let (code, out, _) = history(&list(), &[]);
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    let machines: Vec<&str> = rows.iter().skip(1).map(|row| row[2]).collect();
    assert_eq!((code, machines), (0, vec!["late", "stuck", "old"]), "{out}");
    assert_eq!(rows[1][3..], ["gpu", "Join", "NoRouteOut", "Certain", "Recovered", "2h", "30m"]);
    assert_eq!(rows[2][7], "stuck");
    assert_eq!(rows[3][7..], ["Deleted", "15m", "30s"]);
}

#[test]
fn a_name_selects_a_machine_in_full_or_all_of_its_pool() {
    let (code, out, _) = history(&list(), &["old"]);
    assert!(code == 0 && out.contains("old cannot join.") && out.contains("old was deleted."), "{out}");
    assert!(!out.contains("late"), "{out}");
    let (_, out, _) = history(&list(), &["general"]);
    assert!(out.contains("old") && out.contains("stuck") && !out.contains("late"), "{out}");
    let (code, out, errors) = history(&list(), &["nobody"]);
    assert!(code == 2 && out.is_empty() && errors.contains("no NodeDiagnosis is about nobody"), "{errors}");
}

#[test]
fn what_stood_under_a_name_before_and_what_a_pool_counts_is_told_too() {
    let mut again = diagnosis("again", "general", "NoRouteOut", "2026-01-15T10:00:00Z", None);
    again["status"]["earlier"] = json!([{
        "stage": "Launch", "cause": "NoCapacity", "confidence": "Likely", "summary": "again had no capacity.",
        "firstObservedAt": "2026-01-15T07:00:00Z", "endedAt": "2026-01-15T08:00:00Z", "outcome": "Deleted",
    }]);
    let mut pool = diagnosis("general", "general", "NoRouteOut", "2026-01-15T09:00:00Z", None);
    pool["spec"]["subject"]["kind"] = json!("NodePool");
    pool["status"]["machines"] = json!({
        "stuck": 2, "causes": [{"cause": "NoRouteOut", "stuck": 2, "soFar": 9}], "failedLaunches": 7, "failedLaunchSeconds": 6300,
        "lastJoined": {"name": "general-ok", "at": "2026-01-15T06:00:00Z"},
    });
    let list = json!({"kind": "List", "items": [pool, again]}).to_string();
    let (_, out, _) = history(&list, &["general"]);
    let rows: Vec<&str> = out.lines().filter(|line| line.starts_with('2')).collect();
    assert_eq!(rows.len(), 3, "{out}");
    assert!(
        rows[0].contains("NodePool/general") && rows[1].contains(" again ") && rows[2].contains("NoCapacity"),
        "{out}"
    );
    let counted = "NoRouteOut: 2 of 9 machines still stuck; 7 launches failed, and the instances ran for 1h 45m; \
                   general-ok joined last, at 2026-01-15 06:00:00Z.";
    assert!(out.contains(counted) && out.contains("again had no capacity."), "{out}");
}

#[test]
fn an_incident_stands_together_with_its_pool_before_its_machines() {
    let of_pool = |name: &str, since: &str, ended: Option<(&str, &str)>| {
        let mut pool = diagnosis(name, name, "NoRouteOut", since, ended);
        pool["spec"]["subject"]["kind"] = json!("NodePool");
        pool
    };
    let (nine, half_past) = ("2026-01-15T09:00:00Z", "2026-01-15T09:30:00Z");
    let items = [
        of_pool("general", nine, None),
        of_pool("gpu", nine, Some(("Recovered", half_past))),
        diagnosis("general-old", "general", "NoRouteOut", nine, Some(("Deleted", "2026-01-15T09:15:00Z"))),
        diagnosis("general-other", "general", "WrongCluster", "2026-01-15T09:20:00Z", None),
        // Between the machines of the other incident, by their times.
        diagnosis("gpu-a", "gpu", "NoRouteOut", nine, Some(("Deleted", "2026-01-15T09:17:00Z"))),
        // The NodePool's incident was over.
        diagnosis("gpu-late", "gpu", "NoRouteOut", "2026-01-15T10:00:00Z", None),
        // Its NodePool has no verdict.
        diagnosis("lone", "batch", "NoRouteOut", "2026-01-15T09:10:00Z", None),
    ];
    let list = json!({"kind": "List", "items": items}).to_string();
    let (_, out, _) = history(&list, &[]);
    let machines: Vec<&str> = out.lines().skip(1).filter_map(|row| row.split_whitespace().nth(2)).collect();
    let incidents = ["gpu-late", "NodePool/gpu", "gpu-a", "NodePool/general", "general-other", "general-old", "lone"];
    assert_eq!(machines, incidents, "{out}");
    assert!(
        out.contains("     general-old ") && out.contains("Z   lone "),
        "machines of a NodePool are indented: {out}"
    );
}

#[test]
fn json_and_yaml_are_read_again() {
    let documents = written().iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
    for format in ["json", "yaml"] {
        let (_, out, errors) = history(&documents, &["-o", format]);
        let (_, again, _) = history(&out, &["-o", format]);
        assert!(out.contains("late") && errors.is_empty(), "{errors}");
        assert_eq!(out, again);
    }
}
