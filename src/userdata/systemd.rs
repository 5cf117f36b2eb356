//! What systemd does to the kubelet's arguments before the kubelet sees them: `Environment='…'`, an environment file, and the
//! splitting of `$KUBELET_EXTRA_ARGS`.

use super::traced::Traced;

/// The two systemd generations whose rules differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Amazon Linux 2.
    V219,
    /// Amazon Linux 2023.
    V252,
}

/// Why a line or a command line was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The assignment is dropped; the variable stays unset and the kubelet starts without it.
    Dropped,
    /// The command line cannot be built; the kubelet is not started.
    NotStarted,
}

/// The value of a variable and whether every byte of it is certain.
#[derive(Debug, PartialEq, Eq)]
pub struct Value {
    pub text: Traced,
    pub exact: bool,
}

/// What `Environment='NAME=<value>'` makes of `value`.
// 252: src/core/load-fragment.c config_parse_environ, src/basic/extract-word.c; 219: src/shared/util.c split(), cunescape_length
pub fn environment(value: &Traced, generation: Generation) -> Result<Value, Refusal> {
    let text = Traced::default();
    let mut reading = Value { text, exact: true };
    let mut quoted = true;
    let mut chars = value.chars().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => {
                match generation {
                    // 219 wants a blank or the end behind a closing quote: "Trailing garbage, ignoring."
                    Generation::V219 if chars.peek().is_some_and(|&(_, next)| is_blank(next)) => return Ok(reading),
                    Generation::V219 => return Err(Refusal::Dropped),
                    Generation::V252 => quoted = !quoted,
                }
            }
            // A backslash at the end of a line joins it with the next one by a blank, before anything else is read.
            '\\' if chars.peek().is_some_and(|&(_, next)| next == '\n') => {
                chars.next();
                reading.text.push(' ', value.origin(at));
            }
            '\\' => match chars.next().and_then(|(_, escaped)| unescaped(escaped)) {
                Some(c) => reading.text.push(c, value.origin(at)),
                // \x41, \101 and \u0041 are known escapes that nobody writes here.
                None => return Err(Refusal::Dropped),
            },
            '\n' => return Err(Refusal::Dropped),
            c if !quoted && is_blank(c) => {
                // The word ends here; what follows is read as further assignments.
                return if value.as_str().bytes().filter(|&b| b == b'\'').count() % 2 == 0 { Ok(reading) } else { Err(Refusal::Dropped) };
            }
            '"' if !quoted => {}
            '%' => {
                if chars.peek().is_some_and(|&(_, next)| next == '%') {
                    chars.next();
                } else {
                    // A specifier such as %i is expanded, an unknown one stays.
                    reading.exact = false;
                }
                reading.text.push('%', value.origin(at));
            }
            c => reading.text.push(c, value.origin(at)),
        }
    }
    // Left unquoted here, the unit's own closing quote would open one that nothing closes.
    if quoted { Ok(reading) } else { Err(Refusal::Dropped) }
}

// systemd 252 src/basic/escape.c cunescape_one
fn unescaped(c: char) -> Option<char> {
    Some(match c {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        's' => ' ',
        '\\' | '"' | '\'' => c,
        _ => return None,
    })
}

/// The value of the one variable in an environment file, up to the end of its line, and where the rest begins that is lost.
// systemd 252 src/basic/env-file.c parse_env_file_internal: quotes count only at the beginning of a value
pub fn environment_file(value: &Traced) -> (Traced, Option<usize>) {
    let mut read = Traced::default();
    let mut chars = value.chars();
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' | '\r' => return (read, Some(at + 1)),
            '\\' => {
                if let Some((at, escaped)) = chars.next().filter(|&(_, c)| c != '\n' && c != '\r') {
                    read.push(escaped, value.origin(at));
                }
            }
            c => read.push(c, value.origin(at)),
        }
    }
    (read, None)
}

/// The words into which `$VARIABLE` of an `ExecStart=` falls.
// 252: src/basic/env-util.c replace_env_argv (EXTRACT_RELAX | EXTRACT_UNQUOTE); 219: src/shared/util.c unquote_first_word
pub fn words(value: &Traced, generation: Generation) -> Result<Vec<Traced>, Refusal> {
    let mut words = Vec::new();
    let mut word: Option<Traced> = None;
    let mut quote = None;
    let mut chars = value.chars();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            if let Some((at, escaped)) = chars.next() {
                word.get_or_insert_default().push(escaped, value.origin(at));
            }
        } else if quote == Some(c) {
            quote = None;
        } else if quote.is_none() && (c == '"' || c == '\'') {
            word.get_or_insert_default();
            quote = Some(c);
        } else if quote.is_none() && (is_blank(c) || c == '\n') {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(c, value.origin(at));
        }
    }
    words.extend(word);
    if quote.is_some() && generation == Generation::V219 { Err(Refusal::NotStarted) } else { Ok(words) }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(value: &str, generation: Generation) -> Result<String, Refusal> {
        environment(&Traced::written_at(value, 0), generation).map(|v| v.text.as_str().to_owned())
    }

    fn split(value: &str, generation: Generation) -> Result<Vec<String>, Refusal> {
        words(&Traced::written_at(value, 0), generation).map(|w| w.iter().map(|w| w.as_str().to_owned()).collect())
    }

    #[test]
    fn double_quotes_reach_the_word_splitting_and_end_there() {
        let value = r#"--register-with-taints="a=b:NoSchedule" --v=2"#;
        assert_eq!(assigned(value, Generation::V219).unwrap(), value);
        assert_eq!(split(value, Generation::V219).unwrap(), ["--register-with-taints=a=b:NoSchedule", "--v=2"]);
    }

    #[test]
    fn a_single_quote_inside_drops_the_assignment_on_219_only() {
        assert_eq!(assigned("--x='a=b' --y=c", Generation::V219), Err(Refusal::Dropped));
        assert_eq!(assigned("--x='a=b' --y=c", Generation::V252).unwrap(), "--x=a=b --y=c");
        assert_eq!(assigned("--x='a=b'", Generation::V252).unwrap(), "--x=a=b");
    }

    #[test]
    fn a_blank_between_inner_single_quotes_cuts_the_value_on_252() {
        assert_eq!(assigned("--x='a=b c=d' --y=e", Generation::V252).unwrap(), "--x=a=b");
    }

    #[test]
    fn an_odd_single_quote_drops_the_assignment_everywhere() {
        assert_eq!(assigned("--x=it's", Generation::V252), Err(Refusal::Dropped));
        assert_eq!(assigned("--x=it's", Generation::V219), Err(Refusal::Dropped));
    }

    #[test]
    fn a_bare_newline_drops_the_assignment_and_an_escaped_one_is_a_blank() {
        assert_eq!(assigned("--x=a\n--y=b", Generation::V219), Err(Refusal::Dropped));
        assert_eq!(assigned("--x=a\\\n--y=b", Generation::V219).unwrap(), "--x=a --y=b");
    }

    #[test]
    fn an_unbalanced_double_quote_stops_the_kubelet_on_219_and_swallows_the_rest_on_252() {
        assert_eq!(split(r#"--node-labels="a=b --v=2"#, Generation::V219), Err(Refusal::NotStarted));
        assert_eq!(split(r#"--node-labels="a=b --v=2"#, Generation::V252).unwrap(), ["--node-labels=a=b --v=2"]);
    }

    #[test]
    fn a_newline_ends_the_value_of_an_environment_file() {
        let (value, rest) = environment_file(&Traced::written_at("--x=a\n--y=b", 0));
        assert_eq!((value.as_str(), rest), ("--x=a", Some(6)));
    }
}
