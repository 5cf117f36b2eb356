//! What stands around a message: kubectl's prefix, a container runtime's, journald's, the kernel's time since boot.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// How Go begins what it says of a panic that nobody recovers.
pub(crate) const PANIC: &str = "panic: ";

/// A line, taken out of what wraps it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line<'l> {
    pub(crate) time: Option<DateTime<Utc>>,
    pub(crate) host: Option<Cow<'l, str>>,
    /// Who prints it, as the journal, the console or kubectl's `--prefix` says.
    pub(crate) program: Option<Cow<'l, str>>,
    /// The pod, as kubectl's `--prefix` says.
    pub(crate) pod: Option<&'l str>,
    pub(crate) message: Cow<'l, str>,
}

/// Takes a line out of its wrappings. Times without a year are of the year that the last full one had.
pub(crate) fn unwrapped<'l>(line: &'l str, year: &mut Option<i32>) -> Line<'l> {
    let mut out = Line::default();
    let mut rest = line;
    if let Some((pod, container, behind)) = kubectl_prefix(rest) {
        (out.pod, out.program, rest) = (Some(pod), container.map(Cow::Borrowed), behind);
    }
    if let Some((word, behind)) = rest.split_once([' ', '\t'])
        && let Some(time) = full_time(word)
    {
        (out.time, rest) = (Some(time), behind);
        // A container runtime's file: time, stream, whole or partial.
        for stream in ["stdout F ", "stderr F ", "stdout P ", "stderr P "] {
            rest = rest.strip_prefix(stream).unwrap_or(rest);
        }
        // No program is called so.
        if let Some((host, program, message)) = syslog(rest).filter(|_| !rest.starts_with(PANIC)) {
            (out.host, out.program, rest) = (host.map(Cow::Borrowed), Some(Cow::Borrowed(program)), message);
        }
    } else if let Some(object) = rest.starts_with("{\"").then(|| journal_object(rest)).flatten() {
        return of_journal(&object, year);
    } else if let Some((time, behind)) = dated(rest, *year)
        && let Some((host, program, message)) = syslog(behind)
    {
        out.time = time;
        (out.host, out.program, rest) = (host.map(Cow::Borrowed), Some(Cow::Borrowed(program)), message);
    } else if let Some(behind) = since_boot(rest) {
        rest = behind;
        // `NVRM: …` is the kernel's own.
        let has_process = behind.split(": ").next().is_some_and(|tag| tag.trim_end_matches(':').ends_with(']'));
        if let Some((None, program, message)) = syslog(behind).filter(|_| has_process) {
            (out.program, rest) = (Some(Cow::Borrowed(program)), message);
        }
    }
    // cloud-init repeats on the console what the journal says.
    if let Some((time, behind)) = dated(rest, *year)
        && let Some((host, program, message)) = syslog(behind)
    {
        out.time = time.or(out.time);
        (out.host, out.program, rest) = (host.map(Cow::Borrowed), Some(Cow::Borrowed(program)), message);
    }
    if let Some(time) = own_time(rest, *year) {
        out.time = Some(time);
    }
    *year = out.time.map(|time| time.year()).or(*year);
    let message = rest.trim();
    out.message = of_zap(message).map_or(Cow::Borrowed(message), Cow::Owned);
    out
}

/// `ERROR controller.provisioner launching machine, … {"commit": "5d4ae35", "provisioner": "general"}` as the object
/// that later versions of the same programs write, so that one row reads both.
/// Source: zap v1.24 zapcore/console_encoder.go `EncodeEntry`, as Karpenter up to 0.31 and others configure it.
fn of_zap(message: &str) -> Option<String> {
    const LEVELS: [&str; 6] = ["DEBUG", "INFO", "WARN", "ERROR", "FATAL", "PANIC"];
    let (level, rest) = message.split_once('\t').filter(|(level, _)| LEVELS.contains(level))?;
    let (said, fields) = rest.rsplit_once("\t{\"").filter(|_| rest.ends_with('}'))?;
    let mut object: Map<String, Value> = serde_json::from_str(&format!("{{\"{fields}")).ok()?;
    let (logger, said) = said.split_once('\t').unwrap_or(("", said));
    object.insert("level".to_owned(), level.into());
    object.insert("logger".to_owned(), logger.into());
    object.insert("message".to_owned(), said.into());
    Some(Value::Object(object).to_string())
}

