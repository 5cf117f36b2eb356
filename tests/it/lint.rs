//! `nodewhy lint`: what it finds stands at its very line and column, it agrees with `diagnose`, and it is silent about
//! what is fine.

use assert_cmd::Command;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::lint::page;
use engine::lint::{Files, LintFinding, lint};
use engine::rules;
use nodewhy::ingest::dump::{self, Summary, load_from};
use readers::userdata::Family;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use testkit::corpus::{case_folders, load_case};
use testkit::objects::{examples, over_cluster};

fn read_in(file: &str, text: &str) -> Files {
    let (mut files, mut summary) = (Files::default(), Summary::default());
    load_from(file, text.as_bytes(), &mut files, &mut summary);
    assert_eq!(summary.complaints, [], "{text}");
    files
}

fn found_in(file: &str, text: &str) -> Vec<LintFinding> {
    lint(read_in(file, text), None).findings
}

/// `level cause file:line:column`, a `~` before a place that is not exact.
fn shown(findings: &[LintFinding]) -> Vec<String> {
    let sign = |exact: bool| if exact { "" } else { "~" };
    findings
        .iter()
        .map(|f| format!("{:?} {} {}{}:{}:{}", f.level, f.cause, sign(f.exact), f.file, f.line, f.column))
        .collect()
}

/// An EC2NodeClass with this user data as a literal block: its first line is line 8 of the file, four columns in.
fn class(family: &str, user_data: &str) -> String {
    let mut out = format!(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec:\n  amiFamily: \
         {family}\n  role: KarpenterNodeRole-shop\n  userData: |\n"
    );
    for line in user_data.lines() {
        let _ = writeln!(out, "{}{line}", if line.is_empty() { "" } else { "    " });
    }
    out
}

const MIME: &str =
    "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: text/x-shellscript\n\n";

/// Family, user data with a mark before each place, what is found in that order, and the same user data as it should
/// be.
fn mistakes() -> Vec<(&'static str, String, Vec<&'static str>, String)> {
    let node_config =
        |kubelet: &str| format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n{kubelet}");
    let unregistered = "--register-with-taints=karpenter.sh/unregistered:NoExecute";
    let custom = |extra: &str| format!("#!/bin/bash\n/etc/eks/bootstrap.sh shop{extra}\n");
    vec![
        (
            "AL2",
            "#!/bin/bash\n@/etc/eks/bootstrap.sh shop\n".to_owned(),
            vec!["Warning BootstrapBeforeKarpenter"],
            "#!/bin/bash\nyum install -y amazon-ssm-agent\n".to_owned(),
        ),
        ("AL2", "@echo hello\n".to_owned(), vec!["Warning NoInterpreter"], "#!/bin/bash\necho hello\n".to_owned()),
        (
            "AL2",
            format!("{MIME}echo @'hello\n--B--\n").replace("\n\necho", "\n\n#!/bin/bash\necho"),
            vec!["Warning OpenQuote"],
            format!("{MIME}echo 'hello'\n--B--\n").replace("\n\necho", "\n\n#!/bin/bash\necho"),
        ),
        (
            "AL2023",
            "#!/bin/bash\n@/etc/eks/bootstrap.sh shop\n".to_owned(),
            vec!["Warning NoBootstrapScript"],
            "#!/bin/bash\n/opt/shop/setup.sh\n".to_owned(),
        ),
        (
            "AL2023",
            node_config("    flags:\n    - --node-labels=a=b,@kubernetes.io/lifecycle=spot\n"),
            vec!["Error KubeletRefusesLabels"],
            node_config("    flags:\n    - --node-labels=a=b,node.kubernetes.io/lifecycle=spot\n"),
        ),
        (
            "AL2023",
            node_config("    flags:\n    - --register-with-taints=@dedicated:Nope\n"),
            vec!["Error UserDataStopsKubelet"],
            node_config("    flags:\n    - --node-labels=dedicated=x\n"),
        ),
        (
            "Bottlerocket",
            "[settings.kubernetes]\nmax-pods = @= 5\n".to_owned(),
            vec!["Error TomlInvalid"],
            "[settings.kubernetes]\nkube-api-qps = 5\n".to_owned(),
        ),
        (
            "Windows2022",
            "Write-Host hi\n@exit 0\n".to_owned(),
            vec!["Error UserDataStopsKubelet"],
            "Write-Host hi\n".to_owned(),
        ),
        (
            "Windows2022",
            "if ($x) @{\n  New-Item a\nNew-Item b\n".to_owned(),
            vec!["Error UserDataStopsKubelet"],
            "if ($x) {\n  New-Item a\n}\nNew-Item b\n".to_owned(),
        ),
        (
            "Windows2022",
            "@<powershell>\nWrite-Host hi\n</powershell>\n".to_owned(),
            vec!["Error UserDataStopsKubelet"],
            "Write-Host '<powershell>'\n".to_owned(),
        ),
        (
            "Windows2022",
            "@New-Itm a\n".to_owned(),
            vec!["Warning UnknownCmdlet"],
            "New-Item a\nGet-EC2Instance\n".to_owned(),
        ),
        (
            "Windows2022",
            "$ErrorActionPreference = 'Stop'\n@New-Itm a\n".to_owned(),
            vec!["Error UserDataStopsKubelet"],
            "$ErrorActionPreference = 'Stop'\nNew-Item a\n".to_owned(),
        ),
        (
            "Custom",
            "<powershell>\n$f = 'Start-EKSBootstrap.ps1'\n$f @-EKSClusterName shop\n</powershell>\n".to_owned(),
            vec!["Error UserDataStopsKubelet"],
            "<powershell>\n$f = 'Start-EKSBootstrap.ps1'\n& $f -EKSClusterName shop\n</powershell>\n".to_owned(),
        ),
        (
            "Custom",
            custom(&format!(" --kubelet-extra-args @'{unregistered}' --kubelet-extra-args '--node-labels=a=b'"))
                .replace("@'", "'@"),
            vec!["Warning RepeatedOption"],
            custom(&format!(" --kubelet-extra-args '{unregistered} --node-labels=a=b'")),
        ),
        (
            "Custom",
            custom(&format!(" --kubelet-extra-args '{unregistered} @--hostname-override=web'")),
            vec!["Error UserDataStopsKubelet"],
            custom(&format!(" --kubelet-extra-args \"{unregistered} --hostname-override=$NAME\"")),
        ),
        (
            "Custom",
            custom(&format!(" --kubelet-extra-args '{unregistered}' @--node-labels=a=b")),
            vec!["Warning LooseWord"],
            custom(&format!(" --kubelet-extra-args '{unregistered} --node-labels=a=b'")),
        ),
        (
            "Custom",
            custom(&format!(" @--kubelet-extra-args='{unregistered}'")),
            vec!["Warning OptionWithEquals"],
            custom(&format!(" --kubelet-extra-args '{unregistered}'")),
        ),
        (
            "AL2",
            format!("#!/bin/bash\nexit 0\n@/etc/eks/bootstrap.sh shop --kubelet-extra-args '{unregistered}'\n"),
            vec!["Warning NeverReached"],
            "#!/bin/bash\nset -e\n".to_owned(),
        ),
    ]
}

#[test]
fn each_mistake_stands_at_its_line_and_column_and_its_fine_twin_is_silent() {
    let mut faults = String::new();
    for (family, marked, causes, fine) in mistakes() {
        let (line, before) = marked.lines().enumerate().find_map(|(n, l)| Some((n, l.find('@')?))).expect("a mark");
        let text = marked.replacen('@', "", 1);
        let wanted: Vec<String> =
            causes.iter().map(|cause| format!("{cause} f.yaml:{}:{}", line + 8, before + 5)).collect();
        let found = shown(&found_in("f.yaml", &class(family, &text)));
        if found != wanted {
            let _ = writeln!(faults, "{family}: {text}\n    wanted {wanted:?}\n    found  {found:?}");
        }
        let found = shown(&found_in("f.yaml", &class(family, &fine)));
        if !found.is_empty() {
            let _ = writeln!(faults, "{family}: {fine}\n    is fine, found {found:?}");
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

#[test]
fn the_same_user_data_in_a_file_of_its_own() {
    let text = "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--node-labels=kubernetes.io/x=y'\n";
    assert_eq!(shown(&found_in("./boot.sh", text)), ["Error RefusedLabel boot.sh:2:64"]);
    assert_eq!(
        shown(&lint(read_in("./boot.sh", text), Some(Family::Al2)).findings),
        ["Warning BootstrapBeforeKarpenter boot.sh:2:1", "Error RefusedLabel boot.sh:2:64"]
    );
    assert_eq!(shown(&found_in("boot", &text.replace('\n', "\r\n"))).len(), 1, "known by its first line");
    assert_eq!(
        shown(&found_in("x.toml", "[settings.kubernetes]\nmax-pods = = 5\n")),
        ["Error TomlInvalid x.toml:2:12"]
    );
    assert_eq!(
        shown(&found_in(
            "nodeconfig.yaml",
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: \
             [--node-labels=kubernetes.io/x=y]\n"
        )),
        ["Error RefusedLabel nodeconfig.yaml:5:27"]
    );
}

/// A refused label in an EC2NodeClass, in every form a file can have.
#[test]
fn places_in_every_form_of_file() {
    let user_data = "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--node-labels=kubernetes.io/x=y'\n";
    let one = class("Custom", user_data);
    let at = |place: &str| vec![format!("Error KubeletRefusesLabels {place}")];
    let finds = |text: &str, place: &str| assert_eq!(shown(&found_in("f", text)), at(place), "{text}");
    finds(&one, "f:9:68");
    finds(&one.replace('\n', "\r\n"), "f:9:68");
    finds(&format!("\u{feff}{one}"), "f:9:68");
    // An indicator that says what the first line would have said, with chomping.
    finds(
        &one.replace("userData: |", "userData: |4-").replace("    /etc", "        /etc").replace("    #!", "      #!"),
        "f:9:72",
    );
    finds(&one.replace("    #!", "         #!").replace("    /etc", "         /etc"), "f:9:73");
    finds(&format!("# first\napiVersion: v1\nkind: Secret\n---\n# second\n---\n{one}---\nkind: X\n"), "f:15:68");
    // kubectl's List, one whose items are indented, and lists in lists.
    let indented = |by: &str| one.lines().fold(String::new(), |out, line| format!("{out}{by}{line}\n"));
    let item = |dash: &str, by: &str| indented(by).replacen(by, dash, 1);
    finds(&format!("apiVersion: v1\nkind: List\nitems:\n{}", item("- ", "  ")), "f:12:70");
    finds(&format!("apiVersion: v1\nkind: List\nitems:\n  {}", item("- ", "    ")), "f:12:72");
    finds(
        &format!(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - kind: X\n  {}",
            item("- ", "    ")
        ),
        "f:16:72",
    );
    // JSON, and YAML in quotes: where the text begins.
    let json = serde_json::json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {"amiFamily": "Custom", "userData": user_data}});
    let pretty = serde_json::to_string_pretty(&json).unwrap();
    finds(&pretty, "~f:9:17");
    let list = serde_json::to_string_pretty(
        &serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "List", "items": [json]}]}),
    )
    .unwrap();
    let line = list.lines().position(|l| l.contains("userData")).unwrap();
    finds(&list, &format!("~f:{}:{}", line + 1, list.lines().nth(line).unwrap().find("\"#!").unwrap() + 1));
    let flat = format!("{{\"kind\": \"X\"}} {json}");
    finds(&flat, &format!("~f:1:{}", flat.find("\"#!").unwrap() + 1));
}

#[test]
fn a_placeholder_hides_no_finding_beside_it() {
    let found = |call: &str| shown(&found_in("f", &class("Custom", &format!("#!/bin/bash\nbootstrap.sh {call}\n"))));
    assert_eq!(
        found("\"${CLUSTER_NAME}\" --kubelet-extra-args '--node-labels=kubernetes.io/x=y'"),
        ["Error KubeletRefusesLabels f:9:72"]
    );
    assert_eq!(
        found("{{ .Values.name }} --kubelet-extra-args \"--node-labels=a=${A},kubernetes.io/x=y\""),
        ["Error KubeletRefusesLabels f:9:80"]
    );
    assert_eq!(found("\"${CLUSTER_NAME}\" --kubelet-extra-args \"${ARGS}\""), [""; 0]);
}

#[test]
fn aws_auth_is_linted_by_itself_and_with_the_classes() {
    let auth = |entry: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: aws-auth}}\ndata:\n  mapRoles: |\n{entry}")
    };
    let fine = "    - rolearn: arn:aws:iam::111122223333:role/KarpenterNodeRole-shop\n      username: \
                system:node:{{EC2PrivateDNSName}}\n      groups: [system:bootstrappers, system:nodes]\n";
    assert_eq!(shown(&found_in("f", &auth(fine))), [""; 0]);
    assert_eq!(shown(&found_in("f", &auth(&fine.replace("groups:", "group:")))), ["Warning FieldIgnored f:8:7"]);
    assert_eq!(shown(&found_in("f", &auth(&fine.replace("rolearn:", "rolearn")))), ["Warning Unreadable f:7:15"]);
    let user = |field: &str| {
        format!("{}  mapUsers: |\n    - {field}: arn:aws:iam::111122223333:user/a\n      username: a\n", auth(fine))
    };
    assert_eq!(shown(&found_in("f", &user("userarn"))), [""; 0]);
    assert_eq!(
        shown(&found_in("f", &user("user_arn"))),
        ["Warning EntryDropped f:10:7", "Warning FieldIgnored f:10:7"]
    );
    let class = class("AL2023", "#!/bin/bash\ntrue\n");
    let both = |entry: &str| format!("{}---\n{class}", auth(entry));
    assert_eq!(shown(&found_in("f", &both(fine))), [""; 0]);
    assert_eq!(
        shown(&found_in("f", &both(&fine.replace(", system:nodes", "")))),
        ["Warning AwsAuthEntryIncomplete f:8:15"]
    );
    assert_eq!(
        shown(&found_in("f", &both(&fine.replace("role/", "role/team/")))),
        ["Warning AwsAuthArnNeverMatches f:6:16"]
    );
    // An access entry may let in a role that is not mapped.
    assert_eq!(shown(&found_in("f", &both(&fine.replace("KarpenterNodeRole-shop", "other")))), [""; 0]);
}

