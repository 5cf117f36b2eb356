//! See `nodewhy --help`.

fn main() -> std::process::ExitCode {
    nodewhy::cli::main()
}
