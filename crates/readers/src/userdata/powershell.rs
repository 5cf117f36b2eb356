//! What Windows PowerShell refuses of a script before it runs any of it, and commands whose name is misspelt.
//!
//! This is no parser. It follows quotes, comments and brackets, which decide where a statement begins.
// Windows PowerShell 5.1: about_Quoting_Rules, about_Comments, about_Parsing and about_Operators below
// https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/

use super::known_flags::one_letter_apart;
use super::{Defect, DefectKind};
use crate::source_text::Span;

/// The mistakes in the script that stands at `span` of `text`. PowerShell parses all of a script before it runs the
/// first statement, so one place that it refuses is enough.
pub fn check(text: &str, span: Span) -> Vec<Defect> {
    let mut reader = Reader {
        script: span.of(text),
        start: span.start,
        at: 0,
        open: Vec::new(),
        begins: true,
        names_command: true,
        before: "",
        is_asked: false,
        misspelt: None,
    };
    let refused = reader.script().err();
    let refused = refused.map(|(span, why)| Defect {
        kind: DefectKind::PowerShellRefused,
        span,
        message: format!("{why}, so PowerShell runs nothing of the script"),
    });
    refused.into_iter().chain(reader.misspelt).collect()
}

/// The first place that PowerShell refuses, and why.
type Read = Result<(), (Span, String)>;

struct Reader<'a> {
    script: &'a str,
    /// Where the script begins in the whole text.
    start: usize,
    at: usize,
    /// The brackets that are open, each with its place.
    open: Vec<(char, usize)>,
    /// Whether a statement begins here.
    begins: bool,
    /// Whether a word here is the name of a command.
    names_command: bool,
    /// The word or sign before.
    before: &'a str,
    /// Whether a command with the name of a known one but for a letter was seen.
    is_asked: bool,
    /// That command, unless the script defines it.
    misspelt: Option<Defect>,
}

