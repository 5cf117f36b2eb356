#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewhy_fuzz::{USER_DATA_LIMIT, lies_in};
use readers::userdata::mime;

fuzz_target!(|text: &str| {
    if text.len() > USER_DATA_LIMIT {
        return;
    }
    let _ = (mime::is_archive(text), mime::is_archive_for_cloud_init(text));
    let archive = mime::read(text);
    archive.entries.iter().for_each(|entry| lies_in(entry.body, text));
    archive.fault.into_iter().for_each(|(span, _)| lies_in(span, text));
    assert!(archive.entries.is_sorted_by(|a, b| a.body.end <= b.body.start));
});
