//! `nodewhy completion`: what a shell needs to complete commands and flags.

use super::{BAD_INPUT, Cli, answer, fail};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Bash, in ~/.bashrc:        source <(nodewhy completion bash)
Zsh, in ~/.zshrc:          source <(nodewhy completion zsh)
Fish:                      nodewhy completion fish > ~/.config/fish/completions/nodewhy.fish
PowerShell, in $PROFILE:   nodewhy completion powershell | Out-String | Invoke-Expression";

#[derive(Debug, Args)]
pub struct Completion {
    shell: Shell,
}

pub fn run(args: &Completion) -> ExitCode {
    // Into memory, since clap_complete panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nodewhy", &mut script);
    match String::from_utf8(script) {
        Ok(script) => answer(&script),
        Err(error) => fail(&error, BAD_INPUT),
    }
}
