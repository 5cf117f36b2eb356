//! Which step of a boot failed first. The lines are shortened from the reports that each test names.

use chrono::{DateTime, Utc};
use logs::fact::{BootStep, Fact, Trouble};
use logs::journey::Journey;
use logs::{FileLimits, LogReader};

fn read(log: &str) -> Journey {
    let mut reader = LogReader::new(FileLimits::default());
    let written: Option<DateTime<Utc>> = "2026-01-15T12:00:00Z".parse().ok();
    reader.file("console.log", log.as_bytes(), written).expect("text");
    reader.of_one_machine()
}

/// What stops the machine, and the step of the boot that it is.
fn root(journey: &Journey) -> (&Fact, &BootStep) {
    let open = journey.open();
    let fact = open.first().copied().unwrap_or_else(|| panic!("{journey:?}"));
    (fact, fact.boot.as_ref().unwrap_or_else(|| panic!("{open:?}")))
}

fn said(step: &BootStep) -> Vec<&str> {
    step.said.iter().map(|line| line.text.as_str()).collect()
}

fn has_no_step(log: &str) {
    let journey = read(log);
    let steps: Vec<_> = journey.open().into_iter().filter(|fact| fact.boot.is_some()).collect();
    assert!(steps.is_empty(), "{steps:?}");
}

/// bottlerocket-os/bottlerocket#3726: the network is configured too late, and the journal knows why.
const NETWORK: &str = "\
Jan 23 10:47:53 localhost systemd[1]: Reached target Basic System.
Jan 23 10:47:53 localhost systemd[1]: Starting Wait for Network to be Configured...
Jan 23 10:48:10 localhost kernel: audit: type=1131 audit(1706006890.1:3): pid=1 msg='unit=x res=failed'
Jan 23 10:49:53 localhost systemd-networkd-wait-online[2582]: Timeout occurred while waiting for network connectivity.
Jan 23 10:49:53 localhost systemd[1]: systemd-networkd-wait-online.service: Main process exited, code=exited, status=1/FAILURE
Jan 23 10:49:53 localhost systemd[1]: systemd-networkd-wait-online.service: Failed with result 'exit-code'.
Jan 23 10:49:53 localhost systemd[1]: Failed to start Wait for Network to be Configured.
Jan 23 10:49:53 localhost systemd[1]: Dependency failed for Bottlerocket initial configuration complete.
Jan 23 10:49:53 localhost systemd[1]: Dependency failed for Kubelet.
";

#[test]
fn the_first_unit_of_a_journal_is_named_with_its_last_words() {
    let journey = read(NETWORK);
    let (fact, step) = root(&journey);
    assert_eq!(step.unit, "systemd-networkd-wait-online.service (Wait for Network to be Configured)");
    assert_eq!(step.id.as_deref(), Some("systemd-networkd-wait-online.service"));
    assert_eq!(said(step), ["Timeout occurred while waiting for network connectivity."]);
    assert_eq!(step.reached.as_deref(), Some("Basic System"));
    assert_eq!(step.needed_by, ["Bottlerocket initial configuration complete", "Kubelet"]);
    assert!(fact.vague && fact.unknown, "{fact:?}");
}

#[test]
fn what_failed_and_came_up_later_is_no_step() {
    let runtime = "\
Jan 23 10:47:52 node systemd[1]: containerd.service: Failed with result 'exit-code'.
Jan 23 10:47:52 node systemd[1]: Failed to start containerd.service - containerd container runtime.
";
    assert_eq!(root(&read(runtime)).1.unit, "containerd.service (containerd container runtime)");
    has_no_step(&format!(
        "{runtime}Jan 23 10:47:57 node systemd[1]: Started containerd.service - containerd container runtime.\n"
    ));
    has_no_step(&format!("{NETWORK}Jan 23 10:50:20 localhost systemd[1]: Started Kubelet.\n"));
    // systemd does not start again what it gave up for it.
    let network = "systemd-networkd-wait-online.service (Wait for Network to be Configured)";
    let late = format!("{NETWORK}Jan 23 10:50:20 localhost systemd[1]: Finished Wait for Network to be Configured.\n");
    assert_eq!(root(&read(&late)).1.unit, network);
    // A later boot may fail as an earlier one did not.
    let again = NETWORK.replace("Jan 23 10", "Jan 23 11");
    let twice = format!("{NETWORK}Jan 23 10:50:20 localhost systemd[1]: Started Kubelet.\n{again}");
    assert_eq!(root(&read(&twice)).1.unit, network);
}

