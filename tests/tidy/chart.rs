//! What the chart says of itself is true: its README is made of its values, and it knows the flags of the program.
//! tests/e2e/cluster/packaging.rs renders it.

use clap::CommandFactory;
use nodewhy::cli::Cli;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn chart(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/nodewhy").join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(chart(file)).expect("a file of the chart")
}

fn values() -> Value {
    serde_saphyr::from_str(&read("values.yaml")).expect("YAML")
}

/// Each value with a comment that begins with two dashes, as helm-docs has it: its path and the comment.
fn described(yaml: &str) -> Vec<(String, String)> {
    let mut described = Vec::new();
    let mut path: Vec<(usize, &str)> = Vec::new();
    let mut comment = None;
    for line in yaml.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(said) = text.strip_prefix("# -- ") {
            comment = Some(said);
        } else if let Some((key, _)) = text.split_once(':').filter(|_| !text.starts_with('#')) {
            path.retain(|(at, _)| *at < indent);
            path.push((indent, key));
            let keys: Vec<_> = path.iter().map(|(_, key)| *key).collect();
            described.extend(comment.take().map(|said| (keys.join("."), said.to_owned())));
        }
    }
    described
}

fn default_of<'v>(values: &'v Value, path: &str) -> &'v Value {
    values.pointer(&format!("/{}", path.replace('.', "/"))).unwrap_or_else(|| panic!("{path} is no value"))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "int",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

#[test]
fn the_readme_has_the_table_of_the_values() {
    const HEADING: &str = "## Values\n";
    let values = values();
    let row = |(path, said): (String, String)| {
        let default = default_of(&values, &path);
        format!("| `{path}` | {} | `{default}` | {said} |\n", kind(default))
    };
    let rows: String = described(&read("values.yaml")).into_iter().map(row).collect();
    let readme = read("README.md");
    let (before, _) = readme.split_once(HEADING).expect("the heading of the table");
    let made = format!("{before}{HEADING}\n| key | type | default | description |\n| --- | --- | --- | --- |\n{rows}");
    if std::env::var_os("NODEWHY_UPDATE").is_some() {
        std::fs::write(chart("README.md"), &made).expect("written");
    }
    assert!(read("README.md") == made, "stale: run `NODEWHY_UPDATE=1 cargo xtask tidy chart`");
}

#[test]
fn every_value_is_described() {
    let described: BTreeSet<_> = described(&read("values.yaml")).into_iter().map(|(path, _)| path).collect();
    let mut bare = Vec::new();
    without_description(&values(), "", &described, &mut bare);
    assert_eq!(bare, [""; 0]);
}

fn without_description(values: &Value, path: &str, described: &BTreeSet<String>, bare: &mut Vec<String>) {
    for (key, value) in values.as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if described.contains(&path) {
            continue;
        }
        if value.as_object().is_some_and(|inner| !inner.is_empty()) {
            without_description(value, &path, described, bare);
        } else {
            bare.push(path);
        }
    }
}

#[test]
fn the_thresholds_are_those_of_the_program() {
    let cli = Cli::command();
    let run = cli.find_subcommand("run").expect("a command");
    let flags: BTreeSet<_> =
        run.get_arguments().filter_map(|flag| flag.get_long()?.strip_suffix("-threshold").map(str::to_owned)).collect();
    let schema: Value = serde_json::from_str(&read("values.schema.json")).expect("JSON");
    let names = schema.pointer("/properties/thresholds/propertyNames/enum").and_then(Value::as_array).expect("names");
    assert_eq!(names.iter().filter_map(Value::as_str).map(str::to_owned).collect::<BTreeSet<_>>(), flags);
    let described = described(&read("values.yaml"));
    let (_, said) = described.iter().find(|(path, _)| path == "thresholds").expect("described");
    for flag in flags {
        assert!(said.contains(&format!("`{flag}`")), "{flag}: {said}");
    }
}

/// Pages about the chart, as Artifact Hub makes them, follow these.
#[test]
fn what_the_chart_links_to_is_in_this_tree() {
    let chart: Value = serde_saphyr::from_str(&read("Chart.yaml")).expect("YAML");
    let icon = chart["icon"].as_str().expect("an icon");
    let links: Vec<Value> =
        serde_saphyr::from_str(chart["annotations"]["artifacthub.io/links"].as_str().expect("links")).expect("YAML");
    let links = links.iter().map(|link| link["url"].as_str().expect("an address"));
    let paths: Vec<_> = links
        .map(|url| url.strip_prefix("https://github.com/nodewhy/nodewhy/blob/main/").expect("a page of this tree"))
        .chain(icon.strip_prefix("https://raw.githubusercontent.com/nodewhy/nodewhy/main/"))
        .collect();
    assert!(paths.contains(&"docs/icon.svg"), "{icon}");
    for path in paths {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(path).is_file(), "{path}");
    }
    let images: Value =
        serde_saphyr::from_str(chart["annotations"]["artifacthub.io/images"].as_str().expect("images")).expect("YAML");
    let image = format!("{}:{}", values()["image"]["repository"].as_str().expect("a name"), env!("CARGO_PKG_VERSION"));
    assert_eq!(images[0]["image"], image);
}
