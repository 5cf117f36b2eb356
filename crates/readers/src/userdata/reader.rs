//! The way of the text through its readers, by family and by part.

mod failing;
mod nodeadm_call;
mod parts;

use std::collections::{HashMap, HashSet};

use super::kernel_tunables::objection;
use super::known_flags::{self, Recognized};
use super::kubelet_flags::CommandLine;
use super::shell::{self, Command, OpenDocument, Runs, Word};
use super::systemd::{self, Generation, GivenUp};
use super::traced::Traced;
use super::yaml::YamlValue;
use super::{
    Argument, ArgumentOrigin, BootstrapCall, By, Defect, DefectKind, Family, Fate, Loss, Part, PartKind, Setting,
    UserData, bootstrap, bottlerocket, containerd, has_expansion, has_placeholder, kubelet_config, kubelet_flags,
    nodeconfig, placeholder, powershell, sets, windows,
};
use crate::source_text::{Span, joins_node};

/// Reads `text` as a machine of `family` would, with Karpenter's own part merged the way Karpenter merges it.
pub fn read(text: &str, family: Family) -> UserData {
    let mut reader = Reader {
        text,
        data: UserData {
            family,
            parts: Vec::new(),
            arguments: Vec::new(),
            bootstrap_calls: Vec::new(),
            node_configs: Vec::new(),
            region: None,
            defects: Vec::new(),
            unread_from: None,
            is_open: false,
        },
        kubelet_runs: false,
        parameters: Vec::new(),
    };
    if text.len() > LARGEST {
        let message = format!("EC2 takes no more than {LARGEST} bytes of user data, and this alone is {}", text.len());
        reader.defect(DefectKind::TooLarge, Span::new(LARGEST, LARGEST), message);
    }
    if !text.trim().is_empty() {
        reader.split();
        reader.node_configs();
        reader.forget_needless_calls();
    }
    reader.data.arguments.sort_by_key(|argument| matches!(argument.setting, Setting::Flag(_)));
    override_earlier(&mut reader.data.arguments);
    reader.check();
    placeholder::settle(text, &mut reader.data);
    reader.data
}

struct Reader<'a> {
    text: &'a str,
    data: UserData,
    kubelet_runs: bool,
    /// The kernel parameters that a script sets before the kubelet starts.
    parameters: Vec<Traced>,
}

/// How certain the words of a command line are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certain {
    Wholly,
    /// But for the expansions that stand in them as they are written.
    ButForExpansions,
    No,
}

impl Certain {
    const fn only_if(self, known: bool) -> Self {
        if known { self } else { Self::No }
    }
}

/// `text` with each `$(…)`, backquotes, and `${…}` and `{{ … }}` of a template as one word, and how certain it then is.
fn closed(text: &Traced, certain: Certain) -> (Traced, Certain) {
    let mut closed = Traced::default();
    let (mut certain, mut ends): (_, Option<(usize, usize)>) = (certain, None);
    for (at, c) in text.chars() {
        let rest = text.as_str().get(at..).unwrap_or_default();
        if ends.is_none_or(|(_, end)| at >= end) {
            let of_helm = || rest.strip_prefix("{{").and_then(|inside| inside.find("}}")).map(|length| length + 4);
            let of_terraform = || rest.strip_prefix("${").and_then(|inside| inside.find('}')).map(|length| length + 3);
            let template = of_helm().or_else(of_terraform);
            if template.is_some() && certain == Certain::Wholly {
                certain = Certain::ButForExpansions;
            }
            let substitution = || match rest.strip_prefix('`') {
                _ if certain == Certain::Wholly => None,
                Some(inside) => inside.find('`').map(|length| length + 2),
                None if rest.starts_with("$(") => Some(shell::length_of_parentheses(rest)),
                None => None,
            };
            ends = template.or_else(substitution).map(|length| (at, at + length));
        }
        let inside = ends.is_some_and(|(start, end)| start < at && at < end);
        let plain = !inside || c.is_ascii_alphanumeric() || matches!(c, '.' | '{' | '}' | '(' | ')' | '`' | '$');
        closed.push(if plain { c } else { '_' }, text.place(at));
    }
    (closed, certain)
}

/// What is certainly on a command line in which expansions stand.
fn without_expansions(words: &[Traced], mut line: CommandLine) -> CommandLine {
    let open: Vec<Span> = words.iter().filter(|word| has_expansion(word.as_str())).map(Traced::span).collect();
    // An expansion that is a word of its own may end in a flag that takes the next word.
    if words.iter().any(|word| !word.as_str().starts_with('-') && has_expansion(word.as_str())) {
        line.stray.clear();
    }
    line.stray.retain(|span| !open.contains(span));
    line.single_dash.retain(|span| !open.contains(span));
    line.flags.retain(|flag| !has_expansion(&flag.name));
    line
}

/// EC2's limit on user data before base64; Karpenter does not compress it.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html
pub const LARGEST: usize = 16 * 1024;

/// How deep `bash -c` and here-documents are followed into each other.
const DEEPEST_SHELL: usize = 3;

