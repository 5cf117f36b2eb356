//! Secrets that commands take: `curl -u name:secret`, `docker login -p secret`, `echo root:secret | chpasswd`.

use super::Span;
use super::names::is_secret_name;

/// What of an argument is secret.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    All,
    /// Behind the first colon, if there is one.
    BehindColon,
    /// Behind the first percent sign, if there is one.
    BehindPercent,
}
use Part::{All, BehindColon, BehindPercent};

/// A flag, what of its value is secret, and whether the value may be a word of its own.
type Flag = (&'static str, Part, bool);

const CURL: &[Flag] = &[
    ("-u", BehindColon, true),
    ("--user", BehindColon, true),
    ("-U", BehindColon, true),
    ("--proxy-user", BehindColon, true),
    ("--pass", All, true),
    ("--proxy-pass", All, true),
    ("-E", BehindColon, true),
    ("--cert", BehindColon, true),
];
const HTTPIE: &[Flag] = &[("-a", BehindColon, true), ("--auth", BehindColon, true)];
/// A password that is a word of its own would be the name of a database.
const MYSQL: &[Flag] = &[("-p", All, false)];
const BIG_P: &[Flag] = &[("-P", All, true)];
const SMALL_P: &[Flag] = &[("-p", All, true)];
const LDAP: &[Flag] = &[("-w", All, true)];
const SAMBA: &[Flag] = &[("-U", BehindPercent, true), ("--user", BehindPercent, true)];
const SNMP: &[Flag] = &[("-A", All, true), ("-X", All, true), ("-c", All, true)];
const OPENSSL: &[Flag] = &[("-k", All, true), ("-K", All, true)];
const REDIS: &[Flag] = &[("-a", All, true)];

/// Programs by their names, and their flags that hold a secret. `login` is a command of docker, podman, helm, oc, az …
const PROGRAMS: &[(&str, &[Flag])] = &[
    ("curl", CURL),
    ("wget", CURL),
    ("http", HTTPIE),
    ("https", HTTPIE),
    ("httpie", HTTPIE),
    ("login", SMALL_P),
    ("sshpass", SMALL_P),
    ("useradd", SMALL_P),
    ("usermod", SMALL_P),
    ("mongo", SMALL_P),
    ("mongosh", SMALL_P),
    ("mongodump", SMALL_P),
    ("mongorestore", SMALL_P),
    ("influx", SMALL_P),
    ("lpass", SMALL_P),
    ("mysql", MYSQL),
    ("mysqldump", MYSQL),
    ("mysqladmin", MYSQL),
    ("mysqlimport", MYSQL),
    ("mysqlcheck", MYSQL),
    ("mysqlsh", MYSQL),
    ("mysqlpump", MYSQL),
    ("mariadb", MYSQL),
    ("mariadb-dump", MYSQL),
    ("mariadb-admin", MYSQL),
    ("7z", MYSQL),
    ("7za", MYSQL),
    ("7zz", MYSQL),
    ("unrar", MYSQL),
    ("rar", MYSQL),
    ("unzip", BIG_P),
    ("zip", BIG_P),
    ("sqlcmd", BIG_P),
    ("bcp", BIG_P),
    ("ipmitool", BIG_P),
    ("mosquitto_pub", BIG_P),
    ("mosquitto_sub", BIG_P),
    ("ldapsearch", LDAP),
    ("ldapadd", LDAP),
    ("ldapmodify", LDAP),
    ("ldapdelete", LDAP),
    ("ldapwhoami", LDAP),
    ("ldappasswd", LDAP),
    ("adcli", LDAP),
    ("smbclient", SAMBA),
    ("rpcclient", SAMBA),
    ("realm", SAMBA),
    ("net", SAMBA),
    ("snmpwalk", SNMP),
    ("snmpget", SNMP),
    ("snmpset", SNMP),
    ("openssl", OPENSSL),
    ("redis-cli", REDIS),
];

/// A line that goes on with the flags of a command above it, which is not shown.
const GOES_ON: &[Flag] =
    &[("-u", BehindColon, true), ("--user", BehindColon, true), ("--proxy-user", BehindColon, true)];

/// Programs and flags whose standard input is secret.
const READS_SECRET: &[&str] = &[
    "chpasswd",
    "newusers",
    "passwd",
    "chgpasswd",
    "smbpasswd",
    "kinit",
    "vncpasswd",
    "--password-stdin",
    "--stdin",
    "--with-token",
    "--password-from-stdin",
    "--passphrase-fd",
    "--pass-stdin",
    "--secret-stdin",
    "cryptsetup",
];

/// Whether the standard input of this program, or of a command with this flag, is secret.
pub(super) fn reads_secret(word: &str) -> bool {
    READS_SECRET.contains(&word.rsplit('/').next().unwrap_or_default())
}

/// What prints its arguments.
const PRINTS: &[&str] =
    &["echo", "printf", "print", "write-output", "write-host", "/bin/echo", "/usr/bin/echo", "/usr/bin/printf"];

/// Commands in quotation marks in commands in quotation marks.
const DEEPEST: usize = 3;

/// A command, and whether it reads what the one before it prints.
#[derive(Default)]
struct Command {
    words: Vec<Span>,
    piped: bool,
}

/// The secrets of a line, which may be continued by backslashes.
pub(super) fn secrets(text: &str, line: Span, found: &mut Vec<Span>) {
    if may_take_secret(line.of(text)) {
        within(text, line, 0, found);
    }
}

/// Whether a line has a name that [`Arguments::secrets`] looks for. Most messages have none, and dividing one into its
/// commands allocates.
fn may_take_secret(line: &str) -> bool {
    // A redirection may name a file of a secret.
    line.contains('>') || pieces(line).any(|(piece, behind)| may_be_taker(piece, behind))
}

/// The names of a line as programs and flags have them, and the character behind each.
fn pieces(line: &str) -> impl Iterator<Item = (&str, Option<char>)> {
    let in_piece = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| !in_piece(c));
        let (piece, behind) = rest.split_at(rest.find(|c| !in_piece(c)).unwrap_or(rest.len()));
        rest = behind;
        (!piece.is_empty()).then(|| (piece, behind.chars().next()))
    })
}

