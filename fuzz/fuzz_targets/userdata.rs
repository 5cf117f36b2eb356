#![no_main]
//! The whole way of the text, for every family of images.

use libfuzzer_sys::fuzz_target;
use nodewhy_fuzz::{USER_DATA_LIMIT, lies_in};
use readers::userdata::{Family, read};

const FAMILIES: [Family; 5] = [Family::Al2, Family::Al2023, Family::Bottlerocket, Family::Windows, Family::Custom];

fuzz_target!(|text: &str| {
    if text.len() > USER_DATA_LIMIT {
        return;
    }
    for family in FAMILIES {
        let data = read(text, family);
        assert_eq!(data, read(text, family));
        data.defects.iter().for_each(|defect| lies_in(defect.span, text));
        data.parts.iter().for_each(|part| lies_in(part.span, text));
        data.arguments.iter().for_each(|argument| lies_in(argument.span, text));
        data.labels().iter().for_each(|(.., span)| lies_in(*span, text));
        data.refused_labels().iter().for_each(|(_, span)| lies_in(*span, text));
        let _ = data.taints();
    }
});
