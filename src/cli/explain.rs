//! `nodewhy explain`: the page of a cause, or the list of causes.

use super::{BAD_INPUT, answer, complain};
use clap::Args;
use engine::rules;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub struct Explain {
    /// The cause, for example NodeRoleNotMapped
    cause: Option<String>,
}

pub fn run(args: &Explain) -> ExitCode {
    let Some(cause) = args.cause.as_deref() else {
        let width = rules::ALL.iter().map(|r| r.cause.len()).max().unwrap_or(0);
        let lines: Vec<String> = rules::ALL.iter().map(|r| format!("{:width$}  {}", r.cause, r.summary)).collect();
        return answer(&(lines.join("\n") + "\n"));
    };
    let page =
        if cause.eq_ignore_ascii_case(rules::unknown::CAUSE) { Some(rules::unknown::PAGE) } else { rules::by_cause(cause).map(|r| r.page) };
    let Some(page) = page else {
        complain(&format!("no cause is called {cause}; nodewhy explain lists them"));
        return ExitCode::from(BAD_INPUT);
    };
    answer(page)
}
