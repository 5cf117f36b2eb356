//! A PowerShell script as words, values and signs. Nothing else here reads PowerShell.
//!
//! It is linear in the text. Each step moves ahead, and looks only at what it then leaves behind. There are two
//! exceptions: a search that finds nothing is the last one, and the blanks behind `@'` are looked at once more.

use crate::source_text::Span;

/// A place that PowerShell refuses, and why.
pub type Refused = (Span, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A bare word, or a part of one before or behind a quote.
    Word,
    /// A string or a variable.
    Value,
    /// `{` or `(`, with the `@` or `$` before it.
    Open(char),
    Close(char),
    /// `|` or `&`.
    Pipe,
    /// `;`
    End,
    /// A line end that no backquote takes away.
    LineEnd,
    /// `,` or the `@` of `@parameters`.
    Sign,
}

#[derive(Debug, Clone, Copy)]
pub struct Token {
    pub kind: Kind,
    pub span: Span,
}

/// How deep strings are followed into `$(…)` inside of each other.
const DEEPEST: usize = 8;

/// The tokens of a script, up to the first quote that is never closed.
pub fn read(script: &str) -> (Vec<Token>, Option<Refused>) {
    let mut reader = Reader { script, at: 0, tokens: Vec::new() };
    let refused = reader.script().err();
    (reader.tokens, refused)
}

