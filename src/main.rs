//! See `nodewhy --help`.

/// It gives back what the first lists of a large cluster took; glibc and mimalloc keep it. Set up in
/// `.cargo/config.toml`.
#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    nodewhy::cli::main()
}
