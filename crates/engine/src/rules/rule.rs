//! What a cause consists of, and how its file declares it.

use crate::api::Stage;
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::objects::input::Input;

/// One root cause.
#[derive(Debug)]
pub struct Rule {
    /// Stable CamelCase identifier; also the name of the page.
    pub cause: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The stages at which it can explain a stuck node.
    pub stages: &'static [Stage],
    /// The inputs that it reads besides the node itself, directly or through shared code. `tests/it/reads.rs` checks
    /// them.
    pub reads: &'static [Input],
    /// Whether the text of the objects shows it, so that `lint` reports it. Other causes need a failed node as proof: a
    /// role that aws-auth does not name may have an access entry, and an image that no node has joined with may be a
    /// good one.
    pub lint: bool,
    /// The versions it is about, in words.
    pub versions: &'static str,
    /// The page. Its examples are in `tests/causes`.
    pub page: &'static str,
    /// `None` if the rule has nothing to say about a case.
    pub check: fn(&Case) -> Option<Opinion>,
}

/// Declares the [`Rule`] of a file: its page has the name of the cause, and its function is `check`. `lint: true` is
/// left out where it is false.
#[macro_export]
macro_rules! rule {
    (
        cause: $cause:ident,
        summary: $summary:literal,
        stages: [$($stage:ident),+ $(,)?],
        reads: [$($input:ident),* $(,)?],
        $(lint: $lint:literal,)?
        versions: $versions:literal,
    ) => {
        pub static RULE: $crate::rules::Rule = $crate::rules::Rule {
            cause: stringify!($cause),
            summary: $summary,
            stages: &[$($crate::api::Stage::$stage),+],
            reads: &[$($crate::objects::input::Input::$input),*],
            lint: false $(|| $lint)?,
            versions: $versions,
            page: include_str!(concat!("../../../pages/", stringify!($cause), ".md")),
            check,
        };
    };
}
