//! The plugin of Headlamp (integrations/headlamp) in Chromium, beside Headlamp's own plugin for Karpenter, on
//! Headlamp's own pages: npm's package for plugins carries both. What it asks goes to the zoo of `cargo demo`.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use testkit::browser::Browser;
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::control_plane::{Process, free_ports};
use testkit::demo::{CAUSES, Demo};
use testkit::programs::browser::axe;
use testkit::{go, project};

const PLUGIN: &str = "integrations/headlamp";
/// What the plugin itself is made of.
const SOURCES: [&str; 4] = ["src", "package.json", "tsconfig.json", "test/server.mjs"];
/// What is made once: the packages of npm, and the pages of Headlamp.
const ONCE: [&str; 4] = ["package-lock.json", "test/headlamp.jsx", "test/index.html", "test/build.mjs"];

fn run(command: &mut Command) {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; this takes Node.js 20 with npm"));
    let said = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", said(&output.stdout), said(&output.stderr));
}

fn copy(file: &str, to: &Path) {
    run(Command::new("cp").arg("-r").arg(project().join(PLUGIN).join(file)).arg(to.join(file)));
}

fn npm(folder: &Path, arguments: &[&str]) {
    run(Command::new("npm").current_dir(folder).env("CI", "true").args(arguments));
}

/// The folder with the plugin of this tree, built and held against its own tests and lints.
fn built() -> PathBuf {
    let stamp: String =
        ONCE.iter().map(|file| fs::read_to_string(project().join(PLUGIN).join(file)).expect(file)).collect();
    let folder = go::once("headlamp", &stamp, |folder| {
        for file in [".npmrc", "package-lock.json", "package.json", "test"] {
            copy(file, folder);
        }
        // Not `npm ci`: the lock names no optional packages of other platforms.
        npm(folder, &["install", "--ignore-scripts", "--no-audit", "--no-fund"]);
        run(Command::new("node").arg(folder.join("test/build.mjs")));
        let karpenter = folder.join("karpenter");
        let source = folder.join("node_modules/@kinvolk/headlamp-plugin/official-plugins/karpenter");
        run(Command::new("cp").arg("-r").arg(source).arg(&karpenter));
        std::os::unix::fs::symlink("../node_modules", karpenter.join("node_modules")).expect("target is writable");
        npm(&karpenter, &["exec", "--", "headlamp-plugin", "build"]);
    });
    for file in SOURCES {
        run(Command::new("rm").arg("-rf").arg(folder.join(file)));
        copy(file, &folder);
    }
    for script in ["format", "lint", "check", "test", "build"] {
        npm(&folder, &["run", script]);
    }
    folder
}

/// Headlamp with both plugins, in front of the control plane.
fn headlamp(demo: &Demo, folder: &Path) -> (Process, String) {
    let [port] = free_ports();
    let mut node = Command::new("node");
    node.arg(folder.join("test/server.mjs")).arg(demo.control_plane.kubeconfig()).arg(port.to_string());
    node.arg(folder).arg(folder.join("karpenter"));
    let mut server = demo.control_plane.spawn("headlamp", &node);
    let url = format!("http://127.0.0.1:{port}");
    server.wait_until_ready(SOON, || {
        Command::new("curl").args(["--silent", "--fail", &url]).output().is_ok_and(|answer| answer.status.success())
    });
    (server, url)
}

/// What the page shows once it has all these texts.
#[track_caller]
fn shows(browser: &mut Browser, texts: &[&str]) -> String {
    let begins = Instant::now();
    loop {
        let text = browser.ask("document.querySelector('main')?.innerText ?? ''");
        let text = text.as_str().expect("a text");
        if texts.iter().all(|wanted| text.contains(wanted)) {
            return text.to_owned();
        }
        assert!(begins.elapsed() < SOON, "not all of {texts:?} in {text}");
        thread::sleep(Duration::from_millis(200));
    }
}

/// What an enemy would write into a verdict.
fn hostile() -> Value {
    let script = "<img src=x onerror=\"document.title = 'run'\"><script>document.title = 'run'</script>";
    let fix = json!({"summary": script, "documentation": "javascript:document.title = 'run'"});
    json!({"status": {"summary": script, "fix": fix}})
}

