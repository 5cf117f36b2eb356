//! In Chromium, as it comes with Debian.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::browser::Browser;
use testkit::page::Page;
use testkit::programs::browser::axe;

/// A browser that notes what the page's policy refuses.
fn browser() -> Browser {
    let mut browser = Browser::start();
    let note = "globalThis.refused = []; addEventListener('securitypolicyviolation', event => \
                refused.push(event.violatedDirective))";
    browser.call("Page.addScriptToEvaluateOnNewDocument", &json!({"source": note}));
    browser.resize(1000, 800);
    browser
}

/// What axe-core complains of: the rule, and where.
fn complaints(browser: &mut Browser, axe: &str) -> Vec<String> {
    browser.ask(&format!("{axe}; true"));
    let mut ran =
        browser.ask("axe.run().then(({violations, passes}) => ({violations, passes: passes.map(({id}) => id)}))");
    assert!(ran["passes"].as_array().expect("a list").contains(&json!("color-contrast")), "{ran}");
    let found = ran["violations"].take();
    let nodes = |violation: &Value| violation["nodes"].as_array().into_iter().flatten().take(3).cloned().collect();
    let told = |violation: &Value| {
        let nodes: Vec<Value> = nodes(violation);
        format!("{}: {}", violation["id"], nodes.iter().map(|node| node["html"].to_string()).collect::<String>())
    };
    found.as_array().expect("a list").iter().map(told).collect()
}

#[test]
fn anybody_can_read_it_in_light_and_dark_and_on_a_phone() {
    let axe = axe();
    let mut browser = browser();
    let pages = [
        Page::of_case("06-node-label-refused-by-kubelet"),
        Page::of_case("105-private-subnets-without-nat"),
        Page::of_case("413-role-left-aws-auth-with-the-node-group"),
        Page::hostile(),
    ];
    for page in &pages {
        for (scheme, width) in [("light", 1000), ("dark", 1000), ("light", 360)] {
            browser.prefer(scheme);
            browser.resize(width, 800);
            browser.open(&page.file);
            browser.ask("document.querySelectorAll('details').forEach(details => details.open = true)");
            let found = complaints(&mut browser, &axe);
            assert!(found.is_empty(), "{scheme}, {width} wide: {found:#?}");
            let wider = browser.ask("document.documentElement.scrollWidth - innerWidth");
            assert_eq!(wider, 0, "{width} wide: it scrolls sideways");
        }
    }
}

#[test]
fn its_own_style_and_script_run_and_nothing_else() {
    let mut browser = browser();
    browser.open(&Page::hostile().file);
    assert_eq!(browser.ask("refused"), json!([]));
    assert_eq!(browser.ask("getComputedStyle(document.querySelector('.skip')).position"), "absolute");
    assert_eq!(browser.ask("document.querySelector('button.copy').hidden"), false);
    assert_eq!(browser.ask("performance.getEntriesByType('resource').length"), 0);
    assert_ne!(browser.ask("document.title"), "run");
    // The policy holds: what somebody smuggles in does not run.
    let smuggle = "document.body.append(Object.assign(document.createElement('script'), {textContent: '0'}))";
    browser.ask(smuggle);
    assert_eq!(browser.ask("new Promise(later => setTimeout(() => later(refused[0]), 50))"), "script-src-elem");
}

#[test]
fn all_of_it_can_be_reached_and_worked_by_keyboard() {
    let page = Page::of_case("06-node-label-refused-by-kubelet");
    let mut browser = browser();
    browser
        .call("Browser.grantPermissions", &json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}));
    browser.open(&page.file);
    browser.press("Tab");
    assert_eq!(browser.ask("document.activeElement.className"), "skip");
    browser.press("Enter");
    assert_eq!(browser.ask("document.activeElement.id"), "incidents");

    browser.open(&page.file);
    let places = "[...document.querySelectorAll('a, button, summary')]";
    let all = browser.ask(&format!("{places}.filter(place => place.checkVisibility()).length"));
    let mut reached = BTreeSet::new();
    for _ in 0..all.as_u64().expect("a number") * 2 {
        browser.press("Tab");
        let at = browser.ask(&format!("{places}.indexOf(document.activeElement)"));
        if !reached.insert(at.to_string()) && at != -1 {
            break;
        }
        let kind = browser.ask("document.activeElement.className || document.activeElement.tagName");
        if kind == "copy" {
            browser.press("Enter");
            let copied = "new Promise(later => setTimeout(() => later(navigator.clipboard.readText()), 50))";
            assert_eq!(browser.ask(copied), "kubectl edit ec2nodeclass batch-spot");
            assert_eq!(browser.ask("said.textContent"), "Copied");
        } else if kind == "SUMMARY" {
            let is_open = "document.activeElement.parentElement.open";
            let before = browser.ask(is_open);
            browser.press("Enter");
            assert_ne!(browser.ask(is_open), before);
            browser.press("Enter");
        }
    }
    reached.remove("-1");
    assert_eq!(json!(reached.len()), all, "{reached:?}");
}

#[test]
fn what_is_folded_is_printed() {
    let page = Page::of_case("06-node-label-refused-by-kubelet");
    let mut browser = browser();
    browser.open(&page.file);
    let folded = "document.querySelectorAll('details:not([open])').length";
    let before = browser.ask(folded);
    browser.ask("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(browser.ask(folded), 0);
    browser.ask("dispatchEvent(new Event('afterprint'))");
    assert_eq!(browser.ask(folded), before);
    assert_ne!(before, 0);
}

/// With `NODEWHY_UPDATE=1` the pictures of the README are drawn anew; without, they only have to be of this page's
/// size.
#[test]
fn the_pictures_in_the_readme_are_of_this_page() {
    let page = Page::of_case("06-node-label-refused-by-kubelet");
    let mut browser = browser();
    browser.resize(1000, 1060);
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        browser.open(&page.file);
        // How long ago that was changes every day.
        browser.ask("age.remove()");
        let picture = browser.picture();
        let file = testkit::project().join(format!("docs/images/page-{scheme}.png"));
        if std::env::var_os("NODEWHY_UPDATE").is_some() {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder");
            std::fs::write(&file, &picture).expect("the picture");
        }
        // Width and height: bytes 16 to 24 of a PNG. Its pixels differ with the machine's fonts.
        let shown = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(shown[16..24], picture[16..24], "NODEWHY_UPDATE=1 cargo xtask e2e page draws them");
    }
}
