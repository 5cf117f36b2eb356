//! What the documents say of this tree is true: links and paths lead somewhere, and the output they show is real.

use assert_cmd::Command;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use testkit::demo::{CAUSES, Demo};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn markdown_in(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    pages
}

/// Everything that is written for people, but for the pages of causes.
fn documents() -> Vec<PathBuf> {
    ["", "benchmark", "docs", "docs/adr", "charts/nodewhy", "integrations/headlamp"]
        .into_iter()
        .flat_map(markdown_in)
        .collect()
}

/// The text without its blocks of code.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let is_prose = |line: &&str| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence && !line.starts_with("    ")
    };
    text.lines().filter(is_prose).map(|line| line.to_owned() + "\n").collect()
}

/// The blocks of code that begin with this fence.
fn blocks<'t>(text: &'t str, fence: &str) -> Vec<&'t str> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("```") {
        let (info, after) = after.split_once('\n').expect("a block");
        let (block, after) = after.split_once("```").expect("an end of the block");
        if info == fence {
            blocks.push(block);
        }
        rest = after;
    }
    blocks
}

/// The anchors of a document, as GitHub makes them of headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    headings.map(|heading| heading.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn every_link_into_this_tree_leads_somewhere() {
    let mut broken = Vec::new();
    for page in documents() {
        let text = prose(&read(&page));
        let links = text.split("](").skip(1).filter_map(|after| after.split(')').next());
        for link in links {
            // A chart is read away from this tree, and so names its pages by their address.
            let (from, link) = match link.strip_prefix("https://github.com/nodewhy/nodewhy/blob/main/") {
                Some(path) => (root(), path),
                None if link.contains("://") => continue,
                None => (page.parent().expect("a folder"), link),
            };
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.clone() } else { from.join(path) };
            let found = target.exists() && (anchor.is_empty() || anchors(&read(&target)).contains(anchor));
            if !found {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Whether a span of code names a file or folder of this tree: it begins with one of the tree's folders, or says what
/// it is by its end.
fn names_a_path(span: &str, tree: &BTreeSet<String>) -> bool {
    let plain = !span.is_empty() && span.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let (first, more) = span.split_once('/').map_or((span, false), |(first, _)| (first, true));
    // The cause that CONTRIBUTING makes up.
    let made_up = span.contains("MyCause") || span.contains("my_cause");
    let ends = [".rs", ".md", ".toml", "/"].iter().any(|end| span.ends_with(end));
    plain && !made_up && !span.starts_with('/') && (ends || more && tree.contains(first))
}

/// A path is said from the root, from the document's folder, or from a folder that the document has named before.
#[test]
fn every_path_that_a_document_names_exists() {
    let entries = fs::read_dir(root())
        .expect("the root")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let tree: BTreeSet<String> = entries.filter(|name| !matches!(name.as_str(), "target" | ".git")).collect();
    let (mut missing, mut checked) = (Vec::new(), 0);
    for page in documents() {
        let mut from = vec![root().to_owned(), page.parent().expect("a folder").to_owned()];
        for span in prose(&read(&page)).split('`').skip(1).step_by(2).filter(|span| names_a_path(span, &tree)) {
            checked += 1;
            match from.iter().map(|folder| folder.join(span)).find(|path| path.exists()) {
                Some(path) if path.is_dir() => from.push(path),
                Some(_) => {}
                None => missing.push(format!("{}: {span}", page.display())),
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 100, "only {checked} paths were seen");
}

/// The names of all functions below a folder.
fn functions_in(folder: &Path, functions: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            functions_in(&path, functions);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = read(&path);
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
            functions.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
}

/// Whether a span of code names a test: a sentence in snake case, and no metric.
fn names_a_test(span: &str) -> bool {
    let plain = span.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    plain && span.matches('_').count() >= 3 && !span.starts_with("nodewhy_")
}

/// A promise is worth as much as the test that can disprove it.
#[test]
fn every_test_that_a_promise_names_exists() {
    let mut functions = BTreeSet::new();
    for folder in ["src", "crates", "tests/it", "tests/e2e"] {
        functions_in(&root().join(folder), &mut functions);
    }
    for page in ["SECURITY.md", "docs/faults.md", "docs/remediation.md", "docs/replicas.md"] {
        let text = prose(&read(&root().join(page)));
        let named: BTreeSet<&str> = text.split('`').skip(1).step_by(2).filter(|span| names_a_test(span)).collect();
        let missing: Vec<_> = named.iter().filter(|name| !functions.contains(**name)).collect();
        assert!(missing.is_empty(), "{page}: {missing:#?}");
        assert!(named.len() > 3, "only {} tests were seen in {page}", named.len());
    }
}

#[test]
fn no_page_of_a_cause_waits_to_be_filled_in() {
    let waiting = |page: &PathBuf| {
        let text = read(page);
        let lines: Vec<_> =
            text.lines().enumerate().filter(|(_, line)| line.contains("TODO")).map(|(n, _)| n + 1).collect();
        (!lines.is_empty()).then(|| format!("{}: lines {lines:?}", page.display()))
    };
    let waiting: Vec<_> = markdown_in("docs/causes").iter().filter_map(waiting).collect();
    assert!(waiting.is_empty(), "{waiting:#?}");
}

#[test]
fn every_decision_has_its_parts_and_its_line_in_the_list() {
    let list = read(&root().join("docs/adr/README.md"));
    let mut rows = list.lines().filter(|line| line.starts_with("| [0"));
    for (page, number) in markdown_in("docs/adr").iter().filter(|page| !page.ends_with("README.md")).zip(1..) {
        let (name, text) = (page.file_name().expect("a name").to_str().expect("UTF-8"), read(page));
        assert!(name.starts_with(&format!("{number:04}-")), "{name} should be number {number}");
        let headings: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
        assert_eq!(headings[1..], ["## Context", "## Choice", "## Consequence"], "{name}");
        let title = headings[0].trim_start_matches("# ");
        let date = text.lines().nth(2).expect("a date");
        assert_eq!(rows.next(), Some(format!("| [{number:04}]({name}) | {title} | {date} |").as_str()));
    }
    assert_eq!(rows.next(), None);
}

fn output(folder: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_nodewhy")).current_dir(folder).args(arguments).output().expect("it runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Where a line is `…`, some are left out.
#[test]
fn the_readme_shows_the_real_verdict() {
    const SHOWN: &str = "    cargo run -- ";
    let readme = read(&root().join("README.md"));
    let command = readme.lines().find_map(|line| line.strip_prefix(SHOWN)).expect("the command");
    let real = output(root(), &command.split(' ').collect::<Vec<_>>());
    let mut rest = real.as_str();
    let shown = blocks(&readme, "").into_iter().next().expect("its output");
    for (part, is_first) in shown.split("…\n").zip(std::iter::once(true).chain(std::iter::repeat(false))) {
        let at = rest.find(part).unwrap_or_else(|| panic!("README.md shows\n{part}\nand the output is\n{real}"));
        assert!(at == 0 || !is_first && rest[..at].ends_with('\n'), "README.md should show the beginning of\n{real}");
        rest = &rest[at + part.len()..];
    }
    assert!(shown.lines().count() > 10);
}

#[test]
fn the_page_of_lint_shows_real_output() {
    let page = read(&root().join("docs/lint.md"));
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("nodeclass.yaml"), blocks(&page, "yaml")[0]).expect("written");
    assert_eq!(blocks(&page, "")[0], output(folder.path(), &["lint", "-f", "nodeclass.yaml"]));
}

/// What a recording of asciinema shows; its times go forward.
fn shown(recording: &str) -> String {
    let mut lines = recording.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    assert_eq!(lines.next().expect("a header")["version"], 2);
    let events: Vec<_> = lines.collect();
    assert!(events.is_sorted_by_key(|event| event[0].as_f64().expect("a time").to_bits()), "time goes backward");
    events.iter().map(|event| event[2].as_str().expect("a text")).collect()
}

#[test]
fn the_recording_is_of_the_demo() {
    let shown = shown(&read(&root().join("docs/images/demo.cast")));
    let typed: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let commands = [&["cargo demo"], &Demo::commands()[..], &[""]].concat();
    assert_eq!(typed, commands, "`cargo demo record` makes it anew");
    for cause in CAUSES {
        assert!(shown.contains(cause), "no {cause}");
    }
    assert!(!shown.contains("/target/"), "it shows where it was made");
}
