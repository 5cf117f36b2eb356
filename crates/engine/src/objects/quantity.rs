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

/// The quantity of a resource as people read it: `1690m` of cpu is `1.69`, `1916904192` of memory is `1.8Gi`.
pub(crate) fn shown(resource: &str, quantity: &str) -> String {
    const MIB: f64 = 1_048_576.0;
    let Some(number) = parse(quantity) else { return quantity.to_owned() };
    let short = |number: f64, digits: usize| {
        let text = format!("{number:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    match resource {
        "cpu" if number >= 0.01 => short(number, 2),
        "memory" | "ephemeral-storage" if number >= 1024.0 * MIB => format!("{}Gi", short(number / 1024.0 / MIB, 1)),
        "memory" | "ephemeral-storage" if number >= MIB => format!("{}Mi", short(number / MIB, 0)),
        _ => quantity.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, shown};

    #[test]
    fn quantities_are_shown_as_people_read_them() {
        for (resource, quantity, text) in [
            ("cpu", "1690m", "1.69"),
            ("cpu", "8", "8"),
            ("cpu", "20", "20"),
            ("cpu", "1m", "1m"),
            ("memory", "1916904192", "1.8Gi"),
            ("memory", "96Gi", "96Gi"),
            ("memory", "128Mi", "128Mi"),
            ("memory", "100", "100"),
            ("memory", "many", "many"),
            ("nvidia.com/gpu", "1", "1"),
            ("pods", "12", "12"),
        ] {
            assert_eq!(shown(resource, quantity), text, "{quantity} of {resource}");
        }
    }

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
