#![no_main]
//! nodeadm's `NodeConfig`, and with it the YAML below.

use libfuzzer_sys::fuzz_target;
use nodewhy_fuzz::{USER_DATA_LIMIT, lies_in};
use readers::source_text::Span;
use readers::userdata::nodeconfig;

fuzz_target!(|text: &str| {
    if text.len() > USER_DATA_LIMIT {
        return;
    }
    let _ = nodeconfig::is_node_config_for_karpenter(text);
    // Most inputs would end at the kind; with the right one in front they go on.
    let named = format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n{text}");
    for text in [text, &named] {
        match nodeconfig::read(text, Span::new(0, text.len())) {
            Ok(config) => lies_in(config.span, text),
            Err(defect) => lies_in(defect.span, text),
        }
    }
});
