//! `nodewhy userdata`: what the machine will really run, over files. The examples are from public reports.

use assert_cmd::Command;
use serde_json::{Value, json};

const REPORT: &str = include_str!("userdata/taints-wiped.yaml");
const MANUAL: &str = include_str!("../../docs/userdata.md");

struct Answer {
    code: i32,
    out: String,
    err: String,
}

fn userdata(args: &[&str], input: &str) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    // No cluster but the one that a test names.
    command.env("KUBECONFIG", "/nonexistent").env_remove("KUBERNETES_SERVICE_HOST");
    let output = command.arg("userdata").args(args).write_stdin(input).output().expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Answer { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// The one machine of bare user data.
#[track_caller]
fn bare(family: &str, text: &str) -> Value {
    let answer = userdata(
        &["-f", "-", "--ami-family", family, "--karpenter", "1.14.1", "--kubernetes", "1.34", "-o", "json"],
        text,
    );
    assert_eq!(answer.code, 0, "{}", answer.err);
    let list: Value = serde_json::from_str(&answer.out).expect("JSON");
    list["items"][0].clone()
}

/// Name, value, origin and outcome of every value of these names.
fn values(page: &Value, names: &[&str]) -> Vec<String> {
    let all = page["values"].as_array().expect("values");
    let of = all.iter().filter(|v| names.iter().any(|name| v["name"] == *name));
    let said = |v: &Value| {
        let text = |key: &str| v[key].as_str().unwrap_or_default().to_owned();
        format!(
            "{} {} {} {}",
            text("name"),
            text("value"),
            v["origin"]["from"].as_str().unwrap_or_default(),
            text("outcome")
        )
    };
    of.map(said).collect()
}

fn defects(page: &Value) -> Vec<String> {
    let all = page["defects"].as_array().expect("defects").iter();
    all.map(|d| format!("{} {}", d["kind"].as_str().unwrap_or_default(), d["consequence"].as_str().unwrap_or_default()))
        .collect()
}

const TAINTS: [&str; 3] = ["register-with-taints", "registerWithTaints", "node-taints"];

/// karpenter-provider-aws#7486.
#[test]
fn a_taint_flag_of_a_node_config_wipes_every_taint_of_karpenters() {
    let answer = userdata(&["-f", "-", "-o", "json"], REPORT);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let list: Value = serde_json::from_str(&answer.out).expect("JSON");
    let page = &list["items"][0];
    assert_eq!(
        values(page, &TAINTS),
        [
            "registerWithTaints dedicated=batch:NoSchedule NodePool Overridden",
            "registerWithTaints ebs.csi.aws.com/agent-not-ready:NoExecute NodePool Overridden",
            "registerWithTaints karpenter.sh/unregistered:NoExecute Karpenter Overridden",
            "register-with-taints node.cilium.io/agent-not-ready=true:NoExecute UserData Effective",
        ]
    );
    assert_eq!(defects(page), ["DropsTaints Lost"]);
    assert_eq!(page["defects"][0]["line"], 9);
    assert_eq!(
        values(page, &["maxPods"]),
        [
            "maxPods by the instance's type Image Overridden",
            "maxPods 110 UserData Overridden",
            "maxPods 58 NodeClass Effective"
        ]
    );
    assert_eq!(userdata(&["-f", "-", "--fail-on", "lost"], REPORT).code, 1);
    assert_eq!(userdata(&["-f", "-", "--fail-on", "stop"], REPORT).code, 0);
}

#[test]
fn without_that_flag_everything_of_karpenters_arrives() {
    let healthy: String = REPORT.split_inclusive('\n').filter(|l| !l.contains("- --register-with-taints")).collect();
    let answer = userdata(&["-f", "-", "-o", "json", "--fail-on", "lost"], &healthy);
    assert_eq!(answer.code, 0, "{}", answer.out);
    let list: Value = serde_json::from_str(&answer.out).expect("JSON");
    assert!(values(&list["items"][0], &TAINTS).iter().all(|v| v.ends_with("Effective")));
    assert_eq!(list["items"][0]["defects"], json!([]));
}

const EQUALS: &str = "#!/bin/bash\n/etc/eks/bootstrap.sh shop \
                      --kubelet-extra-args='--register-with-taints=\"karpenter.sh/unregistered:NoExecute\"'\n";

#[test]
fn the_equals_form_is_lost_and_the_form_with_a_blank_arrives() {
    let lost = bare("Custom", EQUALS);
    assert_eq!(values(&lost, &TAINTS), ["register-with-taints karpenter.sh/unregistered:NoExecute UserData Lost"]);
    assert_eq!(defects(&lost), ["OptionWithEquals Lost"]);
    let taken = bare("Custom", &EQUALS.replace("args=", "args "));
    assert_eq!(
        values(&taken, &TAINTS),
        ["register-with-taints karpenter.sh/unregistered:NoExecute UserData Effective"]
    );
    assert_eq!(taken["defects"], json!([]));
    // On AL2 either call starts the kubelet before Karpenter's.
    let al2 = bare("AL2", &EQUALS.replace("args=", "args "));
    assert_eq!(
        values(&al2, &TAINTS),
        [
            "register-with-taints karpenter.sh/unregistered:NoExecute UserData Effective",
            "register-with-taints karpenter.sh/unregistered:NoExecute Karpenter Lost",
        ]
    );
    assert_eq!(defects(&al2), ["BootstrapBeforeKarpenter Lost"]);
}

#[test]
fn user_data_that_only_tunes_leaves_karpenters_part_alone() {
    for (family, text) in [
        ("AL2", "#!/bin/bash\nsysctl -w vm.max_map_count=262144\n"),
        ("AL2023", "#!/bin/bash\nset -e\nsysctl -w vm.max_map_count=262144\n"),
        ("Bottlerocket", "[settings.host-containers.admin]\nenabled = true\n"),
        ("Windows2022", "Write-Host hello\n"),
    ] {
        let page = bare(family, text);
        assert_eq!(page["starts"], true);
        assert_eq!(page["defects"], json!([]), "{family}");
        assert_eq!(page["notAnalysedFrom"], Value::Null);
        let taints = values(&page, &TAINTS);
        assert!(
            taints.len() == 1 && taints[0].ends_with("karpenter.sh/unregistered:NoExecute Karpenter Effective"),
            "{family} {taints:?}"
        );
        assert!(
            values(&page, &["node-labels"])
                .contains(&"node-labels karpenter.sh/do-not-sync-taints=true Karpenter Effective".to_owned())
        );
    }
}

#[test]
fn the_label_that_keeps_karpenter_from_taints_came_with_1_5() {
    for (version, there) in [("1.4.0", false), ("1.5.0", true)] {
        let answer = userdata(&["-f", "-", "--ami-family", "AL2023", "--karpenter", version], "#!/bin/bash\nset -e\n");
        assert_eq!(answer.out.contains("do-not-sync-taints"), there, "{version}");
    }
}

#[test]
fn karpenter_overrides_the_settings_of_bottlerocket_and_merges_labels() {
    let page = bare(
        "Bottlerocket",
        "[settings.kubernetes]\ncluster-name = \"other\"\nmax-pods = 9\nlog-level = \
         4\n[settings.kubernetes.node-taints]\na = [\"b:NoSchedule\"]\n[settings.kubernetes.node-labels]\nteam = \
         \"x\"\n",
    );
    let of = |name: &str| values(&page, &[name]).into_iter().filter(|v| v.contains("UserData")).collect::<Vec<_>>();
    assert_eq!(of("cluster-name"), ["cluster-name other UserData Overridden"]);
    assert_eq!(of("max-pods"), ["max-pods 9 UserData Overridden"]);
    assert_eq!(of("node-taints"), ["node-taints a=b:NoSchedule UserData Overridden"]);
    assert_eq!(of("log-level"), ["log-level 4 UserData Effective"]);
    assert_eq!(of("node-labels"), ["node-labels team=x UserData Effective"]);
}

#[test]
fn nothing_of_the_node_class_reaches_a_custom_machine() {
    let custom = REPORT.replace("amiSelectorTerms: [{alias: al2023@v20260108}]", "amiFamily: Custom");
    let answer = userdata(&["-f", "-", "-o", "json"], &custom);
    let list: Value = serde_json::from_str(&answer.out).expect("JSON");
    let page = &list["items"][0];
    assert_eq!(values(page, &["maxPods"]), ["maxPods 110 UserData Effective", "maxPods 58 NodeClass Lost"]);
    assert!(
        values(page, &TAINTS).contains(&"register-with-taints dedicated=batch:NoSchedule NodePool Lost".to_owned())
    );
}

#[test]
fn flags_beat_fields_and_a_dash_at_the_end_is_no_taint() {
    let page = bare(
        "AL2023",
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config: \
         {evictionHard: {memory.available: 1Gi, imagefs.available: 5%}, podPidsLimit: 100}\n    flags: \
         ['--eviction-hard=memory.available<2Gi', --pod-max-pids=200, '--node-labels=a=b', '--node-labels=a=c']\n",
    );
    assert!(
        values(
            &page,
            &[
                "evictionHard.memory.available",
                "evictionHard.imagefs.available",
                "evictionHard.nodefs.available",
                "podPidsLimit"
            ]
        )
        .iter()
        .all(|v| v.ends_with("Overridden"))
    );
    assert_eq!(
        values(&page, &["eviction-hard", "pod-max-pids"]),
        ["eviction-hard memory.available<2Gi UserData Effective", "pod-max-pids 200 UserData Effective"]
    );
    let labels = values(&page, &["node-labels"]);
    assert_eq!(labels[..2], ["node-labels a=b UserData Overridden", "node-labels a=c UserData Effective"]);
    let page = bare(
        "Custom",
        "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args \
         '--register-with-taints=a:NoSchedule-,b:NoSchedule'\n",
    );
    assert_eq!(
        values(&page, &TAINTS),
        ["register-with-taints a:NoSchedule- UserData Lost", "register-with-taints b:NoSchedule UserData Effective"]
    );
}

#[test]
fn what_stops_the_machine_is_said_first() {
    let answer = userdata(&["-f", "-", "--ami-family", "AL2023"], "#cloud-config\npackages: [jq]\n");
    assert!(answer.out.contains("No Node appears, and nothing below takes effect: see line"), "{}", answer.out);
    assert!(answer.out.contains("error: Karpenter takes this text for a NodeConfig"), "{}", answer.out);
    let gone = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: \
                [--container-runtime=remote]\n";
    let page = bare("AL2023", gone);
    assert_eq!(defects(&page), ["RemovedFlag NoJoin"]);
    assert_eq!(page["starts"], false);
}

#[test]
fn where_the_text_cannot_be_followed_the_place_is_said() {
    let text = "#!/bin/bash\nset -e\nsed -i s/a/b/ /etc/eks/bootstrap.sh\n/etc/eks/bootstrap.sh shop \
                --kubelet-extra-args '--v=2'\n";
    let page = bare("Custom", text);
    assert_eq!(page["notAnalysedFrom"], json!({"line": 3, "column": 1}));
    let all = page["values"].as_array().expect("values");
    assert!(all.iter().filter(|v| v["name"] == "v").all(|v| v["exact"] == false));
    let variable =
        bare("Custom", "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args \"--max-pods=$(nproc)\"\n");
    assert!(
        variable["values"].as_array().expect("values").iter().any(|v| v["name"] == "max-pods" && v["exact"] == false)
    );
}

/// Since Karpenter 1.15 `spec.kubelet` takes every field, and expressions for three of them.
#[test]
fn fields_of_the_class_beyond_the_twelve_reach_the_kubelet_where_karpenter_hands_them_on() {
    let of = |family: &str, karpenter: &str| {
        let class = format!(
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec:\n  amiFamily: \
             {family}\n  kubelet:\n    maxPods: min(110, default_enis * 2)\n    kubeReserved: {{cpu: vcpus * 10, \
             memory: 1Gi}}\n    podPidsLimit: 200\n    memorySwap: {{swapBehavior: LimitedSwap}}\n"
        );
        let answer = userdata(&["-f", "-", "--karpenter", karpenter, "-o", "json"], &class);
        assert_eq!(answer.code, 0, "{}", answer.err);
        let list: Value = serde_json::from_str(&answer.out).expect("JSON");
        list["items"][0].clone()
    };
    let beyond = ["podPidsLimit", "memorySwap.swapBehavior"];
    let page = of("AL2023", "1.15.0");
    assert_eq!(
        values(&page, &beyond),
        ["memorySwap.swapBehavior LimitedSwap NodeClass Effective", "podPidsLimit 200 NodeClass Effective"]
    );
    let computed = |page: &Value| {
        let all = page["values"].as_array().expect("values").iter();
        let of_class = all.filter(|v| v["origin"]["from"] == "NodeClass" && v["literal"] == false);
        of_class.map(|v| format!("{}: {}", v["name"], v["value"]).replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(computed(&page), ["maxPods: min(110, default_enis * 2)", "kubeReserved.cpu: vcpus * 10"]);
    assert_eq!(
        computed(&of("AL2", "1.15.0")),
        ["max-pods: min(110, default_enis * 2)", "kube-reserved: cpu=vcpus * 10,memory=1Gi"]
    );
    for (family, karpenter) in [("AL2023", "1.14.1"), ("Bottlerocket", "1.15.0"), ("AL2", "1.15.0")] {
        let lost = values(&of(family, karpenter), &beyond);
        assert!(lost.len() == 2 && lost.iter().all(|value| value.ends_with(" NodeClass Lost")), "{family}: {lost:?}");
    }
}

#[test]
fn another_clusters_endpoint_and_certificate_authority_are_pointed_at() {
    let deployment = "\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: karpenter, namespace: kube-system}\nspec: {template: {spec: {containers: [{name: controller, image: 'public.ecr.aws/karpenter/controller:1.14.1', env: [{name: CLUSTER_NAME, value: shop}, {name: CLUSTER_ENDPOINT, value: 'https://OWN.gr7.eu-west-1.eks.amazonaws.com'}, {name: CLUSTER_CA_BUNDLE, value: LS0t}]}]}}}\n";
    let class = |endpoint: &str, authority: &str| {
        format!(
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec:\n  amiFamily: \
             Custom\n  userData: |\n    #!/bin/bash\n    /etc/eks/bootstrap.sh shop --apiserver-endpoint {endpoint} \
             --b64-cluster-ca {authority}{deployment}"
        )
    };
    let page = |endpoint: &str| userdata(&["-f", "-", "--fail-on", "stop"], &class(endpoint, "LS0t"));
    let other = page("https://ELSE.gr7.eu-west-1.eks.amazonaws.com");
    assert_eq!(other.code, 1, "{}", other.out);
    assert!(other.out.contains("this is another cluster"), "{}", other.out);
    assert_eq!(page("https://own.gr7.eu-west-1.eks.amazonaws.com/").code, 0);
    assert_eq!(page("$ENDPOINT").code, 0);
    let trusts = |authority: &str| {
        userdata(&["-f", "-", "--fail-on", "stop"], &class("https://own.gr7.eu-west-1.eks.amazonaws.com", authority))
    };
    let other = trusts("LS0u");
    assert_eq!(other.code, 1, "{}", other.out);
    assert!(other.out.contains("this is not the certificate authority"), "{}", other.out);
    assert_eq!(trusts("$CA").code, 0);
}

#[test]
fn a_user_text_just_below_the_limit_is_too_large_once_rendered() {
    let text = format!("#!/bin/bash\nset -e\n{}\n", "#".repeat(16_000));
    assert_eq!(defects(&bare("AL2023", &text)), ["TooLarge NoLaunch"]);
    assert_eq!(bare("Custom", &text)["defects"], json!([]));
}

#[test]
fn bad_usage_bad_input_and_a_cluster_that_does_not_answer_have_their_codes() {
    let says = |args: &[&str], input: &str, code: i32, word: &str| {
        let answer = userdata(args, input);
        assert_eq!(answer.code, code, "{args:?}\n{}", answer.err);
        assert!(answer.err.contains(word), "{args:?}\n{}", answer.err);
    };
    says(&["-f", "-", "--ami-family", "Ubuntu"], "x", 2, "no amiFamily is called Ubuntu");
    says(&["-f", "/nonexistent/x", "--ami-family", "AL2"], "", 2, "cannot be read");
    says(&["-f", "-"], "#!/bin/bash\n", 2, "--ami-family");
    says(&["-f", "-", "--kubernetes", "new"], REPORT, 2, "is no version");
    says(&["other", "-f", "-"], REPORT, 2, "no node class is called other");
    says(&["-f", "-", "--nodepool", "other"], REPORT, 2, "no NodePool other");
    says(&["--ami-family", "AL2"], "", 2, "required");
    says(&["default"], "", 3, "kubeconfig");
    // What the file is instead, and no advice about bare user data.
    let helm = "{{- if .Values.x }}\nkind: EC2NodeClass\n{{- end }}\n";
    let auto_mode = "apiVersion: eks.amazonaws.com/v1\nkind: NodeClass\nmetadata: {name: general}\nspec: {role: r}\n";
    for (input, word) in [
        (helm, "standard input is a template; render it first"),
        (auto_mode, "NodeClass general of eks.amazonaws.com/v1 has no user data that nodewhy reads"),
    ] {
        let answer = userdata(&["-f", "-"], input);
        assert!(answer.code == 2 && answer.err.contains(word), "{}", answer.err);
        assert!(!answer.err.contains("--ami-family"), "{}", answer.err);
    }
    // One unreadable document never hides the others.
    let broken = userdata(&["-f", "-"], &format!("{REPORT}---\nkind: [\n"));
    assert_eq!(broken.code, 2);
    assert!(broken.out.contains("the kubelet gets"));
}

/// `Part: old -> new` of each change of the pair at this place.
#[track_caller]
fn changes(args: &[&str], input: &str, at: usize) -> Vec<String> {
    let answer = userdata(&[&["-o", "json", "--diff"][..], args].concat(), input);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let list: Value = serde_json::from_str(&answer.out).expect("JSON");
    assert_eq!(list["kind"], "UserDataDifferenceList");
    let texts = |side: &Value| {
        let given = side.as_array().expect("a side").iter();
        given.map(|one| one["value"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let all = list["items"][at]["changes"].as_array().expect("changes").iter();
    all.map(|c| format!("{}: {} -> {}", c["part"].as_str().unwrap_or_default(), texts(&c["old"]), texts(&c["new"])))
        .collect()
}

const WIPED: &str = "tests/it/userdata/taints-wiped.yaml";
const KEPT: &str = "tests/it/userdata/taints-kept.yaml";

#[test]
fn two_files_differ_in_what_reaches_the_kubelet() {
    assert_eq!(
        changes(&[WIPED, KEPT], "", 0),
        [
            "Image: alias al2023@v20260108 -> ",
            "Image:  -> alias al2023@v20260401",
            "Taint:  -> dedicated=batch:NoSchedule",
            "Taint:  -> ebs.csi.aws.com/agent-not-ready:NoExecute",
            "Taint:  -> karpenter.sh/unregistered:NoExecute",
            "Kubelet: 58 -> 110",
        ]
    );
    assert_eq!(changes(&[WIPED, WIPED], "", 0), [""; 0]);
    let back = userdata(&["--diff", KEPT, WIPED, "--fail-on", "lost"], "");
    assert_eq!(back.code, 1, "the new side loses taints");
    assert!(back.out.contains("- dedicated=batch:NoSchedule  (NodePool spec.template.spec.taints)"), "{}", back.out);
    assert!(back.out.contains("= overridden by userData:9:30: a flag beats the configuration file"), "{}", back.out);
    assert!(back.out.contains("warning: the Node comes without"), "{}", back.out);
    let forth = userdata(&["--diff", WIPED, KEPT, "--fail-on", "lost"], "");
    assert_eq!(forth.code, 0, "the old side does not count: {}", forth.out);
    assert!(!forth.out.contains("warning"), "{}", forth.out);
}

#[test]
fn two_node_classes_are_compared_in_the_same_node_pool() {
    let other = REPORT.split("---").next().expect("the class").replace("{name: default}", "{name: other}");
    let other = other.replace("maxPods: 58", "maxPods: 58, podsPerCore: 10").replace("team=payments", "team=search");
    let both = format!("{REPORT}---\n{other}");
    let found = changes(&["default", "other", "-f", "-"], &both, 0);
    assert_eq!(
        found,
        [
            "Label: karpenter.k8s.aws/ec2nodeclass=default -> karpenter.k8s.aws/ec2nodeclass=other",
            "Label: team=payments -> team=search",
            "Kubelet:  -> 10",
        ]
    );
    let text = userdata(&["--diff", "default", "other", "-f", "-"], &both).out;
    assert!(text.starts_with("EC2NodeClass/default -> EC2NodeClass/other, NodePool general: AL2023, "), "{text}");
    // NodePools with the same changes share a section.
    let pool = REPORT.split("---").nth(1).expect("the NodePool").replace("{name: general}", "{name: second}");
    let text = userdata(&["--diff", "default", "other", "-f", "-"], &format!("{both}---{pool}")).out;
    assert!(text.contains(", NodePools general, second: ") && text.matches("+ podsPerCore").count() == 1, "{text}");
}

#[test]
fn plain_user_data_differs_in_what_the_kubelet_gets_and_in_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    };
    let of =
        |kubelet: &str| format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n{kubelet}");
    let old =
        file("old.yaml", &of("    config: {podPidsLimit: 100}\n    flags: [--storage-driver-password=hunter2]\n"));
    let same = file("same.yaml", &of("    flags: [--storage-driver-password=hunter2, --pod-max-pids=100]\n"));
    let new = file("new.yaml", &of("    flags: [--storage-driver-password=hunter3, --pod-max-pids=200]\n"));
    let of_family = |old: &str, new: &str, format: &str| {
        let args = ["--ami-family", "AL2023", "--kubernetes", "1.34", "-o", format, "--diff", old, new];
        let answer = userdata(&args, "");
        assert_eq!(answer.code, 0, "{}", answer.err);
        assert!(!answer.out.contains("hunter"), "{}", answer.out);
        answer.out
    };
    let text = of_family(&old, &same, "text");
    assert!(text.contains("The user data differs, but nodewhy finds no change in what nodes run."), "{text}");
    assert!(of_family(&old, &old, "text").contains("No change."));
    let text = of_family(&old, &new, "text");
    assert!(text.contains("- podPidsLimit 100") && text.contains("+ --pod-max-pids 200"), "{text}");
    assert!(!text.contains("  labels\n") && !text.contains("  image\n"), "{text}");
    of_family(&old, &new, "json");
    // A script that nodewhy does not follow to its end may hide a difference, and the output says so.
    let edits = "#!/bin/bash\nsed -i s/a/b/ /etc/eks/bootstrap.sh\n/etc/eks/bootstrap.sh shop\n";
    let (plain, edited) = (file("a.sh", "#!/bin/bash\n/etc/eks/bootstrap.sh shop\n"), file("b.sh", edits));
    let answer = userdata(&["--ami-family", "Custom", "--diff", &plain, &edited], "");
    assert!(answer.out.contains("new: Not analysed from userData:2:1 on"), "{}", answer.out);
}

#[test]
fn what_only_one_side_has_and_what_cannot_be_compared_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let two = folder.path().join("two.yaml");
    let second = REPORT.split("---").nth(1).expect("the NodePool").replace("{name: general}", "{name: second}");
    std::fs::write(&two, format!("{REPORT}---{second}")).expect("written");
    let two = two.to_string_lossy().into_owned();
    let answer = userdata(&["--diff", WIPED, &two], "");
    assert!(answer.code == 0 && answer.out.contains("EC2NodeClass/default, NodePool second: only on the new side\n"));
    let answer = userdata(&["--diff", "default", "nowhere", "-f", WIPED], "");
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("no node class is called nowhere"), "{}", answer.err);
    assert_eq!(userdata(&["--diff", WIPED], "").code, 2, "one side only");
    assert_eq!(userdata(&["default", "--diff", WIPED, KEPT], "").code, 2, "a name beside --diff");
}

/// The manual's example is the real output, so that the shape it promises is the shape there is.
#[test]
fn the_manual_shows_real_output() {
    let example = |text: &str, fence: &str| {
        let (_, rest) = text.split_once(fence).expect("the fence");
        rest.split_once("```").expect("its end").0.to_owned()
    };
    let input = example(MANUAL, "```yaml\n");
    let shown = example(MANUAL, "```json\n");
    let real = userdata(&["-f", "-", "-o", "json"], &input);
    if std::env::var_os("NODEWHY_UPDATE").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/userdata.md"), MANUAL.replace(&shown, &real.out))
            .expect("written");
    } else {
        assert_eq!(shown, real.out);
    }
    let real = userdata(&["-f", "tests/it/userdata/taints-wiped.yaml"], "");
    assert!(MANUAL.contains(&real.out), "docs/userdata.md should hold:\n{}", real.out);
    let real = userdata(&["--diff", WIPED, KEPT], "");
    assert!(MANUAL.contains(&real.out), "docs/userdata.md should hold:\n{}", real.out);
}