#[test]
fn a_mount_of_the_console_is_told_with_what_mount_said() {
    // bottlerocket-os/bottlerocket#3497, with colors, with carriage returns, and with what is left of colors.
    let log = "\
         Mounting Local Directory (/local)...
[    9.926960] mount[1411]: mount: /local: wrong fs type, bad option, bad superblock on /dev/nvme1n1p1
[    9.930085] mount[1411]:        dmesg(1) may have more information after failed mount system call.
[FAILED] Failed to mount Local Directory (/local).
See 'systemctl status local.mount' for details.
[DEPEND] Dependency failed for Var Directory (/var).
[  OK  ] Reached target Local File Systems.
";
    let with_colors = log.replace("FAILED", "\x1b[0;1;31mFAILED\x1b[0m").replace('\n', "\r\n");
    let without_escapes = log.replace("FAILED", "[0;1;31mFAILED[0m").replace("DEPEND", "[0;1;33mDEPEND[0m");
    for log in [log, &with_colors, &without_escapes] {
        let journey = read(log);
        let (fact, step) = root(&journey);
        assert_eq!(fact.trouble, Trouble::DiskFails, "{fact:?}");
        assert_eq!(step.unit, "local.mount (Local Directory (/local))");
        let words = "mount: /local: wrong fs type, bad option, bad superblock on /dev/nvme1n1p1";
        assert_eq!(said(step).first(), Some(&words));
    }
}

#[test]
fn a_missing_disk_comes_before_the_emergency_mode() {
    // systemd/systemd#13775.
    let log = "\
Nov 05 09:41:15 node systemd[1]: dev-xvdb.device: Job dev-xvdb.device/start timed out.
Nov 05 09:41:15 node systemd[1]: Timed out waiting for device dev-xvdb.device.
Nov 05 09:41:15 node systemd[1]: Dependency failed for /var/lib/containerd.
Nov 05 09:41:15 node systemd[1]: Dependency failed for Local File Systems.
Nov 05 09:41:15 node systemd[1]: local-fs.target: Job local-fs.target/start failed with result 'dependency'.
Nov 05 09:41:16 node systemd[1]: Reached target Emergency Mode.
You are in emergency mode. After logging in, type \"journalctl -xb\" to view
";
    let journey = read(log);
    let (fact, step) = root(&journey);
    assert_eq!((fact.trouble, step.unit.as_str()), (Trouble::DiskFails, "dev-xvdb.device"));
    assert_eq!(step.needed_by, ["/var/lib/containerd", "Local File Systems"]);
}

#[test]
fn a_unit_whose_name_is_cut_is_known_and_what_a_row_knows_stays_the_cause() {
    // awslabs/amazon-eks-ami#2426.
    let log = "\
[    5.2] nodeadm[1493]: the instance store is in a state that nobody foresaw: unexpected disk
[FAILED] Failed to start nodeadm-co\u{2026}ervice - EKS Nodeadm Config.
[DEPEND] Dependency failed for nodeadm-run.service - EKS Nodeadm Run.
[FAILED] Failed to start cloud-final.service - Execute cloud user/final scripts.
";
    let journey = read(log);
    let (fact, step) = root(&journey);
    assert_eq!(fact.means, "nodeadm gave up");
    assert_eq!(step.unit, "nodeadm-co\u{2026}ervice (EKS Nodeadm Config)");
    assert_eq!(step.id, None);
    assert_eq!(said(step), ["the instance store is in a state that nobody foresaw: unexpected disk"]);
    // A row that explains the words says more.
    let known = log.replace(
        "the instance store is in a state that nobody foresaw: unexpected disk",
        r#"{"level":"fatal","caller":"nodeadm/main.go:36","msg":"Command failed","error":"could not find NodeConfig within UserData"}"#,
    );
    let journey = read(&known);
    assert!(journey.open().first().is_some_and(|fact| fact.boot.is_none() && !fact.vague), "{:?}", journey.open());
}

