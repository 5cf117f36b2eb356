#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewhy_fuzz::{USER_DATA_LIMIT, lies_in};
use readers::userdata::{shell, traced::Traced};

fuzz_target!(|text: &str| {
    if text.len() > USER_DATA_LIMIT {
        return;
    }
    let script = shell::read(&Traced::written_at(text, 0));
    script.open_quote.into_iter().for_each(|span| lies_in(span, text));
    for command in &script.commands {
        lies_in(command.span, text);
        command
            .words
            .iter()
            .chain(&command.document)
            .chain(&command.output)
            .for_each(|word| lies_in(word.text.span(), text));
    }
});
