//! Kubernetes quantities, as far as sizes of machines go.

/// The number that a quantity is.
/// Source: k8s.io/apimachinery v0.36.3 pkg/api/resource/suffix.go.
pub(crate) fn parse(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 12] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("", 1.0),
    ];
    let text = text.trim();
    SUFFIXES.into_iter().find_map(|(suffix, factor)| {
        let number = text.strip_suffix(suffix)?;
        let plain = number.starts_with(|c: char| c.is_ascii_digit()) && number.ends_with(|c: char| c.is_ascii_digit());
        plain.then(|| number.parse::<f64>().ok())?.map(|number| number * factor)
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn quantities_are_numbers() {
        for (text, number) in
            [("2", 2.0), ("250m", 0.25), ("1.5Gi", 1_610_612_736.0), ("100M", 1e8), ("512Ki", 524_288.0)]
        {
            assert_eq!(parse(text), Some(number), "{text}");
        }
        for text in ["", "5%", "Gi", "inf", "-1", "1 Gi", "$(nproc)"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