/// How deep strings are followed into `$(…)` inside of each other.
const DEEPEST: usize = 8;

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

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(start, end).shifted(self.start)
    }

    /// Steps behind the next `end`, or to the end of the script.
    fn skip_behind(&mut self, end: &str) {
        self.at += self.rest().find(end).map_or(self.rest().len(), |at| at + end.len());
    }

    fn script(&mut self) -> Read {
        while let Some(c) = self.peek() {
            let start = self.at;
            match c {
                ' ' | '\t' | '\r' => self.at += 1,
                '\n' => self.line_end(),
                '`' => self.escape(),
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                '<' if self.rest().starts_with("<#") => self.skip_behind("#>"),
                ';' => {
                    self.token(start, 1);
                    self.statement();
                }
                '{' | '(' => {
                    self.open.push((c, start));
                    self.token(start, 1);
                    (self.begins, self.names_command) = (c == '{', true);
                }
                '}' | ')' => self.close(c)?,
                '|' | '&' => {
                    self.token(start, 1);
                    self.names_command = true;
                }
                ',' => self.token(start, 1),
                '@' => self.at_sign()?,
                '$' => self.variable()?,
                c if is_quote(c) => {
                    self.at += c.len_utf8();
                    self.string(c, start, DEEPEST)?;
                    self.value(start)?;
                }
                _ => self.word(),
            }
        }
        let Some(&(bracket, at)) = self.open.first() else { return Ok(()) };
        Err((self.span(at, at + 1), format!("this `{bracket}` is never closed")))
    }

    /// Ends a word or sign that began at `start` and is `more` bytes longer than what is read.
    fn token(&mut self, start: usize, more: usize) {
        self.at += more;
        self.before = self.script.get(start..self.at).unwrap_or_default();
        (self.begins, self.names_command) = (false, false);
    }

    /// Begins a statement, unless brackets make it the part of one.
    fn statement(&mut self) {
        let begins = self.open.last().is_none_or(|(bracket, _)| *bracket == '{');
        (self.begins, self.names_command) = (begins, begins);
    }

    fn line_end(&mut self) {
        self.at += 1;
        let goes_on = self.before.ends_with([',', '|', '=', '+', '*', '/', '%', '&'])
            || self.before.strip_prefix('-').is_some_and(|word| word.is_empty() || is_operator(word));
        if !goes_on {
            self.statement();
        }
    }

    /// A backquote takes the meaning from the next character; from a line end, too.
    fn escape(&mut self) {
        self.at += 1;
        if self.bump() == Some('\r') && self.peek() == Some('\n') {
            self.at += 1;
        }
    }

    fn close(&mut self, c: char) -> Read {
        let (start, opener) = (self.at, if c == '}' { '{' } else { '(' });
        match self.open.pop() {
            Some((own, _)) if own == opener => {}
            Some((own, at)) => return Err((self.span(at, at + 1), format!("this `{own}` is never closed"))),
            None => return Err((self.span(start, start + 1), format!("this `{c}` closes nothing"))),
        }
        self.token(start, 1);
        Ok(())
    }

    /// `@(`, `@{`, a here-string, or the parameters `@name`.
    fn at_sign(&mut self) -> Read {
        let start = self.at;
        let rest = self.rest();
        self.at += 1;
        let Some(quote @ ('\'' | '"')) = self.peek() else {
            self.token(start, 0);
            return Ok(());
        };
        let line_end = rest.find('\n').unwrap_or(rest.len());
        if !rest.get(2..line_end).is_some_and(|behind| behind.trim().is_empty()) {
            self.token(start, 0);
            return Ok(());
        }
        let end = format!("\n{quote}@");
        let Some(at) = rest.get(line_end..).and_then(|body| body.find(&end)) else {
            let why = format!("this here-string is never closed: no line begins with {quote}@");
            return Err((self.span(start, start + 2), why));
        };
        self.token(start, line_end + at + end.len() - 1);
        Ok(())
    }

    fn variable(&mut self) -> Read {
        let start = self.at;
        let rest = self.rest();
        if rest.starts_with("$(") {
            self.at += 1;
            return Ok(());
        }
        if rest.starts_with("${") {
            self.skip_behind("}");
        } else {
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '?' | '^' | '$');
            self.at += rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        }
        self.value(start)
    }

    /// Ends a value. If a statement begins with it, no parameter may follow: it is not run without `&`.
    fn value(&mut self, start: usize) -> Read {
        let begins = self.begins;
        self.token(start, 0);
        let rest = self.rest();
        let behind = rest.trim_start_matches([' ', '\t']);
        let Some(word) = behind.strip_prefix('-').filter(|_| begins && behind.len() < rest.len()) else {
            return Ok(());
        };
        let name = word.get(..word.bytes().take_while(u8::is_ascii_alphabetic).count()).unwrap_or_default();
        if name.is_empty() || is_operator(name) {
            return Ok(());
        }
        let at = self.at + rest.len() - behind.len();
        let why = format!("-{name} follows a value, since no `&` before the value makes it the command to run");
        Err((self.span(at, at + 1 + name.len()), why))
    }

    /// The rest of a string that began at `start`.
    fn string(&mut self, quote: char, start: usize, depth: usize) -> Read {
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
        Err((self.span(start, start + quote.len_utf8()), "this quote is never closed".to_owned()))
    }

    /// The `(…)` of a `$(…)` inside of a string.
    fn substitution(&mut self, depth: usize) -> Read {
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
        let (start, is_command) = (self.at, self.names_command);
        while let Some(c) = self.peek().filter(|c| !c.is_whitespace() && !";{}()|&,".contains(*c) && !is_quote(*c)) {
            if c == '`' {
                self.escape();
            } else {
                self.at += c.len_utf8();
            }
        }
        // A blank of another script ends a word, too.
        let more = if self.at == start { self.peek().map_or(0, char::len_utf8) } else { 0 };
        self.token(start, more);
        let word = self.before;
        self.names_command = word.ends_with('=');
        if word == "--%" {
            // Behind it the rest of the line is taken as it stands.
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        } else if is_command
            && !self.is_asked
            && let Some(meant) = meant(word)
        {
            self.is_asked = true;
            self.misspelt = self.misspelt(word, meant, start);
        }
    }

    /// The finding about a command, unless the script defines it.
    fn misspelt(&self, word: &str, meant: &str, start: usize) -> Option<Defect> {
        let lower = self.script.to_ascii_lowercase();
        let own = word.to_ascii_lowercase();
        let is_defined = ["function", "filter", "set-alias", "new-alias"].iter().any(|definition| {
            lower.match_indices(definition).any(|(at, _)| {
                lower.get(at + definition.len()..).is_some_and(|name| name.trim_start().starts_with(&own))
            })
        });
        (!is_defined).then(|| Defect {
            kind: DefectKind::UnknownCmdlet,
            span: self.span(start, start + word.len()),
            message: format!("PowerShell has no command {word}, and goes on without it; {meant} is one"),
        })
    }
}

