#![no_main]

use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 64 * 1024;

fuzz_target!(|bytes: &[u8]| {
    if bytes.len() <= LIMIT {
        nodewhy_fuzz::read_log(bytes);
    }
});
