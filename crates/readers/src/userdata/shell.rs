//! A shell script as a list of commands with their words, followed as far as plain assignments, quotes and
//! here-documents go.
//!
//! Compared with bash in `tests/e2e/oracles/bash.rs`. On purpose otherwise: a command is taken to succeed, so that
//! `set -e` and `… || exit` end nothing (`reader/failing.rs` knows one that fails); and of the mistakes that bash
//! refuses only a quote that is never closed is seen.
//!
//! This is no shell: it runs nothing, and what only running would tell (substitutions, functions, loops) keeps its
//! literal text and is marked as not exact.

use std::collections::HashMap;
use std::ops::Range;

use super::traced::Traced;
use crate::source_text::Span;

/// No more text than this is made from variables, however often they repeat each other.
const EXPANSION_LIMIT: usize = 64 * 1024;

/// How far `((` in all may be followed to see what it is: each could need a look at all the rest.
const LOOK_AHEAD_LIMIT: usize = 64 * 1024;

/// One word behind all quoting.
#[derive(Debug, Clone, Default)]
pub struct Word {
    pub text: Traced,
    /// Whether the word is certainly what the command receives.
    pub exact: bool,
    /// Whether it may be several words, or another text: more than the expansions is unknown that stand in it as they
    /// are written.
    pub vague: bool,
    quoted: bool,
}

/// Whether a command is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    Always,
    /// Inside `if`, a loop, a function, or behind `&&` and `||`.
    Perhaps,
    /// Behind an `exit` that is always reached.
    AfterExit,
    /// A quote is never closed: the shell stops at this command.
    SyntaxError,
}

#[derive(Debug, Clone)]
pub struct Command {
    pub words: Vec<Word>,
    pub span: Span,
    pub runs: Runs,
    /// Whether it is inside of `( … )`.
    pub in_subshell: bool,
    /// Whether a subshell around it may fail without an end of the script: `! ( … )`, or behind it `||`, `&&`, `|` or
    /// `&`.
    pub in_tested_subshell: bool,
    /// The body of its here-document.
    pub document: Option<Word>,
    /// The file its output goes to.
    pub output: Option<Word>,
}

#[derive(Debug, Default)]
pub struct Script {
    pub commands: Vec<Command>,
    /// The quote that is never closed.
    pub open_quote: Option<Span>,
    /// The first here-document that no line ends.
    pub open_document: Option<OpenDocument>,
}

/// A here-document that goes on until the end of the script.
#[derive(Debug)]
pub struct OpenDocument {
    /// The word behind `<<`.
    pub delimiter: Span,
    /// The line that would end it without the blanks around it.
    pub near: Option<Span>,
    /// The lines that bash takes for its text.
    pub body: String,
}

/// The commands of `source` in their order.
pub fn read(source: &Traced) -> Script {
    // Karpenter and cloud-init take the carriage returns out.
    let source = source.with_unix_lines();
    let mut reader = Reader::new(&source);
    reader.script();
    reader.finish_command();
    reader.mark_tested();
    if reader.script.open_quote.is_some() {
        for command in reader.script.commands.get_mut(reader.line..).unwrap_or_default() {
            command.runs = Runs::SyntaxError;
        }
    } else if !reader.subshells.is_empty() {
        // Nothing closes a parenthesis: bash runs none of it, or it was none.
        for command in reader.script.commands.get_mut(reader.line..).unwrap_or_default() {
            command.runs = if command.runs == Runs::Always { Runs::Perhaps } else { command.runs };
        }
    }
    reader.script
}

struct PendingDocument {
    command: usize,
    delimiter: String,
    place: Span,
    literal: bool,
    strip_tabs: bool,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own, and they occur together")]
struct Reader<'a> {
    source: &'a Traced,
    text: &'a str,
    at: usize,
    script: Script,
    variables: HashMap<String, Word>,
    expanded: usize,
    looked_ahead: usize,
    words: Vec<Word>,
    command_start: usize,
    output: Option<Word>,
    documents: Vec<PendingDocument>,
    /// How many compound commands and functions are open.
    depth: usize,
    subshells: Vec<Subshell>,
    /// The first command of the subshell that closed just before. Redirections may follow it.
    closed: Option<usize>,
    /// The commands of the subshells whose status something looks at.
    tested: Vec<Range<usize>>,
    /// A `!` is before the command.
    negated: bool,
    /// What stands behind `&&` and `||` may not be run.
    behind_operator: bool,
    /// Behind `|` a command runs in a shell of its own.
    behind_pipe: bool,
    exited: bool,
    /// The first command of the line, or of the compound command, that bash reads at once before it runs any of it.
    line: usize,
    /// Whether the words so far are assignments, whose values do not fall apart.
    assigning: bool,
    /// The script sets `IFS`: what a value falls into is not known.
    own_separators: bool,
}

