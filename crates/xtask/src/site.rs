//! `cargo xtask site`: what mdbook makes the site of (book.toml). The documents stay where they are in the tree and
//! read well there; on the site a link to anything that is no page of it leads to the repository.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The pages in their order. Where a folder's README.md is one, the folder's other pages follow it.
const SUMMARY: &str = "docs/SUMMARY.md";
const REPOSITORY: &str = "https://github.com/nodewhy/nodewhy/blob/main";

/// Writes the pages, what they show and their order; gives the pages' paths in the repository.
pub fn write(root: &Path, to: &Path) -> Result<Vec<PathBuf>, String> {
    let summary = with_folders(root, &read(&root.join(SUMMARY))?)?;
    let folder = Path::new(SUMMARY).parent().unwrap_or(Path::new(""));
    let mut pages = Vec::new();
    replace_links(&summary, |link| {
        pages.push(tidy(&folder.join(link)));
        Ok(link.to_owned())
    })?;
    let site = Site { root, pages: pages.iter().cloned().collect() };
    let mut shown = BTreeSet::new();
    for page in &pages {
        let text = replace_links(&read(&root.join(page))?, |link| site.link(page, link, &mut shown))?;
        // Written as HTML, to be light or dark as the reader is.
        for attribute in ["src=\"", "srcset=\""] {
            for picture in text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()) {
                site.link(page, picture, &mut shown)?;
            }
        }
        save(&to.join(on_the_site(page)), text.as_bytes())?;
    }
    for picture in shown {
        save(&to.join(&picture), &fs::read(root.join(&picture)).map_err(|error| said(&picture, &error))?)?;
    }
    let summary = replace_links(&summary, |link| Ok(text_of(&on_the_site(&tidy(&folder.join(link))))))?;
    save(&to.join("SUMMARY.md"), summary.as_bytes())?;
    Ok(pages)
}

struct Site<'r> {
    root: &'r Path,
    pages: BTreeSet<PathBuf>,
}

impl Site<'_> {
    /// What a link of a page is on the site.
    fn link(&self, page: &Path, link: &str, shown: &mut BTreeSet<PathBuf>) -> Result<String, String> {
        let (path, anchor) = link.find('#').map_or((link, ""), |at| link.split_at(at));
        if path.is_empty() || path.contains("://") {
            return Ok(link.to_owned());
        }
        let target = tidy(&page.parent().unwrap_or(Path::new("")).join(path));
        if !self.root.join(&target).exists() {
            return Err(format!("{}: {link} leads nowhere", page.display()));
        }
        Ok(if self.pages.contains(&target) {
            format!("{}{anchor}", text_of(&on_the_site(Path::new(path))))
        } else if is_picture(&target) {
            shown.insert(target);
            link.to_owned()
        } else {
            format!("{REPOSITORY}/{}{anchor}", text_of(&target))
        })
    }
}

/// mdbook makes index.html of README.md; so that links need not know that, it is index.md before.
/// Source: mdbook-driver v0.5.4 src/builtin_preprocessors/index.rs.
fn on_the_site(page: &Path) -> PathBuf {
    if page.file_name().is_some_and(|name| name == "README.md") { page.with_file_name("index.md") } else { page.into() }
}

/// The summary with the pages of each folder under its README.md, by their headings.
fn with_folders(root: &Path, summary: &str) -> Result<String, String> {
    let mut whole = String::new();
    for line in summary.lines() {
        whole.push_str(line);
        whole.push('\n');
        let folder = line.split_once("](").and_then(|(_, rest)| rest.strip_suffix("/README.md)"));
        // Above docs each page is named.
        let Some(folder) = folder.filter(|folder| !folder.starts_with("..")) else { continue };
        let indent = line.len() - line.trim_start().len() + 2;
        for page in markdown_in(&root.join("docs").join(folder))? {
            let name = page.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let title = read(&page)?.lines().find_map(|line| line.strip_prefix("# ").map(str::to_owned));
            let title = title.ok_or_else(|| format!("{} has no heading", page.display()))?;
            if name != "README.md" {
                let _ = writeln!(whole, "{:indent$}- [{title}]({folder}/{name})", "");
            }
        }
    }
    Ok(whole)
}

fn markdown_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| said(folder, &error))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut pages: Vec<_> = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    Ok(pages)
}

/// The text with other targets of its links; blocks of code stay.
fn replace_links(text: &str, mut new: impl FnMut(&str) -> Result<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        let mut rest = line;
        while let Some((before, (link, after))) =
            rest.split_once("](").filter(|_| !is_code).and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
        {
            let _ = write!(out, "{before}]({})", new(link)?);
            rest = after;
        }
        out.push_str(rest);
    }
    Ok(out)
}

fn is_picture(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "png" || extension == "svg")
}

/// Without `.` and `..`.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(tidied.pop()),
            Component::CurDir => {}
            other => tidied.push(other),
        }
    }
    tidied
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| said(path, &error))
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| said(folder, &error))?;
    }
    fs::write(path, bytes).map_err(|error| said(path, &error))
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
