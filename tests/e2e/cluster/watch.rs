//! `nodewhy diagnose --watch` while a machine becomes sick and goes.

use crate::cluster::operator::{install, one_refused_one_healthy};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;
use testkit::control_plane::ControlPlane;
use testkit::control_plane::recipes::{SOON, backdate_registration, heartbeat, wait_until};

#[test]
fn a_machine_that_becomes_sick_is_told_once_and_so_is_its_end() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let _karpenter = control_plane.karpenter("1.0.5");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    command.args(["diagnose", "--watch=5s", "-o", "json"]).env("KUBECONFIG", &rights);
    let watch = control_plane.spawn("diagnose-watch", &command);
    // Each answer is a line of JSON; what goes to stderr begins with the program's name.
    let answers = || -> Vec<Value> { watch.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect() };
    let stuck = |answer: &Value| answer["items"].as_array().map_or(0, Vec::len);

    let first = wait_until(SOON, || answers().first().cloned());
    assert_eq!(stuck(&first), 0, "{first:#}");
    wait_until(SOON, || watch.log().contains("every 5 s; Ctrl-C ends it").then_some(()));

    one_refused_one_healthy(&control_plane);
    let sick = wait_until(SOON, || answers().into_iter().find(|answer| stuck(answer) == 1));
    assert_eq!(sick["items"][0]["status"]["cause"], "UnregisteredTaintMissing", "{sick:#}");
    assert!(watch.log().contains("stuck is stuck now: UnregisteredTaintMissing"), "{}", watch.log());
    let told = answers().len();
    std::thread::sleep(Duration::from_secs(11));
    heartbeat(&control_plane);
    assert_eq!(answers().len(), told, "two looks that saw nothing new: {}", watch.log());

    backdate_registration(&control_plane, "stuck");
    wait_until(SOON, || {
        heartbeat(&control_plane);
        (stuck(answers().last()?) == 0).then_some(())
    });
    assert!(watch.log().contains("stuck is no longer stuck"), "{}", watch.log());

    watch.signal("INT");
    let mut watch = watch;
    let ended = wait_until(SOON, || watch.exited());
    assert!(ended.success(), "Ctrl-C is how it ends: {ended}");
}