/// An open `(`.
struct Subshell {
    /// Whether the script had ended before it.
    exited: bool,
    conditional: bool,
    /// How many compound commands were open before it.
    depth: usize,
    /// Its first command.
    first: usize,
    negated: bool,
}

impl<'a> Reader<'a> {
    fn new(source: &'a Traced) -> Self {
        Self {
            source,
            text: source.as_str(),
            at: 0,
            script: Script::default(),
            variables: HashMap::new(),
            expanded: 0,
            looked_ahead: 0,
            words: Vec::new(),
            command_start: 0,
            output: None,
            documents: Vec::new(),
            depth: 0,
            subshells: Vec::new(),
            closed: None,
            tested: Vec::new(),
            negated: false,
            behind_operator: false,
            behind_pipe: false,
            exited: false,
            line: 0,
            assigning: true,
            own_separators: false,
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, prefix: &str) -> bool {
        let taken = self.rest().starts_with(prefix);
        if taken {
            self.at += prefix.len();
        }
        taken
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn script(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' => self.at += 1,
                '\n' => {
                    self.at += 1;
                    // Behind an operator the command goes on in the next line.
                    if !self.words.is_empty() || self.output.is_some() || !(self.behind_operator || self.behind_pipe) {
                        self.end_command();
                        if self.depth == 0 && self.subshells.is_empty() {
                            self.line = self.script.commands.len();
                        }
                    }
                    self.here_documents();
                }
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                '&' | '|' if self.take("&&") || self.take("||") => {
                    self.test_closed_subshell();
                    self.end_command();
                    self.behind_operator = true;
                }
                '&' if self.rest().starts_with("&>") => self.redirection(),
                '|' => {
                    self.at += 1;
                    self.take("&");
                    self.test_closed_subshell();
                    self.behind_pipe = true;
                    self.finish_command();
                }
                ';' | '&' => {
                    self.at += 1;
                    if c == '&' {
                        self.test_closed_subshell();
                        self.behind_pipe = true;
                    }
                    self.end_command();
                }
                ')' => {
                    self.at += 1;
                    self.end_command();
                    // Not the `)` of a pattern: `case` is deeper.
                    if let Some(subshell) = self.subshells.pop_if(|subshell| subshell.depth == self.depth) {
                        self.exited = subshell.exited;
                        self.closed = Some(subshell.first);
                        if subshell.negated {
                            self.test_closed_subshell();
                        }
                    }
                }
                '(' if self.words.is_empty() && self.rest().starts_with("((") && self.arithmetic() => {}
                '(' if self.array() => self.skip_parentheses(),
                '(' => {
                    self.at += 1;
                    if self.words.len() == 1 && self.take(")") {
                        // "name()": the body that follows is one compound command.
                        self.words.clear();
                    } else {
                        let (conditional, negated) = (self.behind_operator, self.negated);
                        self.end_command();
                        self.subshells.push(Subshell {
                            exited: self.exited,
                            conditional,
                            depth: self.depth,
                            first: self.script.commands.len(),
                            negated,
                        });
                    }
                }
                '<' | '>' if self.rest().starts_with("<(") || self.rest().starts_with(">(") => {
                    self.at += 1;
                    self.skip_parentheses();
                }
                '<' | '>' => self.redirection(),
                _ if self.take("\\\n") => {}
                _ => self.word(),
            }
            if self.script.open_quote.is_some() {
                return;
            }
        }
    }

    /// Steps over the arithmetic that the `((` here begins; where it does not end in `))`, it opens two subshells.
    fn arithmetic(&mut self) -> bool {
        let start = self.at;
        self.skip_parentheses();
        self.looked_ahead += self.at - start;
        let ends = self.text.get(..self.at).is_some_and(|read| read.ends_with("))"));
        if !ends && self.looked_ahead <= LOOK_AHEAD_LIMIT {
            self.at = start;
            return false;
        }
        true
    }

    /// Whether the `(` here belongs to `NAME=(…)`, of which nothing is known.
    fn array(&mut self) -> bool {
        let Some(last) = self.words.last_mut() else { return false };
        let array = self.text.get(..self.at).is_some_and(|before| before.ends_with('='))
            && assignment(last.text.as_str()).is_some();
        last.exact &= !array;
        last.vague |= array;
        array
    }