#[test]
fn a_taint_that_the_node_pool_counts_on() {
    let flag = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: \
                ['--register-with-taints=a=b:NoSchedule']\n";
    let pool = |taints: &str| {
        format!(
            "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: general}}\nspec: {{template: {{spec: \
             {{nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}, taints: \
             [{taints}]}}}}}}\n"
        )
    };
    let karpenter = |version: &str| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: karpenter}}\nspec: {{template: {{spec: \
             {{containers: [{{image: \"public.ecr.aws/karpenter/controller:{version}\"}}]}}}}}}\n"
        )
    };
    let drops = ["Error KubeletFlagDropsTaints f:12:18"];
    let class = class("AL2023", flag);
    let dedicated = pool("{key: dedicated, effect: NoSchedule}");
    assert_eq!(shown(&found_in("f", &format!("{class}{dedicated}"))), drops);
    assert_eq!(shown(&found_in("f", &format!("{class}{dedicated}{}", karpenter("1.8.1")))), drops);
    // Versions that add the taints themselves, a NodePool that has no other taints, and one that has the same.
    assert_eq!(shown(&found_in("f", &format!("{class}{dedicated}{}", karpenter("1.3.0")))), [""; 0]);
    assert_eq!(shown(&found_in("f", &format!("{class}{}", pool("")))), [""; 0]);
    assert_eq!(shown(&found_in("f", &format!("{class}{}", pool("{key: a, effect: NoSchedule}")))), [""; 0]);
    // The NodePools are in other files.
    assert_eq!(shown(&found_in("f", &class)), ["Warning DropsTaints f:12:18"]);
    let own = class.replace("a=b:NoSchedule", "karpenter.sh/unregistered:NoExecute");
    assert_eq!(shown(&found_in("f", &own)), [""; 0]);
    // A version that refuses Nodes without its own taint.
    assert_eq!(shown(&found_in("f", &format!("{class}{}{}", pool(""), karpenter("1.0.6")))), drops);
}

/// A NodePool of the class `default`, whose only requirement is on line 9.
fn pool(requirement: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: general}}\nspec:\n  template:\n    \
         spec:\n      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}\n      \
         requirements:\n      - {requirement}\n"
    )
}

#[test]
fn requirements_that_no_machine_meets() {
    let found = |requirement: &str| shown(&found_in("f", &pool(requirement)));
    assert_eq!(found("{key: kubernetes.io/arch, operator: In, values: [aarch64]}"), ["Error UnknownValue f:9:58"]);
    assert_eq!(
        found("{key: beta.kubernetes.io/arch, operator: In, values: [amd64, aarch64]}"),
        ["Warning UnknownValue f:9:70"]
    );
    assert_eq!(found("{key: karpenter.sh/capacity-type, operator: In, values: [spott, on_demand]}").len(), 2);
    assert_eq!(
        found("{key: karpenter.sh/capacity-type, operator: NotIn, values: [spott]}"),
        ["Warning UnknownValue f:9:69"]
    );
    assert_eq!(found("{key: kubernetes.io/os, operator: In, values: [Linux]}"), ["Error UnknownValue f:9:56"]);
    assert_eq!(found("{key: kubernetes.io/os, operator: in, values: [linux]}"), ["Error UnknownOperator f:9:33"]);
    assert_eq!(
        found("{key: karpenter.k8s.aws/instance-famly, operator: In, values: [m7i]}"),
        ["Error RefusedRequirementKey f:9:10"]
    );
    assert_eq!(found("{key: karpenter.sh/nodepool, operator: Exists}"), ["Error RefusedRequirementKey f:9:10"]);
    for fine in [
        "{key: kubernetes.io/arch, operator: In, values: [arm64, amd64]}",
        "{key: karpenter.sh/capacity-type, operator: In, values: [reserved, on-demand, spot]}",
        "{key: kubernetes.io/arch, operator: Exists}",
        "{key: kubernetes.io/arch, operator: In, values: [\"${ARCH}\"]}",
        "{key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: [\"4\"]}",
        "{key: example.com/arch, operator: In, values: [aarch64]}",
        "{key: node.kubernetes.io/instance-type, operator: In, values: [m7i.large]}",
        "{key: kubernetes.io/os, operator: DoesNotExist}",
    ] {
        assert_eq!(found(fine), [""; 0], "{fine}");
    }
    // The rule of the schema takes every domain that ends so for Karpenter's own.
    assert_eq!(
        found("{key: mykarpenter.sh/arch, operator: In, values: [aarch64]}"),
        ["Error RefusedByApiServer f:9:10"]
    );
    // Another provider has other labels.
    let azure = pool("{key: kubernetes.io/arch, operator: In, values: [aarch64]}")
        .replace("EC2NodeClass", "AKSNodeClass")
        .replace("karpenter.k8s.aws,", "karpenter.azure.com,");
    assert_eq!(shown(&found_in("f", &azure)), [""; 0]);
    let fixes =
        |requirement: &str| found_in("f", &pool(requirement)).into_iter().filter_map(|f| f.fix).collect::<Vec<_>>();
    assert_eq!(fixes("{key: kubernetes.io/arch, operator: In, values: [aarch64]}"), ["Did you mean arm64?"]);
    assert_eq!(
        fixes("{key: karpenter.sh/capacity-type, operator: In, values: [spott, on_demand]}"),
        ["Did you mean spot?", "Did you mean on-demand?"]
    );
    assert_eq!(
        fixes("{key: karpenter.k8s.aws/instance-famly, operator: In, values: [m7i]}"),
        ["Did you mean karpenter.k8s.aws/instance-family?"]
    );
}

#[test]
fn instance_types_that_other_requirements_exclude() {
    let found = |requirements: &[&str]| {
        let more = requirements.join("\n      - ");
        shown(&found_in("f", &pool(&more)))
    };
    let arch = |arch: &str| format!("{{key: kubernetes.io/arch, operator: In, values: [{arch}]}}");
    let family = |names: &str| format!("{{key: karpenter.k8s.aws/instance-family, operator: In, values: [{names}]}}");
    let category = "{key: karpenter.k8s.aws/instance-category, operator: In, values: [c, r]}";
    let newer = "{key: karpenter.k8s.aws/instance-generation, operator: Gt, values: [\"5\"]}";
    let type_ = "{key: node.kubernetes.io/instance-type, operator: In, values: [m7g.large, m6g.large]}";
    let first = ["Error ExcludingRequirements f:9:64"];
    assert_eq!(found(&[&family("m5, c5"), &arch("arm64")]), first);
    assert_eq!(found(&[&family("m7g"), &arch("amd64")]), first);
    assert_eq!(found(&[&family("m5"), category]), first);
    assert_eq!(found(&[&family("m5, c5"), newer]), first);
    assert_eq!(found(&[type_, &arch("amd64")]), ["Error ExcludingRequirements f:9:63"]);
    assert_eq!(found(&[type_, &family("m5")]), ["Error ExcludingRequirements f:9:63"]);
    for [one, other] in [
        [family("m5, m7g"), arch("arm64")],
        [family("m7g"), arch("arm64, amd64")],
        [family("r5, m5"), category.to_owned()],
        [family("m5, m6i"), newer.to_owned()],
        [family("\"${FAMILY}\""), arch("arm64")],
        [family("m5"), arch("\"${ARCH}\"")],
        [family("m7g"), type_.to_owned()],
    ] {
        assert_eq!(found(&[&one, &other]), [""; 0], "{one} {other}");
    }
}

#[test]
fn an_operating_system_that_the_class_does_not_offer() {
    let found = |alias: &str, requirement: &str| {
        shown(&found_in("f", &format!("{}---\n{}", pool(requirement), of_alias(alias, "role: r"))))
    };
    let os = |values: &str| format!("{{key: kubernetes.io/os, operator: In, values: [{values}]}}");
    assert_eq!(found("windows2022@latest", &os("linux")), ["Error SystemNotOffered f:9:47"]);
    assert_eq!(found("al2023@latest", &os("windows")), ["Error SystemNotOffered f:9:47"]);
    assert_eq!(
        found("al2023@latest", "{key: beta.kubernetes.io/os, operator: NotIn, values: [linux]}"),
        ["Error SystemNotOffered f:9:55"]
    );
    let arm = "{key: kubernetes.io/arch, operator: In, values: [arm64]}";
    assert_eq!(found("windows2022@latest", arm), ["Error SystemNotOffered f:9:49"]);
    for (alias, requirement) in [
        ("windows2022@latest", os("windows")),
        ("windows2022@latest", os("linux, windows")),
        ("al2023@latest", os("linux")),
        ("al2023@latest", os("\"${OS}\"")),
        ("al2023@latest", arm.to_owned()),
        ("bottlerocket@latest", "{key: kubernetes.io/os, operator: Exists}".to_owned()),
    ] {
        assert_eq!(found(alias, &requirement), [""; 0], "{alias} {requirement}");
    }
    // Its value is the mistake.
    assert_eq!(found("al2023@latest", &os("Linux")), ["Error UnknownValue f:9:56"]);
}

#[test]
fn a_node_pool_that_names_no_class_among_several() {
    let requirement = "{key: kubernetes.io/os, operator: In, values: [linux]}";
    let class = class("AL2023", "#!/bin/bash\ntrue\n");
    let with = |class: &str| shown(&found_in("f", &format!("{}---\n{class}", pool(requirement))));
    assert_eq!(with(&class.replace("default", "other")), ["Warning DanglingNodeClassRef f:7:68"]);
    assert_eq!(with(&class), [""; 0]);
    assert_eq!(with(""), [""; 0], "the classes may be elsewhere");
    let templated = pool(requirement).replace("name: default", "name: \"${CLASS}\"");
    assert_eq!(shown(&found_in("f", &format!("{templated}---\n{class}"))), [""; 0]);
}

/// An EC2NodeClass of this alias with the fields, which begin on line 6.
fn of_alias(alias: &str, fields: &str) -> String {
    format!(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec:\n  amiSelectorTerms: \
         [{{alias: {alias}}}]\n  {fields}\n"
    )
}

#[test]
fn volumes_that_ec2_refuses_or_that_are_not_the_ones_meant() {
    let on = |alias: &str, device: &str, ebs: &str| {
        let volume = format!("blockDeviceMappings: [{{deviceName: {device}, ebs: {{{ebs}}}}}]");
        let found = found_in("f", &of_alias(alias, &volume));
        found
            .iter()
            .map(|f| format!("{:?} {} {}", f.level, f.cause, f.blame.field.as_deref().unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    let refused = |ebs: &str, field: &str| {
        let wanted = format!("Error VolumeRefused spec.blockDeviceMappings.0.ebs.{field}");
        assert_eq!(on("al2023@latest", "/dev/xvda", ebs), [wanted], "{ebs}");
    };
    refused("volumeSize: 8Gi", "volumeSize");
    refused("volumeSize: 20G", "volumeSize");
    // The same images by their name. Anybody may build another of that name.
    let named = |owner: &str| {
        let fields = "amiFamily: AL2023\n  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 8Gi}}]";
        let term = format!("name: amazon-eks-node-al2023-x86_64-standard-1.32-*, owner: {owner}");
        found_in("f", &of_alias("al2023@latest", fields).replace("alias: al2023@latest", &term)).len()
    };
    assert_eq!((named("amazon"), named("self")), (1, 0));
    refused("volumeSize: 50Gi, encrypted: false, kmsKeyID: k", "kmsKeyID");
    refused("volumeSize: 50Gi, volumeType: gp2, iops: 3000", "iops");
    refused("volumeSize: 50Gi, volumeType: gp2, throughput: 250", "throughput");
    refused("volumeSize: 50Gi, volumeType: io2", "volumeType");
    refused("volumeSize: 50Gi, volumeType: io1, iops: 2501", "iops");
    refused("volumeSize: 20Gi, volumeType: gp3, iops: 10001", "iops");
    refused("volumeSize: 50Gi, volumeType: gp3, iops: 1000", "iops");
    refused("volumeSize: 50Gi, volumeType: gp3, throughput: 751", "throughput");
    refused("volumeSize: 50Gi, volumeType: gp3, throughput: 100", "throughput");
    refused("volumeSize: 500Gi, volumeType: st1", "volumeType");
    refused("volumeSize: 100Gi, volumeType: sc1", "volumeSize");
    // The account may encrypt all volumes.
    assert_eq!(
        on("al2023@latest", "/dev/xvda", "volumeSize: 50Gi, kmsKeyID: k"),
        ["Warning VolumeRefused spec.blockDeviceMappings.0.ebs.kmsKeyID"]
    );
    let other = ["Warning VolumeOfAnotherFamily spec.blockDeviceMappings.0.deviceName"];
    assert_eq!(on("al2023@latest", "/dev/sda1", "volumeSize: 50Gi"), other);
    assert_eq!(on("bottlerocket@latest", "/dev/xvda", "volumeSize: 50Gi"), other);
    assert_eq!(on("windows2022@latest", "/dev/xvda", "volumeSize: 50Gi"), other);
    for (alias, device, ebs) in [
        ("al2023@latest", "/dev/xvda", "volumeSize: 20Gi"),
        ("al2023@latest", "/dev/xvda", "snapshotID: snap-1, volumeSize: 8Gi"),
        ("al2023@latest", "/dev/xvda", "volumeSize: 100Gi, volumeType: gp3, iops: 4000, throughput: 1000"),
        ("al2023@latest", "/dev/xvda", "volumeSize: 100Gi, volumeType: gp3, throughput: 750"),
        ("al2023@latest", "/dev/xvda", "volumeSize: 50Gi, volumeType: io1, iops: 2500"),
        ("al2023@latest", "/dev/xvda", "volumeSize: 50Gi, encrypted: true, kmsKeyID: k"),
        ("al2023@latest", "/dev/xvda", "volumeSize: 1Ti, volumeType: gp3, iops: 16000"),
        ("al2023@latest", "/dev/sdf", "volumeSize: 500Gi, volumeType: st1"),
        ("bottlerocket@latest", "/dev/xvda", "volumeSize: 4Gi"),
        ("bottlerocket@latest", "/dev/xvdb", "volumeSize: 50Gi"),
        ("windows2022@latest", "/dev/sda1", "volumeSize: 50Gi"),
    ] {
        assert_eq!(on(alias, device, ebs), [""; 0], "{alias} {device} {ebs}");
    }
    // An image of one's own may have any root device, and any size.
    let own = of_alias("al2023@latest", "blockDeviceMappings: [{deviceName: /dev/sda1, ebs: {volumeSize: 8Gi}}]")
        .replace("[{alias: al2023@latest}]", "[{id: ami-1}]\n  amiFamily: AL2023");
    assert_eq!(shown(&found_in("f", &own)), [""; 0]);
    // Where the class says itself which volume it is.
    let root = "blockDeviceMappings: [{deviceName: /dev/xvdb, rootVolume: true, ebs: {volumeSize: 50Gi}}]";
    assert_eq!(shown(&found_in("f", &of_alias("al2023@latest", root))), [""; 0]);
}

#[test]
fn a_dns_server_that_is_no_address() {
    let found = |alias: &str, server: &str| {
        shown(&found_in("f", &of_alias(alias, &format!("kubelet: {{clusterDNS: [{server}]}}"))))
    };
    assert_eq!(found("al2023@latest", "10.100.0"), ["Warning NoDnsAddress f:6:26"]);
    assert_eq!(found("bottlerocket@latest", "kube-dns.kube-system"), ["Error NoDnsAddress f:6:26"]);
    for fine in ["10.100.0.10", "169.254.20.10", "\"fd00::a\"", "\"${DNS}\""] {
        assert_eq!(found("bottlerocket@latest", fine), [""; 0], "{fine}");
    }
}

#[test]
fn a_node_pool_against_its_class_its_limits_and_the_network_plugin() {
    let with = |requirement: &str, spec: &str, more: &str| {
        let status = "status: {subnets: [{id: subnet-1, zone: eu-west-1a}, {id: subnet-2, zone: eu-west-1b}]}";
        let class = of_alias("al2023@latest", more);
        let pool = pool(requirement)
            .replace("spec:\n  template:\n    spec:\n", &format!("spec:\n  template:\n    spec:\n{spec}"));
        shown(&found_in("f", &format!("{pool}---\n{class}{status}\n")))
    };
    let requires = |requirement: &str| with(requirement, "", "role: r");
    let zones =
        |zones: &str| requires(&format!("{{key: topology.kubernetes.io/zone, operator: In, values: [{zones}]}}"));
    assert_eq!(zones("eu-west-1c"), ["Error NoSubnetInZone f:9:58"]);
    assert_eq!(zones("eu-west-1a, eu-west-1c"), ["Warning NoSubnetInZone f:9:58"]);
    assert_eq!([zones("eu-west-1b"), zones("\"${ZONE}\"")], [[""; 0]; 2]);
    let reserved = |types: &str, more: &str| {
        with(&format!("{{key: karpenter.sh/capacity-type, operator: In, values: [{types}]}}"), "", more)
    };
    let terms = "capacityReservationSelectorTerms: [{id: cr-1}]";
    assert_eq!(reserved("on-demand, spot", terms), ["Warning ReservationUnused f:9:57"]);
    assert_eq!(reserved("reserved", "role: r"), ["Error NothingReserved f:9:57"]);
    for (types, more) in
        [("reserved, spot", terms), ("reserved", terms), ("reserved, spot", "role: r"), ("spot", "role: r")]
    {
        assert_eq!(reserved(types, more), [""; 0], "{types}, {more}");
    }
    let cpus = |operator: &str, values: &str, limit: &str| {
        let text = pool(&format!("{{key: karpenter.k8s.aws/instance-cpu, operator: {operator}, values: [{values}]}}"));
        shown(&found_in(
            "f",
            &text.replace("spec:\n  template", &format!("spec:\n  limits: {{cpu: {limit}}}\n  template")),
        ))
    };
    for (operator, values, limit) in [("Gt", "\"3\"", "2"), ("In", "\"8\", \"4\"", "\"3\""), ("Gte", "\"4\"", "3500m")]
    {
        assert_eq!(cpus(operator, values, limit), ["Error LimitBelowSmallest f:5:12"], "{operator} {values} {limit}");
    }
    for (operator, values, limit) in [
        ("Gt", "\"3\"", "4"),
        ("In", "\"8\", \"2\"", "2"),
        ("Lt", "\"9\"", "1"),
        ("Gt", "\"3\"", "0"),
        ("Gt", "\"3\"", "1k"),
    ] {
        assert_eq!(cpus(operator, values, limit), [""; 0], "{operator} {values} {limit}");
    }
    let memory = |limit: &str| {
        let text = pool("{key: kubernetes.io/os, operator: In, values: [linux]}");
        shown(&found_in(
            "f",
            &text.replace("spec:\n  template", &format!("spec:\n  limits: {{memory: {limit}}}\n  template")),
        ))
    };
    for limit in ["1000", "100m", "400Mi"] {
        assert_eq!(memory(limit), ["Error LimitBelowSmallest f:5:12"], "{limit}");
    }
    for limit in ["1000Gi", "0", "2000000000", "512Mi"] {
        assert_eq!(memory(limit), [""; 0], "{limit}");
    }
    let linux = "{key: kubernetes.io/os, operator: In, values: [linux]}";
    let expires = |after: &str| with(linux, &format!("      expireAfter: {after}\n"), "role: r");
    assert_eq!(expires("10m"), ["Warning ExpiresTooSoon f:7:7"]);
    assert_eq!([expires("15m"), expires("720h"), expires("Never"), expires("\"${LIFE}\"")], [[""; 0]; 4]);
    let plugin = |tolerations: &str| {
        let pool = pool(linux)
            .replace("      nodeClassRef", "      taints: [{key: dedicated, effect: NoSchedule}]\n      nodeClassRef");
        let set = format!(
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: cilium, namespace: kube-system}}\nspec: \
             {{template: {{spec: {{tolerations: [{tolerations}]}}}}}}\n"
        );
        shown(&found_in("f", &format!("{pool}---\n{set}")))
    };
    assert_eq!(plugin("{key: other, operator: Exists}"), ["Warning TaintKeepsNetworkAway f:7:17"]);
    assert_eq!([plugin("{operator: Exists}"), plugin("{key: dedicated, operator: Exists}")], [[""; 0]; 2]);
}

#[test]
fn a_comment_silences_what_it_names_and_says_why() {
    let flags = |above: &str, beside: &str| {
        let text = format!(
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n{above}    - \
             --node-labels=kubernetes.io/x=y{beside}\n"
        );
        shown(&found_in("f", &class("AL2023", &text)))
    };
    let finding = "Error KubeletRefusesLabels f:13:25";
    assert_eq!(flags("", " # nodewhy: ignore[KubeletRefusesLabels] our own kubelet"), [""; 0]);
    assert_eq!(
        flags("    # nodewhy: ignore[KubeletRefusesLabels, UnknownFlag] our own\n", ""),
        ["Warning UnusedIgnore f:13:9"]
    );
    assert_eq!(flags("", " # nodewhy: ignore[KubeletRefusesLabels]"), ["Warning IgnoreWithoutReason f:13:43"]);
    // Another cause, another line, and what is no such comment.
    let other = flags("", " # nodewhy: ignore[UnknownFlag] why");
    assert_eq!(other, [finding, "Warning UnusedIgnore f:13:43"]);
    let far = flags("    # nodewhy: ignore[KubeletRefusesLabels] why\n\n", "");
    assert_eq!(far, ["Warning UnusedIgnore f:13:9", "Error KubeletRefusesLabels f:15:25"]);
    assert_eq!(flags("", " # nodewhy: ignore KubeletRefusesLabels"), [finding]);
    let yaml = |comment: &str| {
        shown(&found_in("f", &pool(&format!("{{key: kubernetes.io/os, operator: In, values: [Linux]}}{comment}"))))
    };
    assert_eq!(yaml(" # nodewhy: ignore[UnknownValue] a test"), [""; 0]);
    let script =
        "#!/bin/bash\n# nodewhy: ignore[BootstrapBeforeKarpenter] not for Karpenter\n/etc/eks/bootstrap.sh shop\n";
    assert_eq!(shown(&lint(read_in("boot.sh", script), Some(Family::Al2)).findings), [""; 0]);
    let all = run(
        &["-f", "-"],
        &pool("{key: kubernetes.io/os, operator: In, values: [Linux]} # nodewhy: ignore[UnknownValue] a test"),
    );
    assert_eq!((all.code, all.out.as_str()), (0, ""));
}

#[test]
fn objects_of_one_name_are_those_of_several_clusters() {
    let folder = tempfile::tempdir().unwrap();
    for (cluster, label) in [("a", "kubernetes.io/x"), ("b", "shop/x"), ("c", "k8s.io/x")] {
        std::fs::create_dir(folder.path().join(cluster)).unwrap();
        let text = class(
            "Custom",
            &format!("#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--node-labels={label}=y'\n"),
        );
        std::fs::write(folder.path().join(cluster).join("class.yaml"), text).unwrap();
    }
    let mut files = Files::default();
    let mut summary = dump::load(&[folder.path().to_owned()], &mut files);
    summary.complaints.retain(|complaint| !complaint.message.contains("is not judged here"));
    assert_eq!(summary.complaints, []);
    let found: Vec<String> =
        lint(files, None).findings.iter().map(|f| f.file.rsplit('/').nth(1).unwrap_or_default().to_owned()).collect();
    assert_eq!(found, ["a", "c"]);
}

/// Cases whose object to change is one of the files' kinds, and which only a machine shows, with what it takes.
const NEEDS_A_MACHINE: &[(&str, &str)] = &[
    ("1841-jammy-lab", "an agent that fails"),
    ("1845-g5-vision", "a Node without the resource"),
    ("1846-bottlerocket-build", "a pull that fails"),
    ("1847-windows-dotnet", "the kubelet of the image"),
    ("1873-plat-prod-eu", "a snapshotter of the image that fails"),
    ("1919-ml-train", "a plugin that does not run on the image"),
    ("1937-packer-kube", "an image that is not available yet"),
    ("1976-vault-use1", "a pull that fails"),
    ("1995-upgrade-135", "the kubelet of the image"),
    ("1998-ubuntu-gpu-nodes", "a Node without the resource"),
    ("1999-userns-pool", "the kubelet of the image"),
    ("2011-ai-stack", "that nobody joins, for there may be an access entry"),
    ("1956-c6a-december-image", "a machine under pressure"),
    ("1852-dec28-two-claims", "that nobody joins, for there may be an access entry"),
    ("1857-m6g-again", "machines that come out too small"),
    ("1861-arc-linux-x64", "pods that wait"),
    ("1862-flash-2400", "pods that wait"),
    ("1863-two-node-tp8", "a refused launch"),
    ("1867-hub-small-two", "a Node out of memory"),
    ("1869-thirty-pods", "a Node out of memory"),
    ("320-kubelet-starved-by-unlimited-pods", "a Node out of memory"),
    ("1507-replacements-after-the-image-bump", "a pull that fails"),
    ("1672-accelerator-pool-joined-not-initialized", "a Node without the resource"),
    ("1678-newcomers-never-lose-their-taint", "an agent that fails"),
    ("1696-golden-image-nodes-half-up", "a pull that fails"),
    ("1702-new-major-release-nodes", "an agent that fails"),
    ("1711-l4-pool-stays-at-zero", "a launch that is refused"),
    ("1712-mpi-job-waits-since-sunday", "a launch that is refused"),
    ("1713-notebook-users-get-no-gpu", "a launch that is refused"),
    ("1716-dotnet-front-after-addon-update", "a Node without the resource"),
    ("1723-canonical-image-big-volume", "a machine under pressure"),
    ("1726-drift-to-the-may-image", "a pull that fails"),
    ("1733-no-more-proxy-no-more-nodes", "an agent that fails"),
    ("1734-old-inference-family-on-new-bottlerocket", "a Node without the resource"),
    ("1752-copied-class-for-the-second-site", "what the machine says"),
    ("1755-latest-image-on-the-inference-pool", "a Node whose pods do not start"),
    ("1762-red-lines-of-three-agents", "a Node without the resource"),
    ("1771-three-that-stay-on-last-months-image", "a drift that waits"),
    ("1742-three-booked-blocks-one-in-use", "a launch that is refused"),
    ("1754-controller-upgrade-and-the-disk-machines", "the type of a machine"),
    ("1781-booked-and-full-house", "a drift that waits"),
    ("1803-ceiling-on-purpose", "pods that wait for a NodePool at its limit"),
    ("1262-new-nodes-removed-within-two-minutes", "a taint that comes onto Nodes"),
    ("1270-new-spot-node-takes-no-pods", "a machine under pressure"),
    ("1298-pods-crash-on-the-two-new-machines", "pods that fail"),
    ("1299-disk-pressure-after-two-days", "a disk that fills"),
    ("1321-new-revision-has-nowhere-to-go", "pods that wait"),
    ("1330-first-windows-machine-ready-pod-waits", "a Windows Node"),
    ("1332-some-spot-machines-never-register", "machines that do not join"),
    ("1337-eleven-pods-without-address", "pods without address"),
    ("1338-third-machine-of-a-pool-never-comes", "pods that wait"),
    ("1381-one-pool-is-replaced-all-day", "machines that drift"),
    ("1403-batch-machines-stay-unknown", "a refused launch"),
    ("1405-some-machines-of-one-pool-never-start", "a refused launch"),
    ("1406-volumes-do-not-come-on-new-machines", "a pod that waits for its volume"),
    ("1408-replicas-wait-since-half-an-hour", "pods that wait"),
    ("1416-reserved-pool-launches-nothing-this-week", "pods that wait"),
    ("1435-renderers-since-the-new-weekly-image", "pods that fail"),
    ("1474-reserved-machine-idle-for-hours", "pods that are rejected"),
    ("1383-on-demand-pods-wait-since-an-hour", "a refused launch"),
    ("1201-karpenter-machines-run-but-no-node-appears", "a machine that does not join"),
    ("1216-no-instance-is-created-since-the-upgrade", "a refused launch"),
    ("1217-every-machine-is-replaced-after-some-minutes", "machines that drift"),
    ("102-aws-auth-rewritten-without-node-roles", "that Nodes stopped together"),
    ("104-instance-profile-name-of-the-template", "a refused launch"),
    ("110-gpu-shared-name-by-time-slicing", "a resource that is awaited"),
    ("118-custom-domain-name-and-node-name", "a kubelet that is turned away"),
    ("126-nvidia-variant-on-machines-without-gpu", "the instance type"),
    ("129-root-volume-too-small", "a Node without room"),
    ("202-nodes-with-another-security-group", "that others join"),
    ("203-one-vcpu-machines-do-not-boot", "that others join"),
    ("1112-two-slices-one-card", "what a machine offers"),
    ("115-calico-ebpf-without-kube-proxy", "a plugin that fails"),
    ("204-new-gpu-image-does-not-join", "that others join"),
    ("205-aws-node-without-its-role", "a plugin that is refused"),
    ("208-container-runtime-flag-after-the-upgrade", "the kubelet of the image"),
    ("219-plain-ubuntu-image", "the image"),
    ("221-no-arm64-image-in-the-class", "a pool that launches nothing"),
    ("223-role-missing-in-aws-auth-on-al2023", "that nobody joins, for there may be an access entry"),
    ("22-startup-taint-nobody-removes", "a taint that stays"),
    ("304-root-volume-smaller-than-gpu-image", "a refused launch"),
    ("307-node-role-lacks-cni-policy", "a plugin that is refused"),
    ("312-gpu-pool-on-the-standard-image", "a resource that is awaited"),
    ("313-instance-type-without-trunk-support", "an Event of a machine"),
    ("332-subnet-has-no-free-addresses", "a refused launch"),
    ("338-cpu-limit-below-the-next-machine", "a Pod that waits"),
    ("340-node-role-may-not-read-ecr", "an image that cannot be pulled"),
    ("342-bottlerocket-userdata-folded-into-one-line", "a refused launch"),
    ("347-bottlerocket-big-volume-on-the-wrong-device", "a Node without room"),
    ("344-windows-ipam-switched-off", "a Node that waits for addresses"),
    ("39-insufficient-capacity-g4dn", "a refused launch"),
    ("404-pause-image-name-without-tag", "a Node whose pods do not start"),
    ("407-account-default-puts-tags-into-imds", "a refused launch"),
    ("412-static-pool-does-not-follow-pods", "a Pod that waits"),
    ("413-role-left-aws-auth-with-the-node-group", "that Nodes stopped together"),
    ("414-auto-mode-has-no-small-instances", "a Pod that waits"),
    ("418-g7-gpu-missing-from-the-driver-list", "a resource that is awaited"),
    ("419-cis-bootstrap-wants-legacy-iptables", "that others join"),
    ("435-mapping-deleted-along-with-the-old-node-group", "that Nodes stopped together"),
    ("438-cilium-pod-range-smaller-than-max-pods", "a Node that has no addresses left"),
    ("440-nvidia-runtime-configured-but-not-installed", "a Node whose pods do not start"),
    ("441-new-gpu-family-gets-the-wrong-kernel-module", "a resource that is awaited"),
    ("443-bottlerocket-neuron-driver-fails-on-inf1", "a resource that is awaited"),
    ("536-data-volume-mounted-over-containerd", "a Node whose pods do not start"),
    ("604-karpenter-does-not-know-of-the-raid", "a Pod that waits"),
    ("904-small-disk-counted-as-the-whole", "a Pod that waits"),
    ("949-coat-cut-one-size-too-small", "a Pod that waits"),
    ("605-bottlerocket-binds-the-disks-twice", "a machine with disks of its own"),
    ("606-soci-asks-ecr-for-the-pause-image", "a Node whose pods do not start"),
    ("608-kubelets-fall-silent-on-the-new-image", "that Nodes stopped together"),
    ("614-auto-mode-does-not-read-ec2nodeclass", "NodePools that are worked on"),
    ("615-module-update-removes-the-instance-profile", "a refused launch"),
    ("617-second-capacity-block-is-never-taken", "a refused launch"),
    ("618-tiny-old-machines-come-with-swap", "that others join"),
    ("633-typha-port-closed-between-nodes", "a plugin that fails"),
    ("636-two-interfaces-are-one-too-few", "a plugin that fails"),
    ("646-standard-image-on-inferentia", "a resource that is awaited"),
    ("647-s3-gateway-without-a-route", "an image that cannot be pulled"),
    ("648-modern-ebpf-freezes-graviton", "that Nodes stopped together"),
    ("649-windows-on-a-type-too-new", "a resource that is awaited"),
    ("650-second-node-role-is-not-mapped", "that nobody joins, for there may be an access entry"),
    ("653-cilium-left-its-taint-was-kept", "a taint that stays"),
    ("301-vcpu-quota-for-gpu-bucket", "what AWS denies"),
    ("434-spot-quota-of-the-account", "what AWS denies"),
    ("514-service-control-policy-denies-run", "what AWS denies"),
    ("672-gpu-pool-is-at-its-own-limit", "what the machine says"),
    ("673-windows-ipam-was-never-switched-on", "what the machine says"),
    ("676-bottlerocket-1-28-falls-back-to-cgroupfs", "what AWS denies"),
    ("712-bottlerocket-told-of-the-wrong-region", "what the machine says"),
    ("721-controller-role-instead-of-the-node-role", "what the machine says"),
    ("722-documented-role-name-in-aws-auth", "what the machine says"),
    ("726-profile-the-template-no-longer-makes", "what AWS denies"),
    ("729-spot-quota-used-up", "what AWS denies"),
    ("730-no-arm-image-with-a-gpu", "what AWS denies"),
    ("740-volta-gets-the-open-kernel-module", "what the machine says"),
    ("732-ubuntu-image-never-made-for-this-minor", "a refused launch"),
    ("751-seven-to-a-zone", "a refused launch"),
    ("759-price-list-without-the-new-family", "pods that wait"),
    ("763-free-account-may-not-have-that-size", "a refused launch"),
    ("764-raid0-before-bottlerocket-1-22", "the image of a machine"),
    ("766-spread-over-a-zone-the-pool-does-not-have", "pods that wait"),
    ("767-a-sixth-of-a-gpu-counts-as-none", "pods that wait"),
    ("771-the-plain-image-of-the-same-linux", "that no machine joins"),
    ("785-pause-image-asked-for-without-its-tag", "pods that are refused"),
    ("786-second-disk-hides-the-pause-image", "pods that are refused"),
    ("790-neuron-driver-too-new-for-inf1", "a resource that is awaited"),
    ("793-public-address-and-four-interfaces", "a refused launch"),
    ("801-eksctl-left-the-karpenter-role-out", "that no machine joins"),
    ("811-fleet-request-with-too-long-a-body", "a refused launch"),
    ("812-launch-templates-fail-in-the-whole-region", "a refused launch"),
    ("813-account-full-of-launch-templates", "a refused launch"),
    ("821-marketplace-image-does-not-know-the-type", "a refused launch"),
    ("823-only-one-of-the-two-lists-knows-the-role", "that no machine joins"),
    ("842-seven-and-a-half-percent-too-careful", "pods that wait"),
    ("844-one-more-machine-would-be-over-the-limit", "pods that wait"),
    ("848-subnet-names-machines-after-their-id", "a kubelet that is turned away"),
    ("852-auto-mode-was-switched-off-by-the-way", "pods that wait"),
    ("854-taint-of-a-scheme-that-is-gone", "a taint that stays"),
    ("886-private-subnets-of-the-neighbour", "a refused launch"),
    ("890-hundred-gigabytes-on-a-twenty-gigabyte-disk", "what pods ask for"),
    ("905-hundred-gigabytes-on-the-wrong-disk", "a disk that is full"),
    ("910-runtime-the-image-does-not-hold", "a pod's sandbox that fails"),
    ("917-nothing-of-that-kind-to-be-had", "a refused launch"),
    ("936-two-questions-the-role-may-not-ask", "what AWS denies"),
    ("939-doorman-of-the-private-door", "an image that cannot be pulled"),
    ("943-second-steward-for-the-same-cards", "a resource that is awaited"),
    ("947-six-chairs-ordered-four-reserved", "a refused launch"),
    ("944-class-that-cannot-die", "a deletion that hangs"),
    ("1024-machines-come-and-the-pod-waits-on", "machines that come out too small"),
    ("1026-new-machine-has-less-memory-than-thought", "machines that come out too small"),
    ("1027-class-waits-for-its-profile", "a profile that Karpenter cannot make"),
    ("1030-first-machines-of-a-new-install-do-not-show-up", "a kubelet that is turned away"),
    ("1005-gone-machine-waits-for-its-pods", "a drain that waits"),
    ("1021-fixed-number-keeps-its-old-image", "a drift that waits"),
    ("1031-launch-refused-while-reading-the-images", "a refused launch"),
    ("1033-only-the-new-image-does-not-come-up", "machines that do not come up"),
    ("1055-six-does-not-add-up", "an agent that crashes"),
    ("1056-sidecars-only-on-yesterdays-machines", "pods that fail"),
    ("1064-lustre-lost-its-shine", "pods that fail"),
    ("1089-scratch-pool-finds-no-type", "pods that wait"),
    ("1115-every-new-node-just-too-small", "machines that come out too small"),
    ("662-gpu-image-whose-plugin-cannot-load-nvml", "a device plugin that fails"),
    ("998-hook-cannot-write-in-etc-nvidia", "a device plugin that fails"),
    ("1129-big-machine-without-its-fast-cards", "a NodePool that is full"),
    ("1141-images-eat-the-small-disk", "a disk that is full"),
    ("1176-two-launches-without-a-node", "machines of two images"),
    ("1177-edge-machines-get-lost", "machines of two node classes"),
    ("1178-ready-machine-starts-no-pod", "pods that do not start"),
    ("1508-fractional-accelerators-not-offered", "devices that nothing makes known"),
    ("1509-new-machines-are-taken-away-at-once", "a taint that comes onto Nodes"),
    ("1510-only-some-images-arrive", "images that are not unpacked"),
    ("1525-first-test-of-the-autoscaler", "a machine that does not join"),
    ("1530-traffic-does-not-reach-the-rotated-machines", "what the controller of load balancers says"),
    ("1611-cheapest-old-machines", "that others join"),
    ("1614-one-class-for-both-pools", "the instance type"),
    ("1636-smallest-of-the-big-cards", "pods that wait"),
    ("1641-works-with-the-other-family", "pods that wait"),
    ("1644-one-family-of-the-list", "pods that wait"),
    ("1645-another-one-every-few-minutes", "machines that come out too small"),
    ("1864-web-preview-shell", "machines that come and go"),
    ("2103-java-cannot-map-executable-memory", "pods that fail on one image"),
    ("2104-cpu-limits-that-do-not-round", "pods that fail on one image"),
    ("2107-java-sees-the-whole-node", "pods that fail on one image"),
    ("2124-volume-in-a-zone-the-pool-may-not-use", "the volume of a pod"),
    ("2132-arm-nodes-get-the-amd64-pause-image", "the architecture of the machine"),
    ("2143-authenticator-older-than-its-kubeconfig", "machines that do not join"),
    ("2145-disk-faster-than-its-iops", "what EC2 refuses"),
    ("2146-image-without-the-network-flag", "what EC2 refuses"),
    ("2147-single-tenant-vpc", "what EC2 refuses"),
    ("2149-one-subnet-behind-a-filter", "that others join"),
    ("2162-pods-with-an-identity-of-their-own", "pods that fail on one image only"),
    ("2172-node-init-has-no-date", "an agent that fails on one image only"),
    ("2175-flatcar-environment-is-read-only", "an image that no node joins with"),
    ("2181-gpu-pool-without-any-size", "which instance types the region has"),
    ("2201-two-kinds-of-accelerator", "a Node without the resource"),
    ("2204-more-than-the-machine-has", "a machine of that size"),
    ("2208-one-claim-stops-all", "capacity that runs out"),
    ("2215-old-bgp-switch-wants-a-missing-configmap", "an agent that fails"),
    ("2216-docker-25-no-longer-says-virtual-size", "a runtime that does not fit"),
    ("2218-include-that-may-fail-first-may-not-any-more", "replacements that fail"),
    ("2223-ipprefixcount-in-an-ipv6-cluster", "what EC2 refuses"),
    ("2236-nothing-to-be-had-anywhere", "capacity that runs out"),
    ("2239-six-nodes-of-full-length", "pods that wait"),
    ("2251-gpu-type-that-the-region-does-not-offer", "which instance types the region has"),
    ("2261-since-half-past-eleven", "a quota of AWS"),
    ("2263-three-pods-wait", "a launch that EC2 refuses"),
    ("2278-label-read-too-early", "a Node without the resource"),
    ("2283-hosts-that-stay-dark", "an agent that fails"),
    ("2284-two-of-the-second-family", "an agent that fails"),
    ("2281-replaced-by-nothing", "replacements that fail"),
    ("2285-between-two-networks", "a pull that fails"),
    ("2286-image-of-the-new-line", "replacements that fail"),
    ("2288-database-pool-empty", "what EC2 refuses"),
    ("2289-first-morning-in-zurich", "an account that AWS has not verified"),
];

/// Cases in whose files lint also sees what the machine would fail over next.
const NEXT_MISTAKE: &[(&str, &str)] = &[
    ("1846-bottlerocket-build", "OverriddenByKarpenter"),
    ("1859-class-may14", "NodeClassNotReady"),
    ("1882-serving-ml", "NodeConfigIgnored"),
    ("1893-ride-burst", "VolumeOfAnotherFamily"),
    ("1918-frstg2", "NodeClassNotReady"),
    ("1953-edge-london", "NothingReserved"),
    ("1973-platform-apse1", "DanglingNodeClassRef"),
    ("1999-userns-pool", "OverriddenByKarpenter"),
    ("2016-workshop-lab", "NodePoolNotReady"),
    ("2145-disk-faster-than-its-iops", "VolumeRefused"),
    ("2288-database-pool-empty", "VolumeRefused"),
    ("207-containerd-argument-without-quotes", "CustomBootstrapWithoutTaint"),
    ("342-bottlerocket-userdata-folded-into-one-line", "TomlInvalid"),
    ("342-bottlerocket-userdata-folded-into-one-line", "OverriddenByKarpenter"),
    ("712-bottlerocket-told-of-the-wrong-region", "OverriddenByKarpenter"),
    ("881-last-one-to-the-table", "OverriddenByKarpenter"),
    ("1660-healthy-grown-over-the-years", "OverriddenByKarpenter"),
    ("1714-rebranded-image-of-the-platform-team", "OverriddenByKarpenter"),
    ("1752-copied-class-for-the-second-site", "OverriddenByKarpenter"),
    ("1759-baseline-image-with-an-auditor-in-mind", "OverriddenByKarpenter"),
    ("1763-certified-variant-in-ireland", "OverriddenByKarpenter"),
    ("1804-shelf-of-old-classes", "DanglingNodeClassRef"),
    ("347-bottlerocket-big-volume-on-the-wrong-device", "VolumeOfAnotherFamily"),
    ("416-root-volume-of-two-gigabytes", "VolumeRefused"),
    ("611-capacity-type-xspot", "UnknownValue"),
    ("669-toml-wrapped-into-mime", "NoInterpreter"),
    ("713-kubelet-argument-that-does-not-exist", "UnknownFlag"),
    ("853-custom-family-knows-no-windows-addresses", "EntryReplaced"),
    ("853-custom-family-knows-no-windows-addresses", "SystemNotOffered"),
    ("1111-logs-and-exec-refused", "EntryReplaced"),
    ("1129-big-machine-without-its-fast-cards", "ReservationUnused"),
    ("905-hundred-gigabytes-on-the-wrong-disk", "VolumeOfAnotherFamily"),
    ("1141-images-eat-the-small-disk", "VolumeOfAnotherFamily"),
    ("1147-pinned-cpus-strangers-at-the-door", "BootstrapBeforeKarpenter"),
    ("1624-helper-that-is-not-there", "ContainerImageUnreachable"),
];

#[test]
fn real_cases_have_the_cause_under_lint_that_they_have_under_diagnose() {
    let mut faults = String::new();
    let (mut agreed, mut objects) = (0, 0);
    for folder in case_folders() {
        let name = folder.file_name().unwrap_or_default().display().to_string();
        let expect: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(folder.join("expect.json")).unwrap()).unwrap();
        let (mut state, mut files) = (ClusterState::default(), Files::default());
        load_case(&folder, &mut state);
        load_case(&folder, &mut files);
        let now = serde_json::from_value(expect["now"].clone()).expect("a time");
        let blamed =
            |blame: &engine::api::Blame| matches!(blame.kind.as_str(), "EC2NodeClass" | "NodePool" | "ConfigMap");
        let diagnosed: BTreeSet<(String, String)> = diagnose(Judging::new(&state, now, &Thresholds::default()))
            .into_iter()
            .filter_map(|d| d.status)
            .filter_map(|s| s.blame.filter(|b| blamed(b)).map(|blame| (s.cause.to_string(), blame.object)))
            .filter(|(_, object)| {
                let others = expect["object_to_fix_alternatives"].as_array().map_or(&[][..], Vec::as_slice);
                others.iter().chain([&expect["object_to_fix"]]).any(|to_fix| to_fix == object)
            })
            .collect();
        let report = lint(files, None);
        objects += report.looked_at;
        // What an API server has served, it takes.
        let of_schema = |finding: &&LintFinding| matches!(&*finding.cause, "RefusedByApiServer" | "UnknownField");
        let broken: Vec<_> = report.findings.iter().filter(of_schema).collect();
        assert!(broken.is_empty(), "{name}: {broken:#?}");
        let mut linted: BTreeSet<(String, String)> =
            report.findings.into_iter().map(|f| (f.cause, f.blame.object)).collect();
        for (_, next) in NEXT_MISTAKE.iter().filter(|(case, _)| *case == name) {
            let before = linted.len();
            linted.retain(|(cause, _)| cause != next);
            assert!(linted.len() < before, "{name}: lint does not see {next}");
        }
        let listed = NEEDS_A_MACHINE.iter().any(|(case, _)| *case == name);
        match (listed, linted == diagnosed) {
            (false, true) => agreed += usize::from(!linted.is_empty()),
            (true, false) if linted.is_empty() => {}
            (true, _) => _ = writeln!(faults, "{name} is listed as needing a machine, and lint finds {linted:?}"),
            (false, false) => _ = writeln!(faults, "{name}: lint finds {linted:?}, diagnose {diagnosed:?}"),
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
    assert!(agreed >= 6, "only {agreed} cases show anything");
    assert!(objects > 1000, "only {objects} objects");
}

#[test]
fn a_schema_judges_what_is_there_and_no_placeholder() {
    let found = |fields: &str| shown(&found_in("f", &of_alias("al2023@latest", fields)));
    assert_eq!(found("role: a\n  instanceProfile: b"), [""; 0], "a patch: its selectors are elsewhere");
    let selectors = "subnetSelectorTerms: [{id: subnet-1}]\n  securityGroupSelectorTerms: [{id: sg-1}]";
    let whole = |fields: &str| found(&format!("{selectors}\n  {fields}"));
    assert_eq!(whole("role: a"), [""; 0]);
    assert_eq!(whole("role: a\n  instanceProfile: b"), ["Error RefusedByApiServer f:4:1"]);
    assert_eq!(whole("role: a\n  instanceProfile: ${profile}"), [""; 0]);
    assert_eq!(whole("role: a\n  detailMonitoring: true"), ["Warning UnknownField f:9:3"]);
    assert_eq!(whole("role: a\n  metadataOptions: {httpTokens: Required}"), ["Error RefusedByApiServer f:9:21"]);
    assert_eq!(whole("role: a\n  metadataOptions: {httpTokens: required}"), [""; 0]);
    assert_eq!(found("subnetSelectorTerms: [{id: subnet-1}]\n  role: a"), ["Error RefusedByApiServer f:4:1"]);
    // A null is not there, and a placeholder says nothing of the fields that a rule does not read.
    let null = "subnetSelectorTerms: null\n  securityGroupSelectorTerms: [{id: sg-1}]\n  role: a";
    assert_eq!(found(null), ["Error RefusedByApiServer f:4:1"]);
    let by_id = of_alias("al2023@latest", &format!("{selectors}\n  role: ${{role}}"))
        .replace("alias: al2023@latest", "id: ami-1");
    assert_eq!(shown(&found_in("f", &by_id)), ["Error RefusedByApiServer f:4:1"]);
}

/// What is required is missed by people who write a NodePool, and not by those who patch one.
#[test]
fn a_whole_object_lacks_what_is_required() {
    let of_reference = "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n";
    let of_requirements = "      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]\n";
    let found_of = |inner: &str, more: &str| {
        let text = format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: general}}\nspec:\n{more}  template:\n    \
             spec:\n{inner}"
        );
        found_in("f", &text)
    };
    let says = |inner: &str, more: &str| {
        found_of(inner, more).iter().map(|finding| finding.message.clone()).collect::<Vec<_>>().join(" ")
    };
    let (both, limits) = (format!("{of_reference}{of_requirements}"), "  limits: {cpu: 100}\n");
    assert_eq!(says(&both, limits), "");
    assert!(says(of_requirements, limits).contains("spec.template.spec lacks nodeClassRef, which is required"));
    assert!(says(of_reference, limits).contains("spec.template.spec lacks requirements, which is required"));
    // Patches, the last two by their own words.
    assert_eq!(says(of_requirements, ""), "");
    assert_eq!(says("      expireAfter: 720h\n", limits), "");
    let labels = pool("x").split("  template:").next().unwrap_or_default().to_owned()
        + "  limits: {cpu: 10}\n  template: {metadata: {labels: {a: b}}}\n";
    assert_eq!(shown(&found_in("f", &labels)), [""; 0]);
    assert_eq!(says(&both, "  disruption: {consolidationPolicy: WhenEmpty, $patch: replace}\n"), "");
    assert_eq!(says(&both, "  disruption: {consolidateAfter: 1m, budgets: [{$patch: replace}]}\n"), "");
}

#[test]
fn a_field_is_told_the_place_where_it_belongs() {
    for (written, belongs) in [
        ("  disruption: {consolidateAfter: 1m, expireAfter: 720h}\n", "spec.template.spec.expireAfter"),
        ("  requirements: []\n", "spec.template.spec.requirements"),
        ("  startupTaints: []\n", "spec.template.spec.startupTaints"),
    ] {
        let found = found_in("f", &(pool("{key: kubernetes.io/os, operator: In, values: [linux]}") + written));
        assert!(found.iter().any(|finding| finding.message.contains(belongs)), "{written} {found:?}");
    }
}

#[test]
fn a_requirement_lacks_the_values_that_its_operator_needs() {
    let with = |last: &str| {
        let all = format!("{{key: kubernetes.io/os, operator: In, values: [linux]}}\n      - {last}");
        found_in("f", &(pool(&all)))
    };
    for last in [
        "{key: karpenter.sh/capacity-type, operator: In}",
        "{key: karpenter.sh/capacity-type, operator: In, values: }",
        "{key: karpenter.sh/capacity-type, operator: In, values: []}",
    ] {
        let found = with(last);
        assert_eq!(shown(&found), ["Error RefusedByApiServer f:10:9"], "{last} {found:?}");
    }
    assert!(with("{key: karpenter.sh/capacity-type, operator: Exists}").is_empty());
}

/// What kustomize merges into another object is judged as a part, whatever it lacks.
#[test]
fn a_patch_of_kustomize_lacks_nothing() {
    let folder = tempfile::TempDir::new().unwrap();
    let text = of_alias("al2023@latest", "subnetSelectorTerms: [{id: subnet-1}]\n  role: a");
    fs::write(folder.path().join("class.yaml"), text).unwrap();
    let file = folder.path().join("class.yaml").display().to_string();
    assert_eq!(run(&["-f", &file], "").code, 1);
    fs::write(folder.path().join("kustomization.yaml"), "patches: [{path: class.yaml}]\n").unwrap();
    let patched = run(&["-f", &file], "");
    assert_eq!((patched.code, patched.out.as_str()), (0, ""));
}

/// msfidelis, pytorch/test-infra and others keep the user data of launch templates in files of their own.
#[test]
fn a_file_of_user_data_may_be_a_launch_templates() {
    for (file, text) in [
        ("node.sh", "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--max-pods=110'\n"),
        ("fragment.sh", "set -ex\necho hello\n"),
        (
            "node.ps1",
            "<powershell>\n& $EKSBootstrapScriptFile -EKSClusterName shop 3>&1 4>&1 5>&1 6>&1\n</powershell>\n",
        ),
        (
            "mime.tpl",
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: \
             text/x-shellscript\n#!/bin/bash\necho hello\n--//--\n",
        ),
    ] {
        assert_eq!(shown(&found_in(file, text)), [""; 0], "{file}");
    }
    // Source code holds it among other text.
    for file in ["nodes.tf", "generate.py"] {
        let text = "#!/usr/bin/env python3\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfg\n";
        let (mut files, mut summary) = (Files::default(), Summary::default());
        load_from(file, text.as_bytes(), &mut files, &mut summary);
        assert_eq!(lint(files, None).looked_at, 0, "{file}");
    }
}

#[test]
fn a_node_config_in_a_script_or_of_a_hybrid_node() {
    let config = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config: {maxPods: 50}\n";
    let found = |text: &str| shown(&found_in("f", &class("AL2023", text)));
    assert_eq!(found(&format!("#!/bin/bash\nyum install -y htop\n{config}")), ["Warning MisreadAsShell f:10:5"]);
    for text in [
        format!("#!/bin/bash\ncat > /etc/eks/x.yaml <<EOF\n{config}EOF\n"),
        format!("#!/bin/bash\nCONFIG='\n{config}'\n"),
    ] {
        assert_eq!(found(&text), [""; 0], "{text}");
    }
    let of_hybrid = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster: {name: shop, region: \
                     eu-west-1}\n  hybrid: {ssm: {activationCode: x, activationId: y}}\n";
    assert_eq!(shown(&found_in("nodeconfig.yaml", of_hybrid)), [""; 0]);
}

#[test]
fn what_a_script_fills_in_is_not_judged() {
    let limits = "{key: kubernetes.io/arch, operator: In, values: [__ARCH__]}";
    let text = pool(limits) + "  limits: {cpu: \"__CPU_LIMIT__\"}\n";
    assert_eq!(shown(&found_in("pool.yaml.tpl", &text)), [""; 0]);
    let auth = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aws-auth, namespace: kube-system}\ndata:\n  mapRoles: \
                |\n    - rolearn: arn:aws:iam::${ACCOUNT_ID}:role/${ROLE}\n      username: \
                system:node:{{EC2PrivateDNSName}}\n      groups: [system:bootstrappers, system:nodes]\n---\n";
    let class = of_alias("al2023@latest", "role: ${ROLE}");
    assert_eq!(shown(&found_in("f", &format!("{auth}{class}"))), [""; 0]);
}