/// Whether this may be a program or a flag that takes a secret.
fn may_be_taker(piece: &str, behind: Option<char>) -> bool {
    /// What else [`Arguments::secrets`] and [`Arguments::positional`] know by name.
    const OTHERS: &[&str] = &[
        "sudo",
        "tee",
        "ConvertTo-SecureString",
        "net",
        "vault",
        "htpasswd",
        "add_user",
        "change_password",
        "authenticate_user",
    ];
    if piece.starts_with('-') && (piece.contains('u') || piece.starts_with("--from-literal")) {
        return true;
    }
    let is_word = behind.is_none_or(|c| c.is_whitespace() || "\"';|&()`,]\\".contains(c));
    let program = piece.trim_end_matches(".exe");
    is_word
        && (PROGRAMS.iter().any(|(name, _)| *name == program)
            || OTHERS.iter().any(|name| name.eq_ignore_ascii_case(piece))
            || piece.ends_with("NetworkCredential")
            || piece.ends_with("PSCredential")
            || reads_secret(piece))
}

fn within(text: &str, part: Span, depth: usize, found: &mut Vec<Span>) {
    let commands = commands(text, part);
    for (number, command) in commands.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|before| commands.get(before)).filter(|_| command.piped);
        let behind = commands.get(number + 1);
        Arguments { text, command, before, behind }.secrets(found);
        for word in command.words.iter().filter(|_| depth < DEEPEST) {
            let inner = inner(text, *word);
            if inner != *word && inner.of(text).contains([' ', '\t']) {
                within(text, inner, depth + 1, found);
            }
        }
    }
}

/// What stands within the quotation marks of a word, and behind a bracket or before a comma beside them.
fn inner(text: &str, word: Span) -> Span {
    let said = word.of(text);
    let begin = said.len() - said.trim_start_matches(['[', '\\']).len();
    let core = said[begin..].trim_end_matches([',', ']', '\\']);
    let at = word.start + begin;
    match core.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        Some(quote) if core.len() > 1 && core.ends_with(quote) => Span::new(at + 1, at + core.len() - 1),
        _ => Span::new(at, at + core.len()),
    }
}