    fn word(&mut self) {
        if self.words.is_empty() {
            self.command_start = self.at;
            self.assigning = true;
        }
        let start = self.at;
        let words = self.read_word();
        if self.at == start {
            self.at = self.text.len();
            return;
        }
        // "2>file": the digits belong to the redirection.
        let digits = self.text.get(start..self.at).is_some_and(|w| w.bytes().all(|b| b.is_ascii_digit()));
        if digits && self.peek().is_some_and(|c| c == '<' || c == '>') {
            return self.redirection();
        }
        let first = self.words.is_empty();
        self.assigning &=
            words.iter().all(|word| assignment(word.text.as_str()).is_some() || (first && declares(word)));
        match words.as_slice() {
            [word] if first && !word.quoted => match word.text.as_str() {
                "if" | "while" | "until" | "for" | "case" | "select" | "{" => {
                    self.depth += 1;
                    if matches!(word.text.as_str(), "for" | "case" | "select") {
                        self.words = words;
                    }
                }
                "fi" | "done" | "esac" | "}" => self.depth = self.depth.saturating_sub(1),
                "!" => self.negated = true,
                "then" | "do" | "else" | "elif" | "time" => {}
                "function" => {
                    self.blanks();
                    self.read_word();
                }
                _ => self.words = words,
            },
            _ => self.words.extend(words),
        }
    }

    /// Ends the command and with it what `&&` made conditional.
    fn end_command(&mut self) {
        self.finish_command();
        self.behind_operator = false;
        self.behind_pipe = false;
        self.negated = false;
        self.closed = None;
    }

    /// Notes the commands of the subshell that closed just before: what follows looks at its status.
    fn test_closed_subshell(&mut self) {
        let Some(first) = self.closed.take() else { return };
        // Those inside of it are among its commands.
        while self.tested.pop_if(|inner| inner.start >= first).is_some() {}
        self.tested.push(first..self.script.commands.len());
    }

    fn mark_tested(&mut self) {
        for tested in std::mem::take(&mut self.tested) {
            for command in self.script.commands.get_mut(tested).unwrap_or_default() {
                command.in_tested_subshell = true;
            }
        }
    }

    fn finish_command(&mut self) {
        let (words, output) = (std::mem::take(&mut self.words), self.output.take());
        if words.is_empty()
            && output.is_none()
            && !self.documents.iter().any(|d| d.command == self.script.commands.len())
        {
            return;
        }
        let span = self.source.span_of(self.command_start..self.at.max(self.command_start));
        let runs = if self.script.open_quote.is_some() {
            Runs::SyntaxError
        } else if self.exited {
            Runs::AfterExit
        } else if self.depth > 0 || self.behind_operator || self.subshells.iter().any(|subshell| subshell.conditional) {
            Runs::Perhaps
        } else {
            Runs::Always
        };
        // A shell of its own takes its variables and its exit with it.
        let words =
            self.assign(words, if self.behind_pipe || !self.subshells.is_empty() { Runs::Perhaps } else { runs });
        if runs == Runs::Always && !self.behind_pipe && words.first().is_some_and(|w| w.text.as_str() == "exit") {
            self.exited = true;
        }
        self.script.commands.push(Command {
            words,
            span,
            runs,
            in_subshell: !self.subshells.is_empty(),
            in_tested_subshell: false,
            document: None,
            output,
        });
    }

    /// Takes the assignments off a command; they hold where no command follows them.
    fn assign(&mut self, words: Vec<Word>, runs: Runs) -> Vec<Word> {
        let mut words = words;
        if words.first().is_some_and(declares) {
            // Outside of a function `local` is a mistake that changes nothing.
            let refused = runs == Runs::Always && words.first().is_some_and(|w| w.text.as_str() == "local");
            for word in words.iter().filter(|_| !refused) {
                self.assign_one(word, runs);
            }
            return words;
        }
        let count = words.iter().take_while(|w| assignment(w.text.as_str()).is_some()).count();
        if count == words.len() {
            for word in &words {
                self.assign_one(word, runs);
            }
        }
        match words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().as_slice() {
            ["for" | "unset" | "select", name, ..] => {
                self.variables.remove(*name);
            }
            // What these set is known only to the shell that runs them.
            ["eval" | "source" | ".", ..] => {
                self.variables.values_mut().for_each(|value| (value.exact, value.vague) = (false, true));
            }
            ["read", names @ ..] => names.iter().for_each(|name| drop(self.variables.remove(*name))),
            _ => {}
        }
        words.drain(..count);
        words
    }

    fn assign_one(&mut self, word: &Word, runs: Runs) {
        let Some((name, value_start, appends)) = assignment(word.text.as_str()) else { return };
        let certain = runs == Runs::Always;
        let mut value = Word {
            text: word.text.from(value_start),
            exact: word.exact && certain,
            vague: word.vague || !certain,
            quoted: false,
        };
        self.own_separators |= name == "IFS";
        // Perhaps it is empty then: a word that may be there or not is not known at all.
        if !certain && (value.text.is_empty() || self.variables.get(name).is_some_and(|before| before.text.is_empty()))
        {
            self.variables.remove(name);
            return;
        }
        if appends {
            let Some(before) = self.variables.get(name) else { return };
            let mut text = before.text.clone();
            text.append(&value.text);
            value =
                Word { text, exact: value.exact && before.exact, vague: value.vague || before.vague, quoted: false };
        }
        if value.text.len() <= EXPANSION_LIMIT {
            self.variables.insert(name.to_owned(), value);
        }
    }

