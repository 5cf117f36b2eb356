//! The page that `nodewhy run --page` serves, in Chromium, beside the real Karpenter.

use crate::cluster::operator::{install, one_refused_one_healthy};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use testkit::browser::Browser;
use testkit::control_plane::recipes::{SOON, heartbeat, nodeclaim, wait_until};
use testkit::control_plane::{ControlPlane, free_ports};

/// Head and body that curl gets with these arguments.
fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl").args(["--silent", "--include"]).args(arguments).output().expect("curl runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What Karpenter would say of the claim if an enemy wrote it.
fn hostile_event(claim: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "hostile", "namespace": "default"},
        "involvedObject": {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim},
        "type": "Warning", "reason": "</svg><b>",
        "message": "<img src=x onerror=\"document.title = 'run'\"><script>document.title = 'run'</script> \
                    PASSWORD=hunter2",
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    })
}

#[test]
fn the_page_shows_a_stuck_claim_without_being_loaded_again() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let [port] = free_ports();
    let _nodewhy = control_plane.nodewhy(&rights, &[&format!("--page=127.0.0.1:{port}")]);
    let url = format!("http://localhost:{port}/");
    let _karpenter = control_plane.karpenter("1.0.5");
    let first = wait_until(SOON, || Some(curl(&[&url])).filter(|answer| answer.starts_with("HTTP/1.1 200")));
    for header in ["content-security-policy: frame-ancestors 'none'", "cache-control: no-store"] {
        assert!(first.contains(header), "no {header} in {first}");
    }
    assert!(curl(&[&url, "--header", "Host: evil.example"]).starts_with("HTTP/1.1 403"), "a name that leads here");

    let mut browser = Browser::start();
    let note = "globalThis.refused = []; addEventListener('securitypolicyviolation', event => \
                refused.push(event.violatedDirective))";
    browser.call("Page.addScriptToEvaluateOnNewDocument", &json!({"source": note}));
    browser.visit(&url);
    assert_eq!(browser.ask("document.querySelector('h1').textContent"), "Nothing is stuck");
    browser.ask("globalThis.isTheFirst = true");

    control_plane.apply(hostile_event("stuck"));
    one_refused_one_healthy(&control_plane);
    let page = shows(&mut browser, &control_plane, "1 NodeClaim is stuck");
    let text = page["text"].as_str().expect("a text");
    assert!(text.contains("UnregisteredTaintMissing") && text.contains("kubectl"), "{text}");
    assert!(text.contains("<img src=x") && !text.contains("hunter2"), "{text}");
    assert_eq!((&page["elements"], &page["refused"]), (&json!(0), &json!([])), "{page:#}");
    assert_eq!((&page["title"], &page["said"]), (&json!("1 NodeClaim is stuck · nodewhy"), &page["title"]));
    assert_ne!(page["buttons"], 0, "they copy as those of the first page do");

    // The reader stays where they are.
    browser.ask("document.querySelectorAll('details').forEach(details => { details.open = true; })");
    browser.ask("document.querySelector('summary').focus()");
    nodeclaim(&control_plane, "stuck-too", "tainted-away");
    let page = shows(&mut browser, &control_plane, "2 NodeClaims are stuck");
    assert_eq!(page["focus"], "SUMMARY", "{page:#}");
    assert!(page["open"].as_u64() > Some(1), "{page:#}");
}

/// What the page says once it has this headline, which it has to come to without being loaded again.
fn shows(browser: &mut Browser, control_plane: &ControlPlane, headline: &str) -> Value {
    wait_until(Duration::from_mins(2), || {
        heartbeat(control_plane);
        (browser.ask("document.querySelector('h1').textContent") == headline).then_some(())
    });
    assert_eq!(browser.ask("globalThis.isTheFirst"), true, "it was loaded again");
    browser.ask(
        "({text: document.body.textContent, title: document.title, said: said.textContent, refused, elements: document.querySelectorAll('main :is(img, script, b)').length, buttons: document.querySelectorAll('button.copy:not([hidden])').length, open: document.querySelectorAll('details[open]').length, focus: document.activeElement.tagName})",
    )
}
