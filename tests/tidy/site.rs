//! The site: every document is a page of it, every link leads somewhere, and what it tells to type is understood.

use clap::CommandFactory;
use clap::error::{ContextKind, ErrorKind};
use nodewhy::cli::Cli;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn markdown_below(folder: &Path, into: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            markdown_below(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            into.insert(path);
        }
    }
}

/// The site's source, and its pages as they are called in the tree.
fn site() -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = xtask::site::write(root(), folder.path()).unwrap_or_else(|why| panic!("{why}"));
    (folder, pages)
}

#[test]
fn every_document_is_a_page() {
    let (_folder, pages) = site();
    let mut documents = BTreeSet::new();
    markdown_below(&root().join("docs"), &mut documents);
    let at_the_root = fs::read_dir(root()).expect("the root").map(|entry| entry.expect("an entry").path());
    documents.extend(at_the_root.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    documents.remove(&root().join("docs/SUMMARY.md"));
    let listed: BTreeSet<PathBuf> = pages.iter().map(|page| root().join(page)).collect();
    let unlisted: Vec<_> = documents.difference(&listed).collect();
    assert!(unlisted.is_empty(), "docs/SUMMARY.md does not lead to {unlisted:#?}");
    assert_eq!(listed.len(), pages.len(), "a page stands in docs/SUMMARY.md twice");
}

/// The anchors that mdbook makes of headings, which are GitHub's.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    headings.map(|text| text.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// The text without its blocks of code.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let is_prose = |line: &&str| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    };
    text.lines().filter(is_prose).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn every_link_on_the_site_leads_to_a_page_of_it_or_out_of_it() {
    let (folder, pages) = site();
    let mut made = BTreeSet::new();
    markdown_below(folder.path(), &mut made);
    let (mut broken, mut checked) = (Vec::new(), 0);
    for page in &made {
        let text = prose(&read(page));
        let pictures = ["src=\"", "srcset=\""].map(|attribute| text.split(attribute).skip(1));
        let pictures = pictures.into_iter().flatten().filter_map(|rest| rest.split('"').next());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).chain(pictures) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            if path.contains("://") {
                continue;
            }
            checked += 1;
            let target = if path.is_empty() { page.clone() } else { page.parent().expect("a folder").join(path) };
            if !target.is_file() || !anchor.is_empty() && !anchors(&read(&target)).contains(anchor) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    // The pages, and the summary.
    assert_eq!(made.len(), pages.len() + 1);
    assert!(checked > 500, "only {checked} links were seen");
}

#[test]
fn a_dead_link_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| fs::write(folder.path().join(path), text).expect("written");
    fs::create_dir(folder.path().join("docs")).expect("a folder");
    write("docs/SUMMARY.md", "- [One](one.md)\n");
    write("docs/one.md", "# One\n\n[two](two.md)\n");
    let made = xtask::site::write(folder.path(), &folder.path().join("site"));
    assert_eq!(made, Err("docs/one.md: two.md leads nowhere".to_owned()));
    write("docs/two.md", "# Two\n");
    xtask::site::write(folder.path(), &folder.path().join("site")).expect("it leads to a file");
    let page = read(&folder.path().join("site/docs/one.md"));
    assert!(page.contains("(https://github.com/nodewhy/nodewhy/blob/main/docs/two.md)"), "no page of the site: {page}");
}

/// What is told to be typed: what begins with `nodewhy` in blocks and spans of code, up to where the shell goes on; and
/// whether it stands in a block, as a whole command.
fn commands(text: &str) -> Vec<(String, bool)> {
    let mut found: Vec<(&str, bool)> = Vec::new();
    let mut is_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if is_block || line.starts_with("    ") {
            let typed = line.trim().trim_start_matches("$ ").trim_start_matches("- run: ");
            found.extend(typed.split(" | ").map(|command| (command, true)));
        } else {
            found.extend(
                line.split('`').skip(1).step_by(2).flat_map(|span| span.split(" | ")).map(|span| (span, false)),
            );
        }
    }
    let ends = [" > ", " < ", " || ", " && ", "; ", "  #", " &"];
    let alone =
        |command: &str| ends.iter().fold(command, |text, end| text.split(end).next().unwrap_or(text)).to_owned();
    let typed = found.into_iter().filter(|(command, _)| command.starts_with("nodewhy "));
    typed.map(|(command, is_whole)| (alone(command), is_whole)).collect()
}

