//! `nodewhy mcp`: the commands that only read, as tools of the Model Context Protocol, over standard input and output.
//!
//! Each tool runs the command of its name as a separate process and returns what the command prints. So an agent reads
//! what a person reads, a large dump leaves memory with its answer, and no call can harm the next.

mod answer;
mod tools;

use super::duration::seconds;
use super::{BAD_INPUT, block_on, fail};
use rmcp::ServiceExt;
use rmcp::transport::stdio;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tools::Tools;

/// Settings of the person who starts the server. An agent cannot change them.
#[derive(Debug, Clone, clap::Args)]
pub struct McpFlags {
    /// Kubeconfig file for the clusters that the tools may read [default: $KUBECONFIG, ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Maximum time for one tool call
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = seconds)]
    call_timeout: u32,
}

pub fn run(flags: McpFlags) -> ExitCode {
    let served = block_on(async {
        let served = Tools::new(flags.kubeconfig, Duration::from_secs(u64::from(flags.call_timeout)))?
            .serve(stdio())
            .await
            .map_err(|error| error.to_string())?;
        served.waiting().await.map_err(|error| error.to_string())
    });
    match served.map_err(|error| error.to_string()).flatten() {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            fail(&format!("{error}; `nodewhy mcp` is started by an agent's client: see docs/agents.md"), BAD_INPUT)
        }
    }
}
