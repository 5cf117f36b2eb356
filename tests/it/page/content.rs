//! Without a browser.

use serde_json::json;
use testkit::page::Page;

#[track_caller]
fn has(page: &Page, parts: &[&str]) {
    for part in parts {
        assert!(page.text.contains(part), "no {part:?} in\n{}", page.text);
    }
}

#[test]
fn a_page_tells_what_the_text_tells() {
    let page = Page::of_case("06-node-label-refused-by-kubelet");
    has(
        &page,
        &[
            "<h1>2 NodeClaims are stuck</h1>",
            "Karpenter deletes the first in <strong>3m 27s</strong>",
            "(the newest time in the dump): 2 are stuck.",
            "2 NodeClaims of NodePool batch-spot, node class batch-spot",
            "<strong>Certain</strong>",
            // The way, the caret, the evidence, the fix, what is excluded.
            "<strong>2 stuck</strong>",
            "<code>EC2NodeClass/batch-spot spec.userData:3:39</code>",
            "<mark>kubernetes.io/lifecycle=spot</mark>",
            "it is not allowed to set on itself",
            "<code>kubectl edit ec2nodeclass batch-spot</code>",
            "<h3>Ruled out</h3>",
            // The time lines: one a machine, and in words.
            "<th scope=\"row\">batch-spot-9dlcm</th>",
            "<th scope=\"row\">batch-spot-tn4j8</th>",
            "NodeClaim created",
            "Launched: i-0dcf4ad5f5afee2f3",
            "Karpenter's timeout",
        ],
    );
    assert_eq!(page.text.matches("<svg class=\"lane\"").count(), 2);
}

#[test]
fn a_verdict_that_proves_nothing_shows_its_suspects_before_the_machines() {
    let page = Page::of_case("105-private-subnets-without-nat");
    let place = |part: &str| page.text.find(part).unwrap_or_else(|| panic!("no {part}"));
    assert!(place("<h3>Suspects</h3>") < place("<h3>Machines</h3>"));
}

#[test]
fn what_was_not_read_is_said_and_an_all_clear_is_one() {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-15T11:59:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    let page = Page::of(&format!("{node}\n---\n: {{"), &["--now", "2026-01-15T12:00:00Z"]);
    has(&page, &["<h1>Nothing is stuck</h1>", "What could not be read", "<li>NodeClaims</li>", "document 2"]);
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let page = Page::of_case("06-node-label-refused-by-kubelet");
    for loads in [" src=", "<link", "@import", "url(", " style=", " onclick="] {
        assert!(!page.text.contains(loads), "{loads}");
    }
    has(&page, &["default-src 'none'; style-src 'sha256-"]);
}

#[test]
fn names_and_messages_stay_text() {
    let page = Page::hostile();
    assert_eq!(page.text.matches("<script").count(), 1, "its own");
    for element in ["<img", "<iframe", "<b>"] {
        assert!(!page.text.contains(element), "{element}");
    }
    has(
        &page,
        &[
            "one&lt;script&gt;document.title = 'run'&lt;/script&gt;",
            "&quot;&gt;&lt;iframe src=//example.com&gt;",
            "a&quot; onclick=&quot;b",
            "x'&gt;&lt;img src=x onerror=alert(1)&gt;",
            "two⟨U+202E⟩gpj⟨U+001B⟩[2J",
            "zero⟨U+200B⟩width &amp; plain",
        ],
    );
    assert!(page.text.contains("PASSWORD=") && !page.text.contains("hunter2"), "masked");
    let unseen = |c: &char| c.is_control() && *c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}');
    assert_eq!(page.text.chars().find(unseen), None);
}

#[test]
fn the_same_dump_gives_the_same_page() {
    let page = || Page::of_case("413-role-left-aws-auth-with-the-node-group").text;
    assert_eq!(page(), page());
}