/// A word that stands for what the reader has: `NAME`, `[NAME]`, `TIME`, `…`.
fn stands_for_something(word: &str) -> bool {
    word.trim_matches(['[', ']', '…']).chars().all(|c| c.is_ascii_uppercase() || "-_,".contains(c))
}

#[test]
fn what_the_site_tells_to_type_is_understood() {
    let (folder, _) = site();
    let mut made = BTreeSet::new();
    markdown_below(folder.path(), &mut made);
    let (mut wrong, mut checked) = (Vec::new(), 0);
    // What an older version understood stands in the changes.
    made.remove(&folder.path().join("CHANGELOG.md"));
    for page in &made {
        for (command, is_whole) in commands(&read(page)) {
            let words: Vec<&str> = command.split_whitespace().filter(|word| *word != "…").collect();
            checked += 1;
            let Err(error) = Cli::command().try_get_matches_from(&words) else { continue };
            let value = error.get(ContextKind::InvalidValue).map(ToString::to_string).unwrap_or_default();
            let excused = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
                // In a sentence it is the command's name.
                ErrorKind::MissingRequiredArgument => !is_whole,
                ErrorKind::InvalidValue | ErrorKind::ValueValidation => stands_for_something(&value),
                _ => false,
            };
            if !excused {
                wrong.push(format!(
                    "{}: {command}: {}",
                    page.display(),
                    error.to_string().lines().next().unwrap_or_default()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 100, "only {checked} commands were seen");
}

/// The modules of a tier of tests.
fn modules(tier: &str) -> BTreeSet<String> {
    let files =
        fs::read_dir(root().join("tests").join(tier)).expect("a tier").map(|entry| entry.expect("an entry").path());
    let rust = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).filter(|name| name != "main").collect()
}

/// The tests that a document names with a command exist.
#[test]
fn the_tests_that_the_site_names_exist() {
    let (folder, _) = site();
    let mut made = BTreeSet::new();
    markdown_below(folder.path(), &mut made);
    let [it, e2e, mut tidy] = ["it", "e2e", "tidy"].map(modules);
    tidy.insert("fixes".to_owned());
    let (mut missing, mut named) = (BTreeSet::new(), 0);
    for page in &made {
        let text = read(page);
        for (command, known) in [("--test it ", &it), ("cargo xtask e2e ", &e2e), ("cargo xtask tidy ", &tidy)] {
            for rest in text.split(command).skip(1) {
                let filter = rest.split([' ', '`', '\n', '\'']).next().unwrap_or_default();
                let module = filter.split("::").next().unwrap_or_default();
                if filter.is_empty() || filter.starts_with(|first: char| !first.is_ascii_lowercase()) {
                    continue;
                }
                named += 1;
                let of_cluster = root().join(format!("tests/e2e/cluster/{module}.rs")).is_file();
                let exists = known.contains(module) || command.contains("e2e") && of_cluster;
                if !exists {
                    missing.insert(format!("{command}{filter}"));
                }
            }
        }
    }
    assert!(missing.is_empty() && named > 12, "{missing:?} of {named}");
}

/// CONTRIBUTING says of each module what it proves.
#[test]
fn every_module_of_tests_is_explained() {
    let text = read(&root().join("CONTRIBUTING.md"));
    for (tier, heading) in [("it", "| `cargo test --test it …` |"), ("e2e", "| `cargo xtask e2e …` |")] {
        let table = text.split_once(heading).expect("the table").1.split("\n\n").next().unwrap_or_default();
        let rows = table.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split(" | ").next());
        let explained: BTreeSet<String> =
            rows.flat_map(|row| row.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
        assert_eq!(explained, modules(tier), "{tier}");
    }
}

/// Of what docs/troubleshooting.md explains, all is said.
#[test]
fn what_is_said_to_be_said_stands_in_the_source() {
    let mut sources = String::new();
    let mut folders = vec![root().join("src"), root().join("crates/engine/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { sources += &read(&path) }
        }
    }
    // Lines of Rust that go on in the next one.
    let sources: String = sources.split("\\\n").map(str::trim_start).collect();
    let page = read(&root().join("docs/troubleshooting.md"));
    let rows = page.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split(" | ").next());
    let said: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    let unsaid: Vec<_> = said.iter().filter(|text| !sources.contains(**text)).collect();
    assert!(unsaid.is_empty() && said.len() > 10, "{unsaid:#?}");
}
