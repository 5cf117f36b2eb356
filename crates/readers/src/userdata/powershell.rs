//! What Windows PowerShell refuses of a script before it runs any of it, and commands whose name is misspelt.
//!
//! This is no parser. `tokens.rs` follows quotes, comments and brackets, which decide where a statement begins.
// Windows PowerShell 5.1: about_Quoting_Rules, about_Comments, about_Parsing and about_Operators below
// https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/

mod tokens;

use super::known_flags::one_letter_apart;
use super::{Defect, DefectKind};
use crate::source_text::Span;
use tokens::{Kind, Refused, Token, is_quote, read};

/// The mistakes in the script that stands at `span` of `text`. PowerShell parses all of a script before it runs the
/// first statement, so one place that it refuses is enough. `joins` tells of the script before and behind a place
/// whether only what is behind joins the node.
pub fn check(text: &str, span: Span, joins: impl Fn(&str, &str) -> bool) -> Vec<Defect> {
    let mut check = Check {
        script: span.of(text),
        open: Vec::new(),
        begins: true,
        names_command: true,
        before: "",
        is_asked: false,
        stops: false,
        is_followed: true,
        misspelt: None,
    };
    let refused = check.script().err();
    let misspelt = check.misspelt.take().map(|misspelt| {
        let (before, behind) = check.script.split_at_checked(misspelt.span.start).unwrap_or_default();
        misspelt.defect(check.script, joins(before, behind))
    });
    let refused = refused.map(|(span, why)| Defect {
        kind: DefectKind::PowerShellRefused,
        span,
        message: format!("{why}, so PowerShell runs nothing of the script"),
    });
    let found = refused.into_iter().chain(misspelt);
    found.map(|defect| Defect { span: defect.span.shifted(span.start), ..defect }).collect()
}

/// The words of each command, with their quotes. Commands in brackets come before the command around them.
pub fn commands(script: &str) -> Vec<Vec<Span>> {
    let (tokens, _) = read(script);
    let mut commands = Vec::new();
    let mut around: Vec<Vec<Span>> = Vec::new();
    let mut words: Vec<Span> = Vec::new();
    let mut before: Option<Token> = None;
    for token in tokens {
        let text = token.span.of(script);
        // Blanks around a comma end no word.
        let goes_on = text == "," || before.is_some_and(|before| before.span.of(script) == ",");
        match token.kind {
            Kind::LineEnd if before.is_some_and(|before| goes_on_behind(before.span.of(script))) => continue,
            Kind::LineEnd | Kind::End | Kind::Pipe => commands.push(std::mem::take(&mut words)),
            Kind::Open(_) => {
                add(&mut words, token.span, goes_on);
                around.push(std::mem::take(&mut words));
            }
            Kind::Close(_) => {
                commands.push(std::mem::replace(&mut words, around.pop().unwrap_or_default()));
                add(&mut words, token.span, true);
            }
            Kind::Sign | Kind::Value | Kind::Word => add(&mut words, token.span, goes_on),
        }
        before = Some(token);
    }
    commands.push(words);
    commands.extend(around.into_iter().rev());
    commands.retain(|words| !words.is_empty());
    commands
}