const fn is_single(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}'..='\u{201b}')
}

const fn is_double(c: char) -> bool {
    matches!(c, '"' | '\u{201c}'..='\u{201e}')
}

/// PowerShell takes quotes of typography for its own.
const fn is_quote(c: char) -> bool {
    is_single(c) || is_double(c)
}

const OPERATORS: &[&str] = &[
    "eq",
    "ne",
    "gt",
    "ge",
    "lt",
    "le",
    "like",
    "notlike",
    "match",
    "notmatch",
    "contains",
    "notcontains",
    "in",
    "notin",
    "replace",
    "split",
    "join",
    "is",
    "isnot",
    "as",
    "f",
    "and",
    "or",
    "xor",
    "not",
    "band",
    "bor",
    "bxor",
    "bnot",
    "shl",
    "shr",
];

/// Whether a word behind a dash is an operator; with `c` or `i` before it, it minds the case or does not.
fn is_operator(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    OPERATORS.iter().any(|operator| lower == *operator || lower.strip_prefix(['c', 'i']) == Some(*operator))
}

/// Commands that user data often calls, of the modules that Windows Server has.
// https://learn.microsoft.com/powershell/module/?view=powershell-5.1 and ?view=windowsserver2022-ps, as of 2026-11
const COMMANDS: &[&str] = &[
    "Add-Content",
    "Add-MpPreference",
    "ConvertFrom-Json",
    "ConvertTo-Json",
    "Copy-Item",
    "Enable-WindowsOptionalFeature",
    "Expand-Archive",
    "ForEach-Object",
    "Get-ChildItem",
    "Get-Content",
    "Get-Item",
    "Get-ItemProperty",
    "Get-Process",
    "Get-Service",
    "Import-Certificate",
    "Import-Module",
    "Install-Module",
    "Install-WindowsFeature",
    "Invoke-Command",
    "Invoke-Expression",
    "Invoke-RestMethod",
    "Invoke-WebRequest",
    "Join-Path",
    "Move-Item",
    "New-Item",
    "New-ItemProperty",
    "New-NetFirewallRule",
    "New-Object",
    "New-Service",
    "Remove-Item",
    "Remove-ItemProperty",
    "Rename-Item",
    "Restart-Service",
    "Select-Object",
    "Set-Content",
    "Set-ExecutionPolicy",
    "Set-Item",
    "Set-ItemProperty",
    "Set-MpPreference",
    "Set-NetFirewallProfile",
    "Set-Service",
    "Split-Path",
    "Start-Process",
    "Start-Service",
    "Start-Sleep",
    "Start-Transcript",
    "Stop-Process",
    "Stop-Service",
    "Stop-Transcript",
    "Test-Path",
    "Where-Object",
    "Write-Error",
    "Write-Host",
    "Write-Output",
    "Write-Warning",
];

/// The command that was probably meant: it has the same verb or the same noun, and the other is a letter away. Short
/// words have too many neighbors.
fn meant(word: &str) -> Option<&'static str> {
    let lower = word.to_ascii_lowercase();
    let (verb, noun) = lower.split_once('-')?;
    if COMMANDS.iter().any(|known| known.eq_ignore_ascii_case(word)) {
        return None;
    }
    let is_meant = |known: &&&str| {
        let known = known.to_ascii_lowercase();
        known.split_once('-').is_some_and(|(own_verb, own_noun)| {
            (verb == own_verb && is_near(own_noun, noun, 4)) || (noun == own_noun && is_near(own_verb, verb, 5))
        })
    };
    COMMANDS.iter().find(is_meant).copied()
}

