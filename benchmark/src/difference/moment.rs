//! Times as Kubernetes writes them (`2026-01-15T12:00:00Z`), as seconds since 1970.

/// The seconds; nothing for a text of another form.
pub fn seconds(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    (text_of(seconds) == text).then_some(seconds)
}

pub fn text_of(seconds: i64) -> String {
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let mut parts = text.split(between).map(|part| part.parse().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// Days since 1970-01-01 in the Gregorian calendar. A year of this reckoning begins in March, so that the leap day is
/// its last: <https://howardhinnant.github.io/date_algorithms.html>, `days_from_civil`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The reverse: `civil_from_days`.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::{seconds, text_of};

    #[test]
    fn times_are_read_and_written() {
        for (text, at) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59Z", -1),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2026-01-15T12:00:00Z", 1_768_478_400),
        ] {
            assert_eq!(seconds(text), Some(at), "{text}");
            assert_eq!(text_of(at), text);
        }
        for text in ["", "2026-01-15", "2026-02-30T00:00:00Z", "2026-01-15T12:00:00.5Z", "2026-1-15T12:00:00Z"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
