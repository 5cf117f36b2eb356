//! `nodewhy version`: what a bug report needs.

use super::{BAD_INPUT, answer, fail};
use clap::{Args, ValueEnum};
use engine::api::NodeDiagnosis;
use kube::Resource;
use serde::Serialize;
use std::env::consts::{ARCH, OS};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub struct VersionFlags {
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    #[default]
    Text,
    Json,
}

/// What was built.
#[derive(Debug, Serialize)]
struct Build {
    version: &'static str,
    /// The commit, if the build set NODEWHY_COMMIT.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    target: String,
    /// The API version of the NodeDiagnosis that `run` writes.
    api: String,
}

impl Build {
    fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("NODEWHY_COMMIT").filter(|commit| !commit.is_empty()),
            target: [ARCH, OS, LIBC].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-"),
            api: NodeDiagnosis::api_version(&()).into_owned(),
        }
    }

    fn text(&self) -> String {
        let commit = self.commit.map(|commit| format!("commit   {commit}\n")).unwrap_or_default();
        format!("version  {}\n{commit}target   {}\napi      {}\n", self.version, self.target, self.api)
    }
}

/// Names are looked up differently by the two of Linux.
const LIBC: &str = if cfg!(target_env = "musl") {
    "musl"
} else if cfg!(target_env = "gnu") {
    "gnu"
} else {
    ""
};

pub fn run(args: &VersionFlags) -> ExitCode {
    let build = Build::this();
    match args.output {
        Format::Text => answer(&build.text()),
        Format::Json => match serde_json::to_string_pretty(&build) {
            Ok(json) => answer(&(json + "\n")),
            Err(error) => fail(&error, BAD_INPUT),
        },
    }
}