/// Whether one letter is wrong, missing or too many, or two neighbors are exchanged, in a word of at least so many.
fn is_near(known: &str, word: &str, least: usize) -> bool {
    if known.len() < least {
        return false;
    }
    if known.len() != word.len() {
        return one_letter_apart(known, word) || one_letter_apart(word, known);
    }
    let differing: Vec<(u8, u8)> = known.bytes().zip(word.bytes()).filter(|(a, b)| a != b).collect();
    match differing.as_slice() {
        [_] => true,
        [(first, second), (third, fourth)] => first == fourth && second == third,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(script: &str) -> Vec<(DefectKind, &str)> {
        let defects = check(script, Span::new(0, script.len()));
        defects.iter().map(|defect| (defect.kind, defect.span.of(script))).collect()
    }

    #[test]
    fn what_powershell_refuses_is_found_at_its_place() {
        for (script, place) in [
            ("if ($x) {\n  New-Item a\nNew-Item b\n", "{"),
            ("New-Item a\n}\n", "}"),
            ("Write-Host (1 + 2\n", "("),
            ("if ($x) { Write-Host (1 }\n", "("),
            ("Write-Host 'a\n", "'"),
            ("Write-Host \"a $(b \"c\" d)\nx\n", "\""),
            ("$x = @'\na\n  '@\n", "@'"),
            ("$file -Name 'x'\n", "-Name"),
            ("Write-Host a; \"C:\\a b.ps1\" -Name x\n", "-Name"),
            ("if ($x) {\n  ${file} -Name x\n}\n", "-Name"),
        ] {
            assert_eq!(found(script), [(DefectKind::PowerShellRefused, place)], "{script}");
        }
    }

    #[test]
    fn what_powershell_runs_is_silent() {
        for script in [
            "& $file -Name 'x'\n",
            ". $file -Name 'x'\n",
            "$a -eq 'b'\n$a -CNotMatch 'b'\n'{0}' -f 1\n$i--\n$a - $b\n$a -1\n",
            "# it's {\n<# it's\n( #>\nWrite-Host a#b'c'\n",
            "Write-Host 'it''s {' \"a `\" $(Get-Item \"}\") \"\"b\"\n",
            "$x = @'\nit's {\n'@\n$y = @{ a = 1; 'b' = 2 }\nWrite-Host @y\n",
            "$all = 'a',\n  'b'\nStart-Process x `\n  -Wait\n",
            "Get-Item a |\n  Where-Object { $_.Name -eq 'b' } | % { $_ }\n",
            "foreach ($x in (1..3)) { Write-Host \"$x {\" }\n",
            "cmd --% /c echo (\nWrite-Host `{ `( `'\n",
            "param (\n  $a,\n  [string]$b = 'c'\n)\n",
            "$a = $b -and\n  $c\nWrite-Host “a”\n",
        ] {
            assert_eq!(found(script), [], "{script}");
        }
    }

    #[test]
    fn a_misspelt_command_is_found_where_a_command_stands() {
        let unknown = |name: &'static str| vec![(DefectKind::UnknownCmdlet, name)];
        assert_eq!(found("New-Itm a\n"), unknown("New-Itm"));
        assert_eq!(found("$x = Get-Contnet a\n"), unknown("Get-Contnet"));
        assert_eq!(found("Get-Item a | Were-Object { $_ }\n"), unknown("Were-Object"));
        for script in [
            "new-item a\n",
            "Write-Host New-Itm\n",
            "function New-Itm { 1 }\nNew-Itm a\n",
            "New-Team a\n",
            "Get-EC2Instance a\n",
            "aws-cli a\n",
        ] {
            assert_eq!(found(script), [], "{script}");
        }
    }
}
