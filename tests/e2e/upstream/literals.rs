//! The string literals of Rust source, and what is done with them. Tests, comments and attributes are left out.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A string literal.
#[derive(Debug)]
pub struct Literal {
    pub text: String,
    /// It is compared with a part of a text: `message.contains("…")`.
    pub compared: bool,
}

/// Methods whose argument is looked for in a text of somebody else.
const COMPARING: [&str; 6] = ["contains", "starts_with", "ends_with", "strip_prefix", "strip_suffix", "split_once"];

/// Those of a source file.
pub fn of(source: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    read(source.parse().expect("the source compiles"), false, &mut found);
    found
}

fn read(tokens: TokenStream, compared: bool, found: &mut Vec<Literal>) {
    let mut tokens = tokens.into_iter().peekable();
    let (mut word, mut of_tests) = (String::new(), false);
    while let Some(token) = tokens.next() {
        match token {
            // An attribute: `#[cfg(test)]` speaks of the item that follows, up to its braces or its semicolon.
            TokenTree::Punct(p) if p.as_char() == '#' => {
                tokens.next_if(|next| matches!(next, TokenTree::Punct(p) if p.as_char() == '!'));
                let attribute = tokens.next_if(|next| matches!(next, TokenTree::Group(_)));
                of_tests |= attribute.is_some_and(|a| a.to_string().replace(' ', "") == "[cfg(test)]");
            }
            TokenTree::Group(group) if of_tests && group.delimiter() == Delimiter::Brace => of_tests = false,
            TokenTree::Punct(p) if of_tests && p.as_char() == ';' => of_tests = false,
            TokenTree::Group(group) if !of_tests => read(group.stream(), is_comparison(&word, &group), found),
            TokenTree::Literal(literal) if !of_tests => {
                if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                    found.push(Literal { text: text.value(), compared });
                }
            }
            TokenTree::Ident(ident) => {
                word = ident.to_string();
                continue;
            }
            _ => {}
        }
        word.clear();
    }
}

fn is_comparison(word: &str, group: &Group) -> bool {
    group.delimiter() == Delimiter::Parenthesis && COMPARING.contains(&word)
}
