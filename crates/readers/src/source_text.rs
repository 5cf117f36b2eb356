//! Places in somebody's text: byte spans, lines and columns, and the one masked line that may be shown.

/// A half-open range of bytes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The text below this span; empty where the span does not fit the text.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// The same span seen from a text that begins `offset` bytes earlier.
    #[must_use]
    pub const fn shifted(self, offset: usize) -> Self {
        Self::new(self.start + offset, self.end + offset)
    }
}

/// Line and column as an editor counts them: both from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// Where the byte `offset` of `text` is. An offset beyond the end is the end.
pub fn position(text: &str, offset: usize) -> Position {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let line = before.split(|&b| b == b'\n').count();
    let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
    Position { line: u32::try_from(line).unwrap_or(u32::MAX), column: u32::try_from(column).unwrap_or(u32::MAX) }
}

/// The line that holds the byte `offset`, without its line end.
pub fn line_at(text: &str, offset: usize) -> &str {
    let bytes = text.as_bytes();
    let offset = offset.min(bytes.len());
    let start = bytes[..offset].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let end = bytes[offset..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |at| offset + at);
    text.get(start..end).unwrap_or_default().trim_end_matches('\r')
}

/// The most characters of a user's line that nodewhy shows.
const EXCERPT_LIMIT: usize = 240;

/// Names whose values are never shown.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "_pwd",
    "_pass",
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
];

/// How tokens begin that are known by their looks: AWS access key ids, JWTs, GitHub, GitLab and Slack tokens.
const TOKEN_PREFIXES: &[&str] =
    &["AKIA", "ASIA", "eyJ", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-"];

/// `line` with whatever looks like a secret replaced by `***`, control characters by blanks.
///
/// Secret are the values of secret-looking names, tokens known by their looks, long base64 (keys, and lines of PEM
/// blocks), and passwords in URLs. A name ends at `=`, `:` or a blank.
pub fn mask(line: &str) -> String {
    let masked = replaced(line, |_| "***".to_owned());
    masked.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What [`mask`] masks, with an `x` in the place of each character: all else stays where it is, and no shell and no
/// YAML takes an `x` for more than that. [`mask`] makes of the result what it makes of the text.
pub fn hide_secrets(text: &str) -> String {
    replaced(text, |secret| "x".repeat(secret.chars().count()))
}

/// The same line by line, and a private key to its last line: a quotation mark that is never closed hides no line after
/// its own.
pub fn hide_secrets_by_line(text: &str) -> String {
    let mut in_key = false;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.contains("PRIVATE KEY-----") {
            in_key = line.contains("-----BEGIN");
        }
        let content = line.trim();
        if in_key && !content.is_empty() && content.chars().all(is_base64) {
            out.push_str(&line.replace(is_base64, "x"));
        } else {
            out.push_str(&hide_secrets(line));
        }
    }
    out
}

/// A text with something else in the place of each secret.
fn replaced(line: &str, by: impl Fn(&str) -> String) -> String {
    let lower = line.to_ascii_lowercase();
    let mut out = String::with_capacity(line.len());
    let (mut shown, mut at) = (0, 0);
    // Each step looks at a bounded piece, or at one that it then leaves behind: linear in the line.
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        let word_starts = !line[..at].ends_with(is_base64);
        if word_starts && rest.starts_with("arn:aws") {
            at += rest.find(|c| !in_arn(c)).unwrap_or(rest.len());
            continue;
        }
        let secret = secret_after_name(line, &lower, at)
            .or_else(|| if word_starts { token(rest) } else { None }.map(|len| Span::new(at, at + len)))
            .or_else(|| url_password(rest).map(|span| span.shifted(at)));
        if let Some(setting) = secret.filter(|span| is_setting(span.of(line))) {
            at = setting.end;
        } else if let Some(secret) = secret {
            out.push_str(&line[shown..secret.start]);
            out.push_str(&by(secret.of(line)));
            (shown, at) = (secret.end, secret.end);
        } else {
            at += if word_starts { rest.chars().next().map_or(1, char::len_utf8) } else { 1 };
            while !line.is_char_boundary(at) {
                at += 1;
            }
        }
    }
    out.push_str(&line[shown..]);
    out
}

/// The one line of a user's text that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    pub shown: String,
    /// Column of the place in `shown`, in characters from 1; `None` where the place itself is masked.
    pub caret: Option<u32>,
}

