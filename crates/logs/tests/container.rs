//! What a container has written is its pod's, or of what Karpenter speaks of in it.

use logs::fact::{MachineNames, Reason, Trouble};
use logs::journey::Journey;
use logs::table::{KARPENTER, program_of};
use logs::{ContainerLog, FileLimits, LogReader};

const DENIED: &str = r#"2026-01-15T11:52:10.1Z {"level":"error","msg":"Initialization failure: ipamd init: operation error EC2: DescribeNetworkInterfaces, api error UnauthorizedOperation: x"}"#;
const UNREACHABLE: &str = r#"2026-01-15T11:52:10.1Z {"level":"error","msg":"Unable to reach API Server: Get \"https://172.20.0.1:443/version\": dial tcp 172.20.0.1:443: i/o timeout"}"#;

fn read(program: impl Into<Option<&'static str>>, runs_at: Option<&str>, lines: &[&str]) -> Vec<Journey> {
    let mut reader = LogReader::new(FileLimits::default());
    let runs_at = runs_at.map(|at| at.parse().expect("a time"));
    let of = ContainerLog { pod: "p-1", program: program.into(), runs_at };
    reader.container("pod/p-1/c", lines.join("\n").as_bytes(), of).expect("text");
    reader.journeys()
}

fn read_file(file: &str, text: &str) -> Vec<Journey> {
    let mut reader = LogReader::new(FileLimits::default());
    reader.file(file, text.as_bytes(), None).expect("text");
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
    assert_eq!(program_of("ebs-csi-node"), Some("csi-driver"));
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
    // As SDK v1 wrote it.
    let denied = "UnauthorizedOperation: You are not authorized to perform this operation. User: \
                  arn:aws:sts::111122223333:assumed-role/karpenter/1 is not authorized to perform: \
                  ec2:TerminateInstances on resource: x";
    let of_node = line(
        r#""Node":{"name":"ip-10-0-3-9.ec2.internal"},"#,
        &format!("terminating cloudprovider instance, terminating instance, {denied}"),
    );
    let of_nothing = line("", &format!("launching nodeclaim, {error}"));
    let journeys = read(KARPENTER, Some("2026-01-15T11:53:00Z"), &[&of_claim, &of_class, &of_node, &of_nothing]);
    let mut named: Vec<String> = journeys
        .iter()
        .filter(|journey| !journey.open().is_empty())
        .map(|journey| {
            let identity = &journey.identity;
            let count = journey.open()[0].count;
            format!("{:?} {:?} {:?} {count}", identity.claims, identity.classes, identity.hosts)
        })
        .collect();
    named.sort();
    let expected =
        [r#"{"general-7xk2p"} {} {} 1"#, r#"{} {"default"} {} 1"#, r#"{} {} {"ip-10-0-3-9.ec2.internal"} 1"#];
    assert_eq!(named, expected);
}

/// Neither the machine that it runs on nor any other has this trouble.
#[test]
fn what_karpenter_ends_with_is_its_own() {
    let open = |lines: &[&str]| {
        let journeys = read(KARPENTER, None, lines);
        let ends = |journey: &Journey| journey.open().first().is_some_and(|f| f.trouble == Trouble::KarpenterEnds);
        let told = journeys.iter().filter(|journey| ends(journey));
        told.map(|journey| (journey.identity.components.len(), journey.open()[0].reason)).collect::<Vec<_>>()
    };
    let panic =
        "2026-01-15T11:52:10Z panic: AWS.SimpleQueueService.NonExistentQueue: The specified queue does not exist.";
    assert_eq!(open(&[panic, panic]), [(1, Some(Reason::NoQueue))]);
    assert_eq!(open(&[&panic[21..]]), [(1, Some(Reason::NoQueue))]);
    let fatal = r#"{"level":"PANIC","time":"2026-01-15T11:52:10Z","message":"validating options, missing field, cluster-name"}"#;
    assert_eq!(open(&[fatal]), [(1, Some(Reason::Setting))]);
    // controller-runtime recovers it, and tries again.
    let recovered = r#"{"level":"ERROR","time":"2026-01-15T11:52:10Z","message":"Reconciler error","controller":"provisioner","error":"panic: runtime error: index out of range [recovered]"}"#;
    assert_eq!(open(&[recovered]), []);
    // Another program's panic is not Karpenter's.
    assert!(read("vpc-cni", None, &[panic]).iter().all(|journey| journey.identity.components.is_empty()));
}

/// What fails for all pods at once is nobody's but Karpenter's, until it makes a NodeClaim.
#[test]
fn what_karpenters_round_fails_for_is_its_own_until_one_succeeds() {
    let open = |lines: &[&str]| {
        let journeys = read(KARPENTER, None, lines);
        let failing = |journey: &Journey| {
            let open = journey.open();
            let of_round = open.iter().find(|fact| fact.trouble == Trouble::ProvisioningFails)?;
            Some((journey.identity.components.len(), of_round.count))
        };
        journeys.iter().filter_map(failing).collect::<Vec<_>>()
    };
    let round = |error: &str| {
        format!(
            r#"{{"level":"ERROR","time":"2026-01-15T11:52:10Z","message":"Reconciler error","controller":"provisioner","namespace":"","name":"","error":"{error}"}}"#
        )
    };
    let fails = round("getting instance types, no such host");
    assert_eq!(open(&[&fails, &fails]), [(1, 2)]);
    let made = r#"{"level":"INFO","time":"2026-01-15T11:52:20Z","message":"created nodeclaim","controller":"provisioner","NodePool":{"name":"general"},"NodeClaim":{"name":"general-7xk2p"}}"#;
    assert_eq!(open(&[&fails, &fails, made]), []);
    assert_eq!(open(&[&fails, made, &fails]), [(1, 1)]);
    for passing in ["creating node claim, the object has been modified", "listing pods, context canceled"] {
        assert_eq!(open(&[&round(passing)]), [], "{passing}");
    }
    let of_pod = r#"{"level":"ERROR","time":"2026-01-15T11:52:10Z","message":"could not schedule pod","controller":"provisioner","Pod":{"name":"a","namespace":"b"},"error":"did not tolerate taint"}"#;
    assert_eq!(open(&[of_pod]), []);
}

/// Of what no row knows only that is kept which a machine or a class cannot do without.
#[test]
fn what_no_row_knows_of_a_claim_is_its_own_unless_it_is_beside_it() {
    let line = |controller: &str, error: &str| {
        format!(
            r#"{{"level":"ERROR","time":"2026-01-15T11:52:10Z","message":"Reconciler error","controller":"{controller}","NodeClaim":{{"name":"general-7xk2p"}},"error":"{error}"}}"#
        )
    };
    let told = |line: &str| {
        let journeys = read_file("controller.log", line);
        journeys.iter().map(|journey| (journey.identity.claims.len(), journey.open().len())).collect::<Vec<_>>()
    };
    assert_eq!(told(&line("nodeclaim.lifecycle", "quota of widgets is exceeded")), [(1, 1)]);
    for beside in ["nodeclaim.tagging", "nodeclaim.disruption", "state.nodeclaim", "provisioner.trigger.pod"] {
        assert_eq!(told(&line(beside, "quota of widgets is exceeded")), [], "{beside}");
    }
    assert_eq!(told(&line("nodeclaim.lifecycle", "the object has been modified")), []);
}

#[test]
fn node_claims_that_never_came_to_be_are_told_of_their_node_pools() {
    let line = r#"2026-01-15T11:52:10Z {"level":"ERROR","message":"creating node claim, NodeClaim.karpenter.sh \"spot-x86-52fcg\" is invalid: spec.requirements: Too many: 32; creating node claim, context deadline exceeded; creating node claim, NodeClaim.karpenter.sh \"batch-fr6lf\" is invalid: spec.requirements: Too many: 33"}"#;
    let mut told: Vec<String> = read(KARPENTER, None, &[line])
        .iter()
        .flat_map(|journey| journey.open().into_iter().map(move |fact| (&journey.identity.pools, &fact.names["error"])))
        .map(|(pools, error)| format!("{pools:?} {error}"))
        .collect();
    told.sort();
    let expected = [r#"{"batch"} spec.requirements: Too many: 33"#, r#"{"spot-x86"} spec.requirements: Too many: 32"#];
    assert_eq!(told, expected);
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
fn a_file_tells_the_program_of_lines_that_name_none() {
    let ended =
        r#"E0115 11:52:07.1 1 run.go:72] "command failed" err="listen tcp4 0.0.0.0:10249: bind: address in use""#;
    let running = r#"E0115 11:52:07.1 1 server.go:136] "Error running ProxyServer" err="listen tcp4 0.0.0.0:10249: bind: address in use""#;
    let text = format!("{running}\n{ended}\n");
    let troubles = |file: &str| {
        let journeys = read_file(file, &text);
        journeys.iter().flat_map(Journey::open).map(|fact| fact.program.clone()).collect::<Vec<_>>()
    };
    for file in ["kube-proxy.log", "logs/kube-proxy.previous.txt", "kube-proxy-x7k2p.log"] {
        assert_eq!(troubles(file), ["kube-proxy"], "{file}");
    }
    for file in ["kubelet.log", "kube-proxy-and-kubelet.log", "kube-proxy/kubelet.log"] {
        assert_eq!(troubles(file), ["kube-proxy"], "{file}");
    }
}

/// Many programs end with the same words.
#[test]
fn what_the_kubelet_ends_with_is_its_own_where_nothing_tells_that_another_did() {
    let troubles = |lines: &[&str]| {
        let journeys = read_file("a.log", &lines.join("\n"));
        journeys.iter().flat_map(Journey::open).map(|fact| (fact.program.clone(), fact.vague)).collect::<Vec<_>>()
    };
    let ended = |process: u32| format!(r#"E0115 11:52:07.1 {process} run.go:72] "command failed" err="it is so""#);
    let proxy = r#"E0115 11:52:07.1 11 server.go:136] "Error running ProxyServer" err="it is so""#;
    let (kubelet, other) = (("kubelet".to_owned(), true), ("kube-proxy".to_owned(), true));
    assert_eq!(troubles(&[&ended(1629)]), std::slice::from_ref(&kubelet));
    assert_eq!(troubles(&[proxy, &ended(11)]), std::slice::from_ref(&other));
    assert_eq!(troubles(&[proxy, &ended(1629)]), [kubelet, other]);
    // The first process of a container.
    assert_eq!(troubles(&[&ended(1)]), []);
    assert_eq!(troubles(&[r#"E0115 11:52:07.1 1 run.go:74] "command failed" err="unknown flag: --x""#]), []);
    let named = r#"E0115 11:52:07.1 1 run.go:72] "command failed" err="failed to run Kubelet: it is so""#;
    assert_eq!(troubles(&[named]), [("kubelet".to_owned(), true)]);
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

/// What each journey is of, and whether anything stops it.
fn of_files(pods: &[&str], files: &[(&str, &str)]) -> Vec<String> {
    let pods =
        pods.iter().map(|pod| ((*pod).to_owned(), !pod.contains("operator") && !pod.starts_with("web"))).collect();
    let mut reader = LogReader::new(FileLimits::default()).of_pods(pods);
    for (name, text) in files {
        reader.file(name, text.as_bytes(), "2026-01-15T12:00:00Z".parse().ok()).expect("text");
    }
    let named = |journey: Journey| {
        let MachineNames { instances, hosts, pods, roles, .. } = &journey.identity;
        let names = [instances, hosts, pods, roles].into_iter().flatten().map(String::as_str);
        let names = names.collect::<Vec<_>>().join(" ");
        format!("{names}: {}", journey.open().first().map_or("nothing", |fact| &fact.program))
    };
    let mut named: Vec<String> = reader.journeys().into_iter().map(named).collect();
    named.sort();
    named
}

#[test]
fn a_file_named_after_a_pod_is_that_pods() {
    let pods = ["aws-node-6sp2m", "web-7d9"];
    let of = |file: &str| of_files(&pods, &[("x/kubelet.log", HOST), (file, DENIED)]);
    let own = ["aws-node-6sp2m: vpc-cni".to_owned(), "ip-10-0-3-9: nothing".to_owned()];
    for file in ["x/aws-node-6sp2m.log", "x/aws-node-6sp2m.previous.log", "kube-system/aws-node-6sp2m/logs.txt"] {
        assert_eq!(of(file), own, "{file}");
    }
    // On the machine itself it names both.
    let kept = "x/var/log/pods/kube-system_aws-node-6sp2m_0b0d/aws-node/0.log";
    assert_eq!(of(kept), ["ip-10-0-3-9 aws-node-6sp2m: vpc-cni"]);
    assert_eq!(
        of("x/containers/aws-node-6sp2m_kube-system_aws-node-0b0d.log"),
        ["ip-10-0-3-9 aws-node-6sp2m: vpc-cni"]
    );
    // An operator speaks of the cluster.
    let stopped = r#"time="2026-01-15T11:52:10Z" level=fatal msg="Unable to start eni allocator" error="EC2 API""#;
    let files = [("x/kubelet.log", HOST), ("x/cilium-operator-5d8f-abcde.log", stopped)];
    let tied = of_files(&["cilium-operator-5d8f-abcde"], &files);
    assert!(tied.len() == 1 && tied[0].starts_with("ip-10-0-3-9: "), "{tied:?}");
    // No file is of an instance because an operator tells of it.
    let gone = "time=\"2026-01-15T11:52:10Z\" level=warning msg=\"Instance not found! Please delete corresponding \
                ciliumnode if instance has already been deleted.\" instanceID=i-0a0000000000000c9 name=x subsys=ipam";
    let files = [("x/errors.txt", DENIED), ("x/cilium-operator-5d8f-abcde.log", gone)];
    let apart = of_files(&["cilium-operator-5d8f-abcde"], &files);
    assert!(apart.len() == 2 && apart.contains(&"i-0a0000000000000c9: cilium-operator".to_owned()), "{apart:?}");
    // Nobody knows the pod: then it is of the machine whose files stand nearest, as any other.
    assert_eq!(of("x/aws-node-zzzzz.log"), ["ip-10-0-3-9: vpc-cni"]);
    // Alone it is what the pod is known by.
    assert_eq!(of_files(&pods, &[("aws-node-6sp2m.log", DENIED)]), ["aws-node-6sp2m: vpc-cni"]);
}

/// A program of a user may say anything.
#[test]
fn the_log_of_a_users_pod_tells_nothing_of_the_machine() {
    let full = "E0115 11:52:07.123456 1 x.go:1] write /data/x: no space left on device";
    let of = |file: &str| of_files(&["web-7d9"], &[("x/kubelet.log", HOST), (file, full)]);
    for file in ["x/web-7d9.log", "x/pods/shop_web-7d9_0b0d/web/0.log", "x/pods/shop_api-5f6_0b0d/api/0.log"] {
        assert_eq!(of(file), ["ip-10-0-3-9: nothing"], "{file}");
    }
    assert_eq!(of("x/messages"), ["ip-10-0-3-9: kubelet"]);
}

const HOST: &str =
    "2026-01-15T11:51:34+00:00 ip-10-0-3-9 kubelet[1629]: I0115 11:51:34.123456    1629 server.go:1] x\n";

/// As `aws logs tail` prints them, too: time and stream stand before the line.
#[test]
fn what_the_control_plane_says_is_of_whom_it_names() {
    let cloud = "E0115 11:52:10.123456 1 node_controller.go:236] error syncing 'ip-10-0-3-9': failed to get instance \
                 metadata for node ip-10-0-3-9: instance not found, requeuing";
    let took_in =
        "I0115 11:52:30.123456 1 node_controller.go:492] Successfully initialized node ip-10-0-3-9 with cloud provider";
    let denied = r#"time="2026-01-15T11:52:10Z" level=warning msg="access denied" arn="arn:aws:iam::111122223333:role/nodes" client="127.0.0.1:5" error="ARN is not mapped" method=POST path=/authenticate"#;
    let granted = denied.replace("access denied", "access granted").replace("11:52:10", "11:52:40");
    for (stream, begin) in [("", ""), ("cloud-controller-manager-0b0d", "2026-01-15T11:52:10.123000+00:00 ")] {
        let line = |text: &str| format!("{begin}{stream}{}{text}\n", if stream.is_empty() { "" } else { " " });
        let of = |lines: &[&str]| of_files(&[], &[("a.log", &lines.iter().map(|text| line(text)).collect::<String>())]);
        assert_eq!(of(&[cloud, denied]), ["ip-10-0-3-9: cloud-controller", "nodes: authenticator"]);
        assert_eq!(of(&[cloud, took_in, denied, &granted]), ["ip-10-0-3-9: nothing", "nodes: nothing"]);
        // Who was never in trouble is nobody that anything is told of.
        assert_eq!(of(&[took_in, &granted]), [""; 0]);
    }
}

/// A Node gets Ready whether the cloud controller has taken it in or not.
#[test]
fn that_a_node_is_ready_does_not_mend_the_cloud_controller() {
    let failed = "2026-01-15T11:52:10Z E0115 11:52:10.123456 1 node_controller.go:236] error syncing 'ip-10-0-3-9': \
                  failed to get instance metadata for node ip-10-0-3-9: instance not found, requeuing";
    let ready = r#"2026-01-15T11:52:41+00:00 ip-10-0-3-9 kubelet[1]: I0115 11:52:41.123456 1 x.go:431] "Fast updating node status as it just became ready""#;
    assert_eq!(of_files(&[], &[("ccm.log", failed), ("kubelet.log", ready)]), ["ip-10-0-3-9: cloud-controller"]);
}

#[test]
fn the_error_that_a_file_ends_with_is_kept_where_no_row_knows_it() {
    let last = |file: &str, text: &str| {
        let said = read_file(file, text).into_iter().flat_map(|journey| journey.last_words).next();
        said.map(|(program, line)| format!("{program} {}: {}", line.line, line.text))
    };
    let glibc = "Fatal glibc error: CPU does not support x86-64-v2\n";
    assert_eq!(
        last("kube-proxy.log", glibc).as_deref(),
        Some("kube-proxy 1: Fatal glibc error: CPU does not support x86-64-v2")
    );
    let info = r#"{"level":"info","ts":"2026-01-15T11:52:11.1Z","msg":"retry after error"}"#;
    let error = r#"{"level":"error","ts":"2026-01-15T11:52:10.1Z","msg":"Failed to patch node x"}"#;
    assert_eq!(last("ipamd.log", &format!("{error}\n{info}\n")).as_deref(), Some("vpc-cni 1: Failed to patch node x"));
    // It went on, nobody knows whose file it is, or a row says more.
    assert_eq!(last("ipamd.log", &format!("{error}\n{}", format!("{info}\n").repeat(30))), None);
    assert_eq!(last("some.log", glibc), None);
    assert_eq!(last("ipamd.log", DENIED), None);
    // A container that still runs has not ended.
    assert!(read("vpc-cni", Some("2026-01-15T11:58:00Z"), &[error]).iter().all(|own| own.last_words.is_empty()));
}

/// ipamd says twice that a call is denied: with the role where it made the call, and without where it ends.
#[test]
fn a_role_that_another_line_names_is_that_of_the_same_denied_call() {
    let names = |caller: &str| {
        let said = format!(
            r#"2026-01-15T11:52:09.9Z {{"level":"error","msg":"unable to describe interfaces: operation error EC2: {caller} because no policy allows it"}}"#
        );
        let journeys = read("vpc-cni", None, &[&said, DENIED]);
        let open = journeys.iter().flat_map(Journey::open).map(|fact| fact.names.get("role").cloned());
        open.collect::<Vec<_>>()
    };
    let user = "User: arn:aws:sts::1:assumed-role/cni/17 is not authorized to perform:";
    assert_eq!(names(&format!("{user} ec2:DescribeNetworkInterfaces")), [Some("cni".to_owned())]);
    // It got past another denial.
    assert_eq!(names(&format!("{user} ec2:CreateTags")), [None]);
    // Two roles are denied the same call.
    let line = |user: &str| format!(r#"{{"level":"error","msg":"{user} ec2:DescribeNetworkInterfaces on x"}}"#);
    let (one, other) = (line(user), line(&user.replace("cni", "other")));
    let journeys = read("vpc-cni", None, &[&one, &other, DENIED]);
    let open: Vec<_> = journeys.iter().flat_map(Journey::open).collect();
    assert!(open.len() == 1 && !open[0].names.contains_key("role"), "{open:#?}");
}

/// What no row knows is kept where it names a Node, and proves nothing.
#[test]
fn an_unknown_error_of_the_cilium_operator_is_of_the_node_that_it_names() {
    let line = |at: &str, rest: &str| format!("time=2026-01-15T11:{at}.123Z level=warn msg=\"Sync failed\" {rest}");
    let own = r#"error="cannot attach the range to node \"ip-10-0-2-20.ec2.internal\": no route table" name=sync"#;
    let field = r#"error="no route table" nodeName=ip-10-0-2-21.ec2.internal"#;
    let passing = r#"error="the object has been modified" nodeName=ip-10-0-2-22.ec2.internal"#;
    let of_none = r#"error="no route table" name=ipam-multi-pool-sync"#;
    let said = "nodeName=ip-10-0-2-23.ec2.internal";
    let rests = [own, field, passing, of_none, said];
    let mut lines = Vec::new();
    for at in ["50:10", "51:10", "52:10"] {
        lines.extend(rests.map(|rest| line(at, rest)));
    }
    let journeys = read("cilium-operator", None, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let told = |host: &str| -> Vec<(u64, bool)> {
        let its = journeys.iter().filter(|journey| journey.identity.hosts.contains(host));
        its.flat_map(|journey| &journey.operator_errors).map(|fact| (fact.count, fact.lasts())).collect()
    };
    let host = |last: u8| format!("ip-10-0-2-{last}.ec2.internal");
    assert_eq!((told(&host(20)), told(&host(21))), (vec![(3, true)], vec![(3, true)]));
    assert_eq!((told(&host(22)), told(&host(23))), (Vec::new(), Vec::new()));
    assert!(journeys.iter().all(|journey| !journey.complains()), "{journeys:#?}");
}

/// The operator keeps on telling of instances that are gone, too.
#[test]
fn what_the_cilium_operator_says_of_an_instance_is_of_that_one() {
    let line = |at: &str, instance: &str| {
        format!(
            "time=2026-01-15T11:5{at}Z level=warn msg=\"Instance not found! Please delete corresponding ciliumnode if \
             instance has already been deleted.\" subsys=ipam instanceID={instance} name=ip-10-0-2-20.ec2.internal"
        )
    };
    let (own, gone) = ("i-0a0000000000000b1", "i-0a0000000000000b2");
    let lines = [line("0:10", own), line("0:11", gone), line("1:10", own), line("2:10", own)];
    let journeys = read("cilium-operator", None, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let told = |instance: &str| -> Vec<u64> {
        let its = journeys.iter().filter(|journey| journey.identity.instances.contains(instance));
        its.flat_map(Journey::open).map(|fact| fact.count).collect()
    };
    assert_eq!((told(own), told(gone)), (vec![3], vec![1]));
    assert!(journeys.iter().all(|journey| journey.identity.instances.len() < 2), "{journeys:#?}");
}

#[test]
fn whoever_only_knows_the_code_of_a_program_says_less_than_the_program() {
    let said = |lines: &[&str]| {
        let journeys = read(None, None, lines);
        journeys.into_iter().flat_map(|journey| journey.last_words).map(|(_, line)| line.text).next()
    };
    let busy = "[err] mdadm: super1.x cannot open /dev/nvme0n1: Device or resource busy";
    let code = "Error: step apply.sh failed with exit code 2";
    assert_eq!(said(&["[out] Creating RAID 0", busy, "[err] mdadm: create aborted", code]).as_deref(), Some(busy));
    assert_eq!(said(&[code]).as_deref(), Some(code));
    let why = "Error: step apply.sh failed with exit code 2: no such profile";
    assert_eq!(said(&[busy, why]).as_deref(), Some(why));
}

#[test]
fn the_role_of_a_denial_is_named_though_it_looks_like_a_secret() {
    let role = "cdk-demo-KarpenterServiceAccountRole5B1C0E77-Qy3FhZ0T";
    let denied = format!(
        r#"2026-01-15T11:52:10.1Z {{"level":"error","msg":"Initialization failure: ipamd init: operation error EC2: DescribeNetworkInterfaces, api error UnauthorizedOperation: User: arn:aws:sts::111122223333:assumed-role/{role}/17 is not authorized to perform: ec2:DescribeNetworkInterfaces"}}"#
    );
    let journeys = read("vpc-cni", None, &[&denied]);
    let named = journeys.iter().flat_map(Journey::open).find_map(|fact| fact.names.get("role"));
    assert_eq!(named.map(String::as_str), Some(role));
}
