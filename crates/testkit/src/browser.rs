//! A browser for the page: Debian's Chromium without a window, spoken to by the DevTools protocol over two pipes, which
//! needs no crate.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

use programs::browser::chromium;

/// One page of one browser.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: String,
    sent: u64,
    _profile: TempDir,
}

impl Browser {
    pub fn start() -> Self {
        let folder = chromium();
        let profile = tempfile::tempdir().expect("a folder");
        // It reads requests from descriptor 3 and writes answers to 4.
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#]);
        command.arg(folder.join("usr/lib/chromium/chromium-headless-shell"));
        // Its sandbox needs rights that containers lack; it sees no page but ours.
        command.args(["--no-sandbox", "--remote-debugging-pipe", "--hide-scrollbars", "--force-color-profile=srgb"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.env("LD_LIBRARY_PATH", libraries(&folder)).env("FONTCONFIG_FILE", folder.join("fonts.conf"));
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell that runs Chromium");
        let requests = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut browser = Self { process, requests, answers, session: String::new(), sent: 0, _profile: profile };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = browser.call("Target.attachToTarget", &json!({"targetId": target["targetId"], "flatten": true}));
        attached["sessionId"].as_str().expect("a session").clone_into(&mut browser.session);
        browser.call("Page.enable", &json!({}));
        browser
    }

    /// One call of the protocol, and its answer.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.sent += 1;
        let mut request = json!({"id": self.sent, "method": method, "params": parameters});
        if !self.session.is_empty() {
            request["sessionId"] = json!(self.session);
        }
        let request = request.to_string() + "\0";
        self.requests.write_all(request.as_bytes()).expect("Chromium listens");
        loop {
            let mut answer = Vec::new();
            self.answers.read_until(0, &mut answer).expect("Chromium answers");
            assert_eq!(answer.pop(), Some(0), "Chromium ended at {method}");
            let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
            if answer["id"] == self.sent {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    /// Opens a file; gives the time until it is drawn.
    pub fn open(&mut self, page: &Path) -> Duration {
        self.visit(&format!("file://{}", page.display()))
    }

    /// Opens an address.
    pub fn visit(&mut self, url: &str) -> Duration {
        let begins = Instant::now();
        self.call("Page.navigate", &json!({"url": url}));
        while self.ask("document.readyState === 'complete' && location.protocol !== 'about:'") != true {
            assert!(begins.elapsed() < Duration::from_mins(1), "{url} does not open");
        }
        self.ask("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))");
        begins.elapsed()
    }

    /// The processor time that all of it has taken so far, in seconds.
    pub fn cpu(&mut self) -> f64 {
        // Of the browser, not of its page.
        let session = std::mem::take(&mut self.session);
        let told = self.call("SystemInfo.getProcessInfo", &json!({}));
        self.session = session;
        let processes = told["processInfo"].as_array().into_iter().flatten();
        processes.filter_map(|process| process["cpuTime"].as_f64()).sum()
    }

    /// What an expression is there, or what its promise becomes.
    #[track_caller]
    pub fn ask(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", &parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{answer:#}");
        answer["result"]["value"].take()
    }

    /// `light` or `dark`, as the reader's system is set.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Presses a key and lets go of it: `Tab`, or `Enter`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = if key == "Enter" { (13, "\r") } else { (9, "") };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// What is seen, as PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        BASE64_STANDARD.decode(shot["data"].as_str().expect("a picture")).expect("base64")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The folders of its libraries: some packages have one of their own.
fn libraries(folder: &Path) -> String {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let triplets: Vec<PathBuf> = entries(&folder.join("usr/lib")).filter(|path| path.is_dir()).collect();
    let own = triplets.iter().flat_map(|triplet| entries(triplet)).filter(|path| path.is_dir());
    let all: Vec<String> = triplets.iter().cloned().chain(own).map(|path| path.display().to_string()).collect();
    all.join(":")
}
