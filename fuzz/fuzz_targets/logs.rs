#![no_main]

use libfuzzer_sys::fuzz_target;
use logs::{FileLimits, LogReader};

const LIMIT: usize = 64 * 1024;

fuzz_target!(|bytes: &[u8]| {
    if bytes.len() > LIMIT {
        return;
    }
    let mut reader = LogReader::new(FileLimits { line: 4 << 10, subjects: 100, value: 16 << 10 });
    let _ = reader.file("kubelet.log", bytes, None);
    for journey in reader.journeys() {
        assert!(journey.open().len() <= journey.facts.len());
        for fact in &journey.facts {
            assert!(fact.first.line <= fact.last.line && fact.last.line <= journey.lines, "{fact:?}");
            assert!(fact.count > 0 && fact.last.text.chars().count() < 500, "{fact:?}");
        }
    }
});
