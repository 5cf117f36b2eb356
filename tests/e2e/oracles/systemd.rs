//! systemd 252, which Amazon Linux 2023 and Debian 12 ship: its own libraries read the cases, without a running
//! systemd.
//!
//! Amazon Linux 2's systemd 219 is nowhere to be had; what we know of it is in the tests of `src/userdata/systemd.rs`.

use readers::userdata::{
    systemd::{Generation, environment, environment_file, words},
    traced::Traced,
};

use testkit::compare::{Random, ask, compare};
use testkit::programs::oracles;

/// The strings that systemd makes of each text; nothing where it refuses.
fn answers(kind: &str, texts: &[String]) -> Vec<Option<Vec<String>>> {
    let hex = |text: &String| text.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let questions: Vec<[String; 2]> = texts.iter().map(|text| [kind.to_owned(), hex(text)]).collect();
    let answers: Vec<Option<Vec<String>>> = ask(&mut oracles::systemd(), &questions);
    let text = |hex: &String| {
        let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    };
    answers.iter().map(|strings| strings.as_ref().map(|strings| strings.iter().map(text).collect())).collect()
}

/// The value of `name` among assignments.
fn value_of(assignments: Option<&Vec<String>>, name: &str) -> Option<String> {
    assignments?.iter().find_map(|assignment| assignment.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
}

const NAME: &str = "KUBELET_EXTRA_ARGS";

#[test]
fn an_environment_line_means_the_same() {
    const PIECES: &[&str] = &[
        "a",
        "--x=",
        "b:NoSchedule",
        "\"",
        "\"",
        "'",
        "'",
        "\\",
        "\\",
        " ",
        " ",
        "\t",
        "\n",
        "n",
        "x41",
        "101",
        "u00e9",
        "U0001F600",
        "%%",
        "%n",
        "ö",
        "=",
        "#",
        ";",
        "$X",
        "A=b",
        "KUBELET_EXTRA_ARGS=c",
        "[",
        "\\\\",
        "\\\"",
        "\\'",
        "' '",
        "x00",
        "s",
    ];
    let mut values = Random::new().texts(PIECES, 10, 20_000);
    values.push(String::new());
    let units: Vec<String> = values.iter().map(|value| format!("[Service]\nEnvironment='{NAME}={value}'\n")).collect();
    let theirs: Vec<_> = answers("unit", &units).iter().map(|found| value_of(found.as_ref(), NAME)).collect();
    let ours = |value: &String, generation| match environment(&Traced::written_at(value, 0), generation) {
        Ok(read) if read.exact => Some(Some(read.text.as_str().to_owned())),
        Ok(_) => None,
        Err(_) => Some(None),
    };
    compare(&values, &theirs, |value, _| ours(value, Generation::V252)).agrees(10_000);
    compare(&values, &theirs, |value, _| ours(value, Generation::V219)).finds_the_mistake();
    compare(&values, &theirs, |value, _| Some(Some(value.clone()))).finds_the_mistake();
}

const LINE: &[&str] = &[
    "a",
    "--x=",
    "b:NoSchedule",
    "\"",
    "\"",
    "'",
    "'",
    "\\",
    "\\",
    " ",
    " ",
    "\t",
    "\n",
    "\r",
    "n",
    "x41",
    "ö",
    "=",
    "#",
    ";",
    "$X",
    "${X}",
    "A=b",
];

#[test]
fn a_variable_of_a_command_line_falls_into_the_same_words() {
    let values = Random::new().texts(LINE, 10, 20_000);
    let theirs = answers("words", &values);
    let ours = |value: &String| {
        let words = words(&Traced::written_at(value, 0), Generation::V252).ok()?;
        Some(words.iter().map(|word| word.as_str().to_owned()).collect::<Vec<_>>())
    };
    compare(&values, &theirs, |value, _| Some(ours(value))).agrees(10_000);
    compare(&values, &theirs, |value, _| Some(Some(value.split_whitespace().map(str::to_owned).collect())))
        .finds_the_mistake();
}

#[test]
fn an_environment_file_means_the_same() {
    // nodeadm writes its own flags first.
    let values: Vec<String> =
        Random::new().texts(LINE, 10, 20_000).iter().map(|value| format!("--first{value}")).collect();
    let files: Vec<String> = values.iter().map(|value| format!("{NAME}={value}\n")).collect();
    let theirs: Vec<_> = answers("file", &files).iter().map(|found| value_of(found.as_ref(), NAME)).collect();
    let ours = |value: &String| environment_file(&Traced::written_at(value, 0)).0.as_str().to_owned();
    compare(&values, &theirs, |value, _| Some(Some(ours(value)))).agrees(10_000);
    compare(&values, &theirs, |value, _| Some(Some(value.lines().next().unwrap_or_default().to_owned())))
        .finds_the_mistake();
}