#[test]
fn a_node_overlay_that_karpenter_does_not_apply() {
    let found = |api_version: &str, fields: &str| {
        let text = format!(
            "apiVersion: {api_version}\nkind: NodeOverlay\nmetadata: {{name: dearer}}\nspec:\n  requirements: [{{key: \
             karpenter.sh/capacity-type, operator: In, values: [spot]}}]\n  {fields}\n"
        );
        shown(&found_in("f", &text))
    };
    let alpha = |fields: &str| found("karpenter.sh/v1alpha1", fields);
    for fine in [
        "priceAdjustment: +30%",
        "priceAdjustment: \"+0.05\"",
        "price: \"0.2\"",
        "capacity: {nvidia.com/gpu: 4}",
        "capacity: {${resource}: 4}",
        "weight: 10000",
    ] {
        assert_eq!(alpha(fine), [""; 0], "{fine}");
    }
    assert_eq!(alpha("priceAdjustment: 30%"), ["Error RefusedByApiServer f:6:3"]);
    assert_eq!(alpha("weight: 10001"), ["Error RefusedByApiServer f:6:3"]);
    assert_eq!(alpha("capacity: {cpu: 4}"), ["Error RefusedByApiServer f:6:3"]);
    assert_eq!(alpha("priceAdjustments: +30%"), ["Warning UnknownField f:6:3"]);
    assert_eq!(alpha("capacity: {vpc.amazonaws.com/efa: 4}"), ["Warning CapacityOfEc2 f:6:14"]);
    assert_eq!(found("karpenter.sh/v1", "weight: 1"), ["Error ApiVersionNotServed f:1:1"]);
    assert_eq!(found("${version}", "weight: 1"), [""; 0]);
}

