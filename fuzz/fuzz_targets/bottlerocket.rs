#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewhy_fuzz::{USER_DATA_LIMIT, lies_in};
use readers::userdata::bottlerocket;

fuzz_target!(|text: &str| {
    if text.len() > USER_DATA_LIMIT {
        return;
    }
    let _ = bottlerocket::names_itself_settings(text);
    for by_karpenter in [false, true] {
        let settings = bottlerocket::read(text, by_karpenter);
        settings.defects.iter().for_each(|defect| lies_in(defect.span, text));
        let values = settings.labels.iter().chain(&settings.taints);
        values.for_each(|(value, span)| {
            lies_in(*span, text);
            lies_in(value.span(), text);
        });
        settings.others.iter().for_each(|(_, _, span)| lies_in(*span, text));
    }
});