impl Reader<'_> {
    fn defect(&mut self, kind: DefectKind, span: Span, message: impl Into<String>) {
        self.data.defects.push(Defect { kind, span, message: message.into() });
    }

    fn unread(&mut self, span: Span) {
        self.data.unread_from.get_or_insert(span);
    }

    fn part(&mut self, kind: PartKind, span: Span) {
        self.data.parts.push(Part { kind, span });
        match kind {
            PartKind::Shell => self.shell_part(span),
            PartKind::NodeConfig => self.node_config(span),
            PartKind::CloudConfig => {
                if mentions_kubelet(span.of(self.text)) {
                    self.unread(span);
                }
            }
            PartKind::Bottlerocket => self.bottlerocket(),
            PartKind::PowerShell => self.powershell(span),
            PartKind::Ignition => self.unread(span),
            PartKind::Unknown => {}
        }
    }

    fn whole(&self) -> Span {
        Span::new(0, self.text.len())
    }

    fn shell_part(&mut self, span: Span) {
        let text = span.of(self.text);
        // The kernel runs a script by its first two bytes; cloud-init then says "Exec format error. Missing #! in
        // script?".
        let runs = text.starts_with("#!");
        // Karpenter asks only whether the text is YAML, and a tab or a wrong indent makes it none.
        let meant = (self.data.family == Family::Al2023 && nodeconfig::names_itself_node_config(text) && !runs)
            .then(|| nodeconfig::read(self.text, span).err())
            .flatten();
        if let Some(unreadable) = meant {
            let message = format!(
                "Karpenter cannot read this as YAML, takes the text for a shell script, and nodeadm never sees it: {}",
                unreadable.message
            );
            self.defect(DefectKind::MisreadAsShell, unreadable.span, message);
        } else if let Some(at) = (runs && self.data.family == Family::Al2023).then(|| node_config_among(text)).flatten()
        {
            let span = Span::new(span.start + at.start, span.start + at.end);
            self.defect(
                DefectKind::MisreadAsShell,
                span,
                "this NodeConfig is in a shell script, so nodeadm never sees it; put it into a MIME part of its own",
            );
        } else if self.data.family == Family::Al2 && !runs && nodeconfig::names_itself_node_config(text) {
            self.defect(DefectKind::NodeConfigIgnored, span, Loss::NodeConfigIgnored.to_string());
        } else if !runs && placeholder::begins(text) {
            // Its text may begin with `#!`.
            return self.unread(span);
        } else if !runs && !text.trim().is_empty() {
            let at = Span::new(span.start, span.start);
            self.defect(
                DefectKind::NoInterpreter,
                at,
                "the script does not begin with `#!` in its very first bytes, and cloud-init cannot run it",
            );
        }
        let interpreter = text.lines().next().unwrap_or_default();
        if runs && !["sh", "bash", "dash", "zsh"].iter().any(|shell| interpreter.contains(shell)) {
            if mentions_kubelet(text) {
                self.unread(span);
            }
            return;
        }
        let first = self.data.arguments.len();
        self.shell(&Traced::written_at(text, span.start), Runs::Always, DEEPEST_SHELL);
        self.carriage_returns(span);
        if !runs {
            for argument in self.data.arguments.iter_mut().skip(first) {
                argument.fate = Fate::Lost(Loss::NoInterpreter);
            }
        }
    }

    /// Karpenter takes every carriage return out. In text that it passes through, cloud-init does so where the first
    /// line has one.
    // cloud-init cloudinit/util.py dos2unix; karpenter-provider-aws v1.14.1
    // pkg/providers/amifamily/bootstrap/mime/mime.go
    fn carriage_returns(&mut self, span: Span) {
        let text = span.of(self.text);
        let first = text.find('\n').map_or(text, |end| text.get(..end).unwrap_or_default());
        if self.data.family != Family::Custom || first.ends_with('\r') {
            return;
        }
        let mut calls: Vec<Span> = self.data.bootstrap_calls.iter().map(|call| call.span).collect();
        calls.sort_unstable();
        let before =
            |at: usize| calls.partition_point(|call| call.start <= at).checked_sub(1).and_then(|last| calls.get(last));
        let in_call = |at: &usize| before(*at).is_some_and(|call| *at <= call.end);
        let mut ends = text.match_indices("\r\n").map(|(at, _)| span.start + at);
        let Some(first) = ends.clone().next() else { return };
        if let Some(at) = ends.find(in_call) {
            let message = "this line ends in a carriage return, which the shell takes for a part of the command: only \
                           the first line decides whether cloud-init takes them out";
            self.defect(DefectKind::CarriageReturn, Span::new(at, at + 1), message);
        } else {
            self.unread(Span::new(first, first + 1));
        }
    }

    fn shell(&mut self, source: &Traced, around: Runs, depth: usize) {
        let script = shell::read(source);
        if let Some(span) = script.open_quote {
            self.defect(DefectKind::OpenQuote, span, "this quote is never closed: the shell stops at this command");
        }
        if around == Runs::Always && depth == DEEPEST_SHELL && script.open_quote.is_none() {
            self.ends_at_failure(source.as_str(), &script.commands);
        }
        for mut command in script.commands {
            if around != Runs::Always {
                command.runs = around;
            }
            self.command(&command, depth);
        }
        if let Some(open) = script.open_document {
            self.open_document(&open);
        }
    }

    /// A here-document that no line ends. Bash only warns, and takes the rest of the script for its text.
    // bash(1), Here Documents
    fn open_document(&mut self, open: &OpenDocument) {
        let name = open.delimiter.of(self.text);
        let is_usual = !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || "_'\"-".contains(c));
        // Any other word may be a `<<` that is read here and is none.
        if !is_usual && open.near.is_none() {
            return;
        }
        let calls = open.body.lines().any(|line| line.trim_start().starts_with(BOOTSTRAP));
        let calls = calls && self.data.family == Family::Custom && self.data.bootstrap_calls.is_empty();
        let why = if open.near.is_some() { "a blank is beside its last line" } else { "no line ends it" };
        let swallows = if calls { "the rest of the script, with the call that joins the node," } else { "the rest" };
        let message = format!("this here-document never ends, because {why}: bash takes {swallows} for its text");
        let kind = if calls { DefectKind::CallInDocument } else { DefectKind::OpenDocument };
        self.defect(kind, open.near.unwrap_or(open.delimiter), message);
    }

    fn command(&mut self, command: &Command, depth: usize) {
        let words = program(&command.words);
        let Some((name, arguments)) = words.split_first() else { return };
        let path = name.text.as_str();
        let document = command.document.as_ref().filter(|document| mentions_kubelet(document.text.as_str()));
        let misspelt = || known_flags::is_near(BOOTSTRAP, path) || BOOTSTRAP.strip_suffix(".sh") == Some(path);
        if path != BOOTSTRAP && path.starts_with('/') && name.exact && command.runs == Runs::Always && misspelt() {
            let message = format!("no file is at {path}; the script of Amazon Linux 2 is {BOOTSTRAP}");
            self.defect(DefectKind::NoBootstrapScript, name.text.span(), message);
            return;
        }
        match path.rsplit('/').next().unwrap_or_default() {
            "bootstrap.sh" if joins_node(path) => self.bootstrap(command, name, arguments),
            "kubelet" if joins_node(path) => self.direct_kubelet(command, arguments),
            "nodeadm" => self.nodeadm_call(command, name, arguments),
            "sysctl" if command.runs == Runs::Always && !self.kubelet_runs => {
                let exact = arguments.iter().filter(|word| word.exact && word.text.as_str().contains('='));
                self.parameters.extend(exact.map(|word| word.text.clone()));
            }
            "bash" | "sh" | "eval" if depth > 0 => {
                let flag_c =
                    arguments.iter().position(|w| w.text.as_str().starts_with('-') && w.text.as_str().ends_with('c'));
                let inner = match flag_c {
                    Some(at) => arguments.get(at + 1),
                    None if path == "eval" => arguments.first(),
                    None => command.document.as_ref(),
                };
                if let Some(inner) = inner.filter(|inner| inner.exact) {
                    self.shell(&inner.text, command.runs, depth - 1);
                } else if inner.is_some_and(|inner| mentions_kubelet(inner.text.as_str())) {
                    self.unread(command.span);
                }
            }
            program if document.is_some() || edits_kubelet(program, command) => {
                let message = "this changes what starts the kubelet, in a way that is not followed here";
                self.defect(DefectKind::KubeletEdited, command.span, message);
                self.unread(command.span);
            }
            _ if !name.exact && command.words.iter().any(|word| mentions_kubelet(word.text.as_str())) => {
                self.unread(command.span);
            }
            _ => {}
        }
    }

    /// Whether a word is nothing but a `\` with the blank behind it, at the end of a line.
    fn is_escaped_blank(&self, word: &Word) -> bool {
        let blank = |text: &str| !text.is_empty() && text.chars().all(|c| matches!(c, ' ' | '\t'));
        let behind = self.text.get(word.text.span().end..).unwrap_or_default();
        let line = behind.split('\n').next().unwrap_or_default();
        blank(word.text.as_str()) && line.trim().is_empty() && behind.contains('\n')
    }

    fn bootstrap(&mut self, command: &Command, name: &Word, arguments: &[Word]) {
        let span = Span::new(
            name.text.span().start,
            arguments.last().map_or(name.text.span().end, |word| word.text.span().end),
        );
        let span = if span.end > span.start { span } else { command.span };
        let reading = bootstrap::read(arguments, span);
        if let Some(blank) = arguments.last().filter(|word| self.is_escaped_blank(word)) {
            let message = "a blank follows this `\\`, so the command ends here and the shell runs the next line as a \
                           command of its own";
            self.defect(DefectKind::BlankAfterBackslash, blank.text.span(), message);
        }
        let never = match command.runs {
            Runs::AfterExit => Some(Loss::AfterExit),
            Runs::SyntaxError => Some(Loss::SyntaxError),
            _ if self.data.family == Family::Al2023 => Some(Loss::NoBootstrapScript),
            _ if self.kubelet_runs => Some(Loss::KubeletRunsAlready),
            _ if !reading.call.completes => Some(Loss::BootstrapExits),
            _ => None,
        };
        if never == Some(Loss::NoBootstrapScript) {
            self.defect(
                DefectKind::NoBootstrapScript,
                span,
                "Amazon Linux 2023 has no /etc/eks/bootstrap.sh: nodeadm starts the kubelet there",
            );
        } else {
            // A word that may be none, or several, moves all the others.
            let known = !arguments.iter().any(|word| word.vague);
            self.data.defects.extend(reading.defects.iter().filter(|_| known).cloned());
        }
        let certain = command.runs == Runs::Always;
        match never {
            Some(Loss::AfterExit) if !self.kubelet_runs => {
                self.defect(
                    DefectKind::NeverReached,
                    span,
                    "this is never reached: the script has ended with `exit` before",
                );
            }
            Some(Loss::KubeletRunsAlready) => {
                self.defect(DefectKind::SecondBootstrap, span, Loss::KubeletRunsAlready.to_string());
            }
            _ => {}
        }
        self.typography(&reading, arguments, never);
        for (word, loss) in reading
            .replaced
            .iter()
            .map(|w| (&w.text, Loss::RepeatedOption))
            .chain(reading.equals_forms.iter().map(|t| (t, Loss::EqualsForm)))
        {
            let words = systemd::words(word, Generation::V252).unwrap_or_default();
            self.flags(&words, ArgumentOrigin::BootstrapExtraArgs, &Fate::Lost(loss), Certain::Wholly);
        }
        if let Some(extra) = &reading.extra_args {
            let words = if extra.exact { Certain::Wholly } else { Certain::ButForExpansions };
            let known = certain && reading.settled;
            self.extra_args(extra, never, if known { words } else { Certain::No });
        }
        self.flags(
            &reading.loose,
            ArgumentOrigin::BootstrapExtraArgs,
            &Fate::Lost(never.unwrap_or(Loss::LooseWord)),
            Certain::Wholly,
        );
        if never.is_none() && self.data.family == Family::Al2 {
            let message =
                "this starts the kubelet before Karpenter's own call of bootstrap.sh, which then changes nothing";
            self.defect(DefectKind::BootstrapBeforeKarpenter, span, message);
        }
        let starts_kubelet = never.is_none() && certain;
        self.kubelet_runs |= starts_kubelet;
        self.data.bootstrap_calls.push(BootstrapCall { starts_kubelet, ..reading.call });
    }

    /// Quotes and dashes that a word processor put in: no shell and no program takes them for its own.
    fn typography(&mut self, reading: &bootstrap::CallParts, arguments: &[Word], never: Option<Loss>) {
        if let Some(name) = reading.call.cluster_name.as_ref().filter(|_| never.is_none())
            && let Some(at) = name.span.of(self.text).find(is_typographic)
        {
            let message =
                "this typographic character is no ASCII quote or dash: it becomes a part of the cluster's name";
            return self.defect(DefectKind::TypographicCharacter, character(self.text, name.span.start + at), message);
        }
        let values: HashSet<Span> = reading.call.options.iter().map(|(_, value)| value.span).collect();
        let is_value = |word: &Word| values.contains(&word.text.span());
        if let Some(word) =
            arguments.iter().find(|word| word.text.as_str().starts_with(['–', '—', '−']) && !is_value(word))
        {
            let start = word.text.span().start;
            let message = "this is a typographic dash: bootstrap.sh wants `--`, and does not know the option";
            self.defect(DefectKind::TypographicOption, character(self.text, start), message);
        }
    }

    /// The one value of `--kubelet-extra-args` on its way through systemd.
    fn extra_args(&mut self, extra: &Word, never: Option<Loss>, certain: Certain) {
        let (text, certain) = closed(&extra.text, certain);
        let through = |generation| {
            let assigned = systemd::environment(&text, generation)?;
            systemd::words(&assigned.text, generation).map(|words| (words, assigned.exact))
        };
        let elsewhere = through(Generation::V252);
        let read = through(Generation::V219);
        // bootstrap.sh means Amazon Linux 2, but a custom image may carry it on another one.
        let certain = certain.only_if(self.data.family == Family::Al2 || read == elsewhere);
        let raw = || systemd::words(&text, Generation::V252).unwrap_or_default();
        let (words, fate, certain) = match (never, read) {
            (Some(loss), _) => (raw(), Fate::Lost(loss), certain),
            (None, Ok((words, exact))) => (words, Fate::Taken, certain.only_if(exact)),
            (None, Err(GivenUp::Dropped)) => {
                self.defect(DefectKind::AssignmentDropped, text.span(), Loss::AssignmentDropped.to_string());
                (raw(), Fate::Lost(Loss::AssignmentDropped), certain)
            }
            (None, Err(GivenUp::NotStarted)) => {
                self.defect(DefectKind::NotStarted, text.span(), Loss::NotStarted.to_string());
                (raw(), Fate::Lost(Loss::NotStarted), certain)
            }
        };
        self.flags(&words, ArgumentOrigin::BootstrapExtraArgs, &fate, certain);
    }

    /// A kubelet that the script starts itself: its words are final.
    fn direct_kubelet(&mut self, command: &Command, arguments: &[Word]) {
        let words: Vec<Traced> = arguments.iter().map(|word| word.text.clone()).collect();
        let certain = if arguments.iter().all(|word| word.exact) { Certain::Wholly } else { Certain::ButForExpansions };
        let certain = certain.only_if(command.runs == Runs::Always && !arguments.iter().any(|word| word.vague));
        let fate = match command.runs {
            Runs::AfterExit => Fate::Lost(Loss::AfterExit),
            Runs::SyntaxError => Fate::Lost(Loss::SyntaxError),
            Runs::Always | Runs::Perhaps => Fate::Taken,
        };
        self.flags(&words, ArgumentOrigin::DirectKubelet, &fate, certain);
    }

    fn flags(&mut self, words: &[Traced], origin: ArgumentOrigin, fate: &Fate, certain: Certain) {
        let certain = match certain {
            Certain::Wholly if words.iter().any(|word| has_placeholder(word.as_str())) => Certain::ButForExpansions,
            certain => certain,
        };
        let may_be_flags = |word: &Traced| !word.as_str().starts_with('-') && has_expansion(word.as_str());
        self.data.is_open |= words.iter().any(may_be_flags);
        let line = kubelet_flags::command_line(words);
        for flag in &line.flags {
            self.data.arguments.push(Argument {
                setting: Setting::Flag(flag.name.clone()),
                value: flag.value.as_str().to_owned(),
                span: flag.span,
                origin,
                fate: fate.clone(),
                exact: match certain {
                    Certain::Wholly => true,
                    Certain::ButForExpansions => !has_expansion(&flag.name) && !has_expansion(flag.value.as_str()),
                    Certain::No => false,
                },
                settled: certain != Certain::No,
                source: flag.value.clone(),
            });
        }
        if *fate == Fate::Taken && certain == Certain::Wholly {
            self.command_line_defects(words, &line, origin);
        } else if *fate == Fate::Taken && certain == Certain::ButForExpansions {
            self.command_line_defects(words, &without_expansions(words, line), origin);
        }
    }

    /// What the kubelet exits over before it looks at any value.
    fn command_line_defects(&mut self, words: &[Traced], line: &CommandLine, origin: ArgumentOrigin) {
        let typographic =
            words.iter().find_map(|word| word.as_str().find(is_typographic).map(|at| word.place(at).start));
        if let Some(at) = typographic {
            let message = "the kubelet exits over this typographic character, which is no ASCII quote or dash and \
                           becomes a part of its flags";
            return self.defect(DefectKind::TypographicCharacter, character(self.text, at), message);
        }
        for &span in &line.stray {
            let message = "this word is no flag and no flag's value: the kubelet exits with `unknown command`";
            self.defect(DefectKind::StrayArgument, span, message);
        }
        for &span in &line.single_dash {
            self.defect(DefectKind::SingleDash, span, "the kubelet exits over the single dash: a flag begins with two");
        }
        if let Some(span) = line.without_value {
            let name = line.flags.last().map_or("", |flag| flag.name.as_str());
            let mut message =
                format!("the kubelet exits with `flag needs an argument: --{name}`, since no value follows");
            if origin == ArgumentOrigin::BootstrapExtraArgs {
                message.push_str("; bootstrap.sh takes only one word behind --kubelet-extra-args: ");
                let own = bootstrap::is_option(&format!("--{name}"));
                message.push_str(if own {
                    "this is an option of its own, to be given without that"
                } else {
                    "quote all of its value"
                });
            } else if origin == ArgumentOrigin::NodeConfigFlags && self.data.family == Family::Al2023 {
                // nodeadm puts Karpenter's flags behind the user's.
                message = format!("--{name} has no value, and takes Karpenter's --node-labels=… behind it for one");
            }
            self.defect(DefectKind::FlagWithoutValue, span, message);
        }
        let single: HashSet<usize> = line.single_dash.iter().map(|dash| dash.start).collect();
        for flag in line.flags.iter().filter(|flag| known_flags::look_up(&flag.name) == Recognized::No) {
            if single.contains(&flag.span.start) {
                continue;
            }
            let meant = known_flags::nearest(&flag.name).map_or_else(String::new, |near| format!("; --{near} is one"));
            let message = format!("the kubelet exits over this: it has no flag --{}{meant}", flag.name);
            self.defect(DefectKind::UnknownFlag, flag.span, message);
        }
    }

    fn node_config(&mut self, span: Span) {
        let by_content = self.data.parts.len() == 1 && span == self.whole() && self.data.family == Family::Al2023;
        if placeholder::begins(span.of(self.text)) {
            return self.unread(span);
        }
        let names_kind = self.text.lines().any(|line| line.trim_end() == "kind: NodeConfig");
        match nodeconfig::read(self.text, span) {
            _ if self.data.family == Family::Al2 => {
                self.defect(DefectKind::NodeConfigIgnored, span, Loss::NodeConfigIgnored.to_string());
            }
            Ok(config) => self.data.node_configs.push(config),
            // The user never said NodeConfig: Karpenter found that the text happens to be YAML.
            Err(defect) if by_content && !nodeconfig::names_itself_node_config(self.text) && !names_kind => {
                let message = "Karpenter takes this text for a NodeConfig because it parses as YAML; nodeadm then \
                               fails over it. Sent as a MIME part of its own type it would be what it is meant to be";
                self.defect(DefectKind::MisreadAsNodeConfig, defect.span, message);
            }
            Err(defect) => self.data.defects.push(defect),
        }
    }

    /// Merges the `NodeConfig`s in their order, with Karpenter's last.
    // amazon-eks-ami 81fec2e nodeadm/internal/api/merge.go: flags are appended, fields of the kubelet's configuration
    // replaced
    fn node_configs(&mut self) {
        let configs = std::mem::take(&mut self.data.node_configs);
        let karpenter = self.data.family != Family::Custom;
        let mut joined = Traced::default();
        let replaced = if karpenter { KARPENTER_FIELDS } else { &[] };
        for config in &configs {
            self.data.defects.extend_from_slice(&config.ignored);
            if let Some(kubelet) = &config.kubelet {
                let is_map = matches!(kubelet.value, YamlValue::Map(_) | YamlValue::Null);
                self.data.is_open |= !is_map || kubelet.entries().iter().any(|(name, _)| has_expansion(name));
                self.data.defects.extend(kubelet_config::check(self.text, kubelet, replaced));
            }
            for field in &config.fields {
                let replaced = karpenter && KARPENTER_FIELDS.contains(&field.name.as_str());
                self.data.arguments.push(Argument {
                    setting: Setting::Field(field.name.clone()),
                    value: field.value.as_str().to_owned(),
                    span: field.span,
                    origin: ArgumentOrigin::NodeConfigConfig,
                    fate: if replaced { Fate::Overridden(By::Karpenter) } else { Fate::Taken },
                    exact: !has_placeholder(field.value.as_str()),
                    settled: true,
                    source: field.value.clone(),
                });
            }
            for flag in &config.flags {
                if !joined.is_empty() {
                    joined.push_unwritten(' ', 0);
                }
                joined.append(flag);
            }
        }
        self.data.node_configs = configs;
        self.data.defects.extend(nodeconfig::refused_strategy(&self.data.node_configs));
        self.cluster();
        let refused = containerd::check(self.data.node_configs.iter().map(|config| &config.containerd));
        self.data.defects.extend(refused);
        let (joined, certain) = closed(&joined, Certain::Wholly);
        // A block scalar ends in a line end: it cuts off the flags behind it, not its own text.
        let (line, cut) = systemd::environment_file(&joined);
        let words = systemd::words(&line, Generation::V252).unwrap_or_default();
        self.flags(&words, ArgumentOrigin::NodeConfigFlags, &Fate::Taken, certain);
        if let Some(at) = cut {
            let end = joined.place(at - 1);
            let message =
                "this line end in a flag drops every flag behind it, Karpenter's own --node-labels among them";
            self.defect(DefectKind::CutAtNewline, end, message);
            let words = systemd::words(&joined.from(at), Generation::V252).unwrap_or_default();
            self.flags(&words, ArgumentOrigin::NodeConfigFlags, &Fate::Lost(Loss::CutAtNewline), certain);
        }
    }

    /// Whether nodeadm learns all that it wants to know of the cluster. A script may write a NodeConfig of its own.
    fn cluster(&mut self) {
        let is_script = |part: &&Part| part.kind == PartKind::Shell;
        let scripted = self.data.parts.iter().filter(is_script).any(|part| part.span.of(self.text).contains("nodeadm"));
        if self.data.family == Family::Custom && self.data.unread_from.is_none() && !scripted {
            self.data.defects.extend(nodeconfig::incomplete_cluster(&self.data.node_configs));
        }
    }

    fn bottlerocket(&mut self) {
        let by_karpenter = self.data.family == Family::Bottlerocket;
        let settings = bottlerocket::read(self.text, by_karpenter);
        let mut push = |setting, source: Traced, span, replaced| {
            self.data.arguments.push(Argument {
                setting,
                value: source.as_str().to_owned(),
                span,
                origin: ArgumentOrigin::BottlerocketSetting,
                fate: if replaced && by_karpenter { Fate::Overridden(By::Karpenter) } else { Fate::Taken },
                exact: !has_placeholder(source.as_str()),
                settled: true,
                source,
            });
        };
        for (label, span) in settings.labels {
            push(Setting::Flag("node-labels".to_owned()), label, span, false);
        }
        if let Some((taints, span)) = settings.taints {
            push(Setting::Flag("register-with-taints".to_owned()), taints, span, true);
        }
        for (key, value, span) in settings.others {
            let replaced = KARPENTER_SETTINGS.contains(&key.as_str());
            push(Setting::Field(key), value, span, replaced);
        }
        self.data.region = settings.region;
        self.data.defects.extend(settings.defects);
    }

    fn powershell(&mut self, span: Span) {
        for value in windows::extra_args(self.text, span) {
            let words = systemd::words(&value, Generation::V252).unwrap_or_default();
            self.flags(&words, ArgumentOrigin::WindowsExtraArgs, &Fate::Taken, Certain::No);
        }
        if let Some(option) = windows::linux_option(self.text, span) {
            let name = option.of(self.text);
            let message = format!(
                "{name} is an option of bootstrap.sh, and Start-EKSBootstrap.ps1 takes parameters with one dash, such \
                 as -KubeletExtraArgs"
            );
            self.defect(DefectKind::OptionOfBootstrapSh, option, message);
            // Nothing here proves that the script comes to this call.
            self.unread(option);
        }
        if let Some(span) = windows::ends_at(self.text, span).filter(|_| self.data.family == Family::Windows) {
            self.defect(
                DefectKind::EndsBeforeKarpenter,
                span,
                "this ends the script before Karpenter's own lines, which join the node",
            );
        }
        self.powershell_script(span);
    }

    /// Karpenter writes the tags and its own lines around the text of its Windows families. Elsewhere the text has them.
    // karpenter-provider-aws v1.15.0 pkg/providers/amifamily/bootstrap/windows.go
    fn powershell_script(&mut self, span: Span) {
        let script = if self.data.family == Family::Windows {
            // Whichever of the tags EC2 takes: PowerShell refuses a `<` between them, or Karpenter's lines are outside.
            if let Some(tag) = windows::tag(self.text, span) {
                let message = "Karpenter writes this tag itself: with another one inside, PowerShell does not run \
                               Karpenter's own lines, which join the node";
                return self.defect(DefectKind::OwnTags, tag, message);
            }
            Some(span)
        } else {
            // Any other script of an image of one's own may join nothing.
            windows::between_tags(self.text, span).filter(|script| windows::calls_bootstrap(script.of(self.text)))
        };
        // A placeholder may hold quotes and brackets.
        let is_open = |script: &Span| ["${", "{{"].iter().any(|mark| script.of(self.text).contains(mark));
        if let Some(script) = script.filter(|script| !is_open(script)) {
            let is_windows = self.data.family == Family::Windows;
            let joins = |before: &str, behind: &str| windows::joins_behind(before, behind, is_windows);
            self.data.defects.extend(powershell::check(self.text, script, joins));
        }
    }

    /// What the kubelet exits over.
    fn check(&mut self) {
        let mut found = Vec::new();
        for argument in &self.data.arguments {
            let flag = matches!(argument.setting, Setting::Flag(_));
            // Every occurrence of a flag is parsed, also one that a later one replaces.
            let parsed = argument.is_taken() || (flag && matches!(argument.fate, Fate::Overridden(By::Later(_))));
            if !parsed {
                continue;
            }
            if flag
                && argument.exact
                && !has_expansion(&argument.value)
                && let Some((span, why)) = kubelet_config::flag_refusal(argument.name(), &argument.value)
            {
                let message = format!("the kubelet exits over --{}: {why}", argument.name());
                found.push(Defect { kind: DefectKind::InvalidFlagValue, span: argument.place(span), message });
            }
            if argument.exact
                && sets(&argument.setting, "register-with-taints")
                && let Err(error) = kubelet_flags::parse_taints(&argument.value)
            {
                let message = format!("the kubelet exits over its taints: {}", error.message);
                found.push(Defect { kind: DefectKind::InvalidTaints, span: argument.place(error.span), message });
            }
            found.extend(fixed_name(argument));
            if sets(&argument.setting, "node-labels") {
                let refused = kubelet_flags::refused_labels(&argument.value).into_iter();
                for (key, span) in refused.filter(|(key, _)| argument.is_certain_of(key)) {
                    let message = format!(
                        "the kubelet exits over this label: {key} lies in a Kubernetes domain that is not the \
                         kubelet's to set"
                    );
                    found.push(Defect { kind: DefectKind::RefusedLabel, span: argument.place(span), message });
                }
                let is_certain = |pair: &str| argument.is_certain_of(pair);
                if let Some(error) = kubelet_flags::invalid_label_of(&argument.value, &is_certain) {
                    let message = format!("the kubelet exits over its labels: {}", error.message);
                    found.push(Defect { kind: DefectKind::InvalidLabels, span: argument.place(error.span), message });
                }
            }
        }
        self.data.defects.extend(found);
        self.kernel_parameters();
    }

    /// EKS's images for Amazon Linux start the kubelet with protectKernelDefaults; the last to set a parameter wins.
    // amazon-eks-ami v20251112 templates/al2/runtime/kubelet-config.json; 81fec2e nodeadm/internal/kubelet/config.go
    fn kernel_parameters(&mut self) {
        let is_off = self.data.effective("protect-kernel-defaults").is_some_and(|argument| argument.value != "true");
        if is_off || !matches!(self.data.family, Family::Al2 | Family::Al2023) {
            return;
        }
        let mut seen = HashSet::new();
        let last: Vec<Traced> = std::mem::take(&mut self.parameters)
            .into_iter()
            .rev()
            .filter(|text| seen.insert(text.as_str().split('=').next().unwrap_or_default().replace('/', ".")))
            .collect();
        for text in last {
            let objection = text.as_str().split_once('=').and_then(|(name, value)| objection(name, value));
            if let Some(message) = objection {
                self.defect(DefectKind::KernelParameterRefused, text.span(), message);
            }
        }
    }
}

