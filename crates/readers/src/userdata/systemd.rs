//! What systemd does to the kubelet's arguments before the kubelet sees them: `Environment='…'`, an environment file,
//! and the splitting of `$KUBELET_EXTRA_ARGS`.

use std::iter::Peekable;

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
pub enum GivenUp {
    /// The assignment is dropped; the variable stays unset and the kubelet starts without it.
    Dropped,
    /// The command line cannot be built; the kubelet is not started.
    NotStarted,
}

/// The value of a variable and whether every byte of it is certain.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    pub text: Traced,
    pub exact: bool,
}

/// The variable that bootstrap.sh's drop-in sets.
const NAME: &str = "KUBELET_EXTRA_ARGS";

/// What the line `Environment='KUBELET_EXTRA_ARGS=<value>'` of a unit makes of `value`.
pub fn environment(value: &Traced, generation: Generation) -> Result<Variable, GivenUp> {
    match generation {
        Generation::V219 => environment_219(value),
        Generation::V252 => environment_252(value),
    }
}

// systemd 219 src/shared/util.c split(), cunescape_length
fn environment_219(value: &Traced) -> Result<Variable, GivenUp> {
    let mut reading = Variable { text: Traced::default(), exact: true };
    let mut chars = value.chars().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            // 219 wants a blank or the end behind a closing quote: "Trailing garbage, ignoring."
            '\'' if chars.peek().is_some_and(|&(_, next)| is_blank(next)) => return Ok(reading),
            '\'' | '\n' => return Err(GivenUp::Dropped),
            // A backslash at the end of a line joins it with the next one by a blank, before anything else is read.
            '\\' if chars.peek().is_some_and(|&(_, next)| next == '\n') => {
                chars.next();
                reading.text.push(' ', value.place(at));
            }
            '\\' => match chars.next().and_then(|(_, escaped)| unescaped(escaped)) {
                Some(c) => reading.text.push(c, value.place(at)),
                // \x41, \101 and \u0041 are known escapes that nobody writes here.
                None => return Err(GivenUp::Dropped),
            },
            '%' => {
                if chars.next_if(|&(_, next)| next == '%').is_none() {
                    // A specifier such as %i is expanded, an unknown one stays.
                    reading.exact = false;
                }
                reading.text.push('%', value.place(at));
            }
            c => reading.text.push(c, value.place(at)),
        }
    }
    Ok(reading)
}

// systemd 252 src/core/load-fragment.c config_parse_environ: a word that cannot be read ends the line, those before it
// count
fn environment_252(value: &Traced) -> Result<Variable, GivenUp> {
    let mut unit = Traced::default();
    format!("'{NAME}=").chars().for_each(|c| unit.push_unwritten(c, value.place(0).start));
    unit.append(value);
    unit.push_unwritten('\'', 0);
    let (line, whole) = logical_line(&unit);
    let mut chars = line.chars().peekable();
    let mut assigned = None;
    while let Some(word) = assignment_252(&line, &mut chars) {
        if word.text.as_str().strip_prefix(NAME).is_some_and(|rest| rest.starts_with('=')) {
            assigned = Some(Variable { text: word.text.from(NAME.len() + 1), exact: word.exact && whole });
        }
    }
    assigned.ok_or(GivenUp::Dropped)
}

/// The first line of a unit's text with the lines that backslashes join to it, and whether that is all. Comments
/// between them are left out. What else stands in a unit may spoil it as a whole.
// systemd 252 src/shared/conf-parser.c config_parse
fn logical_line(text: &Traced) -> (Traced, bool) {
    let mut line = Traced::default();
    let mut start = 0;
    for physical in text.as_str().split(['\n', '\r']) {
        let (from, end) = (start, start + physical.len());
        start = end + 1;
        if from > 0 && physical.trim_start_matches([' ', '\t']).starts_with(['#', ';']) {
            continue;
        }
        let backslashes = physical.bytes().rev().take_while(|&b| b == b'\\').count();
        if backslashes % 2 == 0 {
            line.append(&text.slice(from..end));
            return (line, end == text.len());
        }
        line.append(&text.slice(from..end - 1));
        line.push(' ', text.place(end - 1));
    }
    (line, true)
}

/// The next word of the line; nothing at its end and where it cannot be read.
// systemd 252 src/basic/extract-word.c with EXTRACT_CUNESCAPE and EXTRACT_UNQUOTE
fn assignment_252(line: &Traced, chars: &mut Peekable<impl Iterator<Item = (usize, char)>>) -> Option<Variable> {
    while chars.next_if(|&(_, c)| is_blank(c)).is_some() {}
    chars.peek()?;
    let mut word = Variable { text: Traced::default(), exact: true };
    let mut quote = None;
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            let escaped = escaped_252(chars)?;
            // A byte beyond ASCII makes a character only together with others.
            word.exact &= escaped != char::REPLACEMENT_CHARACTER;
            word.text.push(escaped, line.place(at));
        } else if quote == Some(c) {
            quote = None;
        } else if quote.is_none() && matches!(c, '"' | '\'') {
            quote = Some(c);
        } else if quote.is_none() && is_blank(c) {
            return Some(word);
        } else {
            // A specifier such as %i is expanded, an unknown one stays.
            word.exact &= c != '%' || chars.next_if(|&(_, next)| next == '%').is_some();
            word.text.push(c, line.place(at));
        }
    }
    quote.is_none().then_some(word)
}

