//! The year of a journal whose lines name none: a copy of the file is younger than what it tells.

use chrono::{DateTime, Datelike, Utc};
use logs::fact::Trouble;
use logs::journey::Journey;
use logs::{FileLimits, LogReader};

const KERNEL: &str = "Feb 18 11:26:49 node kernel: pci 0000:00:01.3: quirk: [io  0xb100-0xb10f] claimed by PIIX4 SMB\n";
const RUNTIME: &str = "Feb 18 11:26:57 node containerd[3702]: time=\"2025-02-18T11:26:57.302704203Z\" level=info \
                       msg=\"Start cni network conf syncer for default\"\n";
const REFUSED: &str = "Feb 18 11:27:03 node kubelet[4021]: E0218 11:27:03.941452    4021 kubelet_node_status.go:96] \
                       \"Unable to register node with API server\" err=\"Node \\\"node\\\" is invalid: \
                       metadata.labels: Invalid value: \\\"node\\\": must be no more than 63 characters\" \
                       node=\"node\"\n";

/// What a file tells that was copied a year later.
fn read(log: &str) -> Journey {
    let mut reader = LogReader::new(FileLimits::default());
    let written: Option<DateTime<Utc>> = "2026-11-27T12:00:00Z".parse().ok();
    reader.file("i-0a0000000000000b1-messages.log", log.as_bytes(), written).expect("text");
    reader.of_one_machine()
}

#[test]
fn the_first_full_time_names_the_year_however_late_it_comes() {
    for lines in [1, 200, 2_000] {
        let journey = read(&format!("{}{RUNTIME}{REFUSED}", KERNEL.repeat(lines)));
        let open = journey.open();
        let fact = open.first().unwrap_or_else(|| panic!("{lines}: {journey:?}"));
        assert_eq!(fact.trouble, Trouble::NodeInvalid);
        assert_eq!(fact.last.time.map(|time| time.year()), Some(2025), "{lines}");
    }
}

#[test]
fn cloud_init_names_the_year_and_a_fetched_file_does_not() {
    let year = |line: &str| {
        let journey = read(&format!("{KERNEL}{line}\n{REFUSED}"));
        journey.open().first().and_then(|fact| fact.last.time).map(|time| time.year())
    };
    let begin = "Feb 18 11:26:52 node cloud-init[1702]:";
    let runs = "Cloud-init v. 22.2.2 running 'init' at Tue, 18 Feb 2025 08:14:01 +0000. Up 12.31 seconds.";
    assert_eq!(year(&format!("{begin} {runs}")), Some(2025));
    let runs = "Cloud-init v. 22.2.2 running 'modules:final' at Tue, 18 Feb 2025 08:14:09 +0000. Up 20.02 seconds.";
    assert_eq!(year(&format!("{begin} {runs}")), Some(2025));
    for other in [
        "Last-Modified: Tue, 18 Feb 2025 08:14:01 +0000",
        "Cloud-init v. 22.2.2 running 'init' at Feb 18 2025.",
        "Linux version 5.10.234 (gcc) #1 SMP Tue Feb 18 08:14:01 UTC 2025",
    ] {
        assert_eq!(year(&format!("{begin} {other}")), Some(2026), "{other}");
    }
}

#[test]
fn without_any_full_time_it_is_the_year_in_which_the_file_was_written() {
    let journey = read(&format!("{}{REFUSED}", KERNEL.repeat(200)));
    let open = journey.open();
    assert_eq!(open.first().and_then(|fact| fact.last.time).map(|time| time.year()), Some(2026));
}