#[test]
fn units_that_no_kubelet_needs_are_no_step() {
    // awslabs/amazon-eks-ami#2737 and like it: modules, messages of the day, a user's own units, a second serial
    // console.
    for log in [
        "\
Jun 08 07:48:41 node systemd[1]: systemd-modules-load.service: Failed with result 'exit-code'.
Jun 08 07:48:41 node systemd[1]: Failed to start systemd-modules-load.service - Load Kernel Modules.
Jun 08 07:48:47 node systemd[1]: Started containerd.service - containerd container runtime.
",
        "[FAILED] Failed to start Dynamically Generate Message Of The Day.\nSee 'systemctl status update-motd.service' \
         for details.\n",
        "\
[ TIME ] Timed out waiting for device dev-ttyS1.device.
[DEPEND] Dependency failed for Serial Getty on ttyS1.
[  OK  ] Reached target Basic System.
",
        "\
Jan 23 10:47:53 node systemd[1834]: Failed to start Kubelet.
Jan 23 10:47:53 node systemd[1834]: Dependency failed for Local File Systems.
",
        "\
[FAILED] Failed to start Audit of our own.
[DEPEND] Dependency failed for Reports of our own.
[  OK  ] Reached target Multi-User System.
",
        "Jan 23 10:47:53 node app[99]: Dependency failed for Local File Systems.\n",
        "kubelet says: Failed to start ContainerManager: x\n",
    ] {
        has_no_step(log);
    }
}

#[test]
fn what_the_kernel_and_selinux_say_is_told_beside_the_words_of_the_unit() {
    let log = "\
Jan 23 10:47:50 node systemd[1]: Starting containerd.service - containerd container runtime...
Jan 23 10:47:51 node kernel: audit: type=1400 audit(1706006871.1:9): avc:  denied  { execute } for pid=900 comm=\"(ntainerd)\" name=\"containerd\" permissive=0
Jan 23 10:47:51 node kernel: i8042: Can't read CTR while initializing i8042, error
Jan 23 10:47:52 node systemd[1]: containerd.service: Failed at step NAMESPACE spawning /usr/bin/containerd: Permission denied
Jan 23 10:47:52 node systemd[1]: containerd.service: Failed with result 'exit-code'.
Jan 23 10:47:52 node systemd[1]: Failed to start containerd.service - containerd container runtime.
";
    let journey = read(log);
    let (fact, step) = root(&journey);
    assert_eq!(fact.trouble, Trouble::RuntimeNotUp);
    let said = said(step);
    assert!(
        matches!(said.as_slice(), [own, kernel] if own.contains("Permission denied") && kernel.contains("avc:  \
            denied")),
        "{said:?}"
    );
    // SELinux only logs it.
    let permissive = read(&log.replace("permissive=0", "permissive=1"));
    let (_, step) = root(&permissive);
    assert!(step.said.iter().all(|line| !line.text.contains("avc:  denied")), "{:?}", step.said);
}

#[test]
fn secrets_in_the_last_words_are_masked() {
    let journey = read(&NETWORK.replace("Timeout occurred", "Error: password=hunter2secret, timeout occurred"));
    let all = format!("{journey:?}");
    assert!(all.contains("password=") && !all.contains("hunter2secret"), "{all}");
}

#[test]
fn a_job_that_the_boot_waits_for_where_the_log_ends_is_named() {
    // bottlerocket-os/bottlerocket#3726, aws/aws-parallelcluster#7061.
    let log = "\
[  OK  ] Reached target Basic System.
[  *** ] A start job is running for Wait for\u{2026}e Configured (1min 58s / no limit)
[ ***  ] Job systemd-networkd-wait-online.se\u{2026}tart running (1min 59s / no limit)
";
    let journey = read(log);
    let (fact, step) = root(&journey);
    assert!(!fact.ends && fact.vague, "{fact:?}");
    assert_eq!(step.reached.as_deref(), Some("Basic System"));
    // It got on, has not waited for long, or has a kubelet.
    has_no_step(&format!("[  OK  ] Started Kubelet.\n{}", log.replace("[  OK  ] Reached target Basic System.\n", "")));
    has_no_step(&format!("{log}[  OK  ] Finished Wait for Network to be Configured.\n"));
    has_no_step(&log.replace("1min 58s", "8s").replace("1min 59s", "9s"));
}

