//! What the begin of a file tells: its year, and whether it is one value and no lines.

use crate::fact::MachineNames;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Datelike};
use serde::Deserialize;

/// The first year of a date that stands in the text: `2026-01-`, as cloud-init writes it, or as seconds since 1970.
pub(crate) fn year_in(head: &[u8]) -> Option<i32> {
    let text = String::from_utf8_lossy(head);
    let dated = text.match_indices("20").find_map(|(at, _)| {
        let date = text.get(at..at + 8)?;
        let is_date =
            date.bytes().enumerate().all(|(n, b)| if matches!(n, 4 | 7) { b == b'-' } else { b.is_ascii_digit() });
        is_date.then(|| date.get(..4)?.parse().ok())?
    });
    let seconds = || text.split_once("\"ts\":")?.1.split(['.', ',']).next()?.parse().ok();
    dated
        .or_else(|| year_of_cloud_init(&text))
        .or_else(|| DateTime::from_timestamp(seconds()?, 0).map(|time| time.year()))
}

/// The year in which cloud-init runs:
/// `Cloud-init v. 22.2.2 running 'init' at Tue, 18 Feb 2025 08:14:01 +0000. Up 12.31 …`. A date of this form elsewhere,
/// as of a file that was fetched, may be of any year. Source: canonical/cloud-init 22.2.2 cloudinit/cmd/main.py
/// (`WELCOME_MSG_TPL`), cloudinit/util.py `time_rfc2822`.
fn year_of_cloud_init(text: &str) -> Option<i32> {
    const LENGTH: usize = "Tue, 18 Feb 2025 08:14:01 +0000".len();
    let (_, welcome) = text.split_once("Cloud-init v. ")?;
    let (_, time) = welcome.lines().next()?.split_once("' at ")?;
    DateTime::parse_from_rfc2822(time.get(..LENGTH)?).ok().map(|time| time.year())
}

/// Whether a file is no lines: what `aws ec2 get-console-output` prints, or base64 as the API gives it.
pub(crate) fn is_one_value(head: &[u8]) -> bool {
    let begins = head.trim_ascii_start();
    let has = |text: &[u8]| begins.windows(text.len()).any(|window| window == text);
    let is_console = begins.starts_with(b"{") && has(b"\"Output\"") && !has(b"\"MESSAGE\"");
    is_console || is_base64(begins)
}

fn is_base64(bytes: &[u8]) -> bool {
    const LEAST: usize = 200;
    let is_digit = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'\r' | b'\n');
    bytes.len() >= LEAST && bytes.iter().all(is_digit)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct ConsoleOutput {
    instance_id: String,
    output: String,
}

/// The text of a console, and whose it is.
pub(crate) fn console(bytes: &[u8]) -> Option<(Vec<u8>, MachineNames)> {
    let decoded = |text: &str| {
        let text: String = text.split_whitespace().collect();
        STANDARD.decode(text).ok()
    };
    if is_base64(bytes.trim_ascii()) {
        let text = decoded(std::str::from_utf8(bytes).ok()?)?;
        return (!text.contains(&0)).then_some((text, MachineNames::default()));
    }
    let console: ConsoleOutput = serde_json::from_slice(bytes).ok()?;
    let mut identity = MachineNames::default();
    identity.instances.extend(is_instance(&console.instance_id).then_some(console.instance_id));
    let text = if is_base64(console.output.as_bytes()) { decoded(&console.output) } else { None };
    Some((text.unwrap_or_else(|| console.output.into_bytes()), identity))
}

/// `i-` and 8 or 17 hexadecimal digits.
pub(crate) fn is_instance(text: &str) -> bool {
    text.strip_prefix("i-").is_some_and(|id| matches!(id.len(), 8 | 17) && id.bytes().all(|b| b.is_ascii_hexdigit()))
}
