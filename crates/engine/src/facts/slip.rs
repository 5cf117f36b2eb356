//! Names that are probably misspelt.

/// One letter is missing, too many, another or of the other case, or two have changed places.
pub(crate) fn is_slip(value: &str, name: &str) -> bool {
    const SHORTEST: usize = 4;
    if value == name || value.len().min(name.len()) < SHORTEST {
        return false;
    }
    let (a, b) = (value.as_bytes(), name.as_bytes());
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    match (&a[..a.len() - tail], &b[..b.len() - tail]) {
        ([] | [_], [] | [_]) => true,
        ([first, second], [other, last]) => first == last && second == other,
        _ => value.eq_ignore_ascii_case(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_a_letter_and_no_other_name() {
        for (value, name, slip) in [
            ("mstar-prd-ek", "mstar-prd-eks", true),
            ("mstar-prd-eks-", "mstar-prd-eks", true),
            ("mstar-prod-eks", "mstar-prd-eks", true),
            ("mstar-pdr-eks", "mstar-prd-eks", true),
            ("Mstar-PRD-eks", "mstar-prd-eks", true),
            ("mstar-prd-eks", "mstar-prd-eks", false),
            ("mstar-prd", "mstar-prd-eks", false),
            ("mstar-dev-eks", "mstar-prd-eks", false),
            ("*", "eks", false),
            ("owned", "eks", false),
        ] {
            assert_eq!(is_slip(value, name), slip, "{value} {name}");
        }
    }
}
