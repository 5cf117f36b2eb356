//! `cargo demo`: nodewhy on a real control plane, without AWS. `cargo demo record` writes what can be seen and typed
//! there to docs/images/demo.cast.

mod cast;

use std::cell::RefCell;
use std::thread;
use std::time::Duration;
use testkit::control_plane::recipes::heartbeat;
use testkit::demo::Demo;

fn main() {
    if std::env::args().any(|argument| argument == "record") {
        return record();
    }
    let demo = Demo::start(|step| eprintln!("{step} …"));
    println!("{}", demo.what_next());
    loop {
        // kwok's Nodes have no kubelet that would report.
        heartbeat(&demo.control_plane);
        thread::sleep(Duration::from_secs(20));
    }
}

fn record() {
    let cast = RefCell::new(cast::Cast::begin());
    let demo = Demo::start(|step| cast.borrow_mut().came(&format!("{step} …\n")));
    let mut cast = cast.into_inner();
    let folder = tempfile::tempdir().expect("a folder");
    for command in Demo::commands() {
        heartbeat(&demo.control_plane);
        cast.run(command, &demo.environment(), folder.path());
    }
    cast.save(&testkit::project().join("docs/images/demo.cast"));
}