/// `[pod/aws-node-x7k2p/aws-node] …`
fn kubectl_prefix(line: &str) -> Option<(&str, Option<&str>, &str)> {
    let (names, rest) = line.strip_prefix("[pod/")?.split_once("] ")?;
    let mut names = names.split('/');
    Some((names.next()?, names.next(), rest))
}

/// RFC 3339, and as `journalctl -o short-iso` writes it.
fn full_time(word: &str) -> Option<DateTime<Utc>> {
    if !word.starts_with(|c: char| c.is_ascii_digit()) || word.as_bytes().get(4) != Some(&b'-') {
        return None;
    }
    let offset =
        DateTime::parse_from_rfc3339(word).or_else(|_| DateTime::parse_from_str(word, "%Y-%m-%dT%H:%M:%S%.f%z"));
    offset.map(|time| time.to_utc()).ok()
}

/// `Aug 12 07:29:41 …`, in UTC as machines of EKS have it; without a known year there is no time.
fn dated(line: &str, year: Option<i32>) -> Option<(Option<DateTime<Utc>>, &str)> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (month, rest) = line.split_at_checked(4)?;
    let month = MONTHS.iter().position(|name| Some(*name) == month.strip_suffix(' '))?;
    let (day, rest) = rest.trim_start().split_once(' ')?;
    let (clock, rest) = rest.trim_start().split_once(' ')?;
    let day: u32 = day.parse().ok()?;
    let time = time_of_day(clock)?;
    let date = year.and_then(|year| NaiveDate::from_ymd_opt(year, u32::try_from(month).ok()? + 1, day));
    Some((date.map(|date| date.and_time(time).and_utc()), rest))
}

/// `07:29:41.123456`: of each line of a journal, so without chrono's formats, which take most of a reader's time.
fn time_of_day(clock: &str) -> Option<NaiveTime> {
    const DIGITS: u32 = 9;
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = whole.splitn(3, ':').map(|part| part.parse::<u32>().ok());
    let [hour, minute, second] = [parts.next()??, parts.next()??, parts.next()??];
    let missing = DIGITS.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let nanos = if fraction.is_empty() { 0 } else { fraction.parse::<u32>().ok()? * 10_u32.pow(missing) };
    NaiveTime::from_hms_nano_opt(hour, minute, second, nanos)
}

/// What is about to become another program calls itself `(program)`, and what it says is systemd's.
/// Source: systemd src/core/exec-invoke.c `rename_process_from_path`.
fn of_systemd(program: &str) -> &str {
    let is_child = program.len() > 2 && program.starts_with('(') && program.ends_with(')');
    if is_child { "systemd" } else { program }
}

/// `host program[pid]: message`, or without the host.
fn syslog(text: &str) -> Option<(Option<&str>, &str, &str)> {
    let (head, message) = text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, "")))?;
    let (host, tag) = match head.split_once(' ') {
        Some((host, tag)) => (Some(host), tag),
        None => (None, head),
    };
    let program = of_systemd(tag.split_once('[').map_or(tag, |(program, _)| program));
    let may_be_in = |c: char| c.is_ascii_alphanumeric() || "._-@/()".contains(c);
    let is_word = |word: &str, most: usize| !word.is_empty() && word.len() <= most && word.chars().all(may_be_in);
    // A host's name with its domain: RFC 1035, section 2.3.4.
    let is_host = |host: &str| is_word(host, 253);
    (is_word(program, 64) && host.is_none_or(is_host)).then_some((host, program, message))
}