/// A node name that is written out. The API server lets a kubelet create only the Node of its own instance.
// amazon-eks-ami 81fec2e nodeadm/internal/kubelet/{config,environment}.go: the name of the instance, and the user's flags
// behind it; v20251112 templates/al2/runtime/bootstrap.sh likewise; kubernetes v1.36.3
// plugin/pkg/admission/noderestriction/admission.go
fn fixed_name(argument: &Argument) -> Option<Defect> {
    let is_of_eks = matches!(argument.origin, ArgumentOrigin::BootstrapExtraArgs | ArgumentOrigin::NodeConfigFlags);
    let is_literal = argument.exact && !argument.value.is_empty() && !has_expansion(&argument.value);
    if !is_of_eks || !is_literal || !argument.is_taken() || !sets(&argument.setting, "hostname-override") {
        return None;
    }
    let message = format!(
        "every kubelet would call its Node {}, and the API server lets a kubelet create only the Node of its own \
         instance",
        argument.value
    );
    Some(Defect { kind: DefectKind::NodeNameFixed, span: argument.span, message })
}

/// Quotes and dashes of typography.
fn is_typographic(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2015}' | '\u{2018}'..='\u{201f}' | '\u{2212}' | '\u{2032}' | '\u{2033}' | '«' | '»' | '\u{a0}')
}