/// The character behind a backslash, a replacement for a bare byte beyond ASCII, nothing for what is no escape.
// systemd 252 src/basic/escape.c cunescape_one
fn escaped_252(chars: &mut Peekable<impl Iterator<Item = (usize, char)>>) -> Option<char> {
    let (_, c) = chars.next()?;
    let (radix, digits, mut code) = match c {
        'x' => (16, 2, 0),
        'u' => (16, 4, 0),
        'U' => (16, 8, 0),
        '0'..='7' => (8, 2, c.to_digit(8)?),
        _ => return unescaped(c),
    };
    for _ in 0..digits {
        let (_, digit) = chars.next()?;
        code = code.checked_mul(radix)?.checked_add(digit.to_digit(radix)?)?;
    }
    match (c, code) {
        (_, 0) => None,
        ('u' | 'U', _) | (_, 1..0x80) => char::from_u32(code),
        (_, 0x80..0x100) => Some(char::REPLACEMENT_CHARACTER),
        _ => None,
    }
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

/// The value of the one variable in an environment file, up to the end of its line, and where the rest begins that is
/// lost.
// systemd 252 src/basic/env-file.c parse_env_file_internal: quotes count only at the beginning of a value
pub fn environment_file(value: &Traced) -> (Traced, Option<usize>) {
    let mut read = Traced::default();
    // Up to where the value is no bare blank.
    let mut end = 0;
    let mut rest = None;
    let mut chars = value.chars();
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' | '\r' => {
                rest = Some(at + 1);
                break;
            }
            '\\' => {
                if let Some((at, escaped)) = chars.next().filter(|&(_, c)| c != '\n' && c != '\r') {
                    read.push(escaped, value.place(at));
                }
                end = read.len();
            }
            c => {
                read.push(c, value.place(at));
                if !is_blank(c) {
                    end = read.len();
                }
            }
        }
    }
    (read.slice(0..end), rest)
}

/// The words into which `$VARIABLE` of an `ExecStart=` falls.
// 252: src/basic/env-util.c replace_env_argv (EXTRACT_RELAX | EXTRACT_UNQUOTE); 219: src/shared/util.c
// unquote_first_word
pub fn words(value: &Traced, generation: Generation) -> Result<Vec<Traced>, GivenUp> {
    let mut words = Vec::new();
    let mut word: Option<Traced> = None;
    let mut quote = None;
    let mut chars = value.chars();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            let word = word.get_or_insert_default();
            if let Some((at, escaped)) = chars.next() {
                word.push(escaped, value.place(at));
            }
        } else if quote == Some(c) {
            quote = None;
        } else if quote.is_none() && (c == '"' || c == '\'') {
            word.get_or_insert_default();
            quote = Some(c);
        } else if quote.is_none() && (is_blank(c) || c == '\n') {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(c, value.place(at));
        }
    }
    words.extend(word);
    if quote.is_some() && generation == Generation::V219 { Err(GivenUp::NotStarted) } else { Ok(words) }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(value: &str, generation: Generation) -> Result<String, GivenUp> {
        environment(&Traced::written_at(value, 0), generation).map(|v| v.text.as_str().to_owned())
    }

    fn split(value: &str, generation: Generation) -> Result<Vec<String>, GivenUp> {
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
        assert_eq!(assigned("--x='a=b' --y=c", Generation::V219), Err(GivenUp::Dropped));
        assert_eq!(assigned("--x='a=b' --y=c", Generation::V252).unwrap(), "--x=a=b --y=c");
        assert_eq!(assigned("--x='a=b'", Generation::V252).unwrap(), "--x=a=b");
    }

    #[test]
    fn a_blank_between_inner_single_quotes_cuts_the_value_on_252() {
        assert_eq!(assigned("--x='a=b c=d' --y=e", Generation::V252).unwrap(), "--x=a=b");
    }

    #[test]
    fn an_odd_single_quote_drops_the_assignment_everywhere() {
        assert_eq!(assigned("--x=it's", Generation::V252), Err(GivenUp::Dropped));
        assert_eq!(assigned("--x=it's", Generation::V219), Err(GivenUp::Dropped));
    }

    #[test]
    fn a_mistake_behind_the_value_keeps_it_and_escapes_are_read_on_252() {
        assert_eq!(assigned("--x=a' b'c", Generation::V252).unwrap(), "--x=a");
        assert_eq!(assigned(r"--x=\x41\101\u0041", Generation::V252).unwrap(), "--x=AAA");
        assert_eq!(assigned(r"--x=\xzz", Generation::V252), Err(GivenUp::Dropped));
    }

    #[test]
    fn a_bare_newline_drops_the_assignment_and_an_escaped_one_is_a_blank() {
        assert_eq!(assigned("--x=a\n--y=b", Generation::V219), Err(GivenUp::Dropped));
        assert_eq!(assigned("--x=a\\\n--y=b", Generation::V219).unwrap(), "--x=a --y=b");
    }

    #[test]
    fn an_unbalanced_double_quote_stops_the_kubelet_on_219_and_swallows_the_rest_on_252() {
        assert_eq!(split(r#"--node-labels="a=b --v=2"#, Generation::V219), Err(GivenUp::NotStarted));
        assert_eq!(split(r#"--node-labels="a=b --v=2"#, Generation::V252).unwrap(), ["--node-labels=a=b --v=2"]);
    }

    #[test]
    fn a_newline_ends_the_value_of_an_environment_file() {
        let (value, rest) = environment_file(&Traced::written_at("--x=a\n--y=b", 0));
        assert_eq!((value.as_str(), rest), ("--x=a", Some(6)));
    }
}
