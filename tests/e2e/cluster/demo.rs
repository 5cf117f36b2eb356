//! What `cargo demo` prints can be typed, and answers.

use std::process::Command;
use testkit::control_plane::nodewhy::get;
use testkit::demo::{CAUSES, Demo};

#[test]
fn every_command_that_the_demo_names_answers() {
    let demo = Demo::start(|_| ());
    let folder = tempfile::tempdir().expect("a folder");
    let mut said = String::new();
    for command in Demo::commands() {
        assert!(demo.what_next().contains(command), "{command}");
        let typed = format!("{}\n{command}", demo.environment());
        let output = Command::new("bash").args(["-c", &typed]).current_dir(&folder).output().expect("bash");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        said += &String::from_utf8_lossy(&output.stdout);
    }
    for cause in CAUSES {
        assert!(said.contains(cause), "no {cause} in {said}");
    }
    assert!(!said.contains("nodeclaim/healthy") && !said.contains("NodeClaim healthy"), "{said}");
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("the page");
    let live = get(demo.page, "/").expect("it is served");
    for cause in CAUSES {
        assert!(live.contains(cause), "no {cause}");
    }
    // By the thresholds of real life the others have not waited for long enough.
    assert!(page.contains("KubeletRefusesLabels"));
}
