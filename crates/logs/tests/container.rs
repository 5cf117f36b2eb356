//! What a container has written is its pod's, or of what Karpenter speaks of in it.

use logs::fact::{Reason, Trouble};
use logs::journey::Journey;
use logs::table::{KARPENTER, program_of};
use logs::{ContainerLog, FileLimits, LogReader};

const DENIED: &str = r#"2026-01-15T11:52:10.1Z {"level":"error","msg":"Initialization failure: ipamd init: operation error EC2: DescribeNetworkInterfaces, api error UnauthorizedOperation: x"}"#;
const UNREACHABLE: &str = r#"2026-01-15T11:52:10.1Z {"level":"error","msg":"Unable to reach API Server: Get \"https://172.20.0.1:443/version\": dial tcp 172.20.0.1:443: i/o timeout"}"#;

fn read(program: &str, runs_at: Option<&str>, lines: &[&str]) -> Vec<Journey> {
    let mut reader = LogReader::new(FileLimits::default());
    let runs_at = runs_at.map(|at| at.parse().expect("a time"));
    let of = ContainerLog { pod: "p-1", program, runs_at };
    reader.container("pod/p-1/c", lines.join("\n").as_bytes(), of).expect("text");
    reader.journeys()
}

#[test]
fn a_line_is_the_pods_whatever_it_looks_like() {
    let host = "2026-01-15T11:52:09Z Jan 15 11:52:09 other-host kubelet[1]: x";
    let journeys = read("vpc-cni", None, &[host, DENIED]);
    let [journey] = journeys.as_slice() else { panic!("{journeys:#?}") };
    assert_eq!(journey.identity.pods.iter().collect::<Vec<_>>(), ["p-1"]);
    assert!(journey.identity.hosts.is_empty(), "{journey:#?}");
    assert_eq!(journey.open()[0].trouble, Trouble::AwsRefuses);
}

#[test]
fn lines_of_other_programs_are_not_looked_for() {
    assert_eq!(program_of("aws-node"), Some("vpc-cni"));
    assert_eq!(program_of("nvdp-nvidia-device-plugin"), Some("devices"));
    assert_eq!(program_of("kube-proxy"), Some("kube-proxy"));
    assert_eq!(program_of("ebs-csi-node"), Some("ebs-csi"));
    assert_eq!(program_of("datadog"), None);
    // A device plugin that quotes the network plugin.
    let journeys = read("devices", None, &[DENIED]);
    assert!(journeys.iter().all(|journey| journey.facts.is_empty()), "{journeys:#?}");
}

#[test]
fn what_karpenter_says_is_of_what_it_names_and_never_of_the_machine_that_it_runs_on() {
    let error = "api error UnauthorizedOperation: You are not authorized to perform this operation.";
    let line = |about: &str, error: &str| {
        format!(r#"2026-01-15T11:52:10Z {{"level":"ERROR","message":"Reconciler error",{about}"error":"{error}"}}"#)
    };
    let of_claim = line(r#""NodeClaim":{"name":"general-7xk2p"},"#, &format!("launching nodeclaim, {error}"));
    let of_class = line(r#""EC2NodeClass":{"name":"default"},"#, error);
    let of_nothing = line("", &format!("launching nodeclaim, {error}"));
    let journeys = read(KARPENTER, Some("2026-01-15T11:53:00Z"), &[&of_claim, &of_class, &of_nothing]);
    let mut named: Vec<String> = journeys
        .iter()
        .filter(|journey| !journey.open().is_empty())
        .map(|journey| {
            format!("{:?} {:?} {:?}", journey.identity.claims, journey.identity.classes, journey.open()[0].count)
        })
        .collect();
    named.sort();
    assert_eq!(named, [r#"{"general-7xk2p"} {} 1"#, r#"{} {"default"} 1"#]);
}

/// A program that runs has been silent since its last line; one that ended has not.
#[test]
fn a_complaint_of_long_ago_is_over_where_the_container_runs_on() {
    let open = |runs_at| read("vpc-cni", runs_at, &[UNREACHABLE]).iter().any(|journey| !journey.open().is_empty());
    assert!(open(None));
    assert!(open(Some("2026-01-15T11:55:00Z")));
    assert!(!open(Some("2026-01-15T12:30:00Z")));
}

#[test]
fn later_lines_of_the_same_tell_no_more_and_another_reason_does() {
    let later = UNREACHABLE.replace("11:52:10", "11:52:50");
    let refused = UNREACHABLE.replace("i/o timeout", "connect: connection refused");
    let one = |lines: &[&str]| read("vpc-cni", None, lines).remove(0);
    let known = one(&[UNREACHABLE, UNREACHABLE]);
    assert!(one(&[UNREACHABLE, &later]).tells_no_more_than(&known));
    let other = one(&[&refused]);
    assert_eq!(other.open()[0].reason, Some(Reason::ConnectionRefused));
    assert!(!other.tells_no_more_than(&known));
    // Told for a minute, it is proven.
    let lasting = UNREACHABLE.replace("11:52:10", "11:53:40");
    assert!(!one(&[UNREACHABLE, &later, &lasting]).tells_no_more_than(&known));
}

/// `kubectl logs --prefix` names the container: that is who speaks.
#[test]
fn a_prefix_tells_the_program() {
    let line = r#"[pod/kube-proxy-x1/kube-proxy] E0115 11:52:07.123456       1 reflector.go:227] "Failed to watch" err="failed to list *v1.Service: Get \"https://10.0.3.7:443/api/v1/services\": dial tcp 10.0.3.7:443: i/o timeout""#;
    let mut reader = LogReader::new(FileLimits::default());
    reader.file("a.log", line.as_bytes(), "2026-01-15T12:00:00Z".parse().ok()).expect("text");
    let journeys = reader.journeys();
    assert_eq!(journeys[0].open()[0].program, "kube-proxy", "{journeys:#?}");
}

#[test]
fn what_a_program_ended_with_is_behind_it_once_it_has_come_up() {
    let line = |second: u32, said: &str| format!(r#"2026-01-15T11:52:{second}.1Z {{"level":"info","msg":"{said}"}}"#);
    let up = |second| line(second, "Serving RPC Handler version v1.20.4 on 127.0.0.1:50051");
    let full = |second| {
        let error = "api error InsufficientFreeAddressesInSubnet: x for subnet subnet-0123456789abcdef0";
        line(second, &format!("Failed to CreateNetworkInterface operation error EC2: {error}"))
    };
    let open = |lines: &[&str]| -> Vec<Trouble> {
        let journeys = read("vpc-cni", Some("2026-01-15T11:53:00Z"), lines);
        journeys.iter().flat_map(Journey::open).map(|fact| fact.trouble).collect()
    };
    assert_eq!(open(&[UNREACHABLE, DENIED]), [Trouble::AwsRefuses, Trouble::ApiServerUnreachable]);
    assert_eq!(open(&[UNREACHABLE, DENIED, &up(20)]), []);
    assert_eq!(open(&[&up(20), &DENIED.replace(":10.1Z", ":40.1Z")]), [Trouble::AwsRefuses]);
    // That it serves gives it no addresses.
    assert_eq!(open(&[&full(15), &up(20)]), [Trouble::CniFails]);
}