#[test]
fn a_schedule_that_karpenter_cannot_read() {
    let found = |schedule: &str| {
        let budget = format!("disruption: {{budgets: [{{nodes: \"0\", duration: 8h, schedule: \"{schedule}\"}}]}}");
        let text = pool("{key: kubernetes.io/os, operator: In, values: [linux]}");
        shown(&found_in("f", &text.replace("spec:\n  template:", &format!("spec:\n  {budget}\n  template:"))))
    };
    let unreadable = ["Warning ScheduleUnreadable f:5:53"];
    for wrong in ["0 25 * * *", "61 0 * * *", "TZ=Europe/Berlin 0 0 * * *", "0 0 * * 7"] {
        assert_eq!(found(wrong), unreadable, "{wrong}");
    }
    for fine in ["0 9 * * mon-fri", "@daily", "*/15 22 1,15 * ?", "${cron}", "0 ${hour} * * *"] {
        assert!(!found(fine).contains(&unreadable[0].to_owned()), "{fine}");
    }
    // The schema refuses it, which is one finding.
    assert_eq!(found("daily"), ["Error RefusedByApiServer f:5:53"]);
}

/// Every example of a page, hit or near miss: a cause that the text shows is found under lint where `diagnose` finds it
/// in an object that people write, and nowhere else. Where an example differs by design, its block `yaml lint` says in
/// what and why.
#[test]
fn pages_have_the_cause_under_lint_that_they_have_under_diagnose() {
    let now = "2026-01-15T12:00:00Z".parse().expect("a time");
    let by_text = |cause: &String| rules::by_cause(cause).is_some_and(|rule| rule.lint);
    let mut faults = String::new();
    let mut agreed = BTreeSet::new();
    for rule in rules::ALL {
        for example in examples(rule.cause) {
            let text = over_cluster(&example.objects).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            let mut state = ClusterState::default();
            load_from("page", text.as_bytes(), &mut state, &mut Summary::default());
            let written =
                |blame: &engine::api::Blame| matches!(blame.kind.as_str(), "EC2NodeClass" | "NodePool" | "ConfigMap");
            let diagnosed: BTreeSet<String> = diagnose(Judging::new(&state, now, &Thresholds::default()))
                .into_iter()
                .filter_map(|d| d.status)
                .filter(|s| s.blame.as_deref().is_some_and(written))
                .map(|s| s.cause.to_string())
                .filter(by_text)
                .collect();
            let linted: BTreeSet<String> =
                found_in("page", &text).into_iter().map(|f| f.cause).filter(by_text).collect();
            let (also, without) = example.lint.map(|lint| (lint.also, lint.without)).unwrap_or_default();
            // A difference that is listed must be there.
            let listed = also.is_disjoint(&diagnosed) && without.is_subset(&diagnosed);
            let wanted: BTreeSet<String> = diagnosed.difference(&without).chain(&also).cloned().collect();
            if listed && linted == wanted {
                agreed.extend(linted.intersection(&diagnosed).cloned());
            } else {
                let _ = writeln!(
                    faults,
                    "{}.md:{} {}: lint finds {linted:?}, diagnose {diagnosed:?}, listed are also {also:?} without \
                     {without:?}",
                    rule.cause, example.line, example.title
                );
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
    let by_text: BTreeSet<String> =
        rules::ALL.iter().filter(|rule| rule.lint).map(|rule| rule.cause.to_owned()).collect();
    assert_eq!(agreed, by_text, "of each a page has an example that lint finds");
}

struct Answer {
    code: i32,
    out: String,
    err: String,
}

fn run(args: &[&str], stdin: &str) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_nodewhy"))
        .arg("lint")
        .args(args)
        // Without a file it would read the cluster of whoever runs the test.
        .env("KUBECONFIG", "/nonexistent")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .write_stdin(stdin)
        .output()
        .expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Answer { code: output.status.code().expect("no signal"), out: text(output.stdout), err: text(output.stderr) }
}

/// A class with these lines of user data.
fn class_with(lines: &str) -> String {
    let head = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: batch}\nspec:\n  \
        amiSelectorTerms: [{alias: al2023@latest}]\n  role: KarpenterNodeRole-shop\n  userData: |\n    \
        apiVersion: node.eks.aws/v1alpha1\n    kind: NodeConfig\n    spec:\n      kubelet:\n        flags:\n";
    format!("{head}{lines}")
}

#[test]
fn a_diff_reports_what_the_new_files_introduce_and_nothing_that_only_moved() {
    const OLD: &str = "        - --node-labels=kubernetes.io/team=a\n";
    const MOVED: &str = "        - --v=4\n        - --node-labels=kubernetes.io/team=a\n";
    const WORSE: &str = "        - --node-labels=kubernetes.io/team=a\n        - --register-with-taints=x\n";
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        std::fs::create_dir_all(folder.path().join(name)).expect("a folder");
        std::fs::write(folder.path().join(name).join("class.yaml"), text).expect("a file");
        folder.path().join(name).display().to_string()
    };
    let (old, moved, worse) =
        (file("old", &class_with(OLD)), file("moved", &class_with(MOVED)), file("worse", &class_with(WORSE)));
    let good = file("good", &class_with("        - --v=4\n"));
    let broken = file("broken", "kind: EC2NodeClass\nspec: [\n");
    let alone = run(&[&old], "");
    assert!(alone.code == 1 && alone.out.contains("KubeletRefusesLabels"), "{}", alone.out);
    for (one, other) in [(&old, &old), (&old, &moved), (&moved, &old), (&worse, &old), (&old, &good)] {
        let answer = run(&["--diff", one, other], "");
        assert_eq!((answer.code, &*answer.out), (0, ""), "{one} to {other}: {}", answer.err);
    }
    let answer = run(&["--diff", &old, &worse], "");
    assert_eq!((answer.code, answer.out.matches("-->").count()), (1, 1), "{}", answer.out);
    assert!(answer.out.contains("--register-with-taints=x"), "{}", answer.out);
    let answer = run(&["--diff", &good, &old], "");
    assert!(answer.code == 1 && answer.out.contains("KubeletRefusesLabels"), "{}", answer.out);
    let answer = run(&["--diff", &broken, &old], "");
    assert!(answer.code == 2 && answer.err.contains("nothing can be compared"), "{}", answer.err);
}

