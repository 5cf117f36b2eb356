//! What strangers write, as it may be shown: no character hides others, and none tells a terminal what to do.

use std::fmt::Write;

/// Puts `⟨U+202E⟩` for each character that would hide others, or put them in another order than they stand in: a name
/// must not pass for another one. Of the control characters only the line end is layout.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            c if c.is_control() || is_unseen(c) => drop(write!(out, "⟨U+{:04X}⟩", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// The same of YAML, whose writer escapes control characters by itself. A program that needs what was said takes JSON.
pub fn in_yaml(yaml: &str) -> String {
    if yaml.contains(is_unseen) { visible(yaml) } else { yaml.to_owned() }
}

/// The same as one line: each line end and tab is a blank.
pub fn in_a_line(text: &str) -> String {
    visible(&text.replace(['\n', '\r', '\t'], " "))
}

/// The same of JSON, in which such characters stand within strings only: programs read what was said, and a terminal
/// does not obey it.
pub fn in_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && (c.is_control() || is_unseen(c)) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Characters that have no shape of their own or order others: Bidi_Control, and of the format characters (Cf) those
/// that no script needs to be read here.
/// Source: Unicode 17.0, PropList.txt and DerivedGeneralCategory.txt.
const fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_hides_others_or_tells_a_terminal_what_to_do() {
        assert_eq!(visible("a\u{1b}[31mb\u{202e}c\u{9b}2J\nd"), "a⟨U+001B⟩[31mb⟨U+202E⟩c⟨U+009B⟩2J\nd");
        assert_eq!(in_a_line("a\r\nb\tc"), "a  b c");
    }

    #[test]
    fn programs_read_what_was_said() {
        let said = "a\u{9b}b\u{e0041}c\u{1b}d";
        let json = in_json(&serde_json::to_string_pretty(&[said]).unwrap());
        assert!(!json.contains(['\u{9b}', '\u{e0041}', '\u{1b}']));
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [said]);
    }
}