struct Reader<'a> {
    script: &'a str,
    at: usize,
    tokens: Vec<Token>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.script.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Steps behind the next `end`, or to the end of the script.
    fn skip_behind(&mut self, end: &str) {
        self.at += self.rest().find(end).map_or(self.rest().len(), |at| at + end.len());
    }

    /// Steps to the end of the line.
    fn skip_line(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    fn script(&mut self) -> Result<(), Refused> {
        while let Some(c) = self.peek() {
            let start = self.at;
            match c {
                '\n' => self.sign(Kind::LineEnd, 1),
                c if c.is_whitespace() => self.at += c.len_utf8(),
                '`' if self.rest().starts_with("`\n") || self.rest().starts_with("`\r") => self.escape(),
                '#' => self.skip_line(),
                '<' if self.rest().starts_with("<#") => self.skip_behind("#>"),
                ';' => self.sign(Kind::End, 1),
                '{' | '(' => self.sign(Kind::Open(c), 1),
                '}' | ')' => self.sign(Kind::Close(c), 1),
                '|' | '&' => self.sign(Kind::Pipe, 1),
                ',' => self.sign(Kind::Sign, 1),
                '@' => self.at_sign()?,
                '$' => self.variable(),
                c if is_quote(c) => {
                    self.at += c.len_utf8();
                    self.string(c, start, DEEPEST)?;
                    self.token(Kind::Value, start);
                }
                _ => self.word(),
            }
        }
        Ok(())
    }

    /// Ends the token that began at `start`.
    fn token(&mut self, kind: Kind, start: usize) {
        self.tokens.push(Token { kind, span: Span::new(start, self.at) });
    }

    /// A token of so many bytes.
    fn sign(&mut self, kind: Kind, length: usize) {
        let start = self.at;
        self.at += length;
        self.token(kind, start);
    }

    /// A backquote takes the meaning from the next character; from a line end, too.
    fn escape(&mut self) {
        self.at += 1;
        if self.bump() == Some('\r') && self.peek() == Some('\n') {
            self.at += 1;
        }
    }

    /// `@(`, `@{`, a here-string, or the parameters `@name`.
    fn at_sign(&mut self) -> Result<(), Refused> {
        let start = self.at;
        let rest = self.rest();
        let quote = match rest.chars().nth(1) {
            Some(bracket @ ('{' | '(')) => {
                self.sign(Kind::Open(bracket), 2);
                return Ok(());
            }
            Some(quote @ ('\'' | '"')) => quote,
            _ => {
                self.sign(Kind::Sign, 1);
                return Ok(());
            }
        };
        let behind = rest.get(2..).unwrap_or_default();
        let body = behind.trim_start_matches(|c: char| c != '\n' && c.is_whitespace());
        if !body.is_empty() && !body.starts_with('\n') {
            self.sign(Kind::Sign, 1);
            return Ok(());
        }
        let end = format!("\n{quote}@");
        let Some(at) = body.find(&end) else {
            let why = format!("this here-string is never closed: no line begins with {quote}@");
            return Err((Span::new(start, start + 2), why));
        };
        self.sign(Kind::Value, rest.len() - body.len() + at + end.len());
        Ok(())
    }

    fn variable(&mut self) {
        let start = self.at;
        let rest = self.rest();
        if rest.starts_with("$(") {
            return self.sign(Kind::Open('('), 2);
        }
        if rest.starts_with("${") {
            self.skip_behind("}");
        } else {
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '?' | '^' | '$');
            self.at += rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        }
        self.token(Kind::Value, start);
    }

    /// The rest of a string that began at `start`.
    fn string(&mut self, quote: char, start: usize, depth: usize) -> Result<(), Refused> {
        let closes = if is_double(quote) { is_double } else { is_single };
        while let Some(c) = self.bump() {
            match c {
                '`' if is_double(quote) => drop(self.bump()),
                '$' if is_double(quote) && self.peek() == Some('(') => self.substitution(depth)?,
                // Twice it is a character of the string.
                c if closes(c) => match self.peek().filter(|next| closes(*next)) {
                    Some(next) => self.at += next.len_utf8(),
                    None => return Ok(()),
                },
                _ => {}
            }
        }
        Err((Span::new(start, start + quote.len_utf8()), "this quote is never closed".to_owned()))
    }

    /// The `(…)` of a `$(…)` inside of a string.
    fn substitution(&mut self, depth: usize) -> Result<(), Refused> {
        let mut open = 0_usize;
        while let Some(c) = self.peek() {
            let start = self.at;
            self.at += c.len_utf8();
            match c {
                '(' => open += 1,
                ')' if open <= 1 => return Ok(()),
                ')' => open -= 1,
                '`' => drop(self.bump()),
                c if is_quote(c) && depth > 0 => self.string(c, start, depth - 1)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn word(&mut self) {
        let start = self.at;
        let mut last = ' ';
        while let Some(c) = self.peek() {
            // `2>&1` is one word.
            let ends = c.is_whitespace() || ";{}()|,".contains(c) || is_quote(c) || (c == '&' && last != '>');
            if ends {
                break;
            }
            last = c;
            if c == '`' {
                self.escape();
            } else {
                self.at += c.len_utf8();
            }
        }
        self.token(Kind::Word, start);
        if self.script.get(start..self.at) == Some("--%") {
            // Behind it the rest of the line is taken as it stands.
            self.skip_line();
        }
    }
}

const fn is_single(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}'..='\u{201b}')
}

const fn is_double(c: char) -> bool {
    matches!(c, '"' | '\u{201c}'..='\u{201e}')
}

/// PowerShell takes quotes of typography for its own.
pub const fn is_quote(c: char) -> bool {
    is_single(c) || is_double(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(script: &str) -> Vec<(Kind, &str)> {
        let (tokens, _) = read(script);
        tokens.into_iter().map(|token| (token.kind, token.span.of(script))).collect()
    }

    #[test]
    fn a_script_is_words_values_and_signs() {
        assert_eq!(
            kinds("& $f -A:\"b c\" @{ a = 1 } 2>&1 # d\n"),
            [
                (Kind::Pipe, "&"),
                (Kind::Value, "$f"),
                (Kind::Word, "-A:"),
                (Kind::Value, "\"b c\""),
                (Kind::Open('{'), "@{"),
                (Kind::Word, "a"),
                (Kind::Word, "="),
                (Kind::Word, "1"),
                (Kind::Close('}'), "}"),
                (Kind::Word, "2>&1"),
                (Kind::LineEnd, "\n"),
            ]
        );
        assert_eq!(
            kinds("@'\n'a\n'@,@p"),
            [(Kind::Value, "@'\n'a\n'@"), (Kind::Sign, ","), (Kind::Sign, "@"), (Kind::Word, "p"),]
        );
        assert_eq!(kinds("a `\r\n b`;c --% d | e"), [(Kind::Word, "a"), (Kind::Word, "b`;c"), (Kind::Word, "--%")]);
    }

    /// Each piece may begin something whose end is far behind. If a step looked at all the rest for each of them, this
    /// would not end for a long time.
    #[test]
    fn a_mebibyte_of_any_piece_is_read_to_its_end() {
        for piece in
            ["@'a'", "@\"x\" ", "@' '", "${a} ", "$(\"$(", "$(", "`\n", "<# #>", "--% \n", "((", "a`", "2>&", ","]
        {
            let script = piece.repeat((1 << 20) / piece.len());
            let (tokens, refused) = read(&script);
            assert!(tokens.iter().map(|token| token.span).is_sorted(), "{piece}");
            let end = refused.map_or(script.len(), |(span, _)| span.end);
            assert!(tokens.iter().all(|token| token.span.end <= end), "{piece}");
        }
    }
}
