//! Secrets that are known by the name before them: `DB_PASSWORD=x`, `"auth": "x"`, `--token x`.

use super::Span;
use super::tokens::token;

/// Names, or parts of them, whose values are never shown.
const SECRET: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "access-key",
    "accesskey",
    "private_key",
    "private-key",
    "privatekey",
    "credential",
    "authorization",
    "bearer",
    "_pwd",
    "_pass",
];

/// Names that are part of harmless ones too: a value follows them only behind `=` or `:`, or behind a flag's name.
const SHORT: &[&str] = &["pass", "pwd", "psk", "auth", "key", "signature", "sig", "cookie", "creds", "pw"];

/// What a key is for whose value is secret, whatever it looks like.
const KEYS: &[&str] = &[
    "signing",
    "encryption",
    "encrypt",
    "decryption",
    "account",
    "auth",
    "shared",
    "master",
    "license",
    "licence",
    "app",
    "application",
    "deploy",
    "session",
    "cookie",
    "hmac",
    "jwt",
    "root",
    "recovery",
    "activation",
    "ingest",
    "ingestion",
    "write",
    "api",
    "access",
    "private",
    "secret",
    "storage",
    "unseal",
    "wireguard",
    "wg",
    "sas",
    "subscription",
    "functions",
    "integration",
    "registration",
    "enrollment",
    "enrolment",
    "setup",
    "join",
    "gossip",
    "admin",
    "aes",
    "fernet",
    "crypto",
    "crypt",
    "preshared",
    "shared-access",
    "service",
];

/// Words that end in `pass` and mean something else.
const NO_PASS: &[&str] = &["bypass", "compass", "encompass", "trespass", "surpass", "overpass", "underpass", "impass"];

/// How the names of settings end that say something about a secret and do not hold one.
const ABOUT: &[&str] = &[
    "ttl",
    "seconds",
    "minutes",
    "hours",
    "days",
    "expiration",
    "expiry",
    "expires",
    "timeout",
    "lifetime",
    "name",
    "names",
    "type",
    "url",
    "uri",
    "endpoint",
    "issuer",
    "audience",
    "audiences",
    "version",
    "length",
    "webhook",
    "enabled",
    "policy",
    "mode",
    "provider",
    "providers",
    "algorithm",
    "namespace",
    "arn",
    "region",
    "rotation",
    "interval",
    "limit",
    "hops",
    "count",
    "size",
    "period",
    "duration",
];

/// How those end whose value may be the place of a secret.
const PLACES: &[&str] = &["file", "path", "dir", "directory", "config", "conf", "bin", "location", "store", "mount"];

/// What a sentence goes on with behind `token` or `password`: words that nobody takes for one.
const PROSE: &[&str] = &[
    "a",
    "an",
    "and",
    "are",
    "as",
    "at",
    "authentication",
    "because",
    "but",
    "by",
    "can",
    "cannot",
    "could",
    "create",
    "delete",
    "denied",
    "did",
    "do",
    "does",
    "expired",
    "failed",
    "forbidden",
    "for",
    "from",
    "had",
    "has",
    "have",
    "if",
    "in",
    "included",
    "invalid",
    "into",
    "is",
    "list",
    "may",
    "mismatch",
    "missing",
    "must",
    "not",
    "of",
    "or",
    "per",
    "provider",
    "providers",
    "rejected",
    "request",
    "requests",
    "should",
    "specified",
    "supplied",
    "that",
    "the",
    "this",
    "to",
    "unauthorized",
    "unexpected",
    "used",
    "via",
    "was",
    "were",
    "when",
    "which",
    "while",
    "will",
    "with",
    "without",
    "would",
];

/// What errors of clouds and registries begin with: `ExpiredToken: The security token included in the request …`.
const ERRORS: &[&str] = &["expired", "invalid", "missing", "unrecognized", "malformed", "incomplete", "unauthorized"];

/// What a registry's refusal goes on with: "may require authorization: authorization failed".
/// containerd v2.1.4 core/remotes/docker/pusher.go, resolver.go. And EC2's: "The provided credentials do not have
/// permission to create the service-linked role".
const REFUSALS: &[&str] =
    &["authorization failed", "server message", "failed", "failure message", "do not have permission"];

/// How the value of an Authorization header begins that is not the secret itself.
const SCHEMES: &[&str] = &[
    "bearer ",
    "basic ",
    "token ",
    "digest ",
    "negotiate ",
    "apikey ",
    "splunk ",
    "key ",
    "bot ",
    "hmac ",
    "sso-key ",
    "genie-key ",
    "api-token ",
    "ntlm ",
    "snowflake ",
    "ssws ",
];

