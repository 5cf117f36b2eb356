//! Explanations and fixes of lint's own findings: the sections of `docs/lint-findings.md`.

const PAGES: &str = include_str!("../../../../docs/lint-findings.md");

/// The section about a finding that is no cause, from its heading on.
pub fn page(name: &str) -> Option<&'static str> {
    names().find(|own| own.eq_ignore_ascii_case(name)).and_then(|own| {
        let at = PAGES.find(&format!("\n## {own}\n"))? + 1;
        let section = PAGES.get(at..)?;
        let end = ["\n## ", "\n# "].into_iter().filter_map(|heading| section.find(heading)).min();
        section.get(..end.unwrap_or(section.len()))
    })
}

/// The names of all such findings.
pub fn names() -> impl Iterator<Item = &'static str> {
    PAGES.lines().filter_map(|line| line.strip_prefix("## "))
}

/// The address of the section.
pub fn documentation(name: &str) -> String {
    format!("https://github.com/nodewhy/nodewhy/blob/main/docs/lint-findings.md#{}", name.to_ascii_lowercase())
}

/// The fix in its section, as one line.
pub fn fix(name: &str) -> Option<String> {
    let (_, fix) = page(name)?.split_once("\nFix: ")?;
    Some(fix.split_whitespace().collect::<Vec<_>>().join(" "))
}