/// The line of `span`, masked and cut around the place where it is long.
pub fn excerpt(text: &str, span: Span) -> Excerpt {
    const BEFORE: usize = 60;
    let line = line_at(text, span.start);
    let masked = mask(line);
    let column = position(text, span.start).column as usize - 1;
    let before: String = mask(&line.chars().take(column).collect::<String>());
    let caret = masked.starts_with(&before).then(|| before.chars().count());
    let skip = caret.filter(|at| *at > EXCERPT_LIMIT / 2).map_or(0, |at| at - BEFORE);
    let mut shown: String = masked.chars().skip(skip).take(EXCERPT_LIMIT).collect();
    if masked.chars().count() > skip + EXCERPT_LIMIT {
        shown.push('…');
    }
    let mut caret = caret.map(|at| at - skip + 1);
    if skip > 0 {
        shown.insert(0, '…');
        caret = caret.map(|at| at + 1);
    }
    Excerpt { shown, caret: caret.and_then(|at| u32::try_from(at).ok()) }
}

const fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '_' | '-')
}

/// What an ARN is made of. It names a thing and is no secret, however long it is.
const fn in_arn(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ':' | '/' | '_' | '-' | '.' | '@' | '+' | '*')
}

/// The value of the secret name that begins at `at`: after the rest of the name and a separator, up to the next blank
/// or the end of its quotes.
fn secret_after_name(line: &str, lower: &str, at: usize) -> Option<Span> {
    let name = SECRET_NAMES.iter().find(|name| lower[at..].starts_with(**name))?;
    let after_name = at + name.len();
    // A longer name is none, and would be read again from each name in it.
    let more = lower[after_name..]
        .bytes()
        .take(64)
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        .count();
    let named = &lower[after_name + more..];
    let value = named.trim_start_matches(['=', ':', ' ', '\t', '"', '\'', '\\']);
    let between = &named[..named.len() - value.len()];
    if !between.contains(['=', ':', ' ', '\t']) {
        return None;
    }
    // "authorization: Bearer x": the scheme is not the secret, what follows it is.
    let value = ["bearer ", "basic "].iter().find_map(|scheme| value.strip_prefix(scheme)).unwrap_or(value);
    // What a registry's refusal goes on with: "may require authorization: authorization failed".
    // containerd v2.1.4 core/remotes/docker/pusher.go, resolver.go. And EC2's: "The provided credentials do not have
    // permission to create the service-linked role".
    if ["authorization failed", "server message", "failed", "failure message", "do not have permission"]
        .iter()
        .any(|words| value.starts_with(words))
    {
        return None;
    }
    // A command whose output is the secret, or the next flag of one that takes no value.
    let blank_before = !between.contains(['=', ':']);
    if value.starts_with("$(") || value.starts_with('`') || (blank_before && value.starts_with("--")) {
        return None;
    }
    let start = line.len() - value.len();
    let len = value_len(&line[start..], line[..start].chars().next_back());
    (len > 0).then(|| Span::new(start, start + len))
}

/// Up to the closing quote where one stands before the value, else up to a blank, a quote that ends the word, or what
/// separates it from the next thing.
fn value_len(value: &str, before: Option<char>) -> usize {
    let word = |value: &str| value.trim_end_matches([';', '&', '|', ',', ')', ']', '}']).len();
    let mut open = before.filter(|c| matches!(c, '"' | '\''));
    let ends = |text: &str| {
        text.chars().next().is_none_or(|next| next.is_whitespace() || matches!(next, ',' | ';' | ')' | ']' | '}'))
    };
    let mut chars = value.char_indices();
    while let Some((at, c)) = chars.next() {
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
    if open.is_some() { value.len() } else { word(value) }
}

/// Values that say how something is set, whatever it is called: `KubeletServiceAccountTokenForCredentialProviders=true`
/// among feature gates, `httpTokens: required`. Whoever guesses a password tries them first.
const SETTINGS: &[&str] =
    &["true", "false", "yes", "no", "on", "off", "null", "none", "enabled", "disabled", "required", "optional"];

/// Whether a value is a setting, or the first of a list of them: `true,RotateKubeletServerCertificate=true`.
fn is_setting(value: &str) -> bool {
    let is_word = |word: &str| SETTINGS.iter().any(|setting| word.eq_ignore_ascii_case(setting));
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphabetic()) && token(name).is_none();
    let mut pieces = value.split(',');
    pieces.next().is_some_and(is_word)
        && pieces.all(|piece| piece.split_once('=').is_some_and(|(name, word)| is_name(name) && is_word(word)))
}

