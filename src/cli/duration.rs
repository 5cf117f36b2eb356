//! Durations as people write them.

use jiff::SignedDuration;

/// Whole seconds: `5m`, `1h30m`, `90s`, and a bare number as it always was.
pub fn seconds(text: &str) -> Result<u32, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let expected = || format!("{text} is no duration; expected one like 90s, 5m or 1h30m");
    let duration: SignedDuration = text.parse().map_err(|_| expected())?;
    u32::try_from(duration.as_secs()).ok().filter(|_| duration.subsec_nanos() == 0).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn durations_are_read_as_people_and_charts_write_them() {
        for (text, read) in
            [("300", 300), ("5m", 300), ("90s", 90), ("1h30m", 5_400), ("24h", 86_400), ("0", 0), ("2m 30s", 150)]
        {
            assert_eq!(seconds(text), Ok(read), "{text}");
        }
        for text in ["", "-5m", "5 bananas", "1.5s", "99999999999"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
