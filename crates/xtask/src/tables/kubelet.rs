//! The fields of the kubelet's configuration and its flags, each with its type.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The tables that this module writes.
pub const CONFIG_TABLE: &str = "crates/readers/src/userdata/kubelet_config.tsv";
pub const FLAGS_TABLE: &str = "crates/readers/src/userdata/kubelet_flags.tsv";

/// The minor versions of Kubernetes 1 whose configuration is read: from the first that reads drop-in files.
pub const MINORS: RangeInclusive<u32> = 28..=37;

/// The files that declare the types of the configuration.
const FILES: [(&str, &str); 3] = [
    ("k8s.io/kubelet@v0.", "config/v1beta1/types.go"),
    ("k8s.io/component-base@v0.", "logs/api/v1/types.go"),
    ("k8s.io/component-base@v0.", "tracing/api/v1/types.go"),
];

/// The file that declares the flags.
const FLAG_FILE: &str = "cmd/kubelet/app/options/options.go";

type Sources<'s> = &'s dyn Fn(&str) -> Result<PathBuf, String>;

/// One row a field, with its path as people write it, its type, and the first and last minor that has it. A list's
/// items are `path[]`, the values of a map `path.*`.
pub fn config(source: Sources<'_>, minors: RangeInclusive<u32>) -> Result<String, String> {
    let mut rows: BTreeMap<String, (String, u32, u32)> = BTreeMap::new();
    let (first, last) = (*minors.start(), *minors.end());
    for minor in minors {
        let fields = fields(&types(source, minor)?);
        if fields.is_empty() {
            return Err(format!("no field is found in the kubelet's configuration of 1.{minor}"));
        }
        for field in fields {
            let row = rows.entry(field.path).or_insert((String::new(), minor, minor));
            (row.0, row.2) = (field.kind, minor);
        }
    }
    let mut table = format!(
        "# k8s.io/kubelet config/v1beta1 and the types of component-base in it, 1.{first}.0 to 1.{last}.0\n# \
         path\ttype\tfirst minor\tlast minor\n"
    );
    for (path, (kind, first, last)) in rows {
        let _ = writeln!(table, "{path}\t{kind}\t{first}\t{last}");
    }
    Ok(table)
}

/// One row a flag of the newest minor, with its type and the field of the configuration that it sets.
pub fn flags(source: Sources<'_>, newest: u32) -> Result<String, String> {
    let fields = fields(&types(source, newest)?);
    let folder = source(&format!("k8s.io/kubernetes@v1.{newest}.0"))?;
    let mut table = format!("# k8s.io/kubernetes 1.{newest}.0 {FLAG_FILE}\n# flag\ttype\tfield of the configuration\n");
    let text = fs::read_to_string(folder.join(FLAG_FILE)).map_err(|error| format!("{FLAG_FILE}: {error}"))?;
    let rows: BTreeMap<_, _> = text.lines().filter_map(|line| flag(line, &fields)).collect();
    for (name, (kind, path)) in rows {
        let _ = writeln!(table, "{name}\t{kind}\t{path}");
    }
    Ok(table)
}

fn types(source: Sources<'_>, minor: u32) -> Result<String, String> {
    let mut texts = String::new();
    for (module, file) in FILES {
        let path = source(&format!("{module}{minor}.0"))?.join(file);
        texts += &fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(texts)
}

/// `fs.Int32Var(&c.MaxPods, "max-pods", c.MaxPods, "…")`.
fn flag(line: &str, fields: &[ConfigField]) -> Option<(String, (String, String))> {
    let call = line.trim().strip_prefix("fs.")?;
    let (function, arguments) = call.split_once('(')?;
    let kind = function.strip_suffix("Var").filter(|_| function.ends_with("Var"))?;
    let (target, rest) = arguments.split_once('"')?;
    let name = rest.split('"').next()?;
    let has = |constructor: &str| target.contains(constructor);
    let kind = match kind {
        "Bool" => "bool",
        "Int32" => "int32",
        "Int64" => "int64",
        "Duration" => "duration",
        "String" => "string",
        "StringSlice" => "[]string",
        "" if has("NewMapStringBool") => "map[string]bool",
        "" if has("NewLangleSeparatedMapStringString") => "map[string<string]",
        "" if has("NewMapStringString") => "map[string]string",
        "" if has("IPVar") => "ip",
        _ => "other",
    };
    let go = target.split_once("&c.").map_or("", |(_, path)| {
        path.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).next().unwrap_or_default()
    });
    let go = go.strip_suffix(".Duration").unwrap_or(go);
    let path = fields.iter().find(|field| !go.is_empty() && field.go == go).map_or("", |field| field.path.as_str());
    Some((name.to_owned(), (kind.to_owned(), path.to_owned())))
}

