//! Which kubelets know which feature gate, and which take no other value of it any more.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// What is made of it.
pub const TABLE: &str = "crates/readers/src/userdata/feature_gates.tsv";

/// The minor versions of Kubernetes 1 that are read, each in its first release: gates come and go with minors.
pub const MINORS: RangeInclusive<u32> = 21..=37;

/// Where gates are declared that a kubelet has: its own, and those of the libraries that register theirs beside them.
/// Not every minor has every file.
const FILES: [(&str, &str); 8] = [
    ("k8s.io/kubernetes@v1.", "pkg/features/kube_features.go"),
    ("k8s.io/apiserver@v0.", "pkg/features/kube_features.go"),
    ("k8s.io/apiextensions-apiserver@v0.", "pkg/features/kube_features.go"),
    ("k8s.io/client-go@v0.", "features/known_features.go"),
    ("k8s.io/component-base@v0.", "logs/kube_features.go"),
    ("k8s.io/component-base@v0.", "logs/api/v1/kube_features.go"),
    ("k8s.io/component-base@v0.", "metrics/features/kube_features.go"),
    ("k8s.io/component-base@v0.", "zpages/features/kube_features.go"),
];

/// One row a gate: the first and the last minor that know it, and where a minor takes one value only, that minor and
/// that value. `source` gives the folder of a module.
pub fn table(source: &dyn Fn(&str) -> Result<PathBuf, String>, minors: RangeInclusive<u32>) -> Result<String, String> {
    let mut gates = BTreeMap::new();
    let (first, last) = (*minors.start(), *minors.end());
    for minor in minors {
        let mut texts = String::new();
        for (module, file) in FILES {
            texts += &fs::read_to_string(source(&format!("{module}{minor}.0"))?.join(file)).unwrap_or_default();
        }
        let declared = gates_of(&texts);
        if declared.is_empty() {
            return Err(format!("no feature gate is found in Kubernetes 1.{minor}"));
        }
        for (name, locked) in declared {
            let known: &mut Known =
                gates.entry(name).or_insert_with(|| Known { first: minor, last: minor, locked: None });
            known.last = minor;
            known.locked = locked.map(|to| known.locked.filter(|(_, was)| *was == to).unwrap_or((minor, to)));
        }
    }
    let mut table = format!(
        "# k8s.io/kubernetes and its libraries, 1.{first}.0 to 1.{last}.0\n# gate\tfirst minor\tlast minor\tlocked \
         from\tto\n"
    );
    for (name, Known { first, last, locked }) in gates {
        let (since, to) = locked.map_or_else(Default::default, |(since, to)| (since.to_string(), to.to_string()));
        let _ = writeln!(table, "{name}\t{first}\t{last}\t{since}\t{to}");
    }
    Ok(table)
}

struct Known {
    first: u32,
    last: u32,
    /// From which minor on it takes one value only, and which.
    locked: Option<(u32, bool)>,
}

/// The gates that Go source declares, and to what each is locked.
pub fn gates_of(source: &str) -> BTreeMap<String, Option<bool>> {
    // `AppArmor featuregate.Feature = "AppArmor"`: what the source calls it, and what users do. Some lack the type.
    let declared = source.lines().filter_map(|line| {
        let (left, name) = line.trim().split_once(" = \"")?;
        let name = name.strip_suffix('"')?;
        let Some((called, kind)) = left.split_once(' ') else { return (left == name).then_some((left, name)) };
        let is_gate = matches!(kind.trim(), "featuregate.Feature" | "Feature");
        is_gate.then_some((called, name))
    });
    let declared: BTreeMap<&str, &str> = declared.collect();
    let mut gates: BTreeMap<String, Option<bool>> = declared.values().map(|name| ((*name).to_owned(), None)).collect();
    let mut current = None;
    for line in source.lines().map(str::trim) {
        // `genericfeatures.AdvancedAuditing: {Default: true, PreRelease: featuregate.GA, LockToDefault: true},`, or the
        // same over several lines, one for each version.
        if let Some((called, _)) = line.split_once(':').filter(|(_, rest)| rest.trim_start().starts_with('{')) {
            let called = called.rsplit('.').next().unwrap_or_default();
            current = declared.get(called).copied();
        }
        let Some(gate) = current.filter(|_| line.contains("PreRelease:")) else { continue };
        // The last version's line counts.
        let is_on = |field: &str| line.split([',', '{', '}']).any(|part| part.trim() == format!("{field}: true"));
        let locked = is_on("LockToDefault").then(|| is_on("Default"));
        gates.insert(gate.to_owned(), locked);
    }
    gates
}
