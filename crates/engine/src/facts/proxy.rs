//! A proxy that user data sets.

/// Names that programs take a proxy from, and nodeadm and Bottlerocket settings of it.
const NAMES: [&str; 4] = ["https_proxy", "http_proxy", "HTTPS_PROXY", "https-proxy"];

/// The place and the name of the setting.
pub(crate) fn in_text(text: &str) -> Option<(usize, &'static str)> {
    NAMES.iter().find_map(|name| Some((text.find(name)?, *name)))
}
