#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewhy_fuzz::{USER_DATA_LIMIT, lies_in};
use readers::userdata::kubelet_flags::{command_line, invalid_label, parse_labels, parse_taints, refused_labels};
use readers::userdata::traced::Traced;

fuzz_target!(|text: &str| {
    if text.len() > USER_DATA_LIMIT {
        return;
    }
    parse_taints(text).err().into_iter().for_each(|error| lies_in(error.span, text));
    parse_labels(text).for_each(|(.., span)| lies_in(span, text));
    refused_labels(text).into_iter().for_each(|(_, span)| lies_in(span, text));
    invalid_label(text).into_iter().for_each(|error| lies_in(error.span, text));
    let mut start = 0;
    let words: Vec<_> = text
        .split('\n')
        .map(|word| {
            let written = Traced::written_at(word, start);
            start += word.len() + 1;
            written
        })
        .collect();
    let line = command_line(&words);
    line.flags.iter().for_each(|flag| lies_in(flag.span, text));
    line.stray.iter().for_each(|span| lies_in(*span, text));
});