/// The commands of a text, as a shell would separate them, and their words.
fn commands(text: &str, part: Span) -> Vec<Command> {
    let said = part.of(text);
    let bytes = said.as_bytes();
    let mut commands = Vec::new();
    let mut command = Command::default();
    command.words.reserve(1 + bytes.iter().filter(|byte| byte.is_ascii_whitespace()).count());
    let mut word: Option<usize> = None;
    // Quotation marks of each kind that nothing closes any more.
    let mut unclosed = [false; 2];
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match byte {
            b'"' | b'\'' if !unclosed[usize::from(byte == b'"')] => {
                word.get_or_insert(at);
                if let Some(close) = closing(&bytes[at + 1..], byte) {
                    at += close + 2;
                    continue;
                }
                unclosed[usize::from(byte == b'"')] = true;
            }
            b'\\' if bytes.get(at + 1).is_some_and(|next| !matches!(next, b'\r' | b'\n')) => {
                word.get_or_insert(at);
                at += 1;
            }
            b' ' | b'\t' | b'\r' | b'\n' | b'\\' => end_word(&mut word, at, part.start, &mut command),
            b';' | b'|' | b'&' | b'(' | b')' | b'`' => {
                end_word(&mut word, at, part.start, &mut command);
                let is_or = bytes.get(at + 1) == Some(&b'|');
                let piped = byte == b'|' && !is_or;
                at += usize::from(byte == b'|' && is_or);
                if !command.words.is_empty() {
                    commands.push(std::mem::take(&mut command));
                    command.piped = piped;
                } else if byte == b'|' {
                    command.piped = piped;
                }
            }
            _ => {
                word.get_or_insert(at);
            }
        }
        at += 1;
    }
    end_word(&mut word, bytes.len(), part.start, &mut command);
    commands.push(command);
    commands
}

fn end_word(word: &mut Option<usize>, at: usize, offset: usize, command: &mut Command) {
    if let Some(start) = word.take() {
        command.words.push(Span::new(offset + start, offset + at));
    }
}

/// Where a quotation ends. A backslash keeps the next character of one in double quotation marks.
fn closing(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'\\' && quote == b'"' {
            at += 1;
        } else if bytes[at] == quote {
            return Some(at);
        }
        at += 1;
    }
    None
}

struct Arguments<'a> {
    text: &'a str,
    command: &'a Command,
    /// The command that prints what this one reads.
    before: Option<&'a Command>,
    /// The next one, as of `cmd (…)`.
    behind: Option<&'a Command>,
}