#[test]
fn what_a_version_of_kubernetes_takes_away() {
    let found = |kubernetes: &str, text: &str| {
        let Answer { out, err, .. } = run(&["-f", "-", "-o", "github", "--kubernetes", kubernetes], text);
        assert!(err.ends_with("checked, 0 not known\n"), "{err}");
        let title = |line: &str| {
            line.split_once("title=").and_then(|(_, rest)| rest.split_once("::")).map(|(title, _)| title.to_owned())
        };
        out.lines().filter_map(title).collect::<Vec<_>>()
    };
    let of = |family: &str, terms: &str, data: &str| {
        class(family, data).replacen("  role:", &format!("  amiSelectorTerms: [{terms}]\n  role:"), 1)
    };
    let flag = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: \
                [--pod-infra-container-image=x]\n";
    let alias = of("AL2023", "{alias: al2023@latest}", flag);
    assert_eq!(found("1.35", &alias), ["KubeletFlagRemoved"]);
    assert_eq!(found("v1.34.1", &alias), [""; 0]);
    assert_eq!(run(&["-f", "-"], &alias).code, 0, "the version is not known");
    // The image has the kubelet that it has.
    let parameter =
        "{ssmParameter: /aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id}";
    assert_eq!(found("1.35", &of("AL2023", parameter, flag)), [""; 0]);
    assert_eq!(found("1.34", &of("AL2023", &parameter.replace("1.34", "1.35"), flag)), ["KubeletFlagRemoved"]);
    assert_eq!(found("1.35", &of("AL2023", "{id: ami-0aaa0000000000001}", flag)), [""; 0]);
    let gate = of(
        "AL2023",
        "{alias: al2023@latest}",
        &flag.replace("--pod-infra-container-image=x", "--feature-gates=KubeletPSI=true"),
    );
    assert_eq!(found("1.32", &gate), ["FeatureGateRefused"], "it comes with 1.33");
    assert_eq!(found("1.33", &gate), [""; 0]);
    // An alias follows the cluster, and no version that nodewhy supports has these.
    let unknown = |terms: &str, wrong: &str| {
        let text = of("AL2023", terms, &flag.replace("--pod-infra-container-image=x", wrong));
        run(&["-f", "-"], &text).code
    };
    let latest = "{alias: al2023@latest}";
    assert_eq!(unknown(latest, "--container-runtime=remote"), 1);
    assert_eq!(unknown(latest, "--feature-gates=MemoryQuality=true"), 1);
    assert_eq!(unknown(latest, "--feature-gates=KubeletPSI=true"), 0);
    assert_eq!(unknown(latest, "--feature-gates=MemoryQoS=true"), 0);
    assert_eq!(unknown("{id: ami-0aaa0000000000001}", "--container-runtime=remote"), 0);
    let al2 = of("AL2", "{alias: al2@v20250123}", "#!/bin/bash\ntrue\n");
    assert_eq!(found("1.33", &al2), ["NodeClassNotReady"]);
    assert_eq!(found("1.32", &al2), [""; 0]);
    // The last release is of December 2025.
    assert_eq!(found("1.32", &al2.replace("v20250123", "v20260123")), ["NodeClassNotReady"]);
    let windows = of("Windows2025", "{alias: windows2025@latest}", "");
    assert_eq!(found("1.34", &windows), ["NodeClassNotReady"]);
    assert_eq!(found("1.35", &windows), [""; 0]);
    assert_eq!(found("1.33", &al2.replace("alias: al2@v20250123", "name: my-al2")), [""; 0]);
    let cgroup = "#!/bin/bash\ngrubby --update-kernel=ALL --args=systemd.unified_cgroup_hierarchy=0\nreboot\n";
    let cgroup = of("AL2023", "{alias: al2023@latest}", cgroup);
    assert_eq!(found("1.35", &cgroup), ["KubeletRefusesCgroupV1"]);
    assert_eq!(found("1.34", &cgroup), [""; 0]);
    assert_eq!(found("1.35", &cgroup.replace("=0", "=1")), [""; 0]);
    assert_eq!(found("1.35", &cgroup.replace("reboot", "true")), [""; 0], "the next boot never comes");
    // Three minor versions are the most that a kubelet may be older.
    let old = of("AL2023", &parameter.replace("1.34", "1.31"), "#!/bin/bash\ntrue\n");
    assert_eq!(found("1.35", &old), ["ImageTooOld"]);
    assert_eq!(found("1.34", &old), [""; 0]);
    assert_eq!(run(&["-f", "-"], &old).code, 0, "the version of the cluster is not known");
    assert_eq!(run(&["-f", "-", "--kubernetes", "2.1"], &al2).code, 2);
}

#[test]
fn a_file_of_user_data_is_held_against_the_version_too() {
    let found = |flag: &str, minor: Option<u32>| {
        let text =
            format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: [{flag}]\n");
        let (mut files, mut summary) = (Files::default(), Summary::default());
        load_from("node.yaml", text.as_bytes(), &mut files, &mut summary);
        if let Some(minor) = minor {
            files.for_kubernetes(minor);
        }
        lint(files, None).findings.into_iter().map(|finding| (finding.cause, finding.line)).collect::<Vec<_>>()
    };
    let flag = "--pod-infra-container-image=x";
    assert_eq!(found(flag, Some(35)), [("KubeletFlagRemoved".to_owned(), 5)]);
    assert!(found(flag, Some(34)).is_empty() && found(flag, None).is_empty());
    let gate = "--feature-gates=KubeletPSI=true";
    assert_eq!(found(gate, Some(32)), [("FeatureGateRefused".to_owned(), 5)]);
    assert!(found(gate, Some(33)).is_empty());
}

/// A class with images of this version, a Node with this kubelet, and Karpenter.
fn cluster_of(image: &str, kubelet: &str, karpenter: &str) -> String {
    let class = class("AL2023", "#!/bin/bash\ntrue\n").replacen(
        "  role:",
        "  amiSelectorTerms: [{alias: al2023@latest}]\n  role:",
        1,
    );
    let image = format!("amazon-eks-node-al2023-x86_64-standard-{image}-v20260108");
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: ip-10-0-0-1.ec2.internal}\n";
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: karpenter, namespace: kube-system}\n";
    format!(
        "{class}status:\n  amis: [{{id: ami-0aaa0000000000001, name: {image}}}]\n---\n{node}status: {{nodeInfo: \
         {{kubeletVersion: {kubelet}-eks-1}}}}\n---\n{deployment}spec: {{template: {{spec: {{containers: [{{name: \
         controller, image: 'public.ecr.aws/karpenter/controller:{karpenter}'}}]}}}}}}\n"
    )
}

#[test]
fn an_upgrade_is_answered_in_one_report() {
    let cluster = cluster_of("1.32", "v1.31.2", "1.4.0");
    let upgrade = |kubernetes: &str, karpenter: &str, format: &str| {
        run(&["-f", "-", "--kubernetes", kubernetes, "--karpenter", karpenter, "-o", format], &cluster)
    };
    let Answer { code, out, err } = upgrade("1.35", "1.8.0", "text");
    assert_eq!(code, 1, "{out}{err}");
    let page = include_str!("../../docs/lint.md");
    assert!(page.contains(&out), "docs/lint.md should hold:\n{out}");
    let certain = ["-f", "-", "--kubernetes", "1.35", "--karpenter", "1.8.0", "--fail-on", "certain"];
    assert_eq!(run(&certain, &cluster).code, 0);
    // Each version is fine for the other, and the kubelet is three minor versions older.
    let Answer { code, out, err } = upgrade("1.34", "1.8", "text");
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.starts_with("Upgrade to Kubernetes 1.34 and Karpenter 1.8.0: no obstacle found in 1 object\n"),
        "{out}"
    );
    assert!(out.contains("shutdownGracePeriod=2m30s is new") && !out.contains("not known"), "{out}");
    // What is there already is no change.
    let Answer { out, .. } = upgrade("1.32", "1.4.0", "text");
    assert_eq!(out, "Upgrade to Kubernetes 1.32 and Karpenter 1.4.0: no obstacle found in 1 object\n");
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON")["upgrade"].clone();
    let answer = json(&upgrade("1.35", "1.8.0", "json").out);
    assert_eq!(answer["ready"], false);
    assert_eq!(answer["kubernetes"], "1.35");
    assert_eq!(answer["obstacles"].as_array().map(Vec::len), Some(2));
    assert_eq!(json(&upgrade("1.34", "1.8.0", "json").out)["ready"], true);
    // Nothing found is no all-clear if the files show too little.
    let class_alone = cluster.split("status:").next().expect("the class");
    let answer = run(&["-f", "-", "--kubernetes", "1.35", "-o", "json"], class_alone);
    let answer = (answer.code, json(&answer.out));
    assert_eq!((answer.0, &answer.1["ready"]), (0, &serde_json::Value::Null), "{answer:?}");
    assert_eq!(answer.1["unknowns"].as_array().map(Vec::len), Some(2), "Karpenter and the images");
    assert_eq!(json(&run(&["-f", "-", "-o", "json"], &cluster).out), serde_json::Value::Null, "nobody asked");
    assert_eq!(run(&["-f", "-", "--karpenter", "new"], &cluster).code, 2);
}

#[test]
fn a_karpenter_does_not_serve_the_versions_before_its_own() {
    let found = |karpenter: &str, text: &str| {
        let Answer { out, .. } = run(&["-f", "-", "-o", "github", "--karpenter", karpenter], text);
        out.matches("title=ApiVersionNotServed").count()
    };
    let beta = pool("{key: a, operator: Exists}").replace("karpenter.sh/v1", "karpenter.sh/v1beta1");
    assert_eq!((found("1.14", &beta), found("1.0.6", &beta)), (1, 0));
    assert_eq!(found("1.14", &pool("{key: a, operator: Exists}")), 0);
    let alpha = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\n";
    assert_eq!((found("0.37.0", alpha), found("0.32.1", alpha)), (1, 0));
    let claim = "apiVersion: karpenter.sh/v1beta1\nkind: NodeClaim\nmetadata: {name: a}\n";
    assert_eq!(found("1.14", claim), 0, "Karpenter writes these");
}

#[test]
fn v1beta1_beside_v1_in_one_file() {
    let v1 = of_alias("al2023@latest", "role: r");
    let beta = pool("{key: a, operator: Exists}").replace("karpenter.sh/v1", "karpenter.sh/v1beta1");
    let both = |pool: &str| shown(&found_in("f", &format!("{v1}---\n{pool}")));
    assert_eq!(both(&beta), ["Warning ApiVersionNotServed f:8:1"]);
    assert_eq!(both(&pool("{key: a, operator: Exists}")), [""; 0]);
    // Alone nothing names the version of Karpenter, and Karpenter writes NodeClaims itself.
    assert_eq!(shown(&found_in("f", &beta)), [""; 0]);
    let old = v1.replace("karpenter.k8s.aws/v1", "karpenter.k8s.aws/v1beta1");
    assert_eq!(shown(&found_in("f", &format!("{old}---\n{beta}"))), [""; 0]);
    assert_eq!(both("apiVersion: karpenter.sh/v1beta1\nkind: NodeClaim\nmetadata: {name: a}\n"), [""; 0]);
}