#[test]
fn a_log_that_begins_behind_the_failure_says_so() {
    let journey =
        read("[DEPEND] Dependency failed for Network Manager.\n[DEPEND] Dependency failed for Basic System.\n");
    let (fact, step) = root(&journey);
    assert!(fact.means.contains("before this log begins"), "{fact:?}");
    assert_eq!(step.needed_by, ["Network Manager", "Basic System"]);
}

/// bottlerocket-os/bottlerocket#3524: early-boot-config says why, and what the console prints behind it does not.
#[test]
fn a_line_that_says_less_does_not_replace_the_one_that_says_why() {
    let why = "[    4.167983] early-boot-config[953]: Error PATCHing '/settings?tx=bottlerocket-launch': Status 400 \
               when PATCHing /settings?tx=bottlerocket-launch: Json deserialize error: Unable to deserialize into \
               PemCertificateString: Invalid base64 input: Invalid byte 45, offset 0. at line 1 column 3361\n";
    let failed =
        "[\x1b[0;1;31mFAILED\x1b[0m] Failed to start \x1b[0;1;39mBottlerocket userdata configuration system\x1b[0m.\n";
    for log in [format!("{why}{failed}"), format!("{failed}{why}"), format!("{why}{failed}{failed}")] {
        let journey = read(&log);
        let open = journey.open();
        let fact = open.first().expect("what stops the machine");
        assert!(fact.trouble == Trouble::UserDataRefused && !fact.vague, "{fact:?}");
        assert!(fact.last.text.contains("Invalid base64 input"), "{fact:?}");
    }
    let journey = read(failed);
    assert!(journey.open().iter().any(|fact| fact.vague && fact.trouble == Trouble::UserDataRefused), "{journey:?}");
}

/// systemd drops nodeadm-run.service, which waits for cloud-final.service, which waits for what wants both.
const CYCLE: &str = "\
Aug 26 13:11:51 node systemd[1]: multi-user.target: Found ordering cycle on nodeadm-run.service/start
Aug 26 13:11:51 node systemd[1]: multi-user.target: Found dependency on cloud-final.service/start
Aug 26 13:11:51 node systemd[1]: multi-user.target: Found dependency on multi-user.target/start
Aug 26 13:11:51 node systemd[1]: multi-user.target: Job nodeadm-run.service/start deleted to break ordering cycle starting with multi-user.target/start
Aug 26 13:11:57 node systemd[1]: Started containerd.service - containerd container runtime.
Aug 26 13:11:59 node systemd[1]: Reached target multi-user.target - Multi-User System.
";

#[test]
fn a_unit_whose_job_was_deleted_to_break_a_cycle_is_named() {
    let v219 = CYCLE.replace("multi-user.target: ", "");
    let v258 = "\
Aug 26 13:11:51 node systemd[1]: multi-user.target: Found ordering cycle: nodeadm-run.service/start after cloud-final.service/start after multi-user.target/start - after nodeadm-run.service
Aug 26 13:11:51 node systemd[1]: multi-user.target: Job nodeadm-run.service/start deleted to break ordering cycle
";
    let console = "[\x1b[0;1;31m SKIP \x1b[0m] Ordering cycle found, skipping nodeadm-run.service - EKS Nodeadm Run\n";
    for (log, units) in [(CYCLE, 3), (v219.as_str(), 3), (v258, 1), (console, 0)] {
        let journey = read(log);
        let (fact, step) = root(&journey);
        assert!(!fact.vague && fact.means.contains("to break an ordering cycle"), "{fact:?}");
        assert!(step.unit.starts_with("nodeadm-run.service"), "{step:?}");
        assert_eq!(step.cycle.len(), units, "{step:?}");
    }
    // It outranks what follows from it.
    let late = "Aug 26 13:11:58 node cloud-init[9]: 2026-08-26 13:11:58,724 - util.py[WARNING]: Can not apply stage \
                final, no datasource found! Likely bad things to come!\n";
    let journey = read(&format!("{}{late}", CYCLE.replace("nodeadm-run.service", "cloud-init.service")));
    assert_eq!(root(&journey).1.unit, "cloud-init.service");
}