impl<'a> Arguments<'a> {
    fn word(&self, number: usize) -> Option<&'a str> {
        self.command.words.get(number).map(|word| inner(self.text, *word).of(self.text))
    }

    fn secrets(&self, found: &mut Vec<Span>) {
        let words = &self.command.words;
        let first = self.word(0).unwrap_or_default();
        let mut goes_on = first.starts_with('-');
        let mut flags: &[Flag] = if goes_on { GOES_ON } else { &[] };
        let is_sudo = first == "sudo";
        let mut has_input = false;
        for number in 0..words.len() {
            let said = self.word(number).unwrap_or_default();
            // A quotation that ends on another line begins here.
            let name = said.rsplit(['/', '\\']).next().unwrap_or_default().trim_start_matches(['"', '\'']);
            if let Some((_, own)) = PROGRAMS.iter().find(|(program, _)| *program == name.trim_end_matches(".exe")) {
                (flags, goes_on) = (own, false);
            }
            for flag in flags {
                if let Some(secret) = self.flag(*flag, number, goes_on) {
                    found.push(secret);
                }
            }
            self.positional(number, name, found);
            let next = words.get(number + 1).map(|word| word.of(self.text));
            let reads = reads_secret(name)
                || (is_sudo && name == "-S")
                || (name == "tee"
                    && words.iter().skip(number + 1).take(4).any(|file| is_of_secret(file.of(self.text))));
            if !has_input && (reads || is_redirect(said, next)) {
                has_input = true;
                self.input(number, found);
            }
        }
    }

    /// The secret in the value of a flag, if this word is the flag.
    fn flag(&self, (flag, part, apart): Flag, number: usize, is_foreign: bool) -> Option<Span> {
        let word = inner(self.text, self.command.words[number]);
        let said = word.of(self.text);
        let is_long = flag.starts_with("--");
        let value = if said == flag || (!is_long && part == BehindColon && is_bundle(said, flag)) {
            if !apart {
                return None;
            }
            inner(self.text, *self.command.words.get(number + 1)?)
        } else {
            let rest = said.strip_prefix(flag)?;
            let rest = if is_long { rest.strip_prefix('=')? } else { rest.strip_prefix('=').unwrap_or(rest) };
            inner(self.text, Span::new(word.end - rest.len(), word.end))
        };
        let said = value.of(self.text);
        if said.starts_with(['-', '+']) || said.contains("://") {
            return None;
        }
        let secret = match part {
            All => value,
            BehindColon => Span::new(value.start + said.find(':')? + 1, value.end),
            BehindPercent => Span::new(value.start + said.find('%')? + 1, value.end),
        };
        let secret_text = secret.of(self.text);
        // `-u 1000:1000` is a user and a group, `-u C:\x` a path.
        let is_other = secret_text.bytes().all(|b| b.is_ascii_digit()) || secret_text.starts_with(['\\', '/']);
        let is_none = secret_text.is_empty() || (is_foreign && is_other);
        (!is_none).then_some(secret)
    }

    /// Secrets that stand behind the name of a program without a flag.
    fn positional(&self, number: usize, name: &str, found: &mut Vec<Span>) {
        let span = |number: usize| self.command.words.get(number).map(|word| inner(self.text, *word));
        let is_plain = |said: &str| !said.is_empty() && !said.starts_with(['-', '/', '$', '<', '>']);
        let mut add = |number: usize| {
            found.extend(span(number).filter(|word| is_plain(word.of(self.text))));
        };
        if name.eq_ignore_ascii_case("ConvertTo-SecureString") {
            self.secure_string(number, found);
        } else if name.eq_ignore_ascii_case("net")
            && self.word(number + 1).is_some_and(|w| w.eq_ignore_ascii_case("user"))
        {
            add(number + 3);
        } else if name.eq_ignore_ascii_case("net")
            && self.word(number + 1).is_some_and(|w| w.eq_ignore_ascii_case("use"))
        {
            // net use Z: \\server\share secret /user:name
            let share = (number + 2..number + 4).find(|n| self.word(*n).is_some_and(|w| w.contains('\\')));
            if let Some(share) = share {
                add(share + 1);
            }
        } else if name == "vault" && self.word(number + 1) == Some("login") {
            let last = self.command.words.len() - 1;
            // `-method=aws role=x` is a login without a token.
            let is_method =
                self.command.words.iter().skip(number + 2).take(8).any(|w| w.of(self.text).starts_with("-method"));
            if !is_method && last > number + 1 {
                add(last);
            }
        } else if name == "htpasswd"
            && self.word(number + 1).is_some_and(|flag| flag.starts_with('-') && flag.contains('b'))
        {
            add(self.command.words.len() - 1);
        } else if matches!(name, "add_user" | "change_password" | "authenticate_user") {
            add(number + 2);
        } else if name.starts_with("--from-literal=") || name == "--from-literal" {
            let value = if name == "--from-literal" { span(number + 1) } else { span(number) };
            if let Some(value) = value {
                let said = value.of(self.text);
                let said = said.strip_prefix("--from-literal=").unwrap_or(said);
                let secret = said.split_once('=').map_or("", |(_, secret)| secret);
                found.push(inner(self.text, Span::new(value.end - secret.len(), value.end)));
            }
        }
        if name.ends_with("NetworkCredential") || name.ends_with("PSCredential") {
            // Its arguments are in parentheses: the last one in quotation marks is the password.
            let last = self
                .behind
                .and_then(|behind| behind.words.last())
                .filter(|word| word.of(self.text).starts_with(['"', '\'']));
            let words = self.behind.map_or(0, |behind| behind.words.len());
            found.extend(last.filter(|_| words > 1).map(|word| inner(self.text, *word)));
            found.extend(last.filter(|_| words == 1).and_then(|word| last_of_list(self.text, *word)));
        }
    }

    /// `ConvertTo-SecureString "secret" -AsPlainText -Force`, with the flags in any order, or the secret before a pipe.
    fn secure_string(&self, number: usize, found: &mut Vec<Span>) {
        let mut is_value = false;
        for at in number + 1..self.command.words.len() {
            let word = inner(self.text, self.command.words[at]);
            let said = word.of(self.text);
            if said.starts_with('-') {
                is_value = ["-key", "-securekey"].iter().any(|flag| said.eq_ignore_ascii_case(flag));
            } else if is_value || said.starts_with('$') {
                is_value = false;
            } else {
                found.push(word);
                return;
            }
        }
        self.input(number, found);
    }

    /// What this command reads: printed by the one before it, or a here-string; or written by it to a file.
    fn input(&self, number: usize, found: &mut Vec<Span>) {
        for (at, word) in self.command.words.iter().enumerate() {
            let said = word.of(self.text);
            if said == "<<<" {
                found.extend(self.command.words.get(at + 1).map(|word| password(self.text, inner(self.text, *word))));
            } else if let Some(here) = said.strip_prefix("<<<") {
                found.push(password(self.text, inner(self.text, Span::new(word.end - here.len(), word.end))));
            }
        }
        printed(self.text, self.command, number, found);
        if let Some(before) = self.before {
            printed(self.text, before, before.words.len(), found);
        }
    }
}

