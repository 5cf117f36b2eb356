//! `cargo xtask tables`: what nodewhy knows by heart of upstream's own tables, made anew from the pinned modules.

pub mod feature_gates;
pub mod instance_types;
pub mod kubelet;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes the tables, and says where.
pub fn write(root: &Path) -> Result<String, String> {
    let limits = source(instance_types::MODULE)?.join(instance_types::FILE);
    let text = fs::read_to_string(&limits).map_err(|error| format!("{}: {error}", limits.display()))?;
    let types =
        instance_types::table(&text).ok_or_else(|| format!("{} reads otherwise than before", limits.display()))?;
    let gates = feature_gates::table(&source)?;
    let tables = [
        (instance_types::TABLE, types),
        (feature_gates::TABLE, gates),
        (kubelet::CONFIG_TABLE, kubelet::config(&source)?),
        (kubelet::FLAGS_TABLE, kubelet::flags(&source)?),
    ];
    for (table, text) in &tables {
        fs::write(root.join(table), text).map_err(|error| format!("{table}: {error}"))?;
    }
    Ok(tables.map(|(table, _)| table).join(", "))
}

/// The folder of a module's source, MODULE@VERSION.
fn source(module: &str) -> Result<PathBuf, String> {
    let output = Command::new("go").env("GOTOOLCHAIN", "auto").args(["mod", "download", "-json", module]).output();
    let output = output.map_err(|error| format!("go: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let folder = said.lines().find_map(|line| line.trim().strip_prefix("\"Dir\": \"")?.strip_suffix("\","));
    folder.map(PathBuf::from).ok_or_else(|| format!("go mod download {module}: {said}"))
}