#[test]
fn a_cycle_is_no_step_if_the_kubelet_needs_nothing_of_it_or_came_up() {
    for unit in ["kdump.service", "snapd.service", "var-lib-own.mount"] {
        has_no_step(&CYCLE.replace("nodeadm-run.service", unit));
    }
    has_no_step(&format!("{CYCLE}Aug 26 13:12:20 node systemd[1]: Finished nodeadm-run.service - EKS Nodeadm Run.\n"));
    has_no_step(&format!("{CYCLE}Aug 26 13:12:20 node systemd[1]: Started kubelet.service - Kubernetes Kubelet.\n"));
    has_no_step(&CYCLE.replace("/start deleted", "/stop deleted"));
    // It was started after all, and then failed.
    let failed = format!(
        "{CYCLE}Aug 26 13:12:20 node nodeadm[9]: unexpected disk\nAug 26 13:12:20 node systemd[1]: Failed to start \
         nodeadm-run.service - EKS Nodeadm Run.\n"
    );
    let journey = read(&failed);
    assert!(root(&journey).1.cycle.is_empty(), "{journey:?}");
}

#[test]
fn a_command_before_the_start_of_the_kubelet_is_told_with_its_own_words() {
    let v219 = "\
Oct 11 19:21:09 node systemd[1]: Starting Kubernetes Kubelet...
Oct 11 19:21:09 node iptables[4335]: Another app is currently holding the xtables lock. Perhaps you want to use the -w option?
Oct 11 19:21:09 node systemd[1]: kubelet.service: control process exited, code=exited status=4
Oct 11 19:21:09 node systemd[1]: Failed to start Kubernetes Kubelet.
Oct 11 19:21:09 node systemd[1]: Unit kubelet.service entered failed state.
";
    let v252 = "\
Oct 11 19:21:09 node systemd[1]: Starting kubelet.service - Kubernetes Kubelet...
Oct 11 19:21:09 node iptables[4335]: Another app is currently holding the xtables lock. Perhaps you want to use the -w option?
Oct 11 19:21:09 node systemd[1]: kubelet.service: Control process exited, code=exited, status=4/NOPERMISSION
Oct 11 19:21:09 node systemd[1]: kubelet.service: Failed with result 'exit-code'.
Oct 11 19:21:09 node systemd[1]: Failed to start kubelet.service - Kubernetes Kubelet.
";
    for log in [v219, v252] {
        let journey = read(log);
        let (fact, step) = root(&journey);
        assert_eq!(fact.trouble, Trouble::BootstrapFailed, "{fact:?}");
        assert!(fact.means.contains("ExecStartPre=") && fact.vague, "{fact:?}");
        assert_eq!(step.id.as_deref(), Some("kubelet.service"));
        let lock = "Another app is currently holding the xtables lock. Perhaps you want to use the -w option?";
        assert_eq!(said(step), [lock]);
        // It is ignored, or tried again.
        has_no_step(&log.replace("Failed to start", "Started"));
        // The kubelet itself ends.
        let own = log.replace("control process", "main process").replace("Control process", "Main process");
        assert_eq!(root(&read(&own)).0.trouble, Trouble::KubeletRefusesConfiguration, "{own}");
        let ends =
            "Oct 11 19:21:09 node systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE\n";
        let stops = log.replace("Oct 11 19:21:09 node iptables", &format!("{ends}Oct 11 19:21:09 node iptables"));
        assert_eq!(root(&read(&stops)).0.trouble, Trouble::KubeletRefusesConfiguration, "{stops}");
    }
}

