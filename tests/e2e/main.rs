//! The tests that start real programs. `cargo xtask e2e` builds the programs and runs the tests.

mod alertmanager;
mod aws;
mod cluster;
mod mcp;
mod oracles;
mod page;
mod real_logs;
mod release;
mod rendered;
mod upstream;
