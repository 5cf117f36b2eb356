//! Places in somebody's text: byte spans, lines and columns, and the one masked line that may be shown.

mod blocks;
mod commands;
mod names;
mod secrets;
#[cfg(test)]
mod shapes;
mod tokens;

pub use tokens::OF_USER_DATA;

pub(crate) use names::joins_node;
use secrets::secrets;

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

/// `line` with whatever looks like a secret replaced by `***`, control characters by blanks.
pub fn mask(line: &str) -> String {
    without_controls(replaced(line, &secrets(line, false), |_, out| out.push_str(MASK)))
}

fn without_controls(text: String) -> String {
    if text.contains(char::is_control) { text.replace(char::is_control, " ") } else { text }
}

/// What stands in the place of a secret.
const MASK: &str = "***";

/// What [`mask`] masks, with an `x` in the place of each character: all else stays where it is, and no shell and no
/// YAML takes an `x` for more than that. [`mask`] makes of the result what it makes of the text.
pub fn hide_secrets(text: &str) -> String {
    hidden(text, &secrets(text, false))
}

/// The same of a file: a quotation mark that is never closed hides no line after its own.
pub fn hide_secrets_by_line(text: &str) -> String {
    hidden(text, &secrets(text, true))
}

fn hidden(text: &str, secrets: &[Span]) -> String {
    let hide = |secret: &str, out: &mut String| {
        // Lines stay lines, as far to the right as they were.
        let mut in_line = true;
        for c in secret.chars() {
            in_line = c != '\n' && (in_line || !c.is_whitespace());
            out.push(if in_line { 'x' } else { c });
        }
    };
    replaced(text, secrets, hide)
}

/// A text with something else in the place of each secret.
fn replaced(text: &str, secrets: &[Span], by: impl Fn(&str, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    let mut shown = 0;
    for secret in secrets {
        out.push_str(&text[shown..secret.start]);
        by(secret.of(text), &mut out);
        shown = secret.end;
    }
    out.push_str(&text[shown..]);
    out
}

/// The first line of `span`, masked by what stands around it in the text too.
pub fn quoted(text: &str, span: Span) -> String {
    let end = span.of(text).lines().next().map_or(span.start, |line| span.start + line.len());
    masked_part(text, Span::new(span.start.min(text.len()), end.min(text.len())))
}

/// A part of one line of a text, masked. What names its secret may stand lines above: `password: |`.
fn masked_part(text: &str, part: Span) -> String {
    /// As much as an instance's user data may have.
    const BEFORE: usize = 32 << 10;
    /// A quotation or a command may go on below.
    const BEHIND: usize = 4 << 10;
    let from = line_start(text, boundary(text, part.start.saturating_sub(BEFORE)));
    let to = boundary(text, part.end.saturating_add(BEHIND));
    let Some(around) = text.get(from..to) else { return mask(part.of(text)) };
    let mut out = String::new();
    let mut shown = part.start;
    for secret in secrets(around, true) {
        let secret = secret.shifted(from);
        if secret.end <= part.start || secret.start >= part.end {
            continue;
        }
        out.push_str(text.get(shown..secret.start).unwrap_or_default());
        out.push_str(MASK);
        shown = secret.end;
    }
    out.push_str(text.get(shown..part.end).unwrap_or_default());
    without_controls(out)
}

/// The last place at or before this one where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn line_start(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1)
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
    let start = line_start(text, span.start.min(text.len()));
    let line = Span::new(start, start + line_at(text, span.start).len());
    let masked = masked_part(text, line);
    let before = masked_part(text, Span::new(start, boundary(text, span.start).min(line.end)));
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
        let text = "\trun\r\n\texport TOKEN=abc; x\n  -----BEGIN RSA PRIVATE KEY-----\n  MIIEpA\n  -----END RSA \
                    PRIVATE KEY-----\nreboot";
        assert_eq!(
            hide_secrets_by_line(text),
            "\trun\r\n\texport TOKEN=xxx; x\n  -----BEGIN RSA PRIVATE KEY-----\n  xxxxxx\n  -----END RSA PRIVATE \
             KEY-----\nreboot"
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