/// Bottlerocket with kernel.lockdown = "integrity": modules that are linked at boot have no signature.
#[test]
fn the_kernel_says_why_it_refuses_a_module() {
    let lockdown =
        "[    5.742199] Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7\n";
    let log = format!(
        "\
         Starting Load additional kernel modules...
[    5.711204] nvidia: loading out-of-tree module taints kernel.
{lockdown}[    5.879228] driverdog[2088]: modprobe: ERROR: could not insert 'nvidia': Operation not permitted
[FAILED] Failed to start Load additional kernel modules.
See 'systemctl status load-kernel-modules.service' for details.
[DEPEND] Dependency failed for Bottlerocket initial configuration complete.
"
    );
    let refusal = |log: &str| root(&read(log)).1.refusal.as_ref().map(|line| line.text.clone());
    let words = "modprobe: ERROR: could not insert 'nvidia': Operation not permitted";
    let journey = read(&log);
    assert_eq!(said(root(&journey).1).first(), Some(&words));
    assert!(refusal(&log).is_some_and(|text| text.contains("unsigned module loading")), "{log}");
    let rejected = "[    5.742199] Loading of unsigned module is rejected\n";
    let unsigned = log.replace(lockdown, rejected).replace("Operation not permitted", "Key was rejected by service");
    assert!(refusal(&unsigned).is_some_and(|text| text.ends_with("is rejected")), "{unsigned}");
    // The unit failed for something else; the kernel refused something else; it loads the module all the same.
    assert_eq!(refusal(&log.replace("Operation not permitted", "No such device")), None);
    assert_eq!(refusal(&log.replace("unsigned module loading", "hibernation")), None);
    let tainted =
        "[    5.742199] nvidia: module verification failed: signature and/or required key missing - tainting kernel\n";
    assert_eq!(refusal(&log.replace(lockdown, tainted)), None);
}

/// bottlerocket-os/bottlerocket#4889: the unit only says that nvidia-smi failed, and the kernel knows why.
#[test]
fn the_kernel_says_why_the_device_of_a_unit_does_not_work() {
    let nvrm = "\
[   10.911530] NVRM: The NVIDIA GPU 0000:57:00.0 (PCI ID: 10de:2c3a)
[   10.911533] NVRM: installed in this system requires use of the NVIDIA open kernel modules.
[   10.914802] NVRM: GPU 0000:57:00.0: RmInitAdapter failed! (0x22:0x56:897)
";
    let fails = "\
         Starting NVIDIA MIG manager service...
[   11.720018] nvidia-migmanager[2755]: '/usr/bin/nvidia-smi' failed - stderr:
[FAILED] Failed to start NVIDIA MIG manager service.
See 'systemctl status nvidia-migmanager.service' for details.
[DEPEND] Dependency failed for Bottlerocket initial configuration complete.
";
    let device = |log: &str| {
        let journey = read(log);
        let step = journey.open().into_iter().find_map(|fact| fact.boot.as_ref()).expect("a step of the boot");
        step.device.as_ref().map(|device| device.line.text.clone())
    };
    let open = Some("NVRM: installed in this system requires use of the NVIDIA open kernel modules.".to_owned());
    assert_eq!(device(&format!("{nvrm}{fails}")), open);
    let said = nvrm.lines().filter_map(|line| line.split_once("] ")).map(|(_, said)| said);
    let of_journal: Vec<String> = said.map(|said| format!("Jan 15 11:51:02 node kernel: {said}")).collect();
    assert_eq!(device(&format!("{}\n{fails}", of_journal.join("\n"))), open);
    // The unit has another name, and its own words are about the device.
    let loads =
        fails.replace("NVIDIA MIG manager service", "Load modules").replace("nvidia-migmanager", "load-modules");
    assert_eq!(device(&format!("{nvrm}{loads}")), open);
    // The unit is about something else; the lines come later; the unit is about another device.
    let other = loads.replace("nvidia-smi", "lsblk");
    assert_eq!(device(&format!("{nvrm}{other}")), None);
    assert_eq!(device(&format!("{fails}{nvrm}")), None);
    let label = loads.replace("/usr/bin/nvidia-smi", "label nvidia.com/gpu");
    assert_eq!(device(&format!("{nvrm}{label}")), None);
    let neuron = other.replace("load-modules", "neuron-modules");
    assert_eq!(device(&format!("{nvrm}{neuron}")), None);
    // Another boot loads other modules.
    let again = "[   10.402117] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.45.04\n";
    let lines: Vec<&str> = nvrm.lines().take(2).collect();
    assert_eq!(device(&format!("{}\n{again}{fails}", lines.join("\n"))), None);
}