/// A field of the configuration.
pub struct ConfigField {
    /// As people write it.
    pub path: String,
    /// As Go's source names it.
    go: String,
    pub kind: String,
}

type Structs<'t> = BTreeMap<&'t str, Vec<(&'t str, &'t str, &'t str)>>;

/// The fields that the Go source declares below `KubeletConfiguration`.
pub fn fields(source: &str) -> Vec<ConfigField> {
    let (mut structs, mut named) = (Structs::new(), BTreeMap::new());
    let mut current: Option<&str> = None;
    for line in source.lines().map(str::trim) {
        if let Some(declared) = line.strip_prefix("type ") {
            let mut words = declared.split_whitespace();
            let (Some(name), Some(kind)) = (words.next(), words.next()) else { continue };
            current = (kind == "struct").then_some(name);
            if current.is_none() {
                named.insert(name, kind);
            }
        }
        if line == "}" {
            current = None;
        }
        let (Some(name), Some((declared, tag))) = (current, line.split_once('`')) else { continue };
        let words: Vec<&str> = declared.split_whitespace().collect();
        let json = tag.split_once("json:\"").and_then(|(_, json)| json.split(['"', ',']).next()).unwrap_or_default();
        let (go, kind) = (words.first().copied().unwrap_or_default(), words.last().copied().unwrap_or_default());
        structs.entry(name).or_default().push((go, kind, json));
    }
    let mut fields = Vec::new();
    expand("KubeletConfiguration", "", "", &structs, &named, &mut fields);
    fields
}

fn expand(
    of: &str,
    path: &str,
    go: &str,
    structs: &Structs<'_>,
    named: &BTreeMap<&str, &str>,
    fields: &mut Vec<ConfigField>,
) {
    let joined =
        |before: &str, name: &str| if before.is_empty() { name.to_owned() } else { format!("{before}.{name}") };
    for (name, kind, json) in structs.get(of).into_iter().flatten() {
        let bare = kind.trim_start_matches('*');
        if json.is_empty() {
            if bare.ends_with("TypeMeta") {
                for json in ["apiVersion", "kind"] {
                    fields.push(ConfigField { path: joined(path, json), go: String::new(), kind: "string".to_owned() });
                }
            } else {
                expand(local(bare), path, go, structs, named, fields);
            }
            continue;
        }
        add(bare, &joined(path, json), &joined(go, name), structs, named, fields);
    }
}

/// A type without its package.
fn local(kind: &str) -> &str {
    kind.rsplit('.').next().unwrap_or(kind)
}

fn add(
    kind: &str,
    path: &str,
    go: &str,
    structs: &Structs<'_>,
    named: &BTreeMap<&str, &str>,
    fields: &mut Vec<ConfigField>,
) {
    let mut push =
        |kind: &str| fields.push(ConfigField { path: path.to_owned(), go: go.to_owned(), kind: kind.to_owned() });
    if let Some(item) = kind.strip_prefix("[]") {
        push("list");
        return add(item.trim_start_matches('*'), &format!("{path}[]"), go, structs, named, fields);
    }
    if let Some((_, value)) = kind.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        push("map");
        return add(value, &format!("{path}.*"), go, structs, named, fields);
    }
    let bare = local(kind);
    match bare {
        "Duration" => push("duration"),
        "QuantityValue" | "Quantity" => push("quantity"),
        "ResourceList" => {
            push("map");
            add("Quantity", &format!("{path}.*"), go, structs, named, fields);
        }
        "Taint" => {
            push("map");
            for (json, kind) in [("key", "string"), ("value", "string"), ("effect", "string"), ("timeAdded", "string")]
            {
                add(kind, &format!("{path}.{json}"), "", structs, named, fields);
            }
        }
        // It takes a number as well as a text.
        "TimeOrMetaDuration" => push("any"),
        _ if structs.contains_key(bare) => {
            push("map");
            expand(bare, path, go, structs, named, fields);
        }
        _ => match named.get(bare) {
            Some(alias) => add(alias, path, go, structs, named, fields),
            None => push(bare),
        },
    }
}
