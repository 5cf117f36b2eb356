#![no_main]

use engine::cluster_state::ClusterState;
use libfuzzer_sys::fuzz_target;
use nodewhy::ingest::dump;

const LIMIT: usize = 64 * 1024;

fuzz_target!(|bytes: &[u8]| {
    if bytes.len() > LIMIT {
        return;
    }
    let (mut state, mut summary) = (ClusterState::default(), dump::Summary::default());
    dump::load_from("dump", bytes, &mut state, &mut summary);
});
