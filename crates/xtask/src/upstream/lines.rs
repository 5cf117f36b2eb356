//! What programs print: the rows of `crates/logs/table`, and where upstream writes them.

use std::fs;
use std::path::Path;

use serde::Deserialize;

const FOLDER: &str = "crates/logs/table";

/// What a row says of upstream.
#[derive(Debug, Deserialize)]
pub struct SaidLine {
    /// The line, with names for what differs: `pull image "{image}"`.
    pub says: String,
    /// Where upstream writes it: a module, a version and a file.
    pub source: String,
}

#[derive(Deserialize)]
struct File {
    row: Vec<SaidLine>,
}

/// The rows of every file.
pub fn all(root: &Path) -> Result<Vec<SaidLine>, String> {
    let folder = root.join(FOLDER);
    let entries = fs::read_dir(&folder).map_err(|error| format!("{FOLDER}: {error}"))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut rows = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
        let complain = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| complain(&error))?;
        rows.extend(toml::from_str::<File>(&text).map_err(|error| complain(&error))?.row);
    }
    Ok(rows)
}

/// Module, version and file that a row's source names; `None` if that is no Go module.
pub fn place(source: &str) -> Option<(String, &str, &str)> {
    let mut words = source.split(' ');
    let (name, version, file) = (words.next()?, words.next()?, words.next()?);
    let module = match name {
        "containerd/containerd" => "github.com/containerd/containerd/v2".to_owned(),
        "aws/amazon-vpc-cni-k8s" => format!("github.com/{name}"),
        "sigs.k8s.io/karpenter" | "sigs.k8s.io/aws-iam-authenticator" => name.to_owned(),
        _ if name.starts_with("k8s.io/") || name.starts_with("github.com/") => name.to_owned(),
        _ => return None,
    };
    Some((module, version, file.trim_end_matches([';', ','])))
}

/// Go source without the backslashes before quotes, as [`stands_in`] wants it.
pub fn unquoted(text: &str) -> String {
    text.replace("\\\"", "\"")
}

/// Whether a piece of what is said stands in the source `text`. Errors are put together from several files,
/// `doing this: doing that`: one of them is enough.
pub fn stands_in(says: &str, file: &str, text: &str) -> bool {
    const LEAST: usize = 8;
    let pieces = says.split(['{', '}', '"', '\'', '`']).flat_map(|piece| piece.split(": "));
    let letters = |piece: &str| piece.chars().filter(char::is_ascii_alphabetic).count();
    let mut pieces = pieces.map(|piece| piece.trim_matches([' ', ':', ',', '.']));
    pieces.any(|piece| letters(piece) >= LEAST && !file.ends_with(piece) && text.contains(piece))
}