    fn redirection(&mut self) {
        let to_file = self.rest().starts_with('>') || self.rest().starts_with("&>");
        if self.take("<<<") {
            self.blanks();
            self.read_word();
            return;
        }
        if self.take("<<") {
            let strip_tabs = self.take("-");
            self.blanks();
            let start = self.at;
            let delimiter: String = self.read_word().iter().map(|w| w.text.as_str()).collect();
            let literal = self.text.get(start..self.at).is_some_and(|w| w.contains(['\'', '"', '\\']));
            self.documents.push(PendingDocument {
                command: self.script.commands.len(),
                delimiter,
                place: self.source.span_of(start..self.at),
                literal,
                strip_tabs,
            });
            return;
        }
        while self.peek().is_some_and(|c| matches!(c, '<' | '>' | '&' | '|')) {
            self.at += 1;
        }
        self.blanks();
        if self.peek() == Some('(') || self.rest().starts_with("<(") || self.rest().starts_with(">(") {
            self.take("<");
            self.take(">");
            return self.skip_parentheses();
        }
        let target = self.read_word();
        if to_file {
            self.output = target.into_iter().next().or(self.output.take());
        }
    }

    fn blanks(&mut self) {
        while self.take(" ") || self.take("\t") || self.take("\\\n") {}
    }

    /// Reads the bodies that the line just ended has announced.
    fn here_documents(&mut self) {
        for pending in std::mem::take(&mut self.documents) {
            let mut body = Word { exact: true, quoted: true, ..Word::default() };
            let start = self.at;
            let mut end = start;
            let (mut continued, mut closed) = (false, false);
            let mut near = None;
            while self.at < self.text.len() {
                let line_end = self.rest().find('\n').map_or(self.text.len(), |at| self.at + at);
                let line = self.text.get(self.at..line_end).unwrap_or_default();
                let bare = if pending.strip_tabs { line.trim_start_matches('\t') } else { line };
                let line_start = self.at + (line.len() - bare.len());
                self.at = (line_end + 1).min(self.text.len());
                if bare == pending.delimiter && !continued {
                    closed = true;
                    break;
                }
                if bare.trim() == pending.delimiter {
                    near = near.or_else(|| Some(self.source.span_of(line_start..line_end)));
                }
                continued = !pending.literal && line.bytes().rev().take_while(|&b| b == b'\\').count() % 2 == 1;
                end = self.at;
                if pending.strip_tabs || pending.literal {
                    body.text.append(&self.source.slice(line_start..end));
                }
            }
            if !closed && !pending.delimiter.is_empty() && self.script.open_document.is_none() {
                let body = self.text.get(start..end).unwrap_or_default().to_owned();
                self.script.open_document = Some(OpenDocument { delimiter: pending.place, near, body });
            }
            if !pending.literal {
                // Inside, only the dollar, the backquote and the backslash have a meaning.
                let document = if pending.strip_tabs { body.text } else { self.source.slice(start..end) };
                body = self.expanded_document(&document);
            }
            if let Some(command) = self.script.commands.get_mut(pending.command) {
                command.document = Some(body);
            }
        }
    }

    fn expanded_document(&mut self, document: &Traced) -> Word {
        let mut reader = Reader::new(document);
        reader.variables = std::mem::take(&mut self.variables);
        reader.expanded = self.expanded;
        let mut word = Word { exact: true, ..Word::default() };
        while reader.at < reader.text.len() {
            reader.double_quoted_char(&mut word, None);
        }
        (self.variables, self.expanded) = (reader.variables, reader.expanded);
        word
    }

