//! Files that kustomize merges into others. They hold parts of objects, and lack what the whole has.
//!
//! Source: kustomize api v0.20 types/kustomization.go `Patches`, `PatchesStrategicMerge`.

use super::regular;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// How many folders are searched: that of the file, and those above it.
const HIGHEST: usize = 7;

/// Those of `files` that a kustomization in their folder, or in one above it, names as patches.
pub fn patches(files: &BTreeSet<String>) -> BTreeSet<String> {
    let mut known: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    let mut is_patch = |file: &String| {
        let Ok(path) = fs::canonicalize(file) else { return false };
        path.ancestors()
            .skip(1)
            .take(HIGHEST)
            .any(|folder| known.entry(folder.to_path_buf()).or_insert_with(|| patches_of(folder)).contains(&path))
    };
    files.iter().filter(|file| is_patch(file)).cloned().collect()
}

/// The files that the kustomization of a folder names as patches.
fn patches_of(folder: &Path) -> BTreeSet<PathBuf> {
    let Some(kustomization) = NAMES.iter().find_map(|name| read(&folder.join(name))) else { return BTreeSet::new() };
    let list = |field: &str| kustomization[field].as_array().cloned().unwrap_or_default();
    let mut named: Vec<Value> = list("patchesStrategicMerge");
    named.extend(list("patches").into_iter().map(|mut patch| patch["path"].take()));
    let paths = named.iter().filter_map(Value::as_str).filter_map(|path| fs::canonicalize(folder.join(path)).ok());
    paths.collect()
}

/// `None` for a file that is not there, or that cannot be read: it then says nothing of others.
fn read(path: &Path) -> Option<Value> {
    /// Nobody's kustomization is larger, in bytes.
    const LARGEST: u64 = 1 << 20;
    serde_saphyr::from_str(&regular::read_text(path, LARGEST).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::patches;
    use std::collections::BTreeSet;
    use std::fs;

    #[test]
    fn what_a_kustomization_names_as_patches() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::create_dir_all(path("overlay/inner")).unwrap();
        let kustomization = "resources: [whole.yaml]\npatches:\n- path: one.yaml\n- path: inner/two.yaml\n- patch: \"- op: add\"\n  target: {kind: NodePool}\npatchesStrategicMerge: [three.yaml, missing.yaml]\n";
        fs::write(path("overlay/kustomization.yaml"), kustomization).unwrap();
        let names =
            ["one.yaml", "inner/two.yaml", "three.yaml", "whole.yaml"].map(|name| path(&format!("overlay/{name}")));
        for name in &names {
            fs::write(name, "").unwrap();
        }
        let found = patches(&names.iter().cloned().collect());
        assert_eq!(found, names.iter().take(3).cloned().collect::<BTreeSet<_>>());
        // A broken one says nothing.
        fs::write(path("overlay/kustomization.yaml"), "patches: [{path: one.yaml").unwrap();
        assert!(patches(&names.into_iter().collect()).is_empty());
    }
}