/// How commands begin whose output is a secret, in a shell and in PowerShell.
const COMMANDS: &[&str] =
    &["$(", "`", "<(", "($", "(&", "(convertto-", "(convertfrom-", "(get-", "(new-", "(invoke-", "(read-", "(aws "];

/// Which two bytes a name begins with: few places of a text need a closer look.
const FIRST: [bool; 1 << 14] = {
    let mut first = [false; 1 << 14];
    let mut at = 0;
    while at < SECRET.len() + SHORT.len() {
        let name = if at < SECRET.len() { SECRET[at] } else { SHORT[at - SECRET.len()] };
        first[pair(name.as_bytes()[0], name.as_bytes()[1])] = true;
        at += 1;
    }
    first
};

/// Two bytes of ASCII as one number. Of another byte it makes the number of one that no name has.
const fn pair(first: u8, second: u8) -> usize {
    if first < 128 && second < 128 { (first as usize) << 7 | second as usize } else { 0 }
}

/// How far a name is looked at to both sides. A longer one is none, and would be read again from each name in it.
const REACH: usize = 64;

const fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// A name as it stands in a text.
struct Name<'t> {
    /// Up to the secret part, with it, and behind it: `jwt_`, `token`, `_base64` of `jwt_token_base64`, in lower case.
    before: &'t str,
    part: &'static str,
    after: &'t str,
    /// Where the secret part begins, as it is written.
    written: &'t str,
    is_short: bool,
}

impl Name<'_> {
    fn ends_with_any(&self, ends: &[&str]) -> bool {
        // `tokens` in `httpTokens` is the name itself.
        ends.iter().any(|end| self.after.ends_with(end))
    }

    /// Whether it begins as a flag does.
    fn is_flag(&self) -> bool {
        self.before.starts_with('-')
    }

    /// Whether a short name is meant as one.
    fn is_meant(&self) -> bool {
        if !self.is_short {
            return true;
        }
        let rest = self.after.trim_start_matches(['_', '-']);
        let plain = rest.is_empty() || rest.bytes().all(|b| b.is_ascii_digit()) || matches!(rest, "base64" | "b64");
        let whole = self.before.trim_start_matches(['-', '_', '/']);
        let own = whole.is_empty();
        // `DB_PW`, `wpaPsk`: it begins where a word does.
        let begins = self.before.is_empty()
            || self.before.ends_with(['_', '-'])
            || self.before.ends_with(|c: char| c.is_ascii_digit())
            || self.written.starts_with(|c: char| c.is_ascii_uppercase());
        match self.part {
            "pass" if matches!(rest, "in" | "out") => own,
            "pass" => plain && !NO_PASS.iter().any(|word| format!("{whole}pass").ends_with(word)),
            "pwd" => plain && !matches!(whole, "old"),
            "psk" | "pw" | "creds" => plain && begins,
            "auth" => {
                plain
                    && (own
                        || matches!(
                            whole,
                            "x-registry-"
                                | "registry_"
                                | "registry-"
                                | "docker_"
                                | "basic_"
                                | "basic-"
                                | "http_"
                                | "proxy_"
                                | "basic"
                        ))
            }
            "sig" => plain && own,
            "signature" => plain && (own || whole.starts_with("x-")),
            "cookie" => {
                plain
                    && (own
                        || matches!(
                            whole,
                            "set-" | "session-" | "session_" | "erlang_" | "erlang-" | "rabbitmq_erlang_"
                        ))
            }
            // "key": decided by what it is for, and by its value.
            _ => plain && !own && (begins || self.is_secret_key()),
        }
    }

    /// Of `key`: whether what it is for makes it secret.
    fn is_secret_key(&self) -> bool {
        let kind = self.before.trim_end_matches(['_', '-']);
        KEYS.iter().any(|of| {
            kind.strip_suffix(of).is_some_and(|rest| {
                !rest.ends_with("public") && (of.len() > 3 || rest.is_empty() || rest.ends_with(['_', '-']))
            })
        })
    }
}