/// `[   12.302114] …`
fn since_boot(line: &str) -> Option<&str> {
    let (seconds, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let seconds = seconds.trim_start();
    let is_time = seconds.contains('.') && seconds.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_time.then_some(rest)
}

fn journal_object(line: &str) -> Option<Map<String, Value>> {
    if !line.contains("\"MESSAGE\"") {
        return None;
    }
    serde_json::from_str(line).ok()
}

/// `journalctl -o json`. Source: systemd.journal-fields(7).
fn of_journal<'l>(object: &Map<String, Value>, year: &mut Option<i32>) -> Line<'l> {
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    let micros = text("_SOURCE_REALTIME_TIMESTAMP").or_else(|| text("__REALTIME_TIMESTAMP"));
    let micros = micros.and_then(|micros| micros.parse().ok());
    let time = micros.and_then(DateTime::from_timestamp_micros);
    *year = time.map(|time| time.year()).or(*year);
    // What is no UTF-8 is a list of bytes.
    let message = match object.get("MESSAGE") {
        Some(Value::String(message)) => message.clone(),
        Some(Value::Array(bytes)) => {
            let bytes = bytes.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok()).collect::<Vec<_>>();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => String::new(),
    };
    let owned = |field: &str| text(field).map(|text| Cow::Owned(text.to_owned()));
    Line {
        time,
        host: owned("_HOSTNAME"),
        program: owned("SYSLOG_IDENTIFIER").map(|program| of_systemd(&program).to_owned().into()),
        pod: None,
        message: message.into(),
    }
}

/// The time that the program itself writes: it is finer than the journal's, and has a year.
fn own_time(message: &str, year: Option<i32>) -> Option<DateTime<Utc>> {
    let field = |begin: &str, end: char| {
        let (_, rest) = message.split_once(begin)?;
        rest.split_once(end).map(|(value, _)| value)
    };
    if message.starts_with('{') {
        let of_epoch = |text: &str| text.parse::<f64>().ok().filter(|seconds| *seconds > 1e9 && *seconds < 1e11);
        let written = ["\"ts\":\"", "\"time\":\"", "\"timestamp\":\""].iter().find_map(|key| field(key, '"'));
        #[allow(clippy::cast_possible_truncation, reason = "the range is checked above")]
        let epoch = || DateTime::from_timestamp_millis((of_epoch(field("\"ts\":", ',')?)? * 1e3) as i64);
        return written.and_then(full_time).or_else(epoch);
    }
    if let Some(rest) = message.strip_prefix("time=") {
        // logrus quotes it, log/slog does not: golang/go go1.26 src/log/slog/text_handler.go `needsQuoting`.
        let time = rest.strip_prefix('"').map_or_else(|| rest.split_once(' '), |quoted| quoted.split_once('"'));
        return full_time(time?.0);
    }
    // klog: I0812 07:29:41.123456
    if message.len() > 21
        && klog_level(message).is_some()
        && let (Some(date), Some(clock)) = (message.get(1..5), message.get(6..21))
        && let (Ok(month), Ok(day)) = (date.get(..2)?.parse(), date.get(2..)?.parse())
    {
        let date = NaiveDate::from_ymd_opt(year?, month, day)?;
        let time = time_of_day(clock)?;
        return Some(date.and_time(time).and_utc());
    }
    // cloud-init: 2024-08-12 07:29:31,123
    let written = message.get(..19).filter(|text| text.starts_with("20"))?;
    NaiveDateTime::parse_from_str(written, "%Y-%m-%d %H:%M:%S").ok().map(|time| time.and_utc())
}

/// The level of a line that klog writes: `E0115 11:52:07.123456    1629 run.go:72] …`.
pub(crate) fn klog_level(message: &str) -> Option<char> {
    let is_dated = message.get(1..5)?.bytes().all(|b| b.is_ascii_digit());
    message.chars().next().filter(|level| is_dated && "IWEF".contains(*level))
}

/// The message as a text to be matched: of a JSON object its message, then its other fields, and no quote is escaped.
pub(crate) fn plain(message: &str) -> Cow<'_, str> {
    if let Some(line) = of_console(message) {
        return Cow::Owned(plain(&line).into_owned());
    }
    if message.starts_with('{')
        && let Ok(object) = serde_json::from_str::<Map<String, Value>>(message)
    {
        const MESSAGE: [&str; 3] = ["msg", "message", "MESSAGE"];
        // zap tells an error once more, with where it came through: zap v1.27 zapcore/error.go `encodeError`.
        const LESS: [&str; 9] =
            ["level", "ts", "time", "caller", "logger", "stacktrace", "errorVerbose", "commit", "timestamp"];
        let said = MESSAGE.iter().find_map(|field| object.get(*field)).and_then(Value::as_str).unwrap_or_default();
        let mut out = said.to_owned();
        let is_told = |key: &str| !MESSAGE.contains(&key) && !LESS.contains(&key);
        let mut others: Vec<_> = object.iter().filter(|(key, _)| is_told(key)).collect();
        others.sort_by_key(|(key, _)| key.as_str() != "error");
        for (key, value) in others {
            out.push(' ');
            out.push_str(key);
            out.push('=');
            match value {
                Value::String(text) => out.push_str(text),
                other => out.push_str(&other.to_string()),
            }
        }
        return Cow::Owned(if out.contains('\\') { without_escapes(&out) } else { out }.replace('\n', " "));
    }
    if message.contains('\\') { Cow::Owned(without_escapes(message)) } else { Cow::Borrowed(message) }
}