/// What `echo` and the like print, of the words before this one.
fn printed(text: &str, command: &Command, until: usize, found: &mut Vec<Span>) {
    let words = &command.words[..until.min(command.words.len())];
    let prints = |word: &&Span| PRINTS.iter().any(|name| inner(text, **word).of(text).eq_ignore_ascii_case(name));
    let Some(at) = words.iter().position(|word| prints(&word)) else {
        // PowerShell prints a text that stands for itself.
        if let [only] = words
            && only.of(text).starts_with(['"', '\''])
        {
            found.push(password(text, inner(text, *only)));
        }
        return;
    };
    for word in &words[at + 1..] {
        let said = word.of(text);
        let is_flag = said.starts_with('-') || said.starts_with('>') || said.starts_with('%');
        let is_format = ["'%s", "\"%s"].iter().any(|format| said.starts_with(format));
        if !is_flag && !is_format && !said.starts_with("$(") {
            found.push(password(text, inner(text, *word)));
        }
    }
}

/// Of `root:secret` what stands behind the colon.
fn password(text: &str, word: Span) -> Span {
    let said = word.of(text);
    let name = said.find(':').filter(|colon| !said[..*colon].contains([' ', '$']));
    Span::new(word.start + name.map_or(0, |colon| colon + 1), word.end)
}

/// The last quotation of `"name","secret"`, which is one word.
fn last_of_list(text: &str, word: Span) -> Option<Span> {
    let said = word.of(text);
    let quote = said.chars().next_back().filter(|c| matches!(c, '"' | '\''))?;
    let inside = &said[..said.len() - 1];
    let open = inside.rfind(quote).filter(|open| *open > 0)?;
    Some(Span::new(word.start + open + 1, word.end - 1))
}

/// Whether letters of one word end in this flag: `-fsSLu name:secret`.
fn is_bundle(said: &str, flag: &str) -> bool {
    let letters = said.strip_prefix('-').unwrap_or_default();
    letters.len() < 12
        && letters.len() > 1
        && letters.bytes().all(|b| b.is_ascii_alphabetic())
        && letters.ends_with(&flag[1..])
}

/// `> FILE` of a secret's name.
fn is_redirect(said: &str, next: Option<&str>) -> bool {
    let target = match said.trim_start_matches(|c: char| c.is_ascii_digit()) {
        ">" | ">>" => next.unwrap_or_default(),
        other => other.strip_prefix('>').map(|file| file.trim_start_matches('>')).unwrap_or_default(),
    };
    !target.is_empty() && is_of_secret(target)
}

/// Whether a word of a command says that its input, or the file that it names, is secret.
pub(super) fn is_of_secret(word: &str) -> bool {
    const EXTENSIONS: [&str; 11] =
        [".yaml", ".yml", ".json", ".toml", ".conf", ".sh", ".service", ".cfg", ".ini", ".md", ".xml"];
    let word = word.trim_matches(['"', '\'', '(', ')', '>', '<', '`', '$', '[', ']', ',', ';', '|', '&', '{', '}']);
    if reads_secret(word) {
        return true;
    }
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.split('=').next().unwrap_or_default();
    if name.starts_with('-') || name.contains('$') || EXTENSIONS.iter().any(|extension| name.ends_with(extension)) {
        return false;
    }
    matches!(name, ".netrc" | "_netrc" | ".pgpass" | "htpasswd" | ".htpasswd") || is_secret_name(name)
}

#[cfg(test)]
mod tests {
    use super::may_take_secret;

    #[test]
    fn only_a_line_with_a_name_that_takes_a_secret_is_divided_into_commands() {
        for message in [
            "\"Unable to register node with API server\" err=\"Post \\\"https://10.0.3.7:443/api/v1/nodes\\\": dial \
             tcp 10.0.3.7:443: i/o timeout\"",
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady",
            "creating instance, insufficient capacity (log in at https://console.aws.amazon.com/)",
        ] {
            assert!(!may_take_secret(message), "{message}");
        }
        for line in
            ["x | /usr/bin/curl.exe -u a:b", "[\"docker\", \"login\"]", "echo a:b|chpasswd", "  -fsSLu a:b \\", "a > b"]
        {
            assert!(may_take_secret(line), "{line}");
        }
    }
}