    /// Reads one word, which an unquoted variable may make none or several.
    fn read_word(&mut self) -> Vec<Word> {
        let mut words = Vec::new();
        let mut word: Option<Word> = None;
        while let Some(c) = self.peek() {
            let at = self.at;
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    self.at += 1;
                    self.single_quoted(at, start(&mut word));
                }
                '"' => {
                    self.at += 1;
                    self.double_quoted(at, start(&mut word));
                }
                '\\' => {
                    self.at += 1;
                    if self.take("\n") {
                        continue;
                    }
                    let escaped_at = self.at;
                    if let Some(escaped) = self.bump() {
                        let word = start(&mut word);
                        word.quoted = true;
                        word.text.push(escaped, self.source.place(escaped_at));
                    }
                }
                '$' if self.rest().starts_with("$'") => {
                    self.at += 2;
                    self.ansi_quoted(at, start(&mut word));
                }
                '$' if self.rest().starts_with("$\"") => {
                    self.at += 2;
                    self.double_quoted(at, start(&mut word));
                }
                '$' | '`' => {
                    let mut value = self.expansion();
                    value.exact &= !self.own_separators;
                    let assigned =
                        self.assigning && word.as_ref().is_some_and(|word| assignment(word.text.as_str()).is_some());
                    value.quoted |= assigned;
                    value.vague |= !value.exact && !assigned;
                    if value.exact {
                        split_fields(&value, &mut word, &mut words);
                    } else {
                        join(start(&mut word), &value);
                    }
                }
                // A template's own `{{ … }}`, filled in before any shell reads it.
                '{' if let Some(length) = self.template() => {
                    let unknown = Word { text: self.source.slice(at..at + length), vague: true, ..Word::default() };
                    join(start(&mut word), &unknown);
                    self.at += length;
                }
                '{' if self.brace_expansion() => {
                    self.at += 1;
                    let word = start(&mut word);
                    (word.exact, word.vague) = (false, true);
                    word.text.push('{', self.source.place(at));
                }
                c => {
                    self.at += c.len_utf8();
                    let word = start(&mut word);
                    // A pattern stands for the files it matches, a tilde for a home.
                    let home = c == '~' && (word.text.is_empty() || word.text.as_str().ends_with(['=', ':']));
                    word.vague |= home || matches!(c, '*' | '?' | '[');
                    word.exact &= !word.vague;
                    word.text.push(c, self.source.place(at));
                }
            }
            if self.script.open_quote.is_some() {
                break;
            }
        }
        words.extend(word);
        words
    }

    /// How long the `{{ … }}` is that begins here.
    fn template(&self) -> Option<usize> {
        let line = self.rest().lines().next().filter(|line| line.starts_with("{{"))?;
        line.find("}}").map(|at| at + 2)
    }

    /// `{a,b}` and `{1..3}` become several words.
    fn brace_expansion(&self) -> bool {
        let inside = self
            .rest()
            .bytes()
            .skip(1)
            .take(256)
            .take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'\'' | b'"'));
        let mut several = false;
        let mut last = b'{';
        for b in inside {
            several |= b == b',' || (b == b'.' && last == b'.');
            if b == b'}' {
                return several;
            }
            last = b;
        }
        false
    }

    fn unclosed(&mut self, opened_at: usize) {
        self.at = self.text.len();
        // bash reads a command at a time: it has gone before it sees this.
        if self.exited {
            return;
        }
        self.script.open_quote = Some(self.source.span_of(opened_at..opened_at + 1));
    }

    fn single_quoted(&mut self, opened_at: usize, word: &mut Word) {
        word.quoted = true;
        let Some(length) = self.rest().find('\'') else {
            word.text.append(&self.source.from(self.at));
            return self.unclosed(opened_at);
        };
        word.text.append(&self.source.slice(self.at..self.at + length));
        self.at += length + 1;
    }

    fn ansi_quoted(&mut self, opened_at: usize, word: &mut Word) {
        word.quoted = true;
        loop {
            let at = self.source.place(self.at);
            match self.bump() {
                None => return self.unclosed(opened_at),
                Some('\'') => return,
                Some('\\') => {
                    let at = Span::new(at.start, self.source.place(self.at).end);
                    let escaped = self.bump();
                    word.vague |= !escaped.is_some_and(|c| matches!(c, 'n' | 't' | 'r' | '\\' | '\'' | '"'));
                    word.exact &= !word.vague;
                    word.text.push(
                        match escaped {
                            Some('n') => '\n',
                            Some('t') => '\t',
                            Some('r') => '\r',
                            Some(c) => c,
                            None => '\\',
                        },
                        at,
                    );
                }
                Some(c) => word.text.push(c, at),
            }
        }
    }

    fn double_quoted(&mut self, opened_at: usize, word: &mut Word) {
        word.quoted = true;
        loop {
            if self.at >= self.text.len() {
                return self.unclosed(opened_at);
            }
            if self.double_quoted_char(word, Some('"')) {
                return;
            }
        }
    }

    /// Reads one character as it counts between double quotes; true at the closing one.
    fn double_quoted_char(&mut self, word: &mut Word, closing: Option<char>) -> bool {
        let at = self.at;
        match self.peek() {
            Some('\\') => {
                self.at += 1;
                if self.take("\n") {
                    return false;
                }
                match self.peek() {
                    Some(c) if matches!(c, '$' | '`' | '\\') || Some(c) == closing => {
                        word.text.push(c, self.source.place(self.at));
                        self.at += 1;
                    }
                    _ => word.text.push('\\', self.source.place(at)),
                }
            }
            Some('$' | '`') => {
                let value = self.expansion();
                join(word, &value);
            }
            Some(c) => {
                self.at += c.len_utf8();
                if Some(c) == closing {
                    return true;
                }
                word.text.push(c, self.source.place(at));
            }
            None => return true,
        }
        false
    }

    /// What a `$…` or a backquote stands for; its literal text where that is not known.
    fn expansion(&mut self) -> Word {
        let start = self.at;
        let name = if self.rest().starts_with("$(") {
            self.at += 1;
            self.skip_parentheses();
            None
        } else if self.take("`") {
            while let Some(c) = self.bump().filter(|&c| c != '`') {
                if c == '\\' {
                    self.bump();
                }
            }
            None
        } else if self.take("${") {
            let end = self.rest().find('}').map_or(self.text.len(), |at| self.at + at);
            let name = self.text.get(self.at..end);
            self.at = (end + 1).min(self.text.len());
            name.filter(|n| is_name(n))
        } else {
            self.at += 1;
            let length = self.rest().bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
            let name = self.text.get(self.at..self.at + length).filter(|n| is_name(n));
            self.at += name.map_or(0, str::len);
            // A name goes on behind a continued line; nobody means that, and it is not followed.
            let continued = self.rest().starts_with("\\\n");
            // `$1`, `$@` and the like are two characters; a dollar that is none of these changes how bash splits the
            // word around it.
            if name.is_none()
                && self.peek().is_some_and(|c| matches!(c, '@' | '*' | '#' | '?' | '-' | '!' | '$' | '0'..='9'))
            {
                self.at += 1;
            }
            name.filter(|_| !continued)
        };
        match name.and_then(|name| self.variables.get(name)) {
            Some(value) if self.expanded + value.text.len() <= EXPANSION_LIMIT => {
                self.expanded += value.text.len();
                value.clone()
            }
            _ => {
                let text = self.source.slice(start..self.at);
                // "$@" and "${list[@]}" are several words, quotes or not.
                let vague = text.as_str().contains('@');
                Word { text, exact: false, vague, quoted: true }
            }
        }
    }

    /// Steps over `(…)` with what is nested and quoted in it.
    fn skip_parentheses(&mut self) {
        let mut open = 0_usize;
        let mut quote = None;
        while let Some(c) = self.bump() {
            match (quote, c) {
                (Some('\''), '\'') | (Some('"'), '"') => quote = None,
                (None | Some('"'), '\\') => drop(self.bump()),
                (None, '\'' | '"') => quote = Some(c),
                (None, '(') => open += 1,
                (None, ')') => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        return;
                    }
                }
                _ => {}
            }
        }
    }
}

