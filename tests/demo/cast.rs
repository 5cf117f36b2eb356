//! A recording of the demo for asciinema, in the format of its version 2: what is typed and what is answered, with the
//! times at which it came. Source: asciinema docs/asciicast-v2.md.

use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// As wide as `kubectl get ndx`.
const COLUMNS: u16 = 190;
const A_KEY: Duration = Duration::from_millis(45);
/// Time to read what was answered.
const TO_READ: Duration = Duration::from_secs(4);

pub struct Cast {
    events: Vec<String>,
    /// On the recording's own clock.
    now: Duration,
    last: Instant,
}

impl Cast {
    /// Begins with the command that starts the demo.
    pub fn begin() -> Self {
        // Nobody watches two minutes of nothing.
        let header =
            json!({"version": 2, "width": COLUMNS, "height": 45, "idle_time_limit": 4, "title": "nodewhy: cargo demo"});
        let mut cast = Self { events: vec![header.to_string()], now: Duration::ZERO, last: Instant::now() };
        cast.typed("cargo demo");
        cast
    }

    fn shown(&mut self, text: &str) {
        self.events.push(json!([self.now.as_secs_f64(), "o", text.replace('\n', "\r\n")]).to_string());
    }

    fn typed(&mut self, command: &str) {
        self.shown("$ ");
        for key in command.chars() {
            self.now += A_KEY;
            self.shown(&key.to_string());
        }
        self.shown("\n");
        self.last = Instant::now();
    }

    /// What came now.
    pub fn came(&mut self, text: &str) {
        self.now += self.last.elapsed();
        self.last = Instant::now();
        self.shown(text);
    }

    /// Types a command, and shows what it answers.
    pub fn run(&mut self, command: &str, environment: &str, folder: &Path) {
        self.now += TO_READ;
        self.typed(command);
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("{environment}\nexec 2>&1\n{command}")]).current_dir(folder);
        let output = shell.env("COLUMNS", COLUMNS.to_string()).output().expect("bash");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stdout));
        self.came(&String::from_utf8_lossy(&output.stdout));
    }

    pub fn save(mut self, file: &Path) {
        self.now += TO_READ;
        self.shown("$ ");
        std::fs::write(file, self.events.join("\n") + "\n").expect("written");
    }
}