/// The character that begins at `at`.
fn character(text: &str, at: usize) -> Span {
    let length = text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
    Span::new(at, at + length)
}

/// The line of a shell script with which a NodeConfig begins that is no input of a command, and no text in quotes.
fn node_config_among(script: &str) -> Option<Span> {
    let at = script.find("\napiVersion: node.eks.aws/")? + 1;
    let (before, rest) = script.split_at_checked(at)?;
    let is_quoted = ['"', '\''].iter().any(|quote| before.matches(*quote).count() % 2 == 1);
    let is_of_shell = before.lines().next().is_some_and(|interpreter| interpreter.contains("sh"));
    let line = rest.lines().next().unwrap_or_default();
    (is_of_shell && !is_quoted && !before.contains("<<")).then(|| Span::new(at, at + line.len()))
}

/// What Karpenter's own `NodeConfig` always sets.
// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/nodeadm.go generateInlineKubeletConfiguration
const KARPENTER_FIELDS: &[&str] = &["registerWithTaints", "maxPods", "clusterDNS"];

/// What Karpenter always sets in Bottlerocket's settings, besides taints.
// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/bottlerocket.go
const KARPENTER_SETTINGS: &[&str] = &["cluster-name", "api-server", "cluster-certificate", "max-pods"];

/// Flags whose occurrences add up instead of replacing each other.
// kubernetes v1.36.3 cmd/kubelet/app/options/options.go: MapStringString, StringSlice and MapStringBool variables
const ADDING_FLAGS: &[&str] = &[
    "node-labels",
    "feature-gates",
    "kube-reserved",
    "system-reserved",
    "eviction-hard",
    "eviction-soft",
    "eviction-soft-grace-period",
    "eviction-minimum-reclaim",
    "cluster-dns",
    "allowed-unsafe-sysctls",
    "qos-reserved",
];