#[test]
fn exit_codes_and_formats() {
    let fine = class("AL2023", "#!/bin/bash\ntrue\n");
    let Answer { code, out, err } = run(&["-f", "-"], &fine);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "", "nodewhy: 1 object checked, 0 not known\n"),
        "of what is fine only the number"
    );
    let warned = class("AL2", "#!/bin/bash\n/etc/eks/bootstrap.sh shop\n");
    assert_eq!(run(&["-f", "-"], &warned).code, 1);
    assert_eq!(run(&["-f", "-", "--fail-on", "certain"], &warned).code, 0);
    let wrong = class(
        "Custom",
        "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--node-labels=kubernetes.io/x=y'\n",
    );
    let Answer { code, out, .. } = run(&["-", "--fail-on", "certain"], &wrong);
    assert_eq!(code, 1);
    assert!(out.starts_with("error[KubeletRefusesLabels]: userData of EC2NodeClass default, line 2,"), "{out}");
    assert!(out.contains("\n  --> standard input:9:68 (EC2NodeClass/default spec.userData)\n"), "{out}");
    let caret = out.lines().find(|l| l.contains("^^^")).and_then(|l| l.find('^')).expect("a caret");
    assert_eq!(
        out.lines().find(|l| l.contains("bootstrap.sh")).and_then(|l| l.find("kubernetes.io/x")),
        Some(caret),
        "{out}"
    );
    let Answer { out, .. } = run(&["-f", "-", "-o", "json"], &wrong);
    let list: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(list["kind"], "LintFindingList");
    assert_eq!(
        (&list["items"][0]["line"], &list["items"][0]["level"]),
        (&serde_json::json!(9), &serde_json::json!("error"))
    );
    let empty: serde_json::Value = serde_json::from_str(&run(&["-f", "-", "-o", "json"], &fine).out).expect("JSON");
    assert_eq!(empty["items"], serde_json::json!([]));
    let Answer { out, .. } = run(&["-f", "-", "-o", "github"], &wrong);
    assert!(
        out.starts_with(
            "::error file=standard input,line=9,col=68,title=KubeletRefusesLabels::userData of EC2NodeClass default"
        ),
        "{out}"
    );
    assert_eq!(out.lines().count(), 1, "{out}");
}

/// What GitHub's code scanning wants of each result:
/// <https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning>
#[test]
fn sarif_has_what_code_scanning_needs() {
    let text = class(
        "Custom",
        "#!/bin/bash\nbootstrap.sh shop --kubelet-extra-args='--v=2' --kubelet-extra-args \
         '--node-labels=kubernetes.io/x=y'\n",
    );
    let Answer { code, out, .. } = run(&["-f", "-", "-o", "sarif"], &text);
    assert_eq!(code, 1);
    let log: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let run_of = &log["runs"][0];
    let rules = run_of["tool"]["driver"]["rules"].as_array().expect("rules");
    let results = run_of["results"].as_array().expect("results");
    let shown: Vec<String> = results
        .iter()
        .map(|result| {
            let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().expect("an index")).unwrap()];
            assert_eq!(rule["id"], result["ruleId"]);
            for described in ["shortDescription", "fullDescription", "help"] {
                assert!(rule[described]["text"].as_str().is_some_and(|text| !text.is_empty()), "{rule}");
            }
            let place = &result["locations"][0]["physicalLocation"];
            let region = &place["region"];
            assert_eq!(place["artifactLocation"]["uri"], "standard%20input");
            assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()));
            format!("{} {} {}:{}", result["level"], result["ruleId"], region["startLine"], region["startColumn"])
        })
        .collect();
    assert_eq!(shown, ["\"warning\" \"OptionWithEquals\" 9:23", "\"error\" \"KubeletRefusesLabels\" 9:88"]);
    let help = rules
        .iter()
        .find(|rule| rule["id"] == "KubeletRefusesLabels")
        .and_then(|rule| rule["help"]["markdown"].as_str());
    assert!(
        help.is_some_and(|help| help.starts_with("# KubeletRefusesLabels") && !help.contains("## Example")),
        "{help:?}"
    );
    let fine = run(&["-f", "-", "-o", "sarif"], &class("AL2023", "#!/bin/bash\ntrue\n"));
    let log: serde_json::Value = serde_json::from_str(&fine.out).expect("JSON");
    assert_eq!((fine.code, &log["runs"][0]["results"]), (0, &serde_json::json!([])), "an empty run closes old alerts");
}

#[test]
fn junit_is_read_back() {
    let report = |text: &str| {
        quick_junit::Report::deserialize_from_str(&run(&["-f", "-", "-o", "junit"], text).out).expect("JUnit")
    };
    let wrong = report(&class(
        "Custom",
        "#!/bin/bash\nbootstrap.sh shop --kubelet-extra-args '--node-labels=kubernetes.io/x=y'\n",
    ));
    assert_eq!((wrong.tests, wrong.failures), (1, 1));
    let case = &wrong.test_suites[0].test_cases[0];
    assert_eq!((case.name.as_str(), case.classname.as_deref()), ("KubeletRefusesLabels 9:59", Some("standard input")));
    let fine = report(&class("AL2023", "#!/bin/bash\ntrue\n"));
    assert_eq!((fine.tests, fine.failures), (1, 0));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_linted() {
    let wrong = class(
        "Custom",
        "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--node-labels=kubernetes.io/x=y'\n",
    );
    let Answer { code, out, err } =
        run(&["-f", "-"], &format!("kind: NodePool\nspec: [unclosed\nx: y\n---\n{wrong}---\nreplicas: 3\n"));
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("standard input:3: document 1: this is no YAML"), "{err}");
    assert!(out.contains("standard input:13:68"), "{out}");
    assert!(!err.contains("document 3"), "what is no Kubernetes object is nobody's business: {err}");
    let Answer { code, err, .. } = run(&["-f", "-"], "replicas: 3\n");
    assert!(code == 2 && err.contains("nothing to lint"), "{err}");
    assert_eq!(run(&[], "").code, 3, "without a file it reads the cluster");
    assert_eq!(run(&["--context=prod", "-f", "-"], "").code, 2, "either files or a cluster");
    assert_eq!(run(&["-f", "no-such-file.yaml"], "").code, 2);
    assert_eq!(run(&["-f", "-", "--ami-family", "Ubuntu"], &wrong).code, 2);
    let unknown = wrong.replace("  amiFamily: Custom\n", "");
    let Answer { code, err, .. } = run(&["-f", "-"], &unknown);
    assert!(code == 0 && err.contains("its userData is not read"), "{code} {err}");
}

#[test]
fn a_template_is_named_in_one_sentence_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let templates = folder.path().join("shop/templates");
    std::fs::create_dir_all(&templates).unwrap();
    let template = "{{- range .Values.pools }}\n---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: \
                    {{ .name }}\n{{- end }}\n";
    std::fs::write(templates.join("pool.yaml"), template).unwrap();
    std::fs::write(templates.join("class.yaml"), class("AL2023", "#!/bin/bash\nx {{ .Values.x }}\n")).unwrap();
    let Answer { code, err, .. } = run(&["-f", &folder.path().display().to_string()], "");
    assert_eq!(code, 0, "{err}");
    let chart = folder.path().join("shop").display().to_string();
    let wanted = format!(
        "{chart}/templates/pool.yaml is a template; render it first: helm template {chart} | nodewhy lint -f -"
    );
    assert_eq!(err.lines().next().map(|line| line.trim_start_matches("nodewhy: ")), Some(wanted.as_str()));
    assert_eq!(err.lines().last(), Some("nodewhy: 1 object checked, 0 not known, 1 template not read"));
    assert_eq!(err.lines().count(), 2, "{err}");
}

#[test]
fn requirements_that_leave_no_value() {
    let found = |requirements: &str| shown(&found_in("f", &pool(requirements)));
    let zones = "{key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1a, eu-west-1b]}\n      - ";
    let with = |other: &str| found(&format!("{zones}{other}"));
    assert_eq!(
        with("{key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1c]}"),
        ["Error ExcludingRequirements f:10:10"]
    );
    assert_eq!(
        with("{key: topology.kubernetes.io/zone, operator: NotIn, values: [eu-west-1a, eu-west-1b]}"),
        ["Error ExcludingRequirements f:10:10"]
    );
    assert!(with("{key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1b, eu-west-1c]}").is_empty());
    assert!(with("{key: topology.kubernetes.io/zone, operator: NotIn, values: [eu-west-1a]}").is_empty());
    assert!(with("{key: topology.kubernetes.io/zone, operator: In, values: ['{{ .Values.zone }}']}").is_empty());
    // A machine without a label that people made up is a machine all the same.
    let team = "{key: shop/team, operator: In, values: [a]}\n      - {key: shop/team, operator: In, values: [b]}";
    assert!(found(team).is_empty());
}

#[test]
fn a_taint_that_is_there_twice() {
    let with = |taints: &str, startup: &str| {
        let taints = format!("      taints: [{taints}]\n      startupTaints: [{startup}]\n");
        shown(&found_in("f", &(pool("{key: kubernetes.io/os, operator: In, values: [linux]}") + &taints)))
    };
    let a = "{key: a, effect: NoSchedule}";
    assert_eq!(with(a, a), ["Error TaintTwice f:11:24"]);
    assert_eq!(with(&format!("{a}, {{key: a, value: b, effect: NoSchedule}}"), ""), ["Error TaintTwice f:10:47"]);
    assert!(with(a, "{key: a, effect: NoExecute}").is_empty());
    assert!(with(a, "{key: b, effect: NoSchedule}").is_empty());
}

#[test]
fn a_startup_taint_among_those_that_stay() {
    let with = |list: &str, key: &str| {
        let taints = format!("      {list}: [{{key: {key}, effect: NoExecute}}]\n");
        shown(&found_in("f", &(pool("{key: kubernetes.io/os, operator: In, values: [linux]}") + &taints)))
    };
    let key = "ebs.csi.aws.com/agent-not-ready";
    assert_eq!(with("taints", key), ["Warning StartupTaintAmongTaints f:10:17"]);
    assert!(with("startupTaints", key).is_empty());
    assert!(with("taints", "shop/team").is_empty());
}

#[test]
fn a_node_class_of_another_group() {
    let with = |group: &str| {
        let own = pool("{key: kubernetes.io/os, operator: In, values: [linux]}");
        shown(&found_in("f", &own.replace("group: karpenter.k8s.aws", &format!("group: {group}"))))
    };
    assert_eq!(with("karpenter.sh"), ["Error ForeignNodeClassRef f:7:22"]);
    assert!(with("karpenter.k8s.aws").is_empty());
}

/// The variants of an enum, as its source has them.
fn variants(source: &str, name: &str) -> Vec<String> {
    let body = source.split_once(&format!("pub enum {name} {{\n")).expect("the enum").1;
    let lines = body.lines().take_while(|line| *line != "}").map(str::trim);
    lines.filter(|line| !line.starts_with("//")).map(|line| line.trim_end_matches(',').to_owned()).collect()
}

/// Those of the readers by their kinds, those of NodePools by what the tests above find.
#[test]
fn every_finding_that_is_no_cause_has_its_section_with_a_fix() {
    let read = |path: &str| std::fs::read_to_string(path).expect("a source");
    let user_data = read("crates/readers/src/userdata.rs");
    let mut names = variants(&user_data, "DefectKind");
    names.extend(variants(&read("crates/readers/src/aws_auth.rs"), "MappingDefectKind"));
    // What else is lost has a defect that tells it.
    names.extend(["LooseWord", "RepeatedOption", "AfterExit"].map(str::to_owned));
    assert!(names.len() > 50, "{names:?}");
    let files = [
        "aws_auth",
        "cluster_dns",
        "contradictions",
        "former",
        "ids",
        "ignore",
        "kinds",
        "kubelet",
        "max_pods",
        "named_images",
        "odd_fields",
        "overlay",
        "overridden",
        "requirements",
        "schedule",
        "schema",
        "version",
        "volumes",
    ];
    let files = files.map(|file| format!("crates/engine/src/lint/{file}.rs"));
    let quoted = files.iter().map(|file| read(file)).fold(read("crates/engine/src/lint.rs"), |all, text| all + &text);
    let literals = quoted.split('"').skip(1).step_by(2).filter(|text| {
        text.len() >= 8 && text.starts_with(char::is_uppercase) && text.chars().all(char::is_alphanumeric)
    });
    names.extend(
        literals
            .filter(|text| {
                ![
                    "EC2NodeClass",
                    "ConfigMap",
                    "NodeOverlay",
                    "NodePool",
                    "UserData",
                    "DoesNotExist",
                    "PreferNoSchedule",
                    "MapAccounts",
                    "MapRoles",
                    "MapUsers",
                    "Launched",
                ]
                .contains(text)
            })
            .filter(|text| engine::rules::by_cause(text).is_none())
            .map(str::to_owned),
    );
    for name in &names {
        let (page, fix) = (page::page(name), page::fix(name));
        assert!(page.is_some_and(|page| page.starts_with(&format!("## {name}\n"))), "{name} has no section");
        assert!(fix.is_some_and(|fix| fix.len() >= 10 && fix.ends_with('.')), "{name} has no fix");
    }
    let unused: Vec<&str> = page::names().filter(|own| !names.iter().any(|name| name == own)).collect();
    assert!(unused.is_empty(), "{unused:?} are found nowhere");
}

/// What lint says of one file beside its findings: notes and templates.
fn told(file: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let (mut files, mut summary) = (Files::default(), Summary::default());
    load_from(file, text.as_bytes(), &mut files, &mut summary);
    assert_eq!(summary.complaints, [], "{text}");
    let report = lint(files, None);
    (shown(&report.findings), report.notes.into_iter().chain(report.templates).collect())
}

/// As in the roots of 30 public repositories, none of which was linted with exit 0.
#[test]
fn a_repository_is_linted_with_all_that_lies_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("karpenter/nodeclass.yaml", &of_alias("al2023@latest", "role: r"));
    write("docs/README.md", "# nothing\n");
    write("disabled.yaml", "# apiVersion: v1\n");
    write("tsconfig.json", "// comment\n{\"a\": 1,}\n");
    write("app.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\nspec:\n  replicas: ${REPLICAS}\n");
    write("chart/templates/svc.yaml", "{{- if .Values.x }}\napiVersion: v1\nkind: Service\n{{- end }}\n");
    write("tf/class.yaml", "kind: EC2NodeClass\nspec:\n%{ for a in b ~}\n  - alias: ${a}\n%{ endfor ~}\n");
    write("j2/class.yaml", "kind: NodePool\n{% if x %}\nspec: {}\n{% endif %}\n");
    write("old/a.yaml", "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\n");
    write("old/b.yaml", &pool("{key: a, operator: Exists}").replace("karpenter.sh/v1", "karpenter.sh/v1beta1"));
    let root = folder.path().display().to_string();
    let Answer { code, err, .. } = run(&["-f", &root], "");
    assert_eq!(code, 0, "{err}");
    for note in [
        "disabled.yaml: empty, or only comments: skipped",
        "tsconfig.json:2: document 1: this is no YAML",
        "app.yaml:5: Deployment/app: spec.replicas is a placeholder; not judged",
        "chart/templates/svc.yaml is a template; render it first: helm template",
        "tf/class.yaml is a template; render it first, for example with terraform console",
        "j2/class.yaml is a template; render it first",
        "1 object of karpenter.sh/v1alpha5",
        "1 object of karpenter.sh/v1beta1",
        "2 objects checked",
    ] {
        assert!(err.contains(note), "no {note:?} in\n{err}");
    }
    // A kind that is judged, and cannot be read.
    write("broken.yaml", "kind: EC2NodeClass\nspec: [\n");
    assert_eq!(run(&["-f", &root], "").code, 2);
    // A folder with nothing below it that was named.
    assert_eq!(run(&["-f", &format!("{root}/docs")], "").code, 2);
    // One that holds other people's files.
    let Answer { code, err, .. } = run(&["-f", &format!("{root}/chart")], "");
    assert!(code == 0 && err.contains("nothing to lint"), "{code} {err}");
}

#[test]
fn a_field_of_another_type_is_named_and_the_others_are_judged() {
    let found = |fields: &str| shown(&found_in("f", &of_alias("al2023@latest", fields)));
    assert_eq!(found("metadataOptions: {httpPutResponseHopLimit: two}"), ["Error WrongType f:6:21"]);
    assert_eq!(
        found("role: [r]\n  kubelet: {clusterDNS: [dns]}"),
        ["Error WrongType f:6:3", "Warning NoDnsAddress f:7:26"]
    );
    assert_eq!(
        found("blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 80}}]"),
        ["Error VolumeInBytes f:6:55"]
    );
    assert_eq!(found("blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 80Gi}}]"), [""; 0]);
    assert_eq!(found("role: r\n  role: s"), ["Warning FieldTwice f:7:1"]);
    assert_eq!(found("kubelet: {maxPods: 0}"), ["Error NoRoomForPods f:6:13"]);
    assert_eq!([found("kubelet: {maxPods: 1}"), found("kubelet: {maxPods: 110}")], [[""; 0]; 2]);
    // What a placeholder will be is not known.
    let placeholders = "subnetSelectorTerms: ${subnets}\n  securityGroupSelectorTerms: ${groups}\n  role: r";
    let (findings, mut notes) = told("f", &of_alias("al2023@latest", placeholders));
    assert_eq!(findings, [""; 0]);
    notes.sort();
    let note =
        |line: u32, field: &str| format!("f:{line}: EC2NodeClass/default: spec.{field} is a placeholder; not judged");
    assert_eq!(notes, [note(6, "subnetSelectorTerms"), note(7, "securityGroupSelectorTerms")]);
    let text = pool("{key: kubernetes.io/arch, values: [amd64]}");
    let findings = found_in("f", &text);
    assert!(findings[0].message.contains("a requirement of kubernetes.io/arch without an operator"), "{findings:?}");
}