/// The value of the secret name that begins at `at`: after the rest of the name and a separator, up to the next blank
/// or the end of its quotes. `by_line` is whether a value ends with its line. `lower` is the text in lower case, which
/// only a text that has such a name needs.
pub(super) fn value_after(text: &str, lower: &mut Option<String>, at: usize, by_line: bool) -> Option<Span> {
    let rest = &text.as_bytes()[at..];
    let second = rest.get(1).copied().unwrap_or_default();
    if !FIRST[pair(rest[0].to_ascii_lowercase(), second.to_ascii_lowercase())] {
        return None;
    }
    let begins = |name: &str| rest.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()));
    let of = |names: &'static [&'static str]| names.iter().find(|name| begins(name)).copied();
    let (part, is_short) = of(SECRET).map(|part| (part, false)).or_else(|| of(SHORT).map(|part| (part, true)))?;
    let lower = lower.get_or_insert_with(|| text.to_ascii_lowercase()).as_str();
    let bytes = lower.as_bytes();
    let after_part = at + part.len();
    let more = bytes[after_part..].iter().take(REACH).take_while(|b| in_name(**b)).count();
    let begin = at - bytes[..at].iter().rev().take(REACH).take_while(|b| in_name(**b)).count();
    let named = &lower[after_part + more..];
    let value = named.trim_start_matches(['=', ':', ' ', '\t', '"', '\'', '\\']);
    let between = &named[..named.len() - value.len()];
    if !between.contains(['=', ':', ' ', '\t']) {
        return None;
    }
    let name = Name {
        before: &lower[begin..at],
        part,
        after: &lower[after_part..after_part + more],
        written: &text[at..],
        is_short,
    };
    let is_assigned = between.contains(['=', ':']);
    if !name.is_meant()
        || (is_short
            && !is_assigned
            && !name.is_flag()
            && !(part == "psk" && (between.contains('"') || !name.before.is_empty())))
    {
        return None;
    }
    // The tag of an image: `registry.example.com/auth:1.2.3`.
    if is_short && part != "pass" && between == ":" && lower[..begin].ends_with('/') {
        return None;
    }
    if says_no_secret(&name, between, head(value).lines().next().unwrap_or_default(), by_line) {
        return None;
    }
    let scheme = SCHEMES.iter().find_map(|scheme| value.strip_prefix(scheme)).filter(|_| {
        // "authorization: Bearer x": the scheme is not the secret, what follows it is.
        part == "authorization" || ["bearer ", "basic "].iter().any(|scheme| value.starts_with(scheme))
    });
    let value = scheme.map_or(value, |rest| rest.trim_start_matches(' '));
    let start = text.len() - value.len();
    let value = &text[start..];
    let open = text[..start].chars().next_back().filter(|c| matches!(c, '"' | '\''));
    let begins = head(value);
    let begins = &begins[..value_len(begins, open, by_line)];
    let is_line = by_line && is_whole_line(text, begin, between);
    // `… lets no pod pass: creating it fails`.
    let is_word = is_short && between.starts_with(": ") && !is_line && goes_on_in_line(value, begins.len());
    if (part == "key" && !name.is_secret_key() && !looks_random(begins))
        || ((part == "auth" || is_word) && open.is_none() && !looks_generated(begins))
    {
        return None;
    }
    let mut len = value_len(value, open, by_line);
    if is_line && open.is_none() {
        len = len.max(plain_scalar(value));
    }
    (len > 0).then(|| Span::new(start, start + len))
}

/// As much of a value as tells whether it is one: no more, for it may be looked at again.
fn head(value: &str) -> &str {
    let mut end = value.len().min(256);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    &value[..end]
}

/// Whether what follows a name is none of its values.
fn says_no_secret(name: &Name<'_>, between: &str, value: &str, by_line: bool) -> bool {
    let is_assigned = between.contains(['=', ':']);
    if REFUSALS.iter().any(|words| value.starts_with(words)) {
        return true;
    }
    // A command whose output is the secret, an object whose fields are read by themselves, a file that is read.
    let is_command =
        COMMANDS.iter().any(|begins| value.starts_with(begins)) || (!is_assigned && value.starts_with('('));
    let is_object = value
        .strip_prefix('{')
        .is_some_and(|rest| rest.trim().is_empty() || rest.contains(':') || rest.starts_with('}') || !is_assigned)
        || value
            .strip_prefix('[')
            .is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with(['{', ']']));
    let is_flag = value.starts_with("--") || value.strip_prefix('-').is_some_and(|flag| flag.find(' ') == Some(1));
    let is_block = value.is_empty() && ["\"\"\"", "'''"].iter().any(|open| between.ends_with(open));
    if is_block || is_command || is_object || (!is_assigned && is_flag) || is_block_header(value) {
        return true;
    }
    let word = value.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
    let is_quoted = between.ends_with(['"', '\'']);
    let is_prose = PROSE.contains(&word.trim_end_matches([',', '.', ';', ':'])) && !is_quoted;
    if !is_assigned && !name.is_flag() && is_prose {
        return true;
    }
    // An error's code, and what it means; or what a message goes on with.
    let is_error = ERRORS.iter().any(|error| name.before.starts_with(error));
    if between.starts_with(": ") && is_prose && (!by_line || is_error) {
        return true;
    }
    if name.ends_with_any(ABOUT) {
        return true;
    }
    let is_place = is_place(value);
    if name.ends_with_any(PLACES) && is_place {
        return true;
    }
    // The shell's own PWD, and keys that lie in a file.
    (is_place && name.part == "key")
        || (name.part == "pwd" && name.before.is_empty() && (is_place || value.starts_with('/')))
}

