//! `cargo xtask new-cause`: the page, the examples and the rule of a cause, to be filled in, and the lines that make it
//! one.
//!
//! The skeletons in `skeleton/` lie to each other as page and rule lie in `crates/engine`, so the rule compiles where
//! it is, and `tests/tidy/new_cause.rs` asks it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../skeleton/pages/NewCause.md");
const EXAMPLES: &str = include_str!("../skeleton/examples/NewCause.md");
const RULE: &str = include_str!("../skeleton/src/rules/category/new_cause.rs");

const PAGES: &str = "docs/causes";
const OF_CAUSES: &str = "tests/causes";
const RULES: &str = "crates/engine/src/rules";

/// A Kubernetes label holds the name. Source: kubernetes v1.36.3 staging/src/k8s.io/apimachinery
/// pkg/util/validation/validation.go `LabelValueMaxLength`.
const LONGEST: usize = 63;

/// What was written.
#[derive(Debug)]
pub struct NewCause {
    page: String,
    examples: String,
    rule: String,
    category: String,
}

impl fmt::Display for NewCause {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { page, examples, rule, category } = self;
        writeln!(
            f,
            "wrote   {page}\nwrote   {examples}\nwrote   {rule}\nchanged {RULES}/{category}.rs\nchanged {RULES}.rs"
        )?;
        writeln!(
            f,
            "\nThe rule stands last of its category in rules::ALL: move it up to where it is specific before general."
        )?;
        write!(
            f,
            "Fill in every TODO. `NODEWHY_UPDATE=1 cargo test --test it pages` says what is left, and lists the cause \
             in {PAGES}/README.md."
        )
    }
}

/// Writes a cause into the repository at `root`, or nothing.
pub fn write(root: &Path, name: &str, category: &str) -> Result<NewCause, String> {
    let module = module_of(name)?;
    let list = read(&root.join(format!("{RULES}.rs")))?;
    let categories = categories(&list);
    if !categories.contains(&category) {
        return Err(format!("{category:?} is no category; there are {}", categories.join(", ")));
    }
    if let Some(taken) = taken(root, name, &module)? {
        return Err(format!("{name} exists: {}", taken.strip_prefix(root).unwrap_or(&taken).display()));
    }
    let list = with_rule(&list, category, &module).ok_or_else(|| format!("{RULES}.rs lists no rule of {category}"))?;
    let modules = with_module(&read(&root.join(format!("{RULES}/{category}.rs")))?, &module);
    let fill_in = |skeleton: &str| skeleton.replace("NewCause", name);
    let cause = NewCause {
        page: format!("{PAGES}/{name}.md"),
        examples: format!("{OF_CAUSES}/{name}.md"),
        rule: format!("{RULES}/{category}/{module}.rs"),
        category: category.to_owned(),
    };
    let files = [
        (&cause.page, fill_in(PAGE)),
        (&cause.examples, fill_in(EXAMPLES)),
        (&cause.rule, fill_in(RULE)),
        (&format!("{RULES}/{category}.rs"), modules),
        (&format!("{RULES}.rs"), list),
    ];
    for (path, text) in files {
        fs::write(root.join(path), text).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(cause)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The module of a cause: `node_without_provider_id` of `NodeWithoutProviderID`. One word is refused: it may be a
/// keyword of Rust, and says too little.
fn module_of(name: &str) -> Result<String, String> {
    let camel_case =
        name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(|c| c.is_ascii_alphanumeric());
    if !camel_case || name.len() > LONGEST {
        return Err(format!("{name:?} is no name of a cause: CamelCase, letters and digits, at most {LONGEST}"));
    }
    let mut module = String::new();
    let mut before = None;
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        let ends_capitals = letters.peek().is_some_and(char::is_ascii_lowercase);
        if letter.is_ascii_uppercase() && before.is_some_and(|b: char| !b.is_ascii_uppercase() || ends_capitals) {
            module.push('_');
        }
        module.push(letter.to_ascii_lowercase());
        before = Some(letter);
    }
    if module.contains('_') {
        Ok(module)
    } else {
        Err(format!("{name:?} is one word: say what is wrong with what, as KubeletStopped does"))
    }
}

/// The categories of a list of rules, in order.
fn categories(list: &str) -> Vec<&str> {
    let mut categories: Vec<&str> = list.lines().filter_map(category_of).collect();
    categories.sort_unstable();
    categories.dedup();
    categories
}

/// The category that a line of [`ALL`](../../engine/src/rules.rs) names.
fn category_of(line: &str) -> Option<&str> {
    let (category, rule) = line.trim().strip_prefix('&')?.split_once("::")?;
    rule.ends_with("::RULE,").then_some(category)
}

/// A page or a rule of this name, in any category; causes are told apart without regard to case.
fn taken(root: &Path, name: &str, module: &str) -> Result<Option<PathBuf>, String> {
    let mut folders = vec![root.join(PAGES), root.join(RULES)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let stem = path.file_stem().unwrap_or_default();
            if stem.eq_ignore_ascii_case(name) || stem == module {
                return Ok(Some(path));
            }
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(None)
}

/// The list with one rule more, after the last one of its category.
fn with_rule(list: &str, category: &str, module: &str) -> Option<String> {
    let mut lines: Vec<&str> = list.split('\n').collect();
    let last = lines.iter().rposition(|line| category_of(line) == Some(category))?;
    let line = format!("    &{category}::{module}::RULE,");
    lines.insert(last + 1, &line);
    Some(lines.join("\n"))
}

/// The category's file with one module more, in the order that rustfmt wants.
fn with_module(text: &str, module: &str) -> String {
    let line = format!("pub mod {module};");
    let mut lines: Vec<&str> = text.split('\n').collect();
    let is_module = |line: &&str| line.starts_with("pub mod ");
    let after = lines.iter().rposition(|other| is_module(other) && *other < line.as_str());
    let at = after.map_or_else(|| lines.iter().position(is_module).unwrap_or(lines.len()), |after| after + 1);
    lines.insert(at, &line);
    lines.join("\n")
}
