//! nodewhy, as a program that prints JSON.

use super::Answer;
use crate::case::Case;
use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// Runs `nodewhy diagnose` over a case.
pub fn answers(program: &Path, case: &Case) -> io::Result<Vec<Answer>> {
    let mut command = Command::new(program);
    command.args(["diagnose", "-o", "json", "--now", &case.truth.now, "-f", "-"]);
    if let Some(logs) = case.logs() {
        command.arg("--logs").arg(logs);
    }
    let dump = case.dump()?;
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let input = running.stdin.take();
    let output = thread::scope(|scope| {
        // A program that stops reading says why on its standard error.
        scope.spawn(|| input.map(|mut input| input.write_all(dump.as_bytes())));
        running.wait_with_output()
    })?;
    read(&output.stdout).map_err(|error| {
        io::Error::other(format!("{}: {error}: {}", case.name, String::from_utf8_lossy(&output.stderr)))
    })
}

/// What `nodewhy diagnose -o json` prints.
pub fn read(printed: &[u8]) -> io::Result<Vec<Answer>> {
    let said: Value = serde_json::from_slice(printed)?;
    Ok(said["items"].as_array().into_iter().flatten().map(answer).collect())
}

fn answer(diagnosis: &Value) -> Answer {
    let (spec, status) = (&diagnosis["spec"], &diagnosis["status"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let named = |kind: &str, name: &Value| Some(format!("{kind}/{}", name.as_str()?));
    let subject = named(&text(&spec["subject"]["kind"]), &spec["subject"]["name"]);
    let machine = [("NodeClaim", "nodeClaim"), ("Node", "node")];
    let machine = machine.into_iter().filter_map(|(kind, field)| named(kind, &spec[field]["name"]));
    let fix = &status["fix"];
    let steps = list(&fix["steps"]).into_iter().flat_map(|step| [text(&step["text"]), text(&step["command"])]);
    Answer {
        names: subject.into_iter().chain(machine).collect(),
        cause: format!("{} {}", text(&status["cause"]), text(&status["summary"])),
        fix: [text(&fix["summary"])].into_iter().chain(steps).collect::<Vec<_>>().join(" "),
        object: status["blame"]["object"].as_str().unwrap_or("none").to_owned(),
        certain: status["confidence"] == "Certain",
        suspects: list(&status["suspects"]).iter().map(Value::to_string).collect(),
        excluded: list(&status["ruledOut"]).iter().map(|excluded| text(&excluded["cause"])).collect(),
    }
}