/// Whether a value is the place of something: a path, or a variable.
fn is_place(value: &str) -> bool {
    const ROOTS: [&str; 12] =
        ["/etc/", "/var/", "/opt/", "/root", "/home/", "/usr/", "/run/", "/tmp", "/mnt/", "/srv/", "/proc/", "/dev/"];
    ["~/", "./", "../", "$", "%"].iter().chain(&ROOTS).any(|begins| value.starts_with(begins))
        || value.get(1..3).is_some_and(|drive| drive == ":\\")
}

/// `|`, `>-`, `|2`: what a block of YAML begins with.
pub(super) fn is_block_header(value: &str) -> bool {
    value.strip_prefix(['|', '>']).is_some_and(|rest| {
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')).trim();
        rest.is_empty() || rest.starts_with('#')
    })
}

/// Whether more words stand behind the first of a value, on its line.
fn goes_on_in_line(value: &str, word: usize) -> bool {
    let behind = &head(value)[word..];
    behind.starts_with(' ')
        && !behind.trim_start_matches(' ').is_empty()
        && !behind.trim_start_matches(' ').starts_with('\n')
}

/// Whether a line holds nothing but a key of YAML and its value: `  - password: two words`.
fn is_whole_line(text: &str, name: usize, between: &str) -> bool {
    let before = &text.as_bytes()[..name];
    let lead = before.iter().rev().take(REACH).take_while(|b| matches!(**b, b' ' | b'-' | b'"' | b'\'')).count();
    between.trim_start_matches(['"', '\'']).starts_with(": ")
        && before[..name - lead].last().is_none_or(|b| *b == b'\n')
}

/// The length of a scalar of YAML without quotes: to the end of its line, to a comment, or to a call that joins the
/// node. Other commands may be a part of a password that contains a separator.
fn plain_scalar(text: &str) -> usize {
    let line = text.lines().next().unwrap_or_default();
    let comment = line.find(" #").unwrap_or(line.len());
    let call = SEPARATORS.iter().filter_map(|separator| before_join_call(line, separator)).min();
    line[..call.map_or(comment, |call| call.min(comment))].trim_end().len()
}

/// What separates two commands of one line.
const SEPARATORS: &[&str] = &["; ", " && ", " || "];

/// What stands before a program without being the one that runs.
const LAUNCHERS: &[&str] = &["sudo", "exec", "command", "nohup", "env", "nice", "bash", "sh", "/bin/bash", "/bin/sh"];

/// The first place in a line where this separator stands directly before a call that joins the node.
fn before_join_call(line: &str, separator: &str) -> Option<usize> {
    /// Launchers and their options.
    const WORDS: usize = 8;
    line.match_indices(separator).map(|(at, _)| at).find(|at| {
        let mut words = line[at + separator.len()..].split_ascii_whitespace().take(WORDS);
        let is_before = |word: &&str| LAUNCHERS.contains(word) || word.starts_with('-');
        // A name without a path may be a word of a passphrase.
        words.find(|word| !is_before(word)).is_some_and(|word| word.contains('/') && joins_node(word))
    })
}

/// Whether this program joins the node to its cluster. Those are the programs whose arguments nodewhy reads.
pub(crate) fn joins_node(path: &str) -> bool {
    match path.rsplit('/').next().unwrap_or_default() {
        "bootstrap.sh" => !path.contains('/') || path == "./bootstrap.sh" || path.ends_with("eks/bootstrap.sh"),
        "kubelet" => true,
        _ => false,
    }
}