/// `info init/init.go:109 Configured daemon {"name": "kubelet"}` as the object that the same logger writes elsewhere.
/// Source: zap v1.27 zapcore/console_encoder.go, as nodeadm of 2026 uses it (nodeadm/internal/cli/logger.go).
fn of_console(message: &str) -> Option<String> {
    let (level, rest) = message.split_once([' ', '\t'])?;
    if !["debug", "info", "warn", "error", "fatal"].contains(&level) || !rest.ends_with('}') {
        return None;
    }
    let (caller, rest) = rest.split_once([' ', '\t'])?;
    let (said, fields) = rest.split_once(" {\"").or_else(|| rest.split_once("\t{\""))?;
    let mut object: Map<String, Value> = serde_json::from_str(&format!("{{\"{fields}")).ok()?;
    object.insert("msg".to_owned(), said.into());
    caller.contains(".go:").then(|| Value::Object(object).to_string())
}

/// `\"` and `\\\"` are quotes; `\n` and `\t` are blanks.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        while chars.next_if_eq(&'\\').is_some() {}
        match chars.peek() {
            Some('"') => {}
            Some('n' | 't') => {
                chars.next();
                out.push(' ');
            }
            _ => out.push('\\'),
        }
    }
    out
}

/// A JSON object as programs write it, if a tool that kept the log has put a blank behind each colon and comma, as
/// Python's json does. `None` for any other line.
pub(crate) fn compact(raw: &[u8]) -> Option<Vec<u8>> {
    let key = raw.strip_prefix(b"{\"")?;
    let behind = key.iter().position(|byte| *byte == b'"')? + 1;
    if !key[behind..].starts_with(b": ") {
        return None;
    }
    let mut out = Vec::with_capacity(raw.len());
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in raw {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_text = !is_text,
            b' ' if !is_text => continue,
            _ => {}
        }
        out.push(*byte);
    }
    Some(out)
}