/// The length of a token that is known by its looks at the start of `text`.
fn token(text: &str) -> Option<usize> {
    /// Enough for an AWS secret access key.
    const LONG: usize = 40;
    /// The shortest token that is known by its looks.
    const HIDDEN: usize = 15;
    let word = &text[..text.find(|c| !is_base64(c)).unwrap_or(text.len())];
    if TOKEN_PREFIXES.iter().any(|prefix| word.len() >= prefix.len() + 12 && word.starts_with(prefix)) {
        // A JWT goes on after its dots.
        let end = text.find(|c| !is_base64(c) && c != '.').unwrap_or(text.len());
        return Some(text[..end].trim_end_matches('.').len());
    }
    // What was hidden already.
    if word.len() >= HIDDEN && word.bytes().all(|b| b == b'x') {
        return Some(word.len());
    }
    let count = |what: fn(&u8) -> bool| word.bytes().filter(what).count();
    let mixed = count(u8::is_ascii_uppercase) > 3 && count(u8::is_ascii_lowercase) > 3 && count(u8::is_ascii_digit) > 1;
    // A path has a slash every few letters, a name its hyphens; base64 has neither.
    let joints = word.bytes().filter(|b| matches!(b, b'/' | b'-' | b'_')).count();
    (word.len() >= LONG && mixed && joints * 12 <= word.len()).then_some(word.len())
}

/// The password in `://user:password@host` at the start of `text`; the whole of a user part without one.
fn url_password(text: &str) -> Option<Span> {
    let user = text.strip_prefix("://")?;
    let end = user.find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'')).unwrap_or(user.len());
    let at = user[..end].rfind('@')?;
    let start = user[..at].find(':').map_or(0, |colon| colon + 1);
    (start < at).then(|| Span::new(3 + start, 3 + at))
}