/// pytorch/ci-infra, dominodatalab/terraform-aws-eks, jeanschmidt/pytorch-cloud, cloudposse and others.
#[test]
fn nothing_is_known_of_what_a_placeholder_holds() {
    let node_config =
        |kubelet: &str| format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n{kubelet}");
    let custom =
        |extra: &str| format!("#!/bin/bash\n/etc/eks/bootstrap.sh '${{name}}' --kubelet-extra-args '{extra}'\n");
    let tainted = "--register-with-taints=karpenter.sh/unregistered:NoExecute";
    for (family, text) in [
        ("AL2023", node_config("    flags: [\"--node-labels=team=a,gpu-type=${gpu_type}\"]\n")),
        ("AL2023", node_config("    flags: [\"${bootstrap_extra_args}\"]\n")),
        ("AL2023", node_config("    flags: [\"--node-labels=team=<TEAM>\"]\n")),
        ("Bottlerocket", "[settings.kubernetes.node-labels]\n\"gpu-type\" = \"${gpu_type}\"\n".to_owned()),
        ("Custom", custom(&format!("--node-labels=gpu-type=${{gpu_type}} {tainted}"))),
        ("Custom", custom("${kubelet_extra_args}")),
        ("AL2023", format!("{MIME}${{post_bootstrap_script}}\n--B--\n")),
        ("AL2023", "${user_data}\n".to_owned()),
        ("AL2023", "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n${parts}\n".to_owned()),
        ("AL2023", node_config("    config:\n      ${extra}: 1\n")),
        ("AL2023", node_config("    config: ${config}\n    flags: [--image-gc-high-threshold=75]\n")),
        ("AL2023", node_config("    flags: [--image-gc-high-threshold=75, \"${more}\"]\n")),
        ("Custom", custom(&format!("--eviction-soft=memory.available<5% ${{more}} {tainted}"))),
        (
            "AL2",
            "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args \
             '--cpu-manager-policy-options=full-pcpus-only=true \
             %{ if s }--cpu-manager-policy=static%{ endif }'\n"
                .to_owned(),
        ),
        (
            "AL2",
            "#!/bin/bash\nEXTRA=--v=2\nif test -f /x; then EXTRA=\"\"; fi\n/etc/eks/bootstrap.sh shop \
             --kubelet-extra-args $EXTRA\n"
                .to_owned(),
        ),
    ] {
        let found = found_in("f", &class(family, &text));
        let found: Vec<_> = found.iter().filter(|finding| finding.cause != "BootstrapBeforeKarpenter").collect();
        assert!(found.is_empty(), "{family} {text} {found:?}");
    }
    // What it cannot change is found.
    let beside = node_config("    flags: [\"--node-labels=a=${b},c=d$e,kubernetes.io/x=${y}\"]\n");
    assert_eq!(shown(&found_in("f", &class("AL2023", &beside))).len(), 1);
    let both = "[settings.kubernetes.node-labels]\na = \"${b}\"\nc = \"d e\"\n";
    assert_eq!(shown(&found_in("f", &class("Bottlerocket", both))), ["Error UserDataStopsKubelet f:10:5"]);
}

#[test]
fn what_only_a_placeholder_keeps_from_being_read_is_a_template() {
    let terraform = "MIME-Version: 1.0\nContent-Type: multipart/mixed; \
                     boundary=\"B\"\n%{ if length(pre) > 0 ~}\n\n--B\nContent-Type: \
                     text/x-shellscript\n\n#!/bin/bash\n${pre}\n%{ endif ~}\n--B--\n";
    let toml = "[settings.host-containers.admin]\nenabled = ${admin_container_enabled}\n";
    for (file, text) in [("ud.mime", terraform), ("ud.toml", toml)] {
        let (findings, notes) = told(file, text);
        assert_eq!(findings, [""; 0], "{file}");
        assert!(notes.iter().any(|note| note.contains("is a template; render it first")), "{notes:?}");
    }
    let helm = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: {{ \
                .Values.maxPods }}\n";
    let (findings, notes) = told("f", &class("AL2023", helm));
    assert_eq!(findings, [""; 0]);
    assert!(notes[0].contains("line 6 of its user data is not judged: this is a template"), "{notes:?}");
    // Without a placeholder it is what it is.
    let plain = helm.replace("{{ .Values.maxPods }}", "[");
    assert_eq!(shown(&found_in("f", &class("AL2023", &plain))).len(), 1);
    let curl = "#!/bin/bash\ncurl -w '%{http_code}' https://example.com\ndocker ps --format '{{ .ID }}'\n";
    assert_eq!(told("f", &class("AL2", curl)), (Vec::new(), Vec::new()));
}

/// jasontsaicc/eks-terraform-karpenter, and dominodatalab/terraform-aws-eks examples/karpenter.
#[test]
fn a_call_before_karpenters_own_and_a_node_config_without_its_version() {
    let early = format!(
        "{}---\n{}",
        class("AL2", "#!/bin/bash\n/etc/eks/bootstrap.sh shop\n"),
        pool("{key: a, operator: Exists}")
            .replace("      requirements", "      taints: [{key: spot, effect: NoSchedule}]\n      requirements"),
    );
    assert_eq!(shown(&found_in("f", &early)), ["Warning BootstrapBeforeKarpenter f:9:5"]);
    let found =
        found_in("f", &class("AL2023", "kind: NodeConfig\nspec:\n  kubelet:\n    config: {registryPullQPS: 15}\n"));
    assert!(found[0].message.contains("`apiVersion: node.eks.aws/v1alpha1` is missing"), "{found:?}");
}

/// StanleyBundi/terraform-eks-karpenter README.md.
#[test]
fn a_kind_that_its_group_does_not_have() {
    let requirement = "{key: kubernetes.io/arch, operator: In, values: [aarch64]}";
    let of_class = pool(requirement).replace("karpenter.sh/v1", "karpenter.k8s.aws/v1");
    assert_eq!(shown(&found_in("f", &of_class)), ["Error WrongApiGroup f:1:1", "Error UnknownValue f:9:58"]);
    let of_pool = of_alias("al2023@latest", "role: r").replace("karpenter.k8s.aws/v1", "karpenter.sh/v1");
    assert_eq!(shown(&found_in("f", &of_pool)), ["Error WrongApiGroup f:1:1"]);
    let fine = pool("{key: a, operator: Exists}");
    let kind = fine.replace("kind: EC2NodeClass", "kind: NodeClass");
    assert_eq!(shown(&found_in("f", &kind)), ["Error ForeignNodeClassRef f:7:48"]);
    let without = fine.replace("group: karpenter.k8s.aws, ", "");
    assert_eq!(shown(&found_in("f", &without)), ["Warning FieldOfV1beta1 f:7:7"]);
    let kubelet = fine.replace("      requirements", "      kubelet: {maxPods: 9}\n      requirements");
    assert_eq!(shown(&found_in("f", &kubelet)), ["Warning FieldOfV1beta1 f:8:7"]);
    // EKS Auto Mode's, and what v1beta1 has.
    let auto = fine.replace("karpenter.k8s.aws, kind: EC2NodeClass", "eks.amazonaws.com, kind: NodeClass");
    assert_eq!(shown(&found_in("f", &auto)), [""; 0]);
    assert_eq!(told("f", &without.replace("karpenter.sh/v1", "karpenter.sh/v1beta1")).0, [""; 0]);
}

/// ASFOpenSARlab/opensarlab-cluster configs/aws-auth-cm.yaml, and the tests of aws-iam-authenticator.
#[test]
fn aws_auth_whose_own_entries_say_that_they_are_for_nodes() {
    let map = |from: &str, to: &str| {
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aws-auth, namespace: kube-system}\ndata:\n  mapRoles: \
         |\n    - rolearn: arn:aws:iam::111122223333:role/KarpenterNodeRole-shop\n      username: \
         system:node:{{EC2PrivateDNSName}}\n      groups:\n      - system:bootstrappers\n      - system:nodes\n"
            .replace(from, to)
    };
    let found = |from: &str, to: &str| shown(&found_in("f", &map(from, to)));
    assert_eq!(found("", ""), [""; 0]);
    for arn in [
        "arn:aws:iam::us-west-2:role/r",
        "arn:aws:iam::111122223333:role/a/r",
        "arn:aws:iam::111122223333:instance-profile/r",
        "<ARN of instance role (not instance profile)>",
    ] {
        assert_eq!(
            found("arn:aws:iam::111122223333:role/KarpenterNodeRole-shop", arn),
            ["Warning AwsAuthArnNeverMatches f:6:16"],
            "{arn}"
        );
    }
    assert_eq!(found("EC2PrivateDNSName", "EC2PrivateDnsName"), ["Warning AwsAuthEntryIncomplete f:7:17"]);
    assert_eq!(
        found("bootstrappers\n      - system", "bootstrappers - system"),
        ["Warning AwsAuthEntryIncomplete f:9:9"]
    );
    assert_eq!(found("mapRoles", "maproles"), ["Warning AwsAuthReadByNobody f:5:3"]);
    assert_eq!(found("kube-system", "default"), ["Warning AwsAuthReadByNobody f:3:28"]);
    // People, placeholders, and another ConfigMap.
    assert_eq!(found("arn:aws:iam::111122223333:role/KarpenterNodeRole-shop", "${role_arn}"), [""; 0]);
    assert_eq!(found("name: aws-auth, namespace: kube-system", "name: other, namespace: default"), [""; 0]);
    let person = map("system:node:{{EC2PrivateDNSName}}", "admin")
        .replace("      - system:bootstrappers\n      - system:nodes", "      - system:masters");
    assert_eq!(shown(&found_in("f", &person.replace("role/", "role/a/"))), [""; 0]);
}

/// A NodeConfig whose part below `spec` begins on line 11 of the class, four columns in.
fn with_spec(below: &str) -> String {
    class("AL2023", &format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n{below}"))
}

#[test]
fn a_kubelet_configuration_that_no_kubelet_takes() {
    let found = |field: &str| shown(&found_in("f", &with_spec(&format!("  kubelet:\n    config:\n      {field}\n"))));
    let stops = |column: usize| vec![format!("Error UserDataStopsKubelet f:13:{column}")];
    assert_eq!(found("shutdownGracePeriod: 30sec"), stops(32));
    assert_eq!(found("evictionHard: {memory.avail: 100Mi}"), stops(40));
    assert_eq!(found("systemReserved: {cpu: 1}"), stops(33));
    assert_eq!(found("failSwapOn: \"false\""), stops(23));
    assert_eq!(found("cpuManagerPolicy: Static"), stops(29));
    assert_eq!(found("imageGCHighThresholdPercent: 60"), stops(40));
    assert_eq!(found("evictionSoft: {memory.available: 500Mi}"), stops(44));
    assert_eq!(found("shutdowngraceperiod: 30s"), ["Warning FieldIgnored f:13:32"]);
    for fine in [
        "shutdownGracePeriod: 30s",
        "evictionHard: {memory.available: 100Mi}",
        "systemReserved: {cpu: \"1\"}",
        "failSwapOn: false",
        "cpuManagerPolicy: static",
        "imageGCHighThresholdPercent: ${high}",
        "maxParallelImagePulls: 5",
    ] {
        assert_eq!(found(fine), [""; 0], "{fine}");
    }
    let flag = |flag: &str| shown(&found_in("f", &with_spec(&format!("  kubelet:\n    flags:\n    - {flag}\n"))));
    assert_eq!(flag("--max-pods=abc"), ["Error UserDataStopsKubelet f:13:22"]);
    assert_eq!(flag("--eviction-hard=memory.available<100MB"), ["Error UserDataStopsKubelet f:13:27"]);
    assert_eq!(flag("--max-pods=${MAX_PODS}"), [""; 0]);
    assert_eq!(flag("--eviction-hard=memory.available<100Mi"), [""; 0]);
}

#[test]
fn a_shutdown_is_compared_with_that_of_the_image() {
    let found = |period: &str, minor: u32| {
        let text = with_spec(&format!("  kubelet:\n    config:\n      shutdownGracePeriod: {period}\n"));
        let text = text.replace("amiFamily: AL2023", "amiSelectorTerms: [{alias: al2023@latest}]");
        let (mut files, mut summary) = (Files::default(), Summary::default());
        load_from("f", text.as_bytes(), &mut files, &mut summary);
        files.for_kubernetes(minor);
        shown(&lint(files, None).findings)
    };
    assert_eq!(found("20s", 35), ["Error UserDataStopsKubelet f:13:32"]);
    assert_eq!([found("20s", 33), found("45s", 35)], [vec![""; 0], vec![]]);
}

#[test]
fn a_node_config_that_nodeadm_refuses_or_reads_in_part() {
    let found = |below: &str| shown(&found_in("f", &with_spec(below)));
    assert_eq!(found("  instance:\n    localStorage: RAID0\n"), ["Error UserDataStopsKubelet f:12:23"]);
    assert_eq!(found("  featureGates:\n    FastImagePull: \"true\"\n"), ["Error UserDataStopsKubelet f:12:24"]);
    let cut = "  kubelet:\n  config:\n    shutdownGracePeriod: 45s\n";
    assert_eq!(found(cut), ["Warning FieldIgnored f:13:9"]);
    let second = "  kubelet:\n    config:\n      shutdownGracePeriod: 45s\n---\nkind: NodeConfig\n";
    assert_eq!(found(second), ["Warning DocumentIgnored f:15:5"]);
    assert_eq!(found("  featureGates: {FastImagePull: true, Newer: true}\n"), [""; 0]);
    assert_eq!(found("  cluster: {certificateAuthority: \"${ca}\"}\n"), [""; 0]);
}

#[test]
fn settings_that_karpenter_replaces() {
    let found = |family: &str, text: &str| shown(&found_in("f", &class(family, text)));
    let bottlerocket = |setting: &str| found("Bottlerocket", &format!("[settings.kubernetes]\n{setting}\n"));
    assert_eq!(bottlerocket("cluster-name = \"other\"").len(), 1);
    assert_eq!(bottlerocket("max-pods = 9").len(), 1);
    assert_eq!(bottlerocket("[settings.kubernetes.node-taints]\na = [\"b:NoSchedule\"]").len(), 1);
    assert_eq!(bottlerocket("kube-api-qps = 30"), [""; 0]);
    assert_eq!(bottlerocket("cluster-name = \"${cluster}\""), [""; 0]);
    let config = |field: &str| with_spec(&format!("  kubelet:\n    config:\n      {field}\n"));
    let replaced = ["Warning OverriddenByKarpenter f:13:20"];
    assert_eq!(shown(&found_in("f", &config("maxPods: 58"))), replaced);
    let own = config("maxPods: 58").replace("  role:", "  kubelet: {maxPods: 58}\n  role:");
    assert_eq!(shown(&found_in("f", &own)), [""; 0]);
    let taints = config("registerWithTaints: [{key: dedicated, value: web, effect: NoSchedule}]");
    assert_eq!(shown(&found_in("f", &taints)).len(), 1);
    // The NodePool has the same taint.
    let tainted = pool("{key: kubernetes.io/os, operator: In, values: [linux]}").replace(
        "      requirements",
        "      taints: [{key: dedicated, value: web, effect: NoSchedule}]\n      requirements",
    );
    assert_eq!(shown(&found_in("f", &format!("{taints}---\n{tainted}"))), [""; 0]);
    let unregistered = config("registerWithTaints: [{key: karpenter.sh/unregistered, effect: NoExecute}]");
    assert_eq!(shown(&found_in("f", &unregistered)), [""; 0]);
    // Under Custom, the text is all that there is.
    assert!(!found("Custom", "#!/bin/bash\ntrue\n").iter().any(|found| found.contains("OverriddenByKarpenter")));
    let custom = shown(&found_in("f", &config("maxPods: 58").replace("AL2023", "Custom")));
    assert!(!custom.iter().any(|found| found.contains("OverriddenByKarpenter")), "{custom:?}");
}

#[test]
fn a_here_document_without_an_end() {
    let found = |family: &str, end: &str| {
        let call = "/etc/eks/bootstrap.sh shop --kubelet-extra-args \
                    '--register-with-taints=karpenter.sh/unregistered:NoExecute'";
        let rest = if family == "Custom" { call } else { "sysctl -p" };
        let text = format!("#!/bin/bash\ncat > /etc/x <<EOF\na = 1\n{end}\n{rest}\n");
        shown(&found_in("f", &class(family, &text)))
    };
    assert_eq!(found("Custom", "  EOF"), ["Warning UserDataStopsKubelet f:11:5"]);
    assert_eq!(found("Custom", "b = 2"), ["Warning UserDataStopsKubelet f:9:20"]);
    assert_eq!(found("AL2", "EOF "), ["Warning OpenDocument f:11:5"]);
    assert_eq!(found("AL2023", "b = 2"), ["Warning OpenDocument f:9:20"]);
    for family in ["Custom", "AL2", "AL2023"] {
        assert_eq!(found(family, "EOF"), [""; 0], "{family}");
    }
}

#[test]
fn local_disks_that_nodeadm_cannot_set_up() {
    let text = |storage: &str| with_spec(&format!("  instance:\n    localStorage: {{{storage}}}\n"));
    let found = |storage: &str| shown(&found_in("f", &text(storage)));
    assert_eq!(found("strategy: RAID5"), ["Error UserDataStopsKubelet f:12:34"]);
    assert_eq!(found("strategy: RAID0, disabledMounts: [containerd]"), ["Warning FieldIgnored f:12:58"]);
    let fine = ["raid0", "RAID10", "Mount", "none", "\"\"", "\"${strategy}\""];
    for fine in fine.map(|strategy| format!("strategy: {strategy}, disabledMounts: [Containerd, \"${{mount}}\"]")) {
        assert_eq!(found(&fine), [""; 0], "{fine}");
    }
    // Karpenter's part has a strategy of its own.
    let overridden = text("strategy: RAID5").replace("  role:", "  instanceStorePolicy: RAID0\n  role:");
    assert_eq!(shown(&found_in("f", &overridden)), [""; 0]);
}

#[test]
fn a_node_config_of_a_custom_class_names_the_whole_cluster() {
    let taints = "--register-with-taints=karpenter.sh/unregistered:NoExecute";
    let found = |fields: &str| {
        let text = with_spec(&format!("  cluster: {{{fields}}}\n  kubelet:\n    flags: [{taints}]\n"));
        shown(&found_in("f", &text.replace("AL2023", "Custom")))
    };
    let three = "name: shop, apiServerEndpoint: \"https://0.eks.amazonaws.com\", certificateAuthority: LS0t";
    assert_eq!(found(three), ["Warning UserDataStopsKubelet f:11:23"]);
    assert_eq!(found(&format!("{three}, cidr: 10.100.0.0/16")), [""; 0]);
    assert_eq!(found(&format!("{three}, cidr: \"${{cidr}}\"")), [""; 0]);
    // The image may have the rest.
    assert_eq!(found("name: shop, cidr: 10.100.0.0/16"), [""; 0]);
}

#[test]
fn an_ignition_configuration_is_no_mistake() {
    let found = |text: &str| shown(&found_in("f", &class("Custom", text)));
    let ignition = "{\"ignition\": {\"version\": \"3.1.0\"}}\n";
    assert_eq!(found(ignition), [""; 0]);
    assert_eq!(found(&ignition.replace("ignition", "config")), ["Error UserDataStopsKubelet f:8:5"]);
}

const NODE_CONFIG_PART: &str = "MIME-Version: 1.0\nContent-Type: multipart/mixed; \
                                boundary=\"//\"\n\n--//\nContent-Type: application/node.eks.aws\n\napiVersion: \
                                node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      \
                                shutdownGracePeriod: 45s\n\n--//--\n";

#[test]
fn an_archive_whose_parts_nobody_finds() {
    let found = |family: &str, text: &str| shown(&found_in("f", &class(family, text)));
    assert_eq!(found("AL2023", NODE_CONFIG_PART), [""; 0]);
    let unquoted = NODE_CONFIG_PART.replace("\"//\"", "//");
    assert_eq!(found("AL2023", &unquoted), ["Error MimeUnreadable f:9:5"]);
    let other = NODE_CONFIG_PART.replace("\"//\"", "\"BOUNDARY\"");
    assert_eq!(found("AL2023", &other), ["Warning ReadByNothing f:9:5"]);
    assert_eq!(found("Custom", &other), ["Error UserDataStopsKubelet f:9:5"]);
    let indented = NODE_CONFIG_PART.replace("\n--//", "\n  --//");
    assert_eq!(found("AL2023", &indented), ["Warning ReadByNothing f:9:5"]);
    let foreign = NODE_CONFIG_PART.replace("node.eks.aws\n\n", "node.eks.com\n\n");
    assert_eq!(found("AL2023", &foreign), ["Warning ReadByNothing f:14:5"]);
    let boothook = NODE_CONFIG_PART.replace("application/node.eks.aws", "text/cloud-boothook");
    assert_eq!(found("AL2023", &boothook), [""; 0]);
}

#[test]
fn an_alias_whose_version_cannot_exist() {
    let found = |alias: &str| {
        shown(&found_in(
            "f",
            &format!(
                "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: a}}\nspec:\n  role: r\n  \
                 amiSelectorTerms: [{{alias: \"{alias}\"}}]\n"
            ),
        ))
    };
    for alias in ["al2023@2023.0.20230222", "al2023@lates", "al2023@20240807", "al2@v1.31", "bottlerocket@1.20"] {
        assert_eq!(found(alias), ["Error NodeClassNotReady f:6:23"], "{alias}");
    }
    for alias in ["al2023@latest", "al2023@v20240807", "bottlerocket@v1.20.3", "al2023@${VERSION}"] {
        assert_eq!(found(alias), [""; 0], "{alias}");
    }
}

#[test]
fn requirements_are_computed_as_sets() {
    let found = |requirements: &str| shown(&found_in("f", &pool(&requirements.replace('\n', "\n      - "))));
    let excluding = ["Error ExcludingRequirements f:10:10"];
    let cpu = |one: &str, other: &str| {
        found(&format!(
            "{{key: karpenter.k8s.aws/instance-cpu, {one}}}\n{{key: karpenter.k8s.aws/instance-cpu, {other}}}"
        ))
    };
    assert_eq!(cpu("operator: Gt, values: [\"8\"]", "operator: Lt, values: [\"4\"]"), excluding);
    assert_eq!(cpu("operator: Gt, values: [\"7\"]", "operator: Lt, values: [\"8\"]"), excluding);
    assert_eq!(cpu("operator: In, values: [\"4\"]", "operator: Gt, values: [\"8\"]"), excluding);
    assert_eq!(cpu("operator: Lte, values: [\"4\"]", "operator: In, values: [\"8\", \"16\"]"), excluding);
    assert_eq!(cpu("operator: In, values: [\"4\"]", "operator: NotIn, values: [\"4\"]"), excluding);
    for (one, other) in [
        ("operator: Gt, values: [\"4\"]", "operator: Lt, values: [\"8\"]"),
        ("operator: Gte, values: [\"8\"]", "operator: Lte, values: [\"8\"]"),
        ("operator: In, values: [\"4\", \"16\"]", "operator: Gt, values: [\"8\"]"),
        ("operator: In, values: [\"4\"]", "operator: Gt, values: [\"${MIN}\"]"),
        ("operator: NotIn, values: [\"4\"]", "operator: Gt, values: [\"3\"]"),
    ] {
        assert_eq!(cpu(one, other), [""; 0], "{one} {other}");
    }
    assert_eq!(
        found("{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [four]}"),
        ["Error UnknownValue f:9:61"]
    );
    for (requirement, fatal) in [
        ("{key: karpenter.k8s.aws/instance-category, operator: In, values: [m5]}", true),
        ("{key: karpenter.k8s.aws/instance-category, operator: In, values: [m, c5]}", false),
        ("{key: karpenter.k8s.aws/instance-gpu-manufacturer, operator: In, values: [NVIDIA]}", true),
        ("{key: karpenter.k8s.aws/instance-cpu-manufacturer, operator: In, values: [Intel]}", true),
        ("{key: karpenter.k8s.aws/instance-hypervisor, operator: In, values: [Nitro]}", true),
        ("{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1]}", true),
        ("{key: node.kubernetes.io/instance-type, operator: In, values: [m5]}", true),
    ] {
        let found = found(requirement);
        let level = if fatal { "Error" } else { "Warning" };
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("{level} UnknownValue f:9:")),
            "{requirement}: {found:?}"
        );
    }
    for fine in [
        "{key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}",
        "{key: karpenter.k8s.aws/instance-hypervisor, operator: In, values: [\"\", nitro]}",
        "{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-west-2-lax-1a]}",
        "{key: topology.kubernetes.io/zone, operator: In, values: [\"${AZ}\"]}",
    ] {
        assert_eq!(found(fine), [""; 0], "{fine}");
    }
}