/// A word of letters and digits, long enough for a key that was generated.
fn looks_random(value: &str) -> bool {
    const LEAST: usize = 16;
    let count = |what: fn(&u8) -> bool| value.bytes().filter(what).count();
    let is_uuid = value.len() == 36 && value.bytes().filter(|b| *b == b'-').count() == 4;
    value.len() >= LEAST
        && !is_uuid
        && !value.starts_with("arn:")
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'_' | b'-'))
        && count(u8::is_ascii_digit) >= 2
        && count(u8::is_ascii_alphabetic) >= 2
        && value.bytes().filter(|b| matches!(b, b'/' | b'-' | b'_')).count() * 8 <= value.len()
}

/// A word that is no word of a language.
fn looks_generated(value: &str) -> bool {
    const LEAST: usize = 6;
    let count = |what: fn(&u8) -> bool| value.bytes().filter(what).count();
    let mixed = count(u8::is_ascii_uppercase) > 1 && count(u8::is_ascii_lowercase) > 1;
    value.len() >= LEAST && (mixed || count(u8::is_ascii_digit) > 0) && !value.starts_with(['/', '$'])
}

/// Up to the closing quote where one stands before the value, else up to a blank, a quote that ends the word, or what
/// separates it from the next thing. Of a quotation that its line does not close, a few more lines are looked at; where
/// none closes it, it ends with its line.
pub(super) fn value_len(value: &str, open: Option<char>, by_line: bool) -> usize {
    /// Lines that a quotation goes on for.
    const LINES: usize = 16;
    let word = |value: &str| value.trim_end_matches([';', '&', '|', ',', ')', ']', '}']).len();
    let is_quoted = open.is_some();
    let mut open = open;
    let ends = |text: &str| {
        text.chars().next().is_none_or(|next| next.is_whitespace() || matches!(next, ',' | ';' | ')' | ']' | '}'))
    };
    if open.is_none()
        && let Some(list) = value.strip_prefix('[')
        && let Some(close) = head(list).lines().next().unwrap_or_default().find(']')
    {
        return 1 + close;
    }
    let mut chars = value.char_indices();
    let (mut lines, mut first_line) = (0, None);
    while let Some((at, c)) = chars.next() {
        if c == '\n' && by_line {
            first_line.get_or_insert(at);
            lines += 1;
            if lines > LINES {
                break;
            }
        }
        let behind = chars.as_str();
        // A quotation may stand in another one: echo "TOKEN='x'".
        let ends_word = ends(behind) || behind.strip_prefix(['"', '\'']).is_some_and(ends);
        match open {
            Some('"') if c == '\\' && !ends(behind) => drop(chars.next()),
            Some(quote) if c == quote && ends_word => return at,
            Some(quote) if c == quote => open = None,
            None if c.is_whitespace() || (matches!(c, '"' | '\'') && ends_word) => return word(&value[..at]),
            Some(_) | None => {}
        }
    }
    let whole = &value[..first_line.unwrap_or(value.len())];
    let whole = whole.trim_end_matches('\r');
    if open.is_some() && is_quoted { whole.len() } else { word(whole) }
}

/// Values that say how something is set, whatever it is called: `KubeletServiceAccountTokenForCredentialProviders=true`
/// among feature gates, `httpTokens: required`. Whoever guesses a password tries them first.
const SETTINGS: &[&str] =
    &["true", "false", "yes", "no", "on", "off", "null", "none", "enabled", "disabled", "required", "optional"];

/// Whether a value is a setting, or the first of a list of them: `true,RotateKubeletServerCertificate=true`.
pub(super) fn is_setting(value: &str) -> bool {
    let is_word = |word: &str| SETTINGS.iter().any(|setting| word.eq_ignore_ascii_case(setting));
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphabetic()) && token(name).is_none();
    let mut pieces = value.split(',');
    pieces.next().is_some_and(is_word)
        && pieces.all(|piece| piece.split_once('=').is_some_and(|(name, word)| is_name(name) && is_word(word)))
}

/// Whether a name of a setting, a file or a variable is one of a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let bytes = lower.as_bytes();
    (0..bytes.len().min(REACH)).any(|at| {
        let of = |names: &'static [&'static str]| names.iter().find(|n| bytes[at..].starts_with(n.as_bytes())).copied();
        let Some((part, is_short)) = of(SECRET).map(|p| (p, false)).or_else(|| of(SHORT).map(|p| (p, true))) else {
            return false;
        };
        let name = Name {
            before: &lower[..at],
            part,
            after: lower.get(at + part.len()..).unwrap_or_default(),
            written: name.get(at..).unwrap_or_default(),
            is_short,
        };
        name.is_meant()
            && !name.ends_with_any(ABOUT)
            && !name.ends_with_any(PLACES)
            && (part != "key" || name.is_secret_key())
    })
}