/// How long the `$(…)` is with which `text` begins.
pub(super) fn length_of_parentheses(text: &str) -> usize {
    let source = Traced::written_at(text, 0);
    let mut reader = Reader::new(&source);
    reader.at = 1;
    reader.skip_parentheses();
    reader.at
}

fn declares(word: &Word) -> bool {
    matches!(word.text.as_str(), "export" | "declare" | "local" | "readonly" | "typeset")
}

fn start(word: &mut Option<Word>) -> &mut Word {
    word.get_or_insert_with(|| Word { exact: true, ..Word::default() })
}

fn join(word: &mut Word, value: &Word) {
    word.exact &= value.exact;
    word.vague |= value.vague;
    word.text.append(&value.text);
}

/// An unquoted variable falls apart at its blanks.
fn split_fields(value: &Word, word: &mut Option<Word>, words: &mut Vec<Word>) {
    if value.quoted {
        return join(start(word), value);
    }
    for (at, c) in value.text.chars() {
        if matches!(c, ' ' | '\t' | '\n') {
            words.extend(word.take());
        } else {
            let word = start(word);
            word.vague |= matches!(c, '*' | '?' | '[');
            word.exact &= !word.vague;
            word.text.push(c, value.text.place(at));
        }
    }
}

/// `NAME=` or `NAME+=` at the beginning of a word: the name, where the value begins, and whether it is appended.
fn assignment(word: &str) -> Option<(&str, usize, bool)> {
    let (left, _) = word.split_once('=')?;
    let name = left.strip_suffix('+').unwrap_or(left);
    is_name(name).then_some((name, left.len() + 1, name.len() != left.len()))
}

