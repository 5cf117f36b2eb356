#![no_main]

use libfuzzer_sys::fuzz_target;
use engine::cluster_state::World;
use nodewhy::ingest::dump;

const LIMIT: usize = 64 * 1024;

fuzz_target!(|bytes: &[u8]| {
    if bytes.len() > LIMIT {
        return;
    }
    let (mut world, mut summary) = (World::default(), dump::Summary::default());
    dump::load_from("dump", bytes, &mut world, &mut summary);
});
