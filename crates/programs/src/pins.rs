//! Which versions of Go modules the end-to-end tests build.

use std::fs;
use std::path::{Path, PathBuf};

use crate::agents::{AUTHENTICATOR, VPC_CNIS, vpc_cni_module};
use crate::control_plane::{HELM, KARPENTERS, REGISTRY};
use crate::linters::ACTIONLINT;
use crate::project;

/// A module of one version, and the file that says so.
#[derive(Debug, PartialEq, Eq)]
pub struct Pin {
    pub module: String,
    pub version: String,
    /// Below the project's folder.
    pub place: String,
    /// It is a program, not a library that one of our own programs calls.
    pub is_program: bool,
    /// It is to be of this minor: the folder of its go.mod ends with `-1.28`.
    pub minor: Option<(u64, u64)>,
}

/// The folders below which go.mods are.
const FOLDERS: [&str; 2] = ["crates/programs", "tests/e2e"];

/// All of them, old versions beside new ones.
pub fn all() -> Result<Vec<Pin>, String> {
    let here = |module: &str, version: &str, file: &str| Pin {
        module: module.to_owned(),
        version: version.to_owned(),
        place: format!("crates/programs/src/{file}"),
        is_program: true,
        minor: None,
    };
    let mut pins = Vec::new();
    for (installed, file) in [
        (&HELM, "control_plane.rs"),
        (&REGISTRY, "control_plane.rs"),
        (&AUTHENTICATOR, "agents.rs"),
        (&ACTIONLINT, "linters.rs"),
    ] {
        pins.push(here(installed.module, installed.version, file));
    }
    for version in KARPENTERS {
        pins.push(here("sigs.k8s.io/karpenter", &format!("v{version}"), "control_plane.rs"));
    }
    for version in VPC_CNIS {
        let module = vpc_cni_module(version);
        pins.extend(module.split_once('@').map(|(module, version)| here(module, version, "agents.rs")));
    }
    let mut go_mods = Vec::new();
    for folder in FOLDERS {
        collect(&project().join(folder), &mut go_mods).map_err(|error| format!("{folder}: {error}"))?;
    }
    for path in go_mods {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let place = path.strip_prefix(project()).unwrap_or(&path).display().to_string();
        pins.extend(of_go_mod(&text, &place));
    }
    Ok(pins)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.ends_with("go.mod") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

/// What a go.mod asks for itself: the modules of its tools, and what it requires without `// indirect`. The rest
/// follows from these.
fn of_go_mod(text: &str, place: &str) -> Vec<Pin> {
    let (mut tools, mut required, mut block) = (Vec::new(), Vec::new(), "");
    for line in text.lines().map(str::trim) {
        let (directive, rest) = match line.split_once(' ') {
            Some((directive @ ("tool" | "require" | "replace"), "(")) => {
                block = directive;
                continue;
            }
            Some((directive @ ("tool" | "require"), rest)) if block.is_empty() => (directive, rest),
            _ if line == ")" => {
                block = "";
                continue;
            }
            _ => (block, line),
        };
        match directive {
            "tool" => tools.push(rest),
            "require" => required.extend(rest.split_once(' ')),
            _ => {}
        }
    }
    let folder = place.strip_suffix("/go.mod").unwrap_or(place);
    let minor = folder.rsplit_once('-').and_then(|(_, minor)| minor.split_once('.'));
    let minor = minor.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let is_below = |tool: &str, module: &str| {
        tool.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut pins = Vec::new();
    for (module, rest) in required {
        let (version, comment) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_program = tools.iter().any(|tool| is_below(tool, module));
        // v0.0.0 stands for what a `replace` says.
        if (is_program || comment.is_empty()) && version.starts_with('v') && version != "v0.0.0" {
            let [module, version, place] = [module, version, place].map(str::to_owned);
            pins.push(Pin { module, version, place, is_program, minor });
        }
    }
    pins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_and_direct_requirements_are_pins() {
        let go_mod = "module nodewhy.dev/tests/x\n\ngo 1.26.0\n\ntool (\n\texample.com/a/cmd/x\n)\n\nrequire \
                      example.com/direct v1.2.3\n\nrequire (\n\t// A comment\n\texample.com/a v1.0.0 // \
                      indirect\n\texample.com/ab v1.1.0 // indirect\n\texample.com/replaced v0.0.0\n)\n\nreplace \
                      (\n\texample.com/replaced => example.com/replaced v0.36.3\n)\n";
        let pins = of_go_mod(go_mod, "tests/kubelet-1.28/go.mod");
        let shown: Vec<_> =
            pins.iter().map(|pin| format!("{} {} {}", pin.module, pin.version, pin.is_program)).collect();
        assert_eq!(shown, ["example.com/direct v1.2.3 false", "example.com/a v1.0.0 true"]);
        assert!(pins.iter().all(|pin| pin.minor == Some((1, 28))));
        let elsewhere =
            of_go_mod("tool example.com/a\nrequire example.com/a v1.0.0 // indirect\n", "control-plane/go.mod");
        assert!(elsewhere.len() == 1 && elsewhere[0].minor.is_none(), "{elsewhere:?}");
    }
}
