#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewhy_fuzz::{USER_DATA_LIMIT, lies_in};
use readers::userdata::{
    systemd::{Generation, environment, environment_file, words},
    traced::Traced,
};

fuzz_target!(|text: &str| {
    if text.len() > USER_DATA_LIMIT {
        return;
    }
    let written = Traced::written_at(text, 0);
    for generation in [Generation::V219, Generation::V252] {
        if let Ok(value) = environment(&written, generation) {
            lies_in(value.text.span(), text);
            words(&value.text, generation).unwrap_or_default().iter().for_each(|word| lies_in(word.span(), text));
        }
    }
    let (value, rest) = environment_file(&written);
    lies_in(value.span(), text);
    rest.into_iter().for_each(|at| assert!(text.is_char_boundary(at)));
});