#[test]
fn a_script_that_calls_nothing() {
    let found = |text: &str| shown(&found_in("f", &class("Custom", text)));
    let unregistered = "--kubelet-extra-args '--register-with-taints=karpenter.sh/unregistered:NoExecute'";
    assert_eq!(
        found(&format!("#!/bin/bash\n/etc/eks/bootsrap.sh shop {unregistered}\n")),
        ["Error UserDataStopsKubelet f:9:5"]
    );
    let split = |end: &str| {
        found(&format!("#!/bin/bash\n/etc/eks/bootstrap.sh shop {unregistered} \\{end}\n  --use-max-pods false\n"))
    };
    assert_eq!(split(" "), [format!("Warning BlankAfterBackslash f:9:{}", 5 + 29 + unregistered.len())]);
    assert_eq!(split(""), [""; 0]);
    assert_eq!(
        found(&format!("#!/bin/bash\n/opt/shop/bootstrap.sh shop\n/etc/eks/bootstrap.sh shop {unregistered}\n")),
        [""; 0]
    );
}

#[test]
fn a_folder_that_exists_ends_a_script_with_set_e() {
    let call =
        "/etc/eks/bootstrap.sh shop --kubelet-extra-args '--register-with-taints=karpenter.sh/unregistered:NoExecute'";
    let custom = |lines: &str| shown(&found_in("f", &class("Custom", &format!("{lines}\n{call}\n"))));
    assert_eq!(custom("#!/bin/bash\nset -ex\nmkdir /etc/eks"), ["Error UserDataStopsKubelet f:10:11"]);
    assert_eq!(custom("#!/bin/bash -e\nsudo mkdir -m 755 /opt/ # a"), ["Error UserDataStopsKubelet f:9:23"]);
    assert_eq!(custom("#!/bin/bash\nset -o errexit\nmkdir /var/lib/x /tmp"), ["Error UserDataStopsKubelet f:10:22"]);
    assert_eq!(
        custom("#!/bin/bash\nset -e\n(\n  mkdir /etc/eks\n)\ntrue || true"),
        ["Error UserDataStopsKubelet f:11:13"]
    );
    for fine in [
        "#!/bin/bash\nmkdir /etc/eks",
        "#!/bin/bash\nset -e\nmkdir -p /etc/eks",
        "#!/bin/bash\nset -e\nmkdir /etc/eks || true",
        "#!/bin/bash\nset -e\nmkdir /etc/eks && echo new",
        "#!/bin/bash\nset -e\n! mkdir /etc/eks",
        "#!/bin/bash\nset -e\nif [ ! -d /etc/eks ]; then\n  mkdir /etc/eks\nfi",
        "#!/bin/bash\nset -e\nset +e\nmkdir /etc/eks",
        "#!/bin/bash\nset -e\nrm -rf /opt\nmkdir /opt",
        "#!/bin/bash\nset -e\nmkdir /opt/shop /etc/kubernetes",
        "#!/bin/bash\nset -u\nmkdir \"/etc/eks\"",
        "#!/bin/bash\nset -e\n(\n  mkdir /etc/eks\n) || true",
        "#!/bin/bash\nset -e\n(\n  mkdir /etc/eks\n) 2>/dev/null || true",
        "#!/bin/bash\nset -e\n(\n  mkdir /etc/eks\n) | cat",
        "#!/bin/bash\nset -e\n! (\n  mkdir /etc/eks\n)",
        "#!/bin/bash\nset -e\nif (\n  mkdir /etc/eks\n); then\n  true\nfi",
        "#!/bin/bash\nset -e\n{\n  mkdir /etc/eks\n} || true",
        "#!/bin/bash\n(set -e)\nmkdir /etc/eks",
    ] {
        assert_eq!(custom(fine), [""; 0], "{fine}");
    }
    // Karpenter's own part still joins the node.
    let own = |text: &str| shown(&found_in("f", &class("AL2023", text)));
    assert_eq!(own("#!/bin/bash\nset -e\nmkdir /etc/kubernetes\ntrue\n"), ["Warning EndsAtFailure f:10:11"]);
    assert_eq!(own("#!/bin/bash\nset -e\ntrue\nmkdir /etc/kubernetes\n"), [""; 0]);
}

/// aws/karpenter-provider-aws#7660: an image of Amazon Linux 2 does not run nodeadm.
#[test]
fn an_image_that_is_by_its_name_one_of_another_family() {
    let found = |family: &str, terms: &str, more: &str| {
        let text = format!(
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec:\n  amiFamily: \
             {family}\n  role: r\n  amiSelectorTerms: [{terms}]\n{more}"
        );
        shown(&found_in("f", &text))
    };
    let other = ["Error AmiFamilyMismatch f:5:3"];
    assert_eq!(found("AL2023", "{name: amazon-eks-node-1.31-v20250123}", ""), other);
    assert_eq!(found("AL2", "{name: amazon-eks-node-al2023-x86_64-standard-1.31-*, owner: amazon}", ""), other);
    assert_eq!(found("AL2023", "{name: bottlerocket-aws-k8s-1.33-x86_64-*}", ""), other);
    for (family, terms) in [
        ("AL2023", "{name: amazon-eks-node-al2023-x86_64-standard-1.33-*}"),
        ("AL2", "{name: amazon-eks-node-1.31-*}, {name: amazon-eks-arm64-node-1.31-*}"),
        ("AL2023", "{name: amazon-eks-node-*}"),
        ("AL2023", "{name: amazon-eks-node-1.31-*, owner: self}"),
        ("AL2023", "{name: amazon-eks-node-1.31-*}, {name: amazon-eks-node-al2023-x86_64-standard-1.31-*}"),
        ("AL2023", "{name: amazon-eks-node-1.31-*}, {id: ami-1}"),
        ("AL2023", "{name: \"${IMAGE}\"}"),
    ] {
        assert_eq!(found(family, terms, ""), [""; 0], "{family} {terms}");
    }
    let taint = "--kubelet-extra-args '--register-with-taints=karpenter.sh/unregistered:NoExecute'";
    let call = format!("  userData: |\n    #!/bin/bash\n    /etc/eks/bootstrap.sh shop {taint}\n");
    let of_al2023 = "{name: amazon-eks-node-al2023-x86_64-standard-1.33-*}";
    assert_eq!(found("Custom", of_al2023, &call), ["Error AmiFamilyMismatch f:10:5"]);
    assert_eq!(found("Custom", "{name: amazon-eks-node-1.31-*}", &call), [""; 0]);
}

/// aws/karpenter-provider-aws#5292: nothing says that the id of a subnet is misspelt.
#[test]
fn an_id_that_no_resource_has() {
    let found = |terms: &str| shown(&found_in("f", &of_alias("al2023@latest", terms)));
    let groups = "role: shop\n  securityGroupSelectorTerms: [{id: sg-0abc1234}]";
    let subnets = |terms: &str| found(&format!("subnetSelectorTerms: [{terms}]\n  {groups}"));
    assert_eq!(subnets("{id: ssubnet-0abc1234}"), ["Error NoSuchId f:6:26"]);
    assert_eq!(subnets("{id: \"subnet-0abc1234,subnet-0abc1235\"}"), ["Error NoSuchId f:6:26"]);
    assert_eq!(subnets("{id: subnet-0abc1234}, {id: private-subnet-1a}"), ["Warning NoSuchId f:6:49"]);
    assert_eq!(found("securityGroupSelectorTerms: [{id: \"sg-0abc1234 \"}]"), ["Error NoSuchId f:6:33"]);
    for fine in
        ["{id: subnet-0abc1234}", "{id: subnet-xxxx}", "{id: \"${SUBNET}\"}", "{tags: {Name: private-subnet-1a}}"]
    {
        assert_eq!(subnets(fine), [""; 0], "{fine}");
    }
}

#[test]
fn values_of_a_class_that_are_refused() {
    let found = |kubelet: &str| {
        shown(&found_in(
            "f",
            &format!(
                "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: a}}\nspec:\n  role: r\n  \
                 amiSelectorTerms: [{{alias: al2023@latest}}]\n  kubelet:\n    {kubelet}\n"
            ),
        ))
    };
    assert_eq!(found("kubeReserved: {memory: 500MB}"), ["Error InvalidKubeletField f:8:20"]);
    assert_eq!(found("imageGCHighThresholdPercent: 70"), ["Error InvalidKubeletField f:8:5"]);
    assert_eq!(found("kubeReserved: {memory: 500Mi}"), [""; 0]);
    assert_eq!(found("maxPods: 58"), [""; 0]);
}

#[test]
fn taints_of_a_class_that_karpenter_sets_from_the_node_pool() {
    let found = |text: &str| shown(&found_in("f", text));
    let of = |kubelet: &str| {
        format!(
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: a}}\nspec:\n  role: r\n  \
             amiSelectorTerms: [{{alias: al2023@latest}}]\n  kubelet: {kubelet}\n"
        )
    };
    let beside = |version: &str, class: &str| {
        format!(
            "{class}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: karpenter}}\nspec: {{template: \
             {{spec: {{containers: [{{image: \"public.ecr.aws/karpenter/controller:{version}\"}}]}}}}}}\n"
        )
    };
    let taints = of("{registerWithTaints: [{key: dedicated, effect: NoSchedule}]}");
    let refused = "Error InvalidKubeletField f:7:13";
    assert_eq!(found(&taints), [refused]);
    assert_eq!(found(&beside("1.15.0", &taints)), [refused]);
    // Neither the value nor the family matters: Karpenter checks classes of Custom, too.
    assert_eq!(found(&of("{registerWithTaints: dedicated:NoSchedule}")), [refused]);
    let custom = taints.replace("amiSelectorTerms: [{alias: al2023@latest}]", "amiFamily: Custom");
    assert!(found(&custom).iter().any(|found| found == refused), "{:?}", found(&custom));
    // The schema drops it: the class works.
    assert_eq!(found(&beside("1.14.1", &taints)), ["Warning InvalidKubeletField f:7:13"]);

    assert_eq!(found(&of("{registerWithTaints: null}")), [""; 0]);
    assert_eq!(found(&of("{podPidsLimit: 200}")), [""; 0]);
    // In user data the field is one of the NodeConfig. Karpenter's own part replaces it.
    let node_config = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      \
                       registerWithTaints: [{key: dedicated, effect: NoSchedule}]\n";
    let in_user_data = found(&class("AL2023", node_config));
    assert!(!in_user_data.iter().any(|found| found.contains("InvalidKubeletField")), "{in_user_data:?}");
}