/// Marks what a later argument for the same setting replaces. Fields stand before flags.
fn override_earlier(arguments: &mut [Argument]) {
    let mut later: HashMap<String, Span> = HashMap::new();
    for argument in arguments.iter_mut().rev().filter(|argument| argument.is_taken()) {
        let key: String = argument.name().chars().filter(|&c| c != '-').map(|c| c.to_ascii_lowercase()).collect();
        match later.get(&key) {
            Some(&span) => argument.fate = Fate::Overridden(By::Later(span)),
            // What is perhaps not run may replace nothing.
            None if argument.exact && !ADDING_FLAGS.contains(&argument.name()) => {
                later.insert(key, argument.span);
            }
            None => {}
        }
    }
}

/// The words of the program that a command really runs, behind `sudo` and the like.
fn program(words: &[Word]) -> &[Word] {
    let mut words = words;
    while let Some((first, rest)) = words.split_first() {
        match first.text.as_str() {
            "sudo" | "exec" | "command" | "nohup" | "env" | "nice" => {
                let options = rest
                    .iter()
                    .take_while(|w| w.text.as_str().starts_with('-') || w.text.as_str().contains('='))
                    .count();
                words = rest.get(options..).unwrap_or_default();
            }
            // "bash -x script words": the script is the program, unless it comes as text.
            "bash" | "sh" | "/bin/bash" | "/bin/sh" | "/usr/bin/bash" => {
                let options = rest.iter().take_while(|w| w.text.as_str().starts_with(['-', '+'])).count();
                let takes_text =
                    rest.iter().take(options).any(|w| w.text.as_str().ends_with('c') || w.text.as_str().ends_with('s'));
                if takes_text || options == rest.len() {
                    return words;
                }
                words = rest.get(options..).unwrap_or_default();
            }
            _ => return words,
        }
    }
    words
}

