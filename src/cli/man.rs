//! `nodewhy man`: the pages for man(1), made of the same texts as `--help`.

use super::{BAD_INPUT, Cli, answer, fail};
use clap::{Args, CommandFactory};
use clap_mangen::Man;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

#[derive(Debug, Args)]
pub struct Pages {
    /// Write one page per command into this directory instead
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(args: &Pages) -> ExitCode {
    let Some(folder) = &args.out else {
        return match page() {
            Ok(page) => answer(&page),
            Err(error) => fail(&error, BAD_INPUT),
        };
    };
    match write_all(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("the pages cannot be written to {}: {error}", folder.display()), BAD_INPUT),
    }
}

fn page() -> io::Result<String> {
    let mut page = Vec::new();
    // There is no page of the command help.
    Man::new(Cli::command().disable_help_subcommand(true)).render(&mut page)?;
    String::from_utf8(page).map_err(io::Error::other)
}

fn write_all(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)
}
