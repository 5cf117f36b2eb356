//! cloud-init prints a trace of Python's behind the line that a stage failed.

use logs::journey::Journey;
use logs::{FileLimits, LogReader};

fn read(lines: &[&str]) -> Journey {
    let mut reader = LogReader::new(FileLimits::default());
    reader.file("console.log", lines.join("\n").as_bytes(), None).expect("text");
    reader.of_one_machine()
}

const FAILED: &str = "2026-01-15 11:51:02,123 - util.py[WARNING]: failed stage init";
const RULE: &str = "------------------------------------------------------------";

/// A trace whose error has wrapped another.
fn traced() -> Vec<&'static str> {
    vec![
        FAILED,
        "failed run of stage init",
        RULE,
        "Traceback (most recent call last):",
        "  File \"/usr/lib/python3/dist-packages/cloudinit/util.py\", line 1675, in load_file",
        "    with open(fname, \"rb\") as ifh:",
        "FileNotFoundError: [Errno 2] No such file or directory: '/etc/secret-userdata.txt'",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        "  File \"/usr/lib/python3/dist-packages/cloudinit/user_data.py\", line 75, in _handle_error",
        "    raise RuntimeError(error_message) from source_exception",
        "RuntimeError: [Errno 2] No such file or directory: '/etc/secret-userdata.txt' for url: file:///etc/secret-userdata.txt",
        RULE,
    ]
}

#[test]
fn the_last_error_of_the_trace_says_why_the_stage_failed() {
    let journey = read(&traced());
    let open = journey.open();
    let cause = open.first().and_then(|fact| fact.cause.as_ref()).expect("an error");
    assert!(cause.text.starts_with("RuntimeError: [Errno 2] No such file"), "{open:#?}");
    assert_eq!(cause.line, 14);
}

#[test]
fn an_error_behind_the_trace_is_another_ones() {
    let mut lines = traced();
    lines.push("ValueError: of a script of the user's own");
    let journey = read(&lines);
    let cause = journey.open().first().and_then(|fact| fact.cause.clone()).expect("an error");
    assert_eq!(cause.line, 14);
    let alone = read(&[FAILED]);
    assert!(alone.open().iter().all(|fact| fact.cause.is_none()));
}