/// The name of the Node that became of a NodeClaim.
fn node_of(demo: &Demo, claim: &str) -> String {
    let claim = demo.control_plane.get(&["nodeclaim", claim]).expect("the claim");
    claim["status"]["nodeName"].as_str().expect("it is registered").to_owned()
}

#[test]
#[ignore = "npm installs 850 MB and builds Headlamp's pages: minutes, the first time"]
fn headlamp_shows_the_verdict_where_people_look() {
    let folder = built();
    let size = fs::metadata(folder.join("dist/main.js")).expect("it is built").len();
    assert!(size < 100_000, "{size} bytes");
    let demo = Demo::start(|_| ());
    let (_server, url) = headlamp(&demo, &folder);
    let mut browser = Browser::start();
    browser.resize(1400, 1000);
    let at = |path: &str| format!("{url}/c/test/{path}");

    // The list follows the cluster.
    browser.visit(&at("nodewhy/nodediagnoses"));
    shows(&mut browser, &CAUSES);
    browser.ask("globalThis.isTheFirst = true");
    demo.control_plane.kubectl(&["delete", "nodeclaim", "batch-spot-tn4j8", "--wait=false"]);
    shows(&mut browser, &["Deleted"]);
    assert_eq!(browser.ask("globalThis.isTheFirst"), true, "it was loaded again");

    // What is written stays text, and leads nowhere but to pages.
    demo.control_plane.patch_status("nodediagnosis", "batch-spot-tn4j8", "merge", &hostile());
    browser.visit(&at("nodewhy/nodediagnoses/batch-spot-tn4j8"));
    shows(&mut browser, &["<img src=x", "Deleted, "]);
    assert_ne!(browser.ask("document.title"), "run");
    let dangerous = "document.querySelectorAll('main :is(img[src=x], script, a[href^=javascript])').length";
    assert_eq!(browser.ask(dangerous), 0);

    // The caret stands below the place that is to blame.
    let verdict = ["KubeletRefusesLabels (Certain)", "spec.userData:3:39", "kubectl edit ec2nodeclass batch-spot"];
    let of_a_machine = [&verdict[..], &["Karpenter deletes it in "]].concat();
    let own_page = [&of_a_machine[..], &["Evidence", "Ruled out"]].concat();
    browser.visit(&at("nodewhy/nodediagnoses/batch-spot-9dlcm"));
    shows(&mut browser, &own_page);
    let marked = "(([line, carets]) => line.slice(carets.indexOf('^'), carets.length))\
        (document.querySelector('[aria-label=\"The line to change\"]').textContent.split('\\n'))";
    assert_eq!(browser.ask(marked), "kubernetes.io/lifecycle=spot");
    accessible(&mut browser);

    // On the pages of Headlamp's plugin for Karpenter, and on its own.
    browser.visit(&at("karpenter/details/scaling/batch-spot-9dlcm"));
    shows(&mut browser, &of_a_machine);
    browser.visit(&at("karpenter/details/nodepools/batch-spot"));
    shows(&mut browser, &[&verdict[..], &["1 stuck: 1 by KubeletRefusesLabels"]].concat());
    browser.visit(&at(&format!("nodes/{}", node_of(&demo, "cloud-taint"))));
    shows(&mut browser, &["CloudControllerNeverInitialized"]);
    browser.visit(&at("customresources/nodeclaims.karpenter.sh/-/batch-spot-9dlcm"));
    shows(&mut browser, &["KubeletRefusesLabels"]);

    // A healthy Node's page is as it was.
    let healthy = node_of(&demo, "healthy");
    browser.visit(&at(&format!("nodes/{healthy}")));
    shows(&mut browser, &[&healthy, "Conditions"]);
    let asked = "performance.getEntriesByType('resource').some(({name}) => name.includes('/nodediagnoses?'))";
    wait_until(SOON, || (browser.ask(asked) == true).then_some(()));
    assert!(!shows(&mut browser, &[&healthy]).contains("nodewhy"));
}

/// axe-core finds nothing in what the plugin draws.
fn accessible(browser: &mut Browser) {
    browser.ask(&format!("{}; true", axe()));
    let found = browser.ask(
        "axe.run(document.querySelector('main')).then(({violations}) => violations.map(({id, nodes}) => `${id}: \
         ${nodes.map(({html}) => html)}`))",
    );
    assert_eq!(found, json!([]), "{found:#}");
}
