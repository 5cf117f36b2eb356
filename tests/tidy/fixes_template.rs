//! The sentences that alerts carry: those of the pages.

use std::fmt::Write as _;
use std::fs;
use testkit::alerts::fix_sentences;
use testkit::project;

const TEMPLATE: &str = "manifests/components/monitoring/alertmanager/fixes.tmpl";

#[test]
fn the_fixes_are_those_of_the_pages() {
    let mut made = "{{/* The fix of each cause, from docs/causes: NODEWHY_UPDATE=1 cargo xtask tidy fixes */}}\n\
        {{ define \"nodewhy.fix\" -}}\n"
        .to_owned();
    let mut branch = "{{ if";
    for (cause, fix) in fix_sentences() {
        assert!(!fix.contains("{{") && !fix.contains(['<', '&']), "Go and Slack read {fix:?} otherwise");
        let _ = writeln!(made, "{branch} eq . \"{cause}\" }}}}{fix}");
        branch = "{{- else if";
    }
    made +=
        "{{- else }}It depends on what was found: the page and the diagnosis say what to do.\n{{- end }}\n{{- end }}\n";
    let path = project().join(TEMPLATE);
    if std::env::var_os("NODEWHY_UPDATE").is_some() {
        fs::write(&path, &made).expect("written");
    }
    assert!(
        fs::read_to_string(&path).expect("the template") == made,
        "stale: run `NODEWHY_UPDATE=1 cargo xtask tidy fixes`"
    );
    assert!(made.lines().count() > 90, "{made}");
}
