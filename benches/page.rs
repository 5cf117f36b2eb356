//! What the page of an incident takes: `cargo bench --bench page` makes one of 5,000 machines, and opens it in
//! Chromium.

use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::browser::Browser;
use testkit::objects::fleet::{Fate, claim};
use testkit::objects::over_cluster;

const MACHINES: usize = 5_000;
const TIMES: usize = 5;

fn middle(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let (dump, page) = (folder.path().join("dump.json"), folder.path().join("page.html"));
    let items: Vec<Value> = over_cluster("").into_iter().chain((0..MACHINES).map(|n| claim(n, Fate::Stuck))).collect();
    std::fs::write(&dump, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).expect("room");
    let mut made = Vec::new();
    for _ in 0..TIMES {
        let begins = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        command.args(["diagnose", "--now=2026-01-15T12:00:00Z", "-o", "html", "-f"]).arg(&dump);
        let output = command.output().expect("the command runs");
        made.push(begins.elapsed());
        std::fs::write(&page, output.stdout).expect("room");
    }
    let mut browser = Browser::start();
    browser.resize(1000, 800);
    let before = browser.cpu();
    let opened = (0..TIMES).map(|_| browser.open(&page)).collect();
    let cpu = (browser.cpu() - before) / f64::from(u32::try_from(TIMES).unwrap_or(1));
    let unfolded = browser.ask(
        "new Promise(drawn => { const begins = performance.now(); \
         document.querySelectorAll('details').forEach(details => details.open = true); \
         requestAnimationFrame(() => requestAnimationFrame(() => drawn(performance.now() - begins))) })",
    );
    let size = std::fs::metadata(&page).expect("just written").len();
    println!("a page of {MACHINES} stuck machines: {:.1} MB", f64::from(u32::try_from(size).unwrap_or_default()) / 1e6);
    println!("judged and written in {:.2} s, opened in {:.2} s, {cpu:.2} CPU seconds", middle(made), middle(opened));
    println!("all of it unfolded in {:.2} s", unfolded.as_f64().unwrap_or_default() / 1e3);
}
