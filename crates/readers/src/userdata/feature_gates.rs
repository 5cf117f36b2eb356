//! The kubelet's feature gates: which minor version of Kubernetes 1 knows which.
//!
//! A gate that it does not know ends the kubelet at once, and so does another value of one that is locked:
//! `failed to set feature gates from initial flags-based config: unrecognized feature gate: X`.
//! `cargo xtask tables` makes the table anew, and `tests/e2e/upstream` holds its end against the pinned module.
// kubernetes v1.36.3 staging/src/k8s.io/component-base/featuregate/feature_gate.go `unsafeSetFromMap`

use std::fmt;

const TABLE: &str = include_str!("feature_gates.tsv");

/// The minor versions that the table knows.
const OLDEST: u32 = 21;
const NEWEST: u32 = 37;

/// Why a kubelet ends over a feature gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateRefusal {
    /// Gone since this minor version.
    Gone(u32),
    /// There from this minor version on.
    NotYet(u32),
    /// No other value is taken since this minor version than the one named.
    Locked(u32, bool),
    /// Never heard of.
    Unknown,
}

/// As a clause after the gate's name.
impl fmt::Display for GateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(since) => write!(f, "which Kubernetes 1.{since} removed"),
            Self::NotYet(first) => write!(f, "which comes with Kubernetes 1.{first}"),
            Self::Locked(since, to) => write!(f, "which Kubernetes 1.{since} locked to {to}"),
            Self::Unknown => f.write_str("which no kubelet is known to have"),
        }
    }
}

/// Whether a kubelet of this minor version ends over a gate that is set so; `None` also where the table is too old, or
/// too young, to tell.
pub fn refusal(gate: &str, value: &str, minor: u32) -> Option<GateRefusal> {
    if !(OLDEST..=NEWEST).contains(&minor) || matches!(gate, "AllAlpha" | "AllBeta") {
        return None;
    }
    let row = TABLE.lines().find_map(|row| row.strip_prefix(gate)?.strip_prefix('\t'));
    let Some(row) = row else { return Some(GateRefusal::Unknown) };
    let mut columns = row.split('\t');
    let mut number = || columns.next()?.parse().ok();
    let (first, last, locked): (u32, u32, Option<u32>) = (number()?, number()?, number());
    if last < minor {
        return Some(GateRefusal::Gone(last + 1));
    }
    if minor < first {
        return Some(GateRefusal::NotYet(first));
    }
    let (since, to) = (locked.filter(|since| *since <= minor)?, columns.next()? == "true");
    let set = is_true(value)?;
    (set != to).then_some(GateRefusal::Locked(since, to))
}

/// As Go's `strconv.ParseBool` reads it.
fn is_true(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_come_and_go_and_are_locked() {
        assert_eq!(refusal("DynamicKubeletConfig", "false", 25), None);
        assert_eq!(refusal("DynamicKubeletConfig", "false", 26), Some(GateRefusal::Gone(26)));
        assert_eq!(refusal("KubeletPSI", "true", 32), Some(GateRefusal::NotYet(33)));
        assert_eq!(refusal("KubeletPSI", "true", 33), None);
        assert_eq!(refusal("APIServerTracing", "false", 33), None);
        assert_eq!(refusal("APIServerTracing", "false", 34), Some(GateRefusal::Locked(34, true)));
        assert_eq!(refusal("APIServerTracing", "true", 34), None);
        assert_eq!(refusal("RotateKubeletServerCertficate", "true", 30), Some(GateRefusal::Unknown));
        assert_eq!(refusal("SidecarContainers", "true", 36), None);
        assert_eq!(refusal("SidecarContainers", "true", 37), Some(GateRefusal::Gone(37)));
        assert_eq!(refusal("HostnameOverride", "false", 36), None);
        assert_eq!(refusal("HostnameOverride", "false", 37), Some(GateRefusal::Locked(37, true)));
        assert_eq!(refusal("RelaxedServiceNameValidation", "false", 37), Some(GateRefusal::Locked(37, true)));
        assert_eq!(refusal("ReloadKubeletClientCAFile", "true", 36), None);
    }

    #[test]
    fn what_the_table_cannot_know_is_not_said() {
        for (gate, minor) in [("NeverHeardOf", NEWEST + 1), ("NeverHeardOf", OLDEST - 1), ("AllAlpha", 30)] {
            assert_eq!(refusal(gate, "true", minor), None, "{gate} {minor}");
        }
    }

    #[test]
    fn the_table_is_of_the_versions_that_are_named() {
        let head = TABLE.lines().next().unwrap_or_default();
        assert!(head.ends_with(&format!("1.{OLDEST}.0 to 1.{NEWEST}.0")), "{head}");
        assert!(TABLE.lines().skip(2).all(|row| row.split('\t').count() == 5));
    }
}
