//! Tabs between nodes, which YAML 1.2 often allows and the authenticator's parser does not.
//!
//! yaml.v2 scannerc.go `yaml_parser_scan_to_next_token`: "Tabs are allowed … in the flow context, in the block context,
//! but not at the beginning of the line or after '-', '?', or ':' (complex value)."

use super::Broken;
use crate::source_text::Span;

/// Looks for such a tab around the `leaves`, the scalars and aliases of a text that is otherwise sound, in the order of
/// the text; `top` is the node that holds them all.
pub fn check(text: &str, leaves: impl Iterator<Item = Span>, top: Span, top_is_block: bool) -> Result<(), Broken> {
    let mut from = 0;
    let mut scan = Scan { key_may_start: true, flow_level: 0 };
    for leaf in leaves.filter(|leaf| !leaf.of(text).is_empty()) {
        scan.gap(text, Span::new(from, leaf.start))?;
        scan.key_may_start = false;
        from = leaf.end;
    }
    let end = top.end.max(from);
    scan.gap(text, Span::new(from, end))?;
    // A flow collection ends with its bracket, a block collection where the next token is found, behind blanks and
    // comments.
    if !top_is_block {
        return Ok(());
    }
    let after = Span::new(end, text.len()).of(text);
    // The text may end in a field without a value, whose colon is still ahead.
    let is_idle =
        |line: &&str| matches!(line.trim().trim_start_matches(':').trim_start().chars().next(), None | Some('#'));
    let idle: usize = after.split_inclusive('\n').take_while(is_idle).map(str::len).sum();
    scan.gap(text, Span::new(end, end + idle))
}

struct Scan {
    /// `simple_key_allowed` upstream.
    key_may_start: bool,
    flow_level: usize,
}

impl Scan {
    fn gap(&mut self, text: &str, gap: Span) -> Result<(), Broken> {
        let mut rest_of_line = false;
        let mut before = b' ';
        for (at, byte) in gap.of(text).bytes().enumerate() {
            match byte {
                b'\n' => {
                    rest_of_line = false;
                    self.key_may_start = self.flow_level == 0 || self.key_may_start;
                }
                _ if rest_of_line => {}
                b'\t' if self.key_may_start && self.flow_level == 0 => {
                    let at = gap.start + at;
                    let message = "a tab cannot begin a line or follow `-`: YAML is indented with spaces".to_owned();
                    return Err(Broken { message, span: Span::new(at, at + 1) });
                }
                // A comment, or the head of a block scalar.
                b'#' | b'|' | b'>' => rest_of_line = true,
                b'[' | b'{' => self.flow_level += 1,
                b']' | b'}' => {
                    self.flow_level = self.flow_level.saturating_sub(1);
                    self.key_may_start = false;
                }
                b'-' | b'?' if before != b'-' => self.key_may_start = true,
                b' ' | b'\t' | b'\r' => {}
                _ => self.key_may_start = false,
            }
            before = byte;
        }
        Ok(())
    }
}