/// coreos/ignition v2.6.0 on an instance whose metadata service requires a token.
#[test]
fn what_ignition_is_answered_is_its_last_word() {
    let log = "\
         Starting Ignition (fetch)...
[    9.718804] ignition[471]: GET http://169.254.169.254/2009-04-04/user-data: attempt #1
[    9.729902] ignition[471]: GET result: Unauthorized
[    9.735210] ignition[471]: failed to fetch config: failed to fetch resource
[    9.751330] ignition[471]: Ignition failed: failed to fetch resource
[FAILED] Failed to start Ignition (fetch).
See 'systemctl status ignition-fetch.service' for details.
[DEPEND] Dependency failed for Ignition (files).
[DEPEND] Dependency failed for Initrd Default Target.
";
    let journey = read(log);
    let (_, step) = root(&journey);
    assert_eq!(step.id.as_deref(), Some("ignition-fetch.service"));
    assert_eq!(said(step).first(), Some(&"GET result: Unauthorized"));
    // An answer of which nothing is wrong.
    let journey = read(&log.replace("Unauthorized", "OK"));
    assert_eq!(said(root(&journey).1).first(), Some(&"failed to fetch config: failed to fetch resource"));
}

/// bottlerocket-os/bottlerocket-core-kit#338: systemd is faster at the console than what the program says.
const PROXY: &str = "\
[  OK  ] Reached target Network is Online.
         Starting Generate additional settings for Kubernetes...
[    9.515344] pluto[1048]: thread 'main' panicked at aws-smithy-experimental/src/hyper_1_0.rs:259:49:
[FAILED] Failed to start Generate additional settings for Kubernetes.
See 'systemctl status pluto.service' for details.
[    9.570493] pluto[1048]: the setting is none: RelativeUrlWithoutBase
[DEPEND] Dependency failed for Applies settings to create config files.
[    9.690248] pluto[1048]: note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
[DEPEND] Dependency failed for Bottlerocket initial configuration complete.
";

#[test]
fn what_a_program_says_behind_its_failure_on_a_console_is_its_last_word() {
    let first = |log: &str| said(root(&read(log)).1).first().map(|text| (*text).to_owned());
    let told = "the setting is none: RelativeUrlWithoutBase";
    assert_eq!(first(PROXY).as_deref(), Some(told));
    // Also before it.
    let (panics, rest) = PROXY.split_once("[FAILED]").expect("a failure");
    let before = format!("{panics}[    9.516000] pluto[1048]: {told}\n[FAILED]{rest}");
    assert_eq!(first(&before).as_deref(), Some(told));
    // Another program says it, or nobody panicked and it complains of nothing.
    let other = PROXY.replace(&format!("pluto[1048]: {told}"), "sundog[1050]: done");
    assert_eq!(first(&other.replace("pluto[1048]: note", "sundog[1050]: note")), None);
    let calm = PROXY.replace("panicked at aws-smithy-experimental/src/hyper_1_0.rs:259:49:", "started");
    assert_eq!(first(&calm), None);
    // It complains without a panic.
    let fails = calm.replace(told, "Error: no such setting");
    assert_eq!(first(&fails).as_deref(), Some("Error: no such setting"));
}

#[test]
fn what_a_program_said_before_its_failure_counts_more_than_what_it_says_behind_it() {
    let log =
        PROXY.replace("thread 'main' panicked at aws-smithy-experimental/src/hyper_1_0.rs:259:49:", "failed to ask");
    let step = read(&log.replace("the setting is none", "cannot end"));
    assert_eq!(said(root(&step).1), ["failed to ask"]);
}
