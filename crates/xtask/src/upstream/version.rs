//! Versions of Go modules, and which of them counts as the newest.

use std::cmp::Ordering;
use std::fmt;

/// Major and minor: `(1, 28)`.
pub type Minor = (u64, u64);

/// A version as Go writes it: `v1.2.3`, `v1.2.3-rc.1`, `v0.0.0-20260708223819-4da4c353c5fa`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    numbers: [u64; 3],
    /// What follows the numbers: a pre-release, the time and the commit of a pseudo-version, or `+incompatible`.
    rest: String,
}

impl Version {
    /// Reads a version with or without its `v`. There is no version without three numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let (core, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
        let mut numbers = core.split('.').map(|number| number.parse().ok());
        let version = Self { numbers: [numbers.next()??, numbers.next()??, numbers.next()??], rest: rest.to_owned() };
        numbers.next().is_none().then_some(version)
    }

    /// Whether somebody released it. Pre-releases, pseudo-versions (a commit, not a release) and `+incompatible`
    /// versions (from before the project was a module) have more than the three numbers.
    pub fn is_release(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn minor(&self) -> Minor {
        (self.numbers[0], self.numbers[1])
    }
}

impl Ord for Version {
    /// A release comes after its pre-releases. The times of pseudo-versions sort as texts.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_rest = match (self.is_release(), other.is_release()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => self.rest.cmp(&other.rest),
        };
        self.numbers.cmp(&other.numbers).then(by_rest)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "v{major}.{minor}.{patch}{}", self.rest)
    }
}

/// The highest of these versions; what is no version does not count.
pub fn highest<'v>(versions: impl IntoIterator<Item = &'v str>) -> Option<Version> {
    versions.into_iter().filter_map(Version::parse).max()
}

/// The releases after `pinned`, newest first. With `within`, only those of that major and minor.
pub fn newer<'v>(versions: impl IntoIterator<Item = &'v str>, pinned: &Version, within: Option<Minor>) -> Vec<Version> {
    let parsed = versions.into_iter().filter_map(Version::parse);
    let mut newer: Vec<Version> = parsed
        .filter(|version| version.is_release() && version > pinned)
        .filter(|version| within.is_none_or(|minor| version.minor() == minor))
        .collect();
    newer.sort();
    newer.reverse();
    newer.dedup();
    newer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).expect(text)
    }

    fn newer_than(pinned: &str, versions: &[&str], within: Option<Minor>) -> Vec<String> {
        newer(versions.iter().copied(), &version(pinned), within).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn numbers_sort_as_numbers_and_a_release_comes_after_its_pre_releases() {
        let sorted = [
            "v0.0.0-20240805231134-67d0acfb6306",
            "v0.0.0-20260708223819-4da4c353c5fa",
            "v0.0.0",
            "v1.9.0",
            "v1.10.0-rc.1",
            "v1.10.0",
            "v2.0.0",
        ];
        assert!(sorted.map(version).is_sorted());
        assert_eq!(sorted.map(|text| version(text).to_string()), sorted);
        for no_version in ["", "v1", "v1.2", "v1.2.x", "v1.2.3.4", "latest"] {
            assert_eq!(Version::parse(no_version), None, "{no_version}");
        }
    }

    #[test]
    fn only_releases_after_the_pin_are_newer() {
        let listed = [
            "v1.14.1",
            "v1.15.0",
            "v1.9.9",
            "v1.16.0-rc.1",
            "v1.15.1-0.20261101000000-0123456789ab",
            "v9.0.0+incompatible",
            "v1.15.2",
        ];
        assert_eq!(newer_than("v1.14.1", &listed, None), ["v1.15.2", "v1.15.0"]);
        assert_eq!(newer_than("v1.15.2", &listed, None), [""; 0]);
        assert_eq!(newer_than("v1.16.0-alpha.1", &listed, None), [""; 0]);
    }

    #[test]
    fn a_pin_of_one_minor_stays_there() {
        let listed = ["v1.28.15", "v1.28.16", "v1.29.0", "v2.28.17"];
        assert_eq!(newer_than("v1.28.15", &listed, Some((1, 28))), ["v1.28.16"]);
    }

    #[test]
    fn the_highest_pin_counts() {
        assert_eq!(highest(["v1.9.0", "v1.10.0", "main"]), Some(version("v1.10.0")));
        assert_eq!(highest(["main"]), None);
    }
}