fn is_name(name: &str) -> bool {
    name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<Vec<String>> {
        let script = read(&Traced::written_at(text, 0));
        script.commands.iter().map(|c| c.words.iter().map(|w| w.text.as_str().to_owned()).collect()).collect()
    }

    #[test]
    fn quotes_concatenate_and_continuations_join() {
        assert_eq!(commands("a \\\n  'b c'\"d e\"f\\ g # not this"), [["a", "b cd ef g"]]);
        assert_eq!(commands(r#"a "--x="a=b" --y="c=d"""#), [["a", "--x=a=b --y=c=d"]]);
        assert_eq!(commands(r#"a "--x="a b" --y""#), [["a", "--x=a", "b --y"]]);
        assert_eq!(commands(r#"a "x\"y" '' $'z\'\n'"#), [["a", "x\"y", "", "z'\n"]]);
    }

    #[test]
    fn operators_end_commands() {
        assert_eq!(
            commands("a b;c&&d||e|f\ng&"),
            [vec!["a", "b"], vec!["c"], vec!["d"], vec!["e"], vec!["f"], vec!["g"]]
        );
    }

    #[test]
    fn plain_variables_are_followed_and_fall_apart_unquoted() {
        assert_eq!(commands("X='a b'\nc \"$X\" $X ${X}y"), [vec![], vec!["c", "a b", "a", "b", "a", "by"]]);
        assert_eq!(commands("X=a\nX+=b\nc $X"), [vec![], vec![], vec!["c", "ab"]]);
    }

    #[test]
    fn what_is_not_known_keeps_its_text_and_is_not_exact() {
        let script = read(&Traced::written_at("c $(d \"e)\" f) ${G:-h} $UNSET 'i'", 0));
        let words: Vec<_> = script.commands[0].words.iter().map(|w| (w.text.as_str(), w.exact)).collect();
        assert_eq!(words, [("c", true), ("$(d \"e)\" f)", false), ("${G:-h}", false), ("$UNSET", false), ("i", true)]);
    }

    #[test]
    fn a_value_set_under_a_condition_is_not_exact() {
        let script = read(&Traced::written_at("X=a\nif true; then X=b; fi\nc $X", 0));
        let last = script.commands.last().unwrap();
        assert!(!last.words[1].exact);
        assert_eq!(last.runs, Runs::Always);
    }

    #[test]
    fn an_escaped_character_of_several_bytes_is_pointed_at_whole() {
        let text = "a $'\\é'";
        let script = read(&Traced::written_at(text, 0));
        assert_eq!(script.commands[0].words[1].text.span().of(text), "\\é");
    }

    #[test]
    fn two_parentheses_are_arithmetic_or_two_subshells() {
        assert_eq!(commands("((X = 1 + (2)))\na"), [["a"]]);
        assert_eq!(commands("((a); b)\nc"), [["a"], ["b"], ["c"]]);
        let script = read(&Traced::written_at("a\n((# b) )\nc\n", 0));
        assert_eq!(script.commands.iter().map(|c| c.runs).collect::<Vec<_>>(), [Runs::Always, Runs::Perhaps]);
    }

    #[test]
    fn conditions_and_an_exit_are_seen() {
        let runs = |text: &str| read(&Traced::written_at(text, 0)).commands.iter().map(|c| c.runs).collect::<Vec<_>>();
        assert_eq!(runs("a && b\nc"), [Runs::Always, Runs::Perhaps, Runs::Always]);
        assert_eq!(runs("if a; then b; fi; c"), [Runs::Perhaps, Runs::Perhaps, Runs::Always]);
        assert_eq!(runs("f() {\n a\n}\nb"), [Runs::Perhaps, Runs::Always]);
        assert_eq!(runs("exit 0\na"), [Runs::Always, Runs::AfterExit]);
        assert_eq!(runs("a || exit 1\nb"), [Runs::Always, Runs::Perhaps, Runs::Always]);
    }

    #[test]
    fn a_shell_of_its_own_keeps_its_variables_and_its_exit() {
        for text in ["X=a\n(X=b)\nc $X", "X=a\nX=b | d\nc $X", "X=a\nX=b &\nc $X"] {
            let last = read(&Traced::written_at(text, 0)).commands.pop().unwrap();
            assert!(!last.words[1].exact, "{text}");
        }
        let runs = |text: &str| read(&Traced::written_at(text, 0)).commands.last().map(|c| c.runs);
        assert_eq!(runs("(exit)\na"), Some(Runs::Always));
        assert_eq!(runs("a &&\nb"), Some(Runs::Perhaps));
        assert_eq!(runs("a && b | c"), Some(Runs::Perhaps));
        assert_eq!(runs("a && (b)"), Some(Runs::Perhaps));
        assert_eq!(runs("function f { a; }"), Some(Runs::Perhaps));
    }

    #[test]
    fn what_looks_at_the_status_of_a_subshell_is_seen() {
        let tested = |text: &str| {
            let script = read(&Traced::written_at(text, 0));
            script.commands.iter().filter(|c| c.in_tested_subshell).map(|c| c.words.len()).collect::<Vec<_>>()
        };
        for text in [
            "(\na b\n) || c",
            "(a b) &&\nc",
            "! (\na b\n)",
            "! c | (a b)",
            "(a b) | c",
            "(a b) &\nc",
            "(a b) 2>&1 || c",
            "(a b) &>/dev/null || c",
        ] {
            assert_eq!(tested(text), [2], "{text}");
        }
        assert_eq!(tested("((a) || b c\nd e f) && g"), [1, 2, 3]);
        for text in ["(a b)\nc || d", "(a b); c && d", "! c\n(a b)", "(a b)\n! c", "a b || c", "c | (a b)"] {
            assert_eq!(tested(text), [0; 0], "{text}");
        }
    }

    #[test]
    fn the_value_of_an_assignment_does_not_fall_apart_and_patterns_are_not_exact() {
        assert_eq!(commands("X='a b'\nY=$X\nc \"$Y\""), [vec![], vec![], vec!["c", "a b"]]);
        for word in ["*", "~", "x=~/y", "[ab]"] {
            assert!(!read(&Traced::written_at(&format!("c {word}"), 0)).commands[0].words[1].exact, "{word}");
        }
        for before in ["X=(a b)", "eval X=b", "IFS=,"] {
            let script = read(&Traced::written_at(&format!("X=a\n{before}\nc $X"), 0));
            assert!(!script.commands.last().unwrap().words[1].exact, "{before}");
        }
    }

    #[test]
    fn redirections_are_no_words() {
        assert_eq!(
            commands("exec > >(tee /var/log/x | logger -s 2>/dev/console) 2>&1\na 2>/dev/null <b c"),
            [vec!["exec"], vec!["a", "c"]]
        );
    }

    #[test]
    fn a_here_document_belongs_to_its_command_and_is_expanded_unless_quoted() {
        let script =
            read(&Traced::written_at("X=y\ncat <<EOF > /f\na $X \\\nb\nEOF\ncat <<-'END'\n\tc $X\n\tEND\nd\n", 0));
        let documents: Vec<_> = script.commands.iter().map(|c| c.document.as_ref().map(|d| d.text.as_str())).collect();
        assert_eq!(documents, [None, Some("a y b\n"), Some("c $X\n"), None]);
        assert_eq!(script.commands[1].output.as_ref().unwrap().text.as_str(), "/f");
    }

    #[test]
    fn a_here_document_without_an_end_takes_the_rest_of_the_script() {
        let open = |text: &str| {
            let open = read(&Traced::written_at(text, 0)).open_document?;
            Some((open.delimiter.of(text).to_owned(), open.near.map(|near| near.of(text).to_owned()), open.body))
        };
        let some = |near: Option<&str>, body: &str| Some(("EOF".to_owned(), near.map(str::to_owned), body.to_owned()));
        assert_eq!(open("cat <<EOF\na\n  EOF\nb\n"), some(Some("  EOF"), "a\n  EOF\nb\n"));
        assert_eq!(open("cat <<-EOF\na\n  EOF\n"), some(Some("  EOF"), "a\n  EOF\n"));
        assert_eq!(open("cat <<EOF\na\n"), some(None, "a\n"));
        for text in
            ["cat <<EOF\na\nEOF\nb\n", "cat <<-EOF\na\n\tEOF\n", "cat <<EOF\na\nEOF", "cat <<<EOF\na\n", "# <<EOF\n"]
        {
            assert_eq!(open(text), None, "{text}");
        }
    }

    #[test]
    fn an_open_quote_is_a_syntax_error_at_its_place() {
        let script = read(&Traced::written_at("a\nb 'c\nd", 0));
        assert_eq!(script.open_quote, Some(Span::new(4, 5)));
        assert_eq!(script.commands.iter().map(|c| c.runs).collect::<Vec<_>>(), [Runs::Always, Runs::SyntaxError]);
        // The `)` of a pattern closes no subshell: all of it is one command, of which nothing is run.
        let script = read(&Traced::written_at("( a # )\ncase x in x) b\n;;\nesac\nc '", 0));
        assert!(script.commands.iter().all(|c| c.runs == Runs::SyntaxError));
    }

    #[test]
    fn words_point_into_the_text() {
        let text = "x=1\nfoo 'b\"c' ${x}";
        let script = read(&Traced::written_at(text, 0));
        let words = &script.commands[1].words;
        assert_eq!(words[1].text.span().of(text), "b\"c");
        assert_eq!(words[2].text.span().of(text), "1");
    }

    #[test]
    fn doubling_variables_do_not_explode() {
        let mut text = "A=xxxxxxxxxxxxxxxx\n".to_owned();
        for _ in 0..200 {
            text.push_str("A=$A$A\n");
        }
        assert!(commands(&text).len() >= 200);
    }
}