/// One word of a shell, for commands that people paste: the text is a stranger's.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":._/@-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_one_and_in_characters() {
        let text = "one\nzwölf x\r\nthree";
        assert_eq!(position(text, 0), Position { line: 1, column: 1 });
        assert_eq!(position(text, text.find('x').unwrap()), Position { line: 2, column: 7 });
        assert_eq!(position(text, 9_999), Position { line: 3, column: 6 });
        assert_eq!(line_at(text, 5), "zwölf x");
    }

    #[test]
    fn secret_values_are_masked_and_the_rest_is_not() {
        assert_eq!(mask("export DB_PASSWORD=hunter2 MODE=x"), "export DB_PASSWORD=*** MODE=x");
        assert_eq!(
            mask("curl -H 'Authorization: Bearer abc.def' https://x"),
            "curl -H 'Authorization: Bearer ***' https://x"
        );
        let refused = "may require authorization: authorization failed: no basic auth credentials";
        assert_eq!(mask(refused), refused);
        let refused = "The provided credentials do not have permission to create the service-linked role";
        assert_eq!(mask(refused), refused);
        let refused = "You are not authorized. Encoded authorization failure message: 5fb2ab76ed9b";
        assert_eq!(mask(refused), refused);
        assert_eq!(mask("token: \"s3cr3t\", next"), "token: \"***\", next");
        assert_eq!(mask("--node-labels=a=b"), "--node-labels=a=b");
        assert_eq!(mask("mysql --password 'two words' -h db"), "mysql --password '***' -h db");
        assert_eq!(mask(r#"DB_PASSWORD="say \"two words\" now"; x"#), r#"DB_PASSWORD="***"; x"#);
        assert_eq!(mask("PASSWORD=ab\"c d"), "PASSWORD=*** d");
        assert_eq!(mask("id AKIAIOSFODNN7EXAMPLE."), "id ***.");
        assert_eq!(mask("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1"), "***");
        assert_eq!(mask("curl https://bob:hunter2@example.com/x"), "curl https://bob:***@example.com/x");
        assert_eq!(
            mask("git clone https://ghp_0123456789abcdef@github.com/a/b"),
            "git clone https://***@github.com/a/b"
        );
        assert_eq!(mask("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def x"), "*** x");
        assert_eq!(mask("(export TOKEN=a;b); run && x"), "(export TOKEN=***); run && x");
        assert_eq!(mask("{token: abc, mode: x}"), "{token: ***, mode: x}");
        for harmless in [
            "/etc/eks/bootstrap.sh shop --kubelet-extra-args '--register-with-taints=dedicated=x:NoSchedule'",
            "arn:aws:iam::111122223333:role/KarpenterNodeRole-production-eu-west-1-blue",
            "rolearn: arn:aws:iam::111122223333:role/KarpenterNodeRoleOfProductionInEuWest1SinceApril2024",
            "amazon-eks-node-al2023-x86_64-standard-1.34-v20260108",
            "basic settings, mounted at /var/run/secrets/kubernetes.io",
        ] {
            assert_eq!(mask(harmless), harmless);
        }
    }

    #[test]
    fn what_is_hidden_leaves_the_rest_in_its_place_and_is_masked_as_it_was() {
        let text = "\trun\r\n\texport TOKEN=abc; x\n  -----BEGIN RSA PRIVATE KEY-----\n  MIIEpA\n  -----END RSA PRIVATE KEY-----\nreboot";
        assert_eq!(
            hide_secrets_by_line(text),
            "\trun\r\n\texport TOKEN=xxx; x\n  -----BEGIN RSA PRIVATE KEY-----\n  xxxxxx\n  -----END RSA PRIVATE KEY-----\nreboot"
        );
        for line in [
            "id AKIAIOSFODNN7EXAMPLE.",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def x",
            r#"DB_PASSWORD="say \"two words\" now"; x"#,
            r#"throw "DB_PASSWORD='two words'""#,
            "git clone https://ghp_0123456789abcdef@github.com/a/b",
            "curl -H 'Authorization: Bearer abc.def' https://x",
            "password: zwölf, x",
        ] {
            let hidden = hide_secrets(line);
            assert_eq!((mask(&hidden), hidden.chars().count()), (mask(line), line.chars().count()));
        }
    }

    #[test]
    fn how_something_is_set_is_no_secret_and_what_stands_beside_it_may_be_one() {
        for harmless in [
            "--feature-gates=KubeletServiceAccountTokenForCredentialProviders=true --v=2",
            "--feature-gates=DisableKubeletCloudCredentialProviders=true,RotateKubeletServerCertificate=false",
            "KubeletServiceAccountTokenForCredentialProviders: true",
            r#"{"httpTokens": "required", "DisableKubeletCloudCredentialProviders":true}"#,
        ] {
            assert_eq!((mask(harmless), hide_secrets(harmless)), (harmless.to_owned(), harmless.to_owned()));
        }
        assert_eq!(mask("Credential=true,DbPassword=hunter2"), "Credential=***");
        assert_eq!(mask("Credential=true DbPassword=hunter2"), "Credential=true DbPassword=***");
        assert_eq!(mask("PASSWORD=true,hunter2"), "PASSWORD=***");
        assert_eq!(mask("PASSWORD=truehunter2 TOKEN='true x'"), "PASSWORD=*** TOKEN='***'");
        assert_eq!(mask("TOKEN=true,AKIAIOSFODNNEXAMPLEX=true"), "TOKEN=***");
    }

    #[test]
    fn commands_whose_output_is_secret_stay_commands() {
        for harmless in [
            r#"TOKEN=$(curl -X PUT "http://169.254.169.254/latest/api/token")"#,
            r#"{"kind": "Token", "groups": ["token-brokers", "x"]}"#,
            "TOKEN=\"`cat /etc/id`\"",
            "--authentication-token-webhook --node-labels=a=b",
        ] {
            assert_eq!(hide_secrets(harmless), harmless);
        }
    }

    #[test]
    fn an_excerpt_points_at_the_place_though_a_value_before_it_is_masked() {
        let text = "first\nexport TOKEN=abcdefgh; run --flag=x";
        let start = text.find("--flag").unwrap();
        let excerpt = excerpt(text, Span::new(start, start + 8));
        assert_eq!(excerpt.shown, "export TOKEN=***; run --flag=x");
        assert_eq!(excerpt.caret, Some(23));
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("{}--flag=x{}", "a".repeat(5_000), "b".repeat(5_000));
        let excerpt = excerpt(&text, Span::new(5_000, 5_008));
        assert!(excerpt.shown.chars().count() <= EXCERPT_LIMIT + 2);
        let caret = excerpt.caret.unwrap() as usize - 1;
        assert!(excerpt.shown.chars().skip(caret).collect::<String>().starts_with("--flag=x"));
    }
}
