//! Values as Go's own parsers and Kubernetes' take them: durations, quantities, numbers, switches.

/// A duration in nanoseconds, or why it is none.
// Go 1.25 time.ParseDuration
pub fn duration(text: &str) -> Result<i128, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (minus, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, behind) = rest.split_at(digits(rest));
        let (fraction, behind) = match behind.strip_prefix('.') {
            Some(behind) => behind.split_at(digits(behind)),
            None => ("", behind),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let length = behind.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(length);
        let nanoseconds: i128 = match unit {
            "" => return Err(format!("time: missing unit in duration {text:?}")),
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(format!("time: unknown unit {unit:?} in duration {text:?}")),
        };
        let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
        let fraction = fraction.get(..9).unwrap_or(fraction);
        let tens = 10_i128.pow(u32::try_from(fraction.len()).unwrap_or_default());
        let part = number(whole)
            .and_then(|whole| whole.checked_mul(nanoseconds))
            .and_then(|whole| whole.checked_add(number(fraction)? * nanoseconds / tens));
        total =
            part.and_then(|part| total.checked_add(part)).filter(|t| *t <= i128::from(i64::MAX)).ok_or_else(invalid)?;
        rest = behind;
    }
    Ok(if minus { -total } else { total })
}

/// A quantity as Kubernetes reads it: its sign, -1, 0 or 1; `None` where it is none.
// apimachinery v0.36.3 pkg/api/resource/quantity.go parseQuantityString, suffix.go
pub fn quantity(text: &str) -> Option<i8> {
    let (minus, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    if !number.bytes().any(|b| b.is_ascii_digit()) || number.matches('.').count() > 1 {
        return None;
    }
    let exponent = || {
        let digits = suffix.strip_prefix(['e', 'E'])?;
        let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
        (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(())
    };
    let known = matches!(
        suffix,
        "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei"
    );
    if !known {
        exponent()?;
    }
    let zero = number.bytes().all(|b| matches!(b, b'0' | b'.'));
    Some(if zero {
        0
    } else if minus {
        -1
    } else {
        1
    })
}

/// A switch.
// Go 1.25 strconv.ParseBool
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A whole number.
// Go 1.25 strconv.ParseInt with base 0
pub fn integer(text: &str) -> Option<i64> {
    let (minus, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, lower.get(2..)?),
        Some("0o") => (8, lower.get(2..)?),
        Some("0b") => (2, lower.get(2..)?),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, lower.get(1..)?),
        _ => (10, lower.as_str()),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i64::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if minus { -value } else { value })
}

/// Whether the text is bytes in base64, or may have been before somebody shortened or masked it for a report.
// Go 1.25 encoding/base64 StdEncoding: line ends are left out
pub fn is_base64(text: &str) -> bool {
    if ["...", "…", "***"].iter().any(|mark| text.contains(mark)) {
        return true;
    }
    let text: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    let padding = text.iter().rev().take_while(|b| **b == b'=').count();
    let body = text.get(..text.len() - padding).unwrap_or_default();
    text.len().is_multiple_of(4)
        && padding <= 2
        && body.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_gos() {
        assert_eq!(duration("2m30s"), Ok(150_000_000_000));
        assert_eq!(duration("1.5h"), Ok(5_400_000_000_000));
        assert_eq!([duration("0"), duration("-1s"), duration(".5s")], [Ok(0), Ok(-1_000_000_000), Ok(500_000_000)]);
        for (text, why) in [
            ("30", "missing unit"),
            ("30sec", "unknown unit \"sec\""),
            ("", "invalid"),
            ("s", "invalid"),
            ("1d", "unknown unit \"d\""),
            ("1m 30s", "unknown unit \"m \""),
        ] {
            assert!(duration(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn quantities_are_kubernetes() {
        for good in ["100Mi", "1", "1.5Gi", "500m", "1e3", "2E", "1E3", ".5", "5.", "+1Ki"] {
            assert_eq!(quantity(good), Some(1), "{good}");
        }
        assert_eq!([quantity("0"), quantity("0Mi"), quantity("-1Gi")], [Some(0), Some(0), Some(-1)]);
        for bad in ["", "500MB", "1GiB", "1 Gi", "Gi", "1K", "1.2.3", "ten", "10%", "1e", "1mi"] {
            assert_eq!(quantity(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_and_switches_are_gos() {
        assert_eq!(
            [integer("58"), integer("0x10"), integer("-1"), integer("010")],
            [Some(58), Some(16), Some(-1), Some(8)]
        );
        assert_eq!([integer("abc"), integer("5.5"), integer(""), integer("1e3")], [None; 4]);
        assert_eq!(
            [boolean("true"), boolean("0"), boolean("yes"), boolean("on")],
            [Some(true), Some(false), None, None]
        );
        assert!(is_base64("LS0tLS1CRUdJTg==") && is_base64("") && is_base64("e30=\n"));
        assert!(is_base64("LS0tLS1CR...") && is_base64("***") && is_base64("LS0tLS1CR…"));
        assert!(!is_base64("-----BEGIN") && !is_base64("e30") && !is_base64("echo hi!"));
    }
}
