//! A large cluster on a real control plane: what nodewhy takes for it, beside what a user would take instead, in one
//! run and one table.
//!
//! `cargo bench --bench scale`, with `NODEWHY_NODES=10000` Nodes and as many NodeClaims unless told otherwise;
//! `NODEWHY_ONLY` is `engine`, `offline`, `logs` or `live`; `NODEWHY_LOG_MIB` the size of the logs. Five of every
//! thousand machines are stuck. `NODEWHY_ONLY=chart` measures clusters of 100, 1,000 … Nodes instead, up to
//! `NODEWHY_NODES`, and draws `docs/images/scale.svg`; `NODEWHY_ONLY=upgrade` replaces every machine within ten
//! minutes.

mod chart;
mod engine;
mod incident;
mod live;
mod logs;
mod machines;
mod measure;
mod offline;
mod operator;
mod peers;
mod upgrade;

use measure::Row;
use testkit::objects::fleet::Fate;

/// As in the program.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn nodes() -> usize {
    std::env::var("NODEWHY_NODES").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000)
}

fn fate(n: usize) -> Fate {
    if n.is_multiple_of(200) { Fate::Stuck } else { Fate::Healthy }
}

fn main() {
    let n = nodes();
    let only = std::env::var("NODEWHY_ONLY").ok();
    let parts = [
        ("engine", engine::judge as fn(usize) -> Vec<Row>),
        ("engine", engine::incidents),
        ("engine", engine::strangers),
        ("engine", engine::reports),
        ("offline", offline::dumps),
        ("logs", logs::bundle),
        ("live", live::cluster),
        ("chart", live::chart),
        ("upgrade", live::upgrade),
    ];
    // These take clusters of their own.
    let on_demand = ["chart", "upgrade"];
    let wanted =
        parts.iter().filter(|(name, _)| only.as_deref().map_or(!on_demand.contains(name), |only| only == *name));
    let rows: Vec<Row> = wanted.flat_map(|(_, part)| part(n)).collect();
    println!("\n{n} Nodes and {n} NodeClaims\n");
    println!("{:64} {:>9} {:>9} {:>10} {:>10} {:>9}", "what", "seconds", "cpu s", "peak MiB", "then MiB", "API cpu s");
    for Row { what, time, cpu, peak, after, served } in &rows {
        let shown = |mib: &Option<f64>| mib.map_or_else(String::new, |mib| format!("{mib:.0}"));
        let served = served.map_or_else(String::new, |seconds| format!("{seconds:.2}"));
        println!(
            "{what:64} {:>9.3} {cpu:>9.2} {:>10} {:>10} {served:>9}",
            time.as_secs_f64(),
            shown(peak),
            shown(after)
        );
    }
}
