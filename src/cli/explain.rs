//! `nodewhy explain`: the page of a cause or of another finding of lint, or the list of causes.

use super::{BAD_INPUT, answer, fail};
use clap::Args;
use engine::lint;
use engine::rules::{self, Rule};
use engine::suspects;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub struct Explain {
    /// The name of a cause, for example NodeRoleNotMapped, or of a lint finding, for example OptionWithEquals
    cause: Option<String>,
}

pub fn run(args: &Explain) -> ExitCode {
    let Some(cause) = args.cause.as_deref() else {
        let width = causes().map(|(cause, _)| cause.len()).max().unwrap_or(0);
        let lines: Vec<String> = causes().map(|(cause, summary)| format!("{cause:width$}  {summary}")).collect();
        return answer(&(lines.join("\n") + "\n"));
    };
    if cause.eq_ignore_ascii_case(rules::unknown::CAUSE) {
        return answer(rules::unknown::PAGE);
    }
    match (rules::by_cause(cause), suspects::page(cause), lint::page::page(cause)) {
        (Some(rule), ..) => answer(&page(rule)),
        (None, Some(page), _) => answer(page.text),
        (None, None, Some(section)) => answer(section),
        (None, None, None) => fail(&unknown(cause), BAD_INPUT),
    }
}

/// Those with a rule, then those that are never more than suspects.
fn causes() -> impl Iterator<Item = (&'static str, &'static str)> {
    let suspects = suspects::PAGES.iter().map(|page| (page.cause, page.summary));
    rules::ALL.iter().map(|rule| (rule.cause, rule.summary)).chain(suspects)
}

fn page(rule: &Rule) -> String {
    format!("Versions: {}\n\n{}", rule.versions, rule.page)
}

/// How alike two names must be for one to be meant by the other, of 1.
const ALIKE: f64 = 0.75;

fn unknown(cause: &str) -> String {
    let likeness = |name: &str| strsim::jaro_winkler(&name.to_lowercase(), &cause.to_lowercase());
    let names = causes().map(|(name, _)| name).chain(lint::page::names());
    let mut near: Vec<(f64, &str)> =
        names.map(|name| (likeness(name), name)).filter(|(alike, _)| *alike >= ALIKE).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<&str> = near.into_iter().map(|(_, cause)| cause).take(3).collect();
    let meant = if near.is_empty() { String::new() } else { format!("; did you mean {}", near.join(" or ")) };
    format!("no cause is called {cause}{meant}; nodewhy explain lists them all")
}

#[cfg(test)]
mod tests {
    use super::{page, unknown};
    use engine::{rules, suspects};

    #[test]
    fn every_page_begins_with_the_versions_in_one_line() {
        for rule in rules::ALL {
            let page = page(rule);
            let (versions, rest) = page.split_once("\n\n").expect("a header");
            assert!(rest.starts_with(&format!("# {}\n", rule.cause)), "{versions}");
            let said = versions.strip_prefix("Versions: ").expect("the versions");
            assert!(
                !said.trim().is_empty()
                    && !said.ends_with('.')
                    && !said.contains('\n')
                    && versions.chars().count() < 140,
                "{versions}"
            );
        }
    }

    #[test]
    fn every_page_has_a_fix_and_no_test_data() {
        let of_suspects = suspects::PAGES.iter().map(|page| (page.cause, page.text.to_owned()));
        for (cause, page) in rules::ALL.iter().map(|rule| (rule.cause, page(rule))).chain(of_suspects) {
            assert!(page.contains("\n## Fix\n"), "{cause}");
            assert!(!page.contains("```yaml expect") && !page.contains("Near miss"), "{cause}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_understood() {
        assert!(unknown("KubeletRefuseLabel").contains("did you mean KubeletRefusesLabels"));
        assert!(unknown("noderolenotmaped").contains("did you mean NodeRoleNotMapped"));
        assert_eq!(unknown("qqq"), "no cause is called qqq; nodewhy explain lists them all");
    }
}