/// A line without the terminal's colors.
pub(crate) fn without_colors(line: &str) -> Cow<'_, str> {
    if !line.contains('\x1b') {
        return Cow::Borrowed(line);
    }
    let mut pieces = line.split('\x1b');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let codes =
            piece.strip_prefix('[').map(|codes| codes.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        match codes.and_then(|end| end.strip_prefix(|c: char| c.is_ascii_alphabetic())) {
            Some(text) => out.push_str(text),
            None => out.push_str(piece),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let line = unwrapped(line, &mut Some(2024));
        let time = line.time.map(|time| time.to_rfc3339()).unwrap_or_default();
        let text = |part: &Option<Cow<str>>| part.as_deref().unwrap_or("-").to_owned();
        format!("{time}|{}|{}|{}|{}", text(&line.host), text(&line.program), line.pod.unwrap_or("-"), line.message)
    }

    #[test]
    fn every_wrapping_is_taken_off() {
        for (line, wanted) in [
            (
                "Aug 12 07:29:41 ip-10-0-0-1.ec2.internal kubelet[2061]: it says: x",
                "2024-08-12T07:29:41+00:00|ip-10-0-0-1.ec2.internal|kubelet|-|it says: x",
            ),
            ("Aug 12 07:29:41 ip (nodeadm)[1611]: x", "2024-08-12T07:29:41+00:00|ip|systemd|-|x"),
            (
                r#"{"__REALTIME_TIMESTAMP":"1723447781000000","_HOSTNAME":"ip","SYSLOG_IDENTIFIER":"(nodeadm)","MESSAGE":"x"}"#,
                "2024-08-12T07:29:41+00:00|ip|systemd|-|x",
            ),
            ("2024-08-12T07:29:41+0000 ip kubelet[1]: x", "2024-08-12T07:29:41+00:00|ip|kubelet|-|x"),
            (
                r#"{"__REALTIME_TIMESTAMP":"1723447781000000","_HOSTNAME":"ip","SYSLOG_IDENTIFIER":"kubelet","MESSAGE":"a \"b\""}"#,
                "2024-08-12T07:29:41+00:00|ip|kubelet|-|a \"b\"",
            ),
            ("[   12.302114] host-ctr[1433]: x: y", "|-|host-ctr|-|x: y"),
            ("[    4.101234] (tune)[812]: x: y", "|-|systemd|-|x: y"),
            ("[    4.101234] NVRM: x[1]: y", "|-|-|-|NVRM: x[1]: y"),
            (
                "[   13.2] cloud-init[1829]: May 29 08:27:42 localhost nodeadm[1619]: x",
                "2024-05-29T08:27:42+00:00|localhost|nodeadm|-|x",
            ),
            ("[FAILED] Failed to start x.", "|-|-|-|[FAILED] Failed to start x."),
            (
                "[pod/aws-node-x7k2p/aws-node] 2024-08-12T07:29:41.5Z x",
                "2024-08-12T07:29:41.500+00:00|-|aws-node|aws-node-x7k2p|x",
            ),
            ("2024-08-12T07:29:41.5Z stderr F x", "2024-08-12T07:29:41.500+00:00|-|-|-|x"),
            (
                "E0812 07:29:41.680000    2061 kubelet.go:1] x",
                "2024-08-12T07:29:41.680+00:00|-|-|-|E0812 07:29:41.680000    2061 kubelet.go:1] x",
            ),
            (
                "[pod/cilium-operator-x7k2p/cilium-operator] time=2024-08-12T07:29:41.635933965Z level=info msg=x",
                "2024-08-12T07:29:41.635933965+00:00|-|cilium-operator|cilium-operator-x7k2p|\
                 time=2024-08-12T07:29:41.635933965Z level=info msg=x",
            ),
            (
                r#"time="2024-08-12T07:29:41Z" level=info msg=x"#,
                r#"2024-08-12T07:29:41+00:00|-|-|-|time="2024-08-12T07:29:41Z" level=info msg=x"#,
            ),
            ("time=soon level=info", "|-|-|-|time=soon level=info"),
            (
                "2024-08-12 07:29:31,123 - util.py[WARNING]: x",
                "2024-08-12T07:29:31+00:00|-|-|-|2024-08-12 07:29:31,123 - util.py[WARNING]: x",
            ),
            (
                r#"{"level":"info","ts":1723447781.16,"msg":"x"}"#,
                "2024-08-12T07:29:41.160+00:00|-|-|-|{\"level\":\"info\",\"ts\":1723447781.16,\"msg\":\"x\"}",
            ),
        ] {
            assert_eq!(shown(line), wanted);
        }
    }

    #[test]
    fn a_message_has_no_escapes_however_it_was_written() {
        let wanted = r#"Command failed error=failed to pull "x""#;
        assert_eq!(plain(r#"{"level":"fatal","msg":"Command failed","error":"failed to pull \"x\""}"#), wanted);
        assert_eq!(plain(r#"fatal cli/main.go:35 Command failed {"error": "failed to pull \"x\""}"#), wanted);
        assert_eq!(plain(r#"msg="failed to pull \\\"x\\\"""#), r#"msg="failed to pull "x"""#);
        let loose = br#"{"level": "ERROR", "error": "a \"b\": c", "n": 1, "of": {"x": [1, 2]}}"#;
        let tight = br#"{"level":"ERROR","error":"a \"b\": c","n":1,"of":{"x":[1,2]}}"#;
        assert_eq!(compact(loose).as_deref(), Some(tight.as_slice()));
        assert!(compact(tight).is_none() && compact(b"level: x").is_none() && compact(b"{\"").is_none());
        assert_eq!(without_colors("\x1b[0;1;31m[FAILED]\x1b[0m x"), "[FAILED] x");
    }
}
