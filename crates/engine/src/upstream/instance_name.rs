//! The parts of the name of an instance type or of a family: `m6id.large` is of the family `m6id`, which has the
//! category `m`, the generation `6` and the options `id`.
//! Sources: Amazon EC2 instance types guide, "Amazon EC2 instance type naming conventions"; karpenter-provider-aws
//! v1.15.0 pkg/providers/instancetype/types.go `instanceTypeScheme`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceName<'n> {
    pub family: &'n str,
    /// `None` if the name is that of a family.
    pub size: Option<&'n str>,
    pub category: &'n str,
    pub generation: &'n str,
    /// What is behind the generation: `g` is Graviton, `d` has disks of its own.
    pub options: &'n str,
}

impl<'n> InstanceName<'n> {
    pub fn of(name: &'n str) -> Option<Self> {
        let (family, size) = name.split_once('.').map_or((name, None), |(family, size)| (family, Some(size)));
        let letters = family.bytes().take_while(u8::is_ascii_lowercase).count();
        let (category, behind) = family.split_at_checked(letters)?;
        // `u-6tb1` has its memory before the generation.
        let memory = behind.strip_prefix('-').and_then(|memory| memory.split_once("tb")).map(|(_, rest)| rest);
        let numbered = memory.unwrap_or(behind);
        let digits = numbered.bytes().take_while(u8::is_ascii_digit).count();
        let (generation, options) = numbered.split_at_checked(digits)?;
        let is_whole = !category.is_empty() && !generation.is_empty();
        is_whole.then_some(Self { family, size, category, generation, options })
    }
}

#[cfg(test)]
mod tests {
    use super::InstanceName;

    #[test]
    fn a_name_has_category_generation_and_options() {
        let parts = |name| InstanceName::of(name).map(|n| (n.family, n.size, n.category, n.generation, n.options));
        assert_eq!(parts("m6id.large"), Some(("m6id", Some("large"), "m", "6", "id")));
        assert_eq!(parts("gr6"), Some(("gr6", None, "gr", "6", "")));
        assert_eq!(parts("u-6tb1.metal"), Some(("u-6tb1", Some("metal"), "u", "1", "")));
        assert_eq!(parts("u7i-12tb"), Some(("u7i-12tb", None, "u", "7", "i-12tb")));
        for other in ["", "metal", "6m", "M5.large", "é5"] {
            assert_eq!(parts(other), None, "{other}");
        }
    }
}