/// Adds a token to the last word, if no blank is between them or it `goes_on`, else as a new word.
fn add(words: &mut Vec<Span>, token: Span, goes_on: bool) {
    match words.last_mut().filter(|word| goes_on || word.end == token.start) {
        Some(word) => word.end = token.end,
        None => words.push(token),
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own, and they occur together")]
struct Check<'a> {
    script: &'a str,
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
    /// Whether an error ends the script here.
    stops: bool,
    /// Whether nothing came that may define commands, take errors or end the script.
    is_followed: bool,
    /// That command, unless the script defines it.
    misspelt: Option<Misspelt>,
}

/// A command whose name is a known one but for a letter.
struct Misspelt {
    span: Span,
    meant: &'static str,
    /// Whether the script ends here.
    ends: bool,
}

impl Misspelt {
    fn defect(self, script: &str, joins: bool) -> Defect {
        let (word, meant) = (self.span.of(script), self.meant);
        let (kind, effect) = if self.ends && joins {
            let ends = "so `$ErrorActionPreference = 'Stop'` ends the script here, before the lines that join the node";
            (DefectKind::CmdletEndsScript, ends)
        } else if self.ends {
            (DefectKind::UnknownCmdlet, "so `$ErrorActionPreference = 'Stop'` ends the script here")
        } else {
            (DefectKind::UnknownCmdlet, "and goes on without it")
        };
        Defect { kind, span: self.span, message: format!("PowerShell has no command {word}, {effect}; {meant} is one") }
    }
}

impl Check<'_> {
    fn script(&mut self) -> Result<(), Refused> {
        let (tokens, refused) = read(self.script);
        for (at, token) in tokens.iter().enumerate() {
            if token.kind == Kind::LineEnd {
                if !goes_on_behind(self.before) {
                    self.statement();
                }
                continue;
            }
            let (begins, is_command) = (self.begins, self.names_command);
            let text = token.span.of(self.script);
            (self.begins, self.names_command, self.before) = (false, false, text);
            match token.kind {
                Kind::End => self.statement(),
                Kind::Open(bracket) => {
                    self.open.push((bracket, token.span.end.saturating_sub(1)));
                    (self.begins, self.names_command) = (bracket == '{', true);
                }
                Kind::Close(bracket) => self.close(bracket, token.span)?,
                Kind::Pipe => {
                    // A script that it calls may import commands.
                    self.is_followed &= !begins;
                    self.names_command = true;
                }
                Kind::Value if is_error_preference(text) => self.error_preference(tokens.get(at + 1..at + 3)),
                Kind::Value if begins => self.no_parameter(token.span.end, tokens.get(at + 1))?,
                Kind::LineEnd | Kind::Sign | Kind::Value => {}
                Kind::Word => self.word(text, token.span, is_command),
            }
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        let Some(&(bracket, at)) = self.open.first() else { return Ok(()) };
        Err(never_closed(bracket, at))
    }

    /// Begins a statement, unless brackets make it the part of one.
    fn statement(&mut self) {
        let begins = self.open.last().is_none_or(|(bracket, _)| *bracket == '{');
        (self.begins, self.names_command) = (begins, begins);
    }

    fn close(&mut self, bracket: char, span: Span) -> Result<(), Refused> {
        let opener = if bracket == '}' { '{' } else { '(' };
        match self.open.pop() {
            Some((own, _)) if own == opener => Ok(()),
            Some((own, at)) => Err(never_closed(own, at)),
            None => Err((span, format!("this `{bracket}` closes nothing"))),
        }
    }

    /// A statement began with a value, which is not run without `&`, so no parameter may follow.
    fn no_parameter(&self, end: usize, next: Option<&Token>) -> Result<(), Refused> {
        let Some(next) = next.filter(|next| next.kind == Kind::Word) else { return Ok(()) };
        let between = Span::new(end, next.span.start).of(self.script);
        let is_apart = !between.is_empty() && between.bytes().all(|b| matches!(b, b' ' | b'\t'));
        let Some(word) = next.span.of(self.script).strip_prefix('-').filter(|_| is_apart) else { return Ok(()) };
        let name = word.get(..word.bytes().take_while(u8::is_ascii_alphabetic).count()).unwrap_or_default();
        if name.is_empty() || is_operator(name) {
            return Ok(());
        }
        let at = next.span.start;
        let why = format!("-{name} follows a value, since no `&` before the value makes it the command to run");
        Err((Span::new(at, at + 1 + name.len()), why))
    }

    fn word(&mut self, word: &str, span: Span, is_command: bool) {
        self.names_command = word.ends_with('=');
        let lower = word.to_ascii_lowercase();
        if is_command && (word.starts_with('.') || UNFOLLOWED.contains(&lower.as_str())) {
            self.is_followed = false;
        }
        if is_command
            && !self.is_asked
            && let Some(meant) = meant(word)
        {
            self.is_asked = true;
            self.misspelt = self.misspelt(word, meant, span);
        }
    }

    /// `$ErrorActionPreference` and the two tokens behind it. In brackets it may hold only for a part of the script.
    // about_Preference_Variables
    fn error_preference(&mut self, behind: Option<&[Token]>) {
        let Some([sign, value]) = behind else { return };
        if sign.span.of(self.script) == "=" {
            let is_stop = value.span.of(self.script).trim_matches(is_quote).eq_ignore_ascii_case("Stop");
            self.stops = is_stop && (self.stops || self.open.is_empty());
        }
    }

    /// The finding about a command, unless the script defines it.
    fn misspelt(&self, word: &str, meant: &'static str, span: Span) -> Option<Misspelt> {
        let lower = self.script.to_ascii_lowercase();
        let own = word.to_ascii_lowercase();
        let is_defined = ["function", "filter", "set-alias", "new-alias"].iter().any(|definition| {
            lower.match_indices(definition).any(|(at, _)| {
                lower.get(at + definition.len()..).is_some_and(|name| name.trim_start().starts_with(&own))
            })
        });
        // In brackets it may never run, or `try` may take the error.
        let ends = self.stops && self.is_followed && self.open.is_empty();
        (!is_defined).then_some(Misspelt { span, meant, ends })
    }
}

/// Commands behind which a name that is not known may be defined, or an error may not count, or nothing may run.
// about_Error_Handling: a command that does not exist is a statement-terminating error, on which -ErrorAction has no
// effect; about_Trap
const UNFOLLOWED: &[&str] = &[
    "exit",
    "iex",
    "import-module",
    "install-module",
    "ipmo",
    "invoke-expression",
    "return",
    "throw",
    "trap",
    "using",
];

/// Whether a variable is `$ErrorActionPreference`, of this script or of all.
fn is_error_preference(variable: &str) -> bool {
    let name = variable.trim_start_matches('$');
    let bare = name.split_once(':').map_or(name, |(_, bare)| bare);
    bare.eq_ignore_ascii_case("ErrorActionPreference")
}

fn never_closed(bracket: char, at: usize) -> Refused {
    (Span::new(at, at + 1), format!("this `{bracket}` is never closed"))
}

/// Whether a statement goes on in the next line if its line ends in this word or sign.
fn goes_on_behind(word: &str) -> bool {
    word.ends_with([',', '|', '=', '+', '*', '/', '%', '&'])
        || word.strip_prefix('-').is_some_and(|word| word.is_empty() || is_operator(word))
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
    let bare = word.strip_prefix(['c', 'C', 'i', 'I']).unwrap_or(word);
    OPERATORS.iter().any(|operator| operator.eq_ignore_ascii_case(word) || operator.eq_ignore_ascii_case(bare))
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
        let defects = check(script, Span::new(0, script.len()), |_, behind| !behind.ends_with("joined\n"));
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
    fn a_command_is_its_words_wherever_brackets_stand() {
        let words = |script: &str| {
            let of = |words: &Vec<Span>| words.iter().map(|word| word.of(script).to_owned()).collect::<Vec<_>>();
            commands(script).iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(
            words("& $f -A:\"b c\" 'd'`\n e; g 2>&1"),
            [vec!["$f", "-A:\"b c\"", "'d'", "e"], vec!["g", "2>&1"]]
        );
        assert_eq!(words("a (b --c) x$(d)e"), [vec!["b", "--c"], vec!["d"], vec!["a", "(b --c)", "x$(d)e"]]);
        assert_eq!(
            words("if ($x) {\n  a\n  b\n}\nc"),
            [vec!["$x"], vec!["a"], vec!["b"], vec!["if", "($x)", "{\n  a\n  b\n}"], vec!["c"]]
        );
        assert_eq!(words("a 'b' ,\n  'c' d |\n e"), [vec!["a", "'b' ,\n  'c'", "d"], vec!["e"]]);
        assert_eq!(words("# a b\na <# b #> c {"), [vec!["a", "c", "{"]]);
    }

    /// If each line end looked at all of the word before it, this would take minutes.
    #[test]
    fn a_long_word_before_many_lines_is_read_to_its_end() {
        let script = format!("-{}{}", "a".repeat(1 << 19), "\n".repeat(1 << 19));
        assert_eq!((found(&script), commands(&script).len()), (vec![], 1));
    }

    #[test]
    fn a_misspelt_command_ends_a_script_whose_errors_stop_it() {
        let ends = [(DefectKind::CmdletEndsScript, "New-Itm")];
        for script in [
            "$ErrorActionPreference = 'Stop'\nNew-Itm a\n",
            "$global:erroractionpreference=\"stop\"; New-Itm a -ErrorAction SilentlyContinue\n",
            "$ErrorActionPreference = 'Stop'\nif ($x) { $ErrorActionPreference = 'Stop' }\nGet-Item a | New-Itm\n",
        ] {
            assert_eq!(found(script), ends, "{script}");
        }
        for script in [
            "New-Itm a\n$ErrorActionPreference = 'Stop'\n",
            "$ErrorActionPreference = 'Continue'\nNew-Itm a\n",
            "$ErrorActionPreference = $x\nNew-Itm a\n",
            "$ErrorActionPreference -eq 'Stop'\nNew-Itm a\n",
            "$ErrorActionPreference = 'Stop'\n$ErrorActionPreference = 'Continue'\nNew-Itm a\n",
            "$ErrorActionPreference = 'Stop'\nfunction f { $ErrorActionPreference = 'Continue' }\nNew-Itm a\n",
            "function f { $ErrorActionPreference = 'Stop' }\nNew-Itm a\n",
            "$ErrorActionPreference = 'Stop'\ntry { New-Itm a } catch { }\n",
            "$ErrorActionPreference = 'Stop'\ntrap { continue }\nNew-Itm a\n",
            "$ErrorActionPreference = 'Stop'\n. C:\\own.ps1\nNew-Itm a\n",
            "$ErrorActionPreference = 'Stop'\n& $own\nNew-Itm a\n",
            "$ErrorActionPreference = 'Stop'\nImport-Module Own\nNew-Itm a\n",
            "$ErrorActionPreference = 'Stop'\nNew-Itm a\n# has joined\n",
        ] {
            assert_eq!(found(script), [(DefectKind::UnknownCmdlet, "New-Itm")], "{script}");
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