fn mentions_kubelet(text: &str) -> bool {
    ["bootstrap.sh", "kubelet", "register-with-taints", "nodeadm", "node.eks.aws"]
        .iter()
        .any(|name| text.contains(name))
}

/// Places that decide how the kubelet is started.
const KUBELET_PLACES: &[&str] = &[
    "/etc/eks/bootstrap.sh",
    "/etc/eks/kubelet",
    "/etc/eks/nodeadm.d",
    "/etc/kubernetes/kubelet",
    "/etc/systemd/system/kubelet.service",
    "/usr/lib/systemd/system/kubelet.service",
    "/etc/default/kubelet",
    "/etc/sysconfig/kubelet",
];

/// The script that joins a machine of Amazon Linux 2.
const BOOTSTRAP: &str = "/etc/eks/bootstrap.sh";

/// Programs that change a file named among their words.
const EDITORS: &[&str] =
    &["sed", "tee", "cp", "mv", "install", "ln", "yq", "perl", "python", "python3", "dd", "patch", "rm"];

fn edits_kubelet(program: &str, command: &Command) -> bool {
    let named = |word: &Word| KUBELET_PLACES.iter().any(|place| word.text.as_str().contains(place));
    command.output.as_ref().is_some_and(named) || (EDITORS.contains(&program) && command.words.iter().any(named))
}
