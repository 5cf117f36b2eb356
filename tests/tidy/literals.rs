//! The string literals of Rust source, where they stand, and what is done with them. Tests, comments and attributes are
//! left out.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::mem;

/// A string literal.
#[derive(Debug)]
pub struct Literal {
    pub text: String,
    /// It is compared with a part of a text: `message.contains("…")`.
    pub compared: bool,
    /// The constant that it is a part of, such as `NOT_HERE`. Empty if it is in none.
    pub constant: String,
    /// Where it begins.
    pub line: usize,
}

/// Methods whose argument is looked for in a text of somebody else.
const COMPARING: [&str; 6] = ["contains", "starts_with", "ends_with", "strip_prefix", "strip_suffix", "split_once"];

/// Those of a source file.
pub fn of(source: &str) -> Vec<Literal> {
    let mut reader = Reader { source, at: 0, line: 1, found: Vec::new() };
    reader.read(source.parse().expect("the source compiles"), false, "");
    reader.found
}

struct Reader<'s> {
    source: &'s str,
    /// The end of the last literal, and its line.
    at: usize,
    line: usize,
    found: Vec<Literal>,
}

impl Reader<'_> {
    fn read(&mut self, tokens: TokenStream, compared: bool, outer: &str) {
        let mut tokens = tokens.into_iter().peekable();
        let (mut word, mut of_tests, mut constant) = (String::new(), false, outer.to_owned());
        while let Some(token) = tokens.next() {
            match token {
                // An attribute: `#[cfg(test)]` speaks of the item that follows, up to its braces or its semicolon.
                TokenTree::Punct(p) if p.as_char() == '#' => {
                    tokens.next_if(|next| matches!(next, TokenTree::Punct(p) if p.as_char() == '!'));
                    let attribute = tokens.next_if(|next| matches!(next, TokenTree::Group(_)));
                    of_tests |= attribute.is_some_and(|a| a.to_string().replace(' ', "") == "[cfg(test)]");
                }
                TokenTree::Punct(p) if p.as_char() == ';' => {
                    of_tests = false;
                    outer.clone_into(&mut constant);
                }
                TokenTree::Group(group) if of_tests && group.delimiter() == Delimiter::Brace => of_tests = false,
                TokenTree::Group(group) if !of_tests => {
                    self.read(group.stream(), is_comparison(&word, &group), &constant);
                }
                TokenTree::Literal(literal) if !of_tests => {
                    let written = literal.to_string();
                    if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                        let line = self.line_of(&written);
                        self.found.push(Literal { text: text.value(), compared, constant: constant.clone(), line });
                    }
                }
                TokenTree::Ident(ident) => {
                    let before = mem::replace(&mut word, ident.to_string());
                    if before == "const" && word != "fn" {
                        constant.clone_from(&word);
                    }
                    continue;
                }
                _ => {}
            }
            word.clear();
        }
    }

    /// The line of the next literal that is written so. A token does not know where it stood: proc-macro2 tells that
    /// only with a feature that slows it down. What is skipped may hold the same literal, so this may be too early.
    fn line_of(&mut self, written: &str) -> usize {
        let is_code = |at: &usize| {
            let before = &self.source[..*at];
            !before[before.rfind('\n').map_or(0, |end| end + 1)..].trim_start().starts_with("//")
        };
        let mut places = self.source[self.at..].match_indices(written).map(|(at, _)| self.at + at);
        let Some(at) = places.find(is_code) else { return self.line };
        let line = self.line + self.source[self.at..at].matches('\n').count();
        self.line = line + written.matches('\n').count();
        self.at = at + written.len();
        line
    }
}

fn is_comparison(word: &str, group: &Group) -> bool {
    group.delimiter() == Delimiter::Parenthesis && COMPARING.contains(&word)
}

#[test]
fn a_literal_knows_its_line_and_its_constant() {
    let source = "\
// No \"first\".
const NAMES: &[&str] = &[
    \"first\", r#\"a \"raw\" one\"#,
    \"goes on \\
     here\",
];
#[cfg(test)]
const TESTED: &str = \"in a test\";
const fn after(_: &str) -> &str {
    \"last\"
}
";
    let found: Vec<_> = of(source).into_iter().map(|found| (found.text, found.constant, found.line)).collect();
    let wanted = [("first", "NAMES", 3), ("a \"raw\" one", "NAMES", 3), ("goes on here", "NAMES", 4), ("last", "", 10)];
    assert_eq!(found, wanted.map(|(text, constant, line)| (text.to_owned(), constant.to_owned(), line)));
}
