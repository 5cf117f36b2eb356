//! What other programs take from nodewhy: shells, man, k9s, and whoever reads a bug report.

use clap::{CommandFactory, Parser};
use nodewhy::cli::Cli;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn nodewhy(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nodewhy")).args(arguments).output().expect("it runs")
}

#[track_caller]
fn answer(arguments: &[&str]) -> String {
    let output = nodewhy(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn subcommands() -> Vec<String> {
    Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// What a shell answers that is given the text; `None` where it is not installed.
fn shell(command: &[&str], text: &str) -> Option<Output> {
    let mut shell = Command::new(command[0]);
    shell.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = match shell.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        spawned => spawned.expect("it starts"),
    };
    process.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    Some(process.wait_with_output().expect("it ends"))
}

#[test]
fn every_shell_takes_its_script() {
    let read_only: [(&str, &[&str]); 4] = [
        ("bash", &["bash", "-n"]),
        ("zsh", &["zsh", "-n"]),
        ("fish", &["fish", "--no-execute"]),
        (
            "powershell",
            &["pwsh", "-NoProfile", "-Command", "[scriptblock]::Create([Console]::In.ReadToEnd()) | Out-Null"],
        ),
    ];
    for (name, command) in read_only {
        let script = answer(&["completion", name]);
        for subcommand in subcommands() {
            assert!(script.contains(&subcommand), "{name} does not know {subcommand}");
        }
        if let Some(output) = shell(command, &script) {
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{name}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
fn bash_completes_commands_and_flags() {
    let script = answer(&["completion", "bash"]);
    for (typed, completed) in [("expl", "explain"), ("diagnose --term", "--terminate-threshold")] {
        let words: Vec<_> = typed.split(' ').collect();
        let press_tab = format!(
            "COMP_WORDS=(nodewhy {typed}); COMP_CWORD={}; _nodewhy nodewhy {} nodewhy; echo \"${{COMPREPLY[@]}}\"\n",
            words.len(),
            words[words.len() - 1]
        );
        let output = shell(&["bash", "--norc"], &format!("{script}\n{press_tab}")).expect("bash is installed");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            completed,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn the_man_page_names_every_command_and_each_has_its_own() {
    let page = answer(&["man"]);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("man1");
    answer(&["man", "--out", out.to_str().expect("a path")]);
    assert!(page.contains(".SH NAME\n"), "{page}");
    let mut expected = BTreeSet::from(["nodewhy.1".to_owned()]);
    // Every dash of a name is escaped, lest man breaks the line there.
    let roff = |name: &str| name.replace('-', "\\-");
    let cli = Cli::command();
    for command in cli.get_subcommands() {
        let name = format!("nodewhy-{}", command.get_name());
        assert!(page.contains(&format!("{}(1)", roff(&name))), "{name}");
        let own = fs::read_to_string(out.join(format!("{name}.1"))).expect("a page");
        for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
            assert!(own.contains(&roff(&format!("--{flag}"))), "{name} --{flag}");
        }
        expected.insert(format!("{name}.1"));
    }
    let written =
        fs::read_dir(&out).expect("pages").map(|page| page.expect("a page").file_name().into_string().expect("a name"));
    assert_eq!(written.collect::<BTreeSet<_>>(), expected);
}

#[test]
fn the_version_is_there_for_people_and_for_programs() {
    let json: Value = serde_json::from_str(&answer(&["version", "--output", "json"])).expect("JSON");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["api"], "nodewhy.dev/v1alpha1");
    let text = answer(&["version"]);
    for (key, value) in json.as_object().expect("fields") {
        assert!(
            text.lines().any(|line| line.starts_with(key) && line.ends_with(value.as_str().expect("text"))),
            "{key}: {text}"
        );
    }
    assert!(json["target"].as_str().is_some_and(|target| target.starts_with(std::env::consts::ARCH)), "{json}");
}

#[test]
fn what_cannot_be_written_is_an_error() {
    for command in [&["completion", "bash"][..], &["man"], &["version"], &["version", "-o", "json"]] {
        let full = File::options().write(true).open("/dev/full").expect("the device");
        let output = Command::new(env!("CARGO_BIN_EXE_nodewhy")).args(command).stdout(full).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left on device"), "{command:?}");
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    let refused = nodewhy(&["man", "--out", file.path().to_str().expect("a path")]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the pages cannot be written"));
}

/// Of k9s v0.50.18: internal/config/plugin.go has the fields, internal/config/json/schemas/plugins.json those that must
/// be there, and internal/view/exec.go skips a pipe of one word.
#[test]
fn k9s_takes_the_plugins_and_nodewhy_their_commands() {
    const FIELDS: [&str; 12] = [
        "scopes",
        "args",
        "shortCut",
        "override",
        "pipes",
        "description",
        "command",
        "confirm",
        "background",
        "dangerous",
        "overwriteOutput",
        "inputs",
    ];
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("integrations/k9s/plugins.yaml");
    let yaml: Value = serde_saphyr::from_str(&fs::read_to_string(file).expect("the plugins")).expect("YAML");
    assert_eq!(yaml.as_object().expect("a map").keys().collect::<Vec<_>>(), ["plugins"]);
    let plugins = yaml["plugins"].as_object().expect("plugins");
    assert!(!plugins.is_empty());
    let mut keys = BTreeSet::new();
    for (name, plugin) in plugins {
        let plugin = plugin.as_object().expect("fields");
        let unknown: Vec<_> = plugin.keys().filter(|field| !FIELDS.contains(&field.as_str())).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        for required in ["shortCut", "description", "scopes", "command"] {
            assert!(plugin.contains_key(required), "{name} lacks {required}");
        }
        for scope in plugin["scopes"].as_array().expect("scopes") {
            assert!(
                keys.insert((plugin["shortCut"].clone().to_string(), scope.to_string())),
                "{name}: the key is taken in {scope}"
            );
        }
        for pipe in plugin["pipes"].as_array().expect("pipes") {
            assert!(pipe.as_str().is_some_and(|pipe| pipe.contains(' ')), "{name}: k9s skips {pipe}");
        }
        assert_eq!(plugin["command"], "nodewhy");
        let arguments =
            plugin["args"].as_array().expect("arguments").iter().map(|argument| argument.as_str().expect("text"));
        let line: Vec<_> = ["nodewhy"].into_iter().chain(arguments).collect();
        if let Err(error) = Cli::try_parse_from(&line) {
            panic!("{name}: {error}");
        }
    }
}

/// The fields of a TypeScript interface that are not those of the schema, or not as optional.
fn differences(interface: &str, schema: &Value) -> Vec<String> {
    let (mut levels, mut key, mut wrong) = (vec![schema], "", Vec::new());
    let is_separator = |c: char| "{};:".contains(c);
    for token in interface.split_inclusive(is_separator) {
        let word = token.trim_end_matches(is_separator).trim();
        match token.chars().last() {
            Some(':') => {
                key = word.trim_end_matches('?');
                let level = levels.last().expect("a level");
                let is_required =
                    level["required"].as_array().is_some_and(|required| required.iter().any(|name| name == key));
                if level["properties"][key].is_null() || is_required == word.ends_with('?') {
                    wrong.push(key.to_owned());
                }
            }
            Some('{') => {
                let inner = &levels.last().expect("a level")["properties"][key];
                levels.push(if inner["items"].is_null() { inner } else { &inner["items"] });
            }
            Some('}') => drop(levels.pop()),
            _ => {}
        }
    }
    wrong
}

#[test]
fn the_plugin_of_headlamp_reads_fields_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).expect("a file");
    let crd: Value = serde_saphyr::from_str(&read("crds/nodewhy.dev_nodediagnoses.yaml")).expect("YAML");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let status = &schema["properties"]["status"];
    let step = &status["properties"]["fix"]["properties"]["steps"]["items"];
    let source = read("integrations/headlamp/src/NodeDiagnosis.ts");
    for (interface, schema) in
        [("Fields", schema), ("Status", status), ("Blame", &status["properties"]["blame"]), ("Step", step)]
    {
        let (_, body) = source.split_once(&format!("export interface {interface} ")).expect(interface);
        let (body, _) = body.split_once("\n}\n").expect("its end");
        let (_, fields) = body.split_once("{\n").expect("its fields");
        assert!(fields.contains(": "), "{interface}");
        assert_eq!(differences(fields, schema), Vec::<String>::new(), "{interface}");
    }
    assert_eq!(differences("cause?: string;\nblame?: { name: string; row?: number }[];", status), ["cause", "row"]);
}
