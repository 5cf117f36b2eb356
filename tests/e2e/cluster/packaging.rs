//! What is installed: kustomize and Helm make the same objects, and a real API server takes them as they are.

use crate::cluster::operator::install;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::control_plane::{ControlPlane, Process, binaries, free_ports};
use testkit::go;

/// Everything that the chart can switch on and the base leaves to a component.
const ALL_ON: &[&str] = &[
    "--set=admission.enabled=true,ha.enabled=true,podMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true,logs.enabled=true,removeStaleTaints=dry-run,nodeCondition=on",
];

/// Kind, namespace and name.
type Objects = BTreeMap<(String, String, String), Value>;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().expect("it starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn helm(values: &[&str]) -> Result<String, String> {
    template(&project("charts/nodewhy"), values)
}

fn template(chart: &Path, values: &[&str]) -> Result<String, String> {
    let mut command = Command::new(binaries::helm());
    command
        .args(["template", "nodewhy"])
        .arg(chart)
        .args(["--namespace=nodewhy", "--kube-version=1.37.2"])
        .args(values);
    output(&mut command)
}

fn kustomize(folder: &Path) -> String {
    output(Command::new(binaries::control_plane("kubectl")).arg("kustomize").arg(folder)).expect("kustomize builds it")
}

/// The base with every component, as docs/install.md shows for one.
fn kustomize_all() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let components: BTreeSet<_> = std::fs::read_dir(project("manifests/components"))
        .expect("components")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    // kustomize takes relative paths only.
    let real = folder.path().canonicalize().expect("it exists");
    let relative = |path: PathBuf| {
        format!("{}{}", "../".repeat(real.components().count() - 1), path.display().to_string().trim_start_matches('/'))
    };
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [relative(project("manifests"))],
        "components": components.into_iter().map(relative).collect::<Vec<_>>(),
    });
    std::fs::write(folder.path().join("kustomization.yaml"), kustomization.to_string()).expect("a file");
    kustomize(folder.path())
}

/// The objects without what one of the two tools adds by nature: Helm's labels, and the Namespace, which Helm leaves to
/// --create-namespace.
fn objects(yaml: &str) -> Objects {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut objects = Objects::new();
    for mut object in serde_saphyr::from_multiple::<Value>(yaml).expect("YAML") {
        if object["kind"] == "Namespace" || object.is_null() {
            continue;
        }
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            let helms = [
                "app.kubernetes.io/instance",
                "app.kubernetes.io/managed-by",
                "app.kubernetes.io/version",
                "helm.sh/chart",
            ];
            labels.retain(|name, _| !helms.contains(&name.as_str()));
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|name, _| !name.starts_with("helm.sh/"));
        }
        metadata.retain(|_, value| value != &json!({}));
        let key = (text(&object["kind"]), text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
        assert!(objects.insert(key.clone(), object).is_none(), "{key:?} twice");
    }
    objects
}

fn assert_same(helm: &Objects, kustomize: &Objects) {
    let names = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(helm), names(kustomize), "left Helm, right kustomize");
    for (name, object) in helm {
        let (helm, kustomize) = (format!("{object:#}"), format!("{:#}", kustomize[name]));
        let first = helm.lines().zip(kustomize.lines()).find(|(a, b)| a != b);
        assert!(helm == kustomize, "{name:?}: the first line that differs, left Helm, right kustomize: {first:?}");
    }
}

#[test]
fn helm_and_kustomize_make_the_same_objects() {
    let of_helm = |values| objects(&helm(values).expect("the chart's values are complete"));
    assert_same(&of_helm(&[]), &objects(&kustomize(&project("manifests"))));
    assert_same(&of_helm(ALL_ON), &objects(&kustomize_all()));
}

#[test]
fn values_reach_the_objects_and_wrong_ones_are_refused() {
    let rendered = objects(
        &helm(&[
            "--set=image.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "--set=fullnameOverride=why,thresholds.join=240,thresholds.terminate=90m,extraArgs={--listen=0.0.0.0:8080},crds.install=false,networkPolicy.enabled=false,ha.enabled=true",
            "--set=rbac.extraRules[0].apiGroups={karpenter.kwok.sh},rbac.extraRules[0].resources={kwoknodeclasses},rbac.extraRules[0].verbs={list,watch}",
        ])
        .expect("these values are allowed"),
    );
    let get =
        |kind: &str, namespace: &str, name: &str| &rendered[&(kind.to_owned(), namespace.to_owned(), name.to_owned())];
    let pod = &get("Deployment", "nodewhy", "why")["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "why");
    assert!(pod["containers"][0]["image"].as_str().is_some_and(|image| image.contains("@sha256:")), "{pod:#}");
    let args =
        ["run", "--log-format=json", "--join-threshold=240", "--terminate-threshold=90m", "--listen=0.0.0.0:8080"];
    assert_eq!(pod["containers"][0]["args"], json!(args));
    // The name of the Lease is a constant of the program, so it stays.
    assert_eq!(get("Role", "nodewhy", "why-lease")["rules"][1]["resourceNames"], json!(["nodewhy"]));
    let role = get("ClusterRole", "", "why");
    assert!(
        role["rules"].as_array().expect("rules").iter().any(|rule| rule["resources"] == json!(["kwoknodeclasses"])),
        "{role:#}"
    );
    assert_eq!(get("RoleBinding", "kube-system", "why-aws-auth")["roleRef"]["name"], "why-aws-auth");
    assert_eq!(get("RoleBinding", "kube-system", "why-aws-auth")["subjects"][0]["name"], "why");
    assert!(!rendered.keys().any(|(kind, ..)| kind == "CustomResourceDefinition" || kind == "NetworkPolicy"));

    // Logs are read in the namespaces that are named, and nowhere else.
    let rendered = objects(
        &helm(&["--set=logs.enabled=true,logs.namespaces={karpenter,kube-system}"]).expect("these values are allowed"),
    );
    let roles = rendered.keys().filter(|(kind, _, name)| kind == "Role" && name == "nodewhy-logs");
    assert_eq!(roles.map(|(_, namespace, _)| namespace.as_str()).collect::<Vec<_>>(), ["karpenter", "kube-system"]);
    assert_eq!(container(&rendered)["env"], json!([{ "name": "NODEWHY_POD_LOGS", "value": "karpenter,kube-system" }]));

    // Either opt-in gives the right, and leaves the other off.
    for (asked, stale, uninitialized) in
        [("removeStaleTaints=on", "on", "off"), ("removeUninitializedTaints=dry-run", "off", "dry-run")]
    {
        let rendered = objects(&helm(&[&format!("--set={asked}")]).expect("these values are allowed"));
        assert!(
            rendered.contains_key(&("ClusterRole".to_owned(), String::new(), "nodewhy-remediation".to_owned())),
            "{asked}"
        );
        let deployment = &rendered[&("Deployment".to_owned(), "nodewhy".to_owned(), "nodewhy".to_owned())];
        let env = json!([
            { "name": "NODEWHY_REMOVE_STALE_TAINTS", "value": stale },
            { "name": "NODEWHY_REMOVE_UNINITIALIZED_TAINTS", "value": uninitialized },
        ]);
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["env"], env);
    }

    for wrong in [
        "thresholds.jion=240",
        "thresholds.join=soon",
        "aws.region=eu",
        "image.pullPolicy=Sometimes",
        "replicas=3",
        "ha.replicas=3",
        "rbac.extraRules[0].verbs={delete}",
        "podMonitor.interval=soon",
        "removeUninitializedTaints=yes",
        "nodeCondition=yes",
        "admission.deny=yes",
        "admission.certManager=sometimes",
        "logs.namespaces={Kube}",
        "logs.namespaces={}",
    ] {
        let complaint = helm(&[&format!("--set={wrong}")]).expect_err(wrong);
        assert!(complaint.contains("values don't meet the specifications of the schema"), "{wrong}: {complaint}");
    }
}

/// The objects that Helm makes of a file with these values.
fn with_values(values: &str) -> Objects {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), values).expect("written");
    objects(&helm(&[&format!("--values={}", file.path().display())]).expect("these values are allowed"))
}

fn container(rendered: &Objects) -> &Value {
    let deployment = &rendered[&("Deployment".to_owned(), "nodewhy".to_owned(), "nodewhy".to_owned())];
    &deployment["spec"]["template"]["spec"]["containers"][0]
}

/// YAML reads `off` without quotes as false.
#[test]
fn modes_need_no_quotes() {
    assert_same(&with_values("removeStaleTaints: off\nremoveUninitializedTaints: off"), &with_values(""));
    assert_same(&with_values("removeStaleTaints: on"), &with_values("removeStaleTaints: \"on\""));
}

/// cert-manager makes the certificate if the cluster has it and nobody says otherwise. Then nodewhy needs no rights.
#[test]
fn the_webhooks_certificate_is_cert_managers_or_nodewhys_own() {
    let rendered = |values: &[&str]| objects(&helm(values).expect("these values are allowed"));
    let has = |objects: &Objects, kind: &str| objects.keys().any(|key| key.0 == kind && key.2 == "nodewhy-admission");
    let on = "--set=admission.enabled=true,admission.deny=certain";
    let cluster_has_it = "--api-versions=cert-manager.io/v1";
    for values in [&[on, cluster_has_it][..], &[on, "--set=admission.certManager=true"]] {
        let objects = rendered(values);
        assert!(has(&objects, "Certificate") && has(&objects, "Issuer") && has(&objects, "Service"), "{values:?}");
        assert!(!has(&objects, "Secret") && !has(&objects, "Role") && !has(&objects, "ClusterRole"), "{values:?}");
        let env = json!([
            { "name": "NODEWHY_ADMISSION_PORT", "value": "8443" },
            { "name": "NODEWHY_ADMISSION_CERTIFICATES", "value": "/admission" },
            { "name": "NODEWHY_ADMISSION_DENY", "value": "certain" },
        ]);
        assert_eq!(container(&objects)["env"], env);
        assert_eq!(container(&objects)["volumeMounts"][0]["mountPath"], "/admission");
        let key = ("ValidatingWebhookConfiguration".to_owned(), String::new(), "nodewhy-admission".to_owned());
        let annotations = &objects[&key]["metadata"]["annotations"];
        assert_eq!(annotations["cert-manager.io/inject-ca-from"], "nodewhy/nodewhy-admission");
    }
    for values in [&[on][..], &[on, cluster_has_it, "--set=admission.certManager=false"]] {
        let objects = rendered(values);
        assert!(has(&objects, "Secret") && has(&objects, "Role") && has(&objects, "ClusterRole"), "{values:?}");
        assert!(!has(&objects, "Certificate"), "{values:?}");
        assert!(container(&objects)["volumeMounts"].is_null(), "{values:?}");
    }
}

/// `--set ha=null` takes a default away.
#[test]
fn no_value_has_to_be_there_but_the_image() {
    let values: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(project("charts/nodewhy/values.yaml")).expect("values"))
            .expect("YAML");
    for (name, value) in values.as_object().expect("values") {
        let inner = value.as_object().into_iter().flatten().map(|(key, _)| format!("{name}.{key}=null"));
        // With all switched on that can be, so that nothing is skipped.
        for unset in inner.filter(|unset| !unset.contains('/')).chain([format!("{name}=null")]) {
            let rendered = helm(&[ALL_ON, &["--set=aws.enabled=true", &format!("--set={unset}")]].concat());
            match unset.as_str() {
                "image=null" | "image.repository=null" => {
                    assert!(
                        rendered.expect_err("no image").contains("values don't meet the specifications of the schema"),
                        "{unset}"
                    );
                }
                _ => {
                    let pod = objects(&rendered.unwrap_or_else(|error| panic!("{unset}: {error}")));
                    assert_eq!(container(&pod)["name"], "nodewhy", "{unset}");
                }
            }
        }
    }
}

/// It fails for want of a cluster, and not of its arguments.
#[test]
fn the_program_takes_what_the_chart_gives_it() {
    let rendered = with_values(
        "aws: {enabled: true, region: eu-west-1}
page: {enabled: true}
removeStaleTaints: dry-run
thresholds: {join: 1000000, ready: 1h30m, proven: \"90\"}
extraEnv: [{name: NODEWHY_RETENTION, value: 48h}]
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: arn:aws:iam::111122223333:role/nodewhy}}",
    );
    let account = &rendered[&("ServiceAccount".to_owned(), "nodewhy".to_owned(), "nodewhy".to_owned())];
    assert_eq!(
        account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"],
        "arn:aws:iam::111122223333:role/nodewhy"
    );
    let container = container(&rendered);
    let args: Vec<_> = container["args"].as_array().expect("arguments").iter().filter_map(Value::as_str).collect();
    for given in [
        "--aws",
        "--page",
        "--aws-region=eu-west-1",
        "--join-threshold=1000000",
        "--ready-threshold=1h30m",
        "--proven-threshold=90",
    ] {
        assert!(args.contains(&given), "{given}: {args:?}");
    }
    let env: Vec<_> = container["env"]
        .as_array()
        .expect("variables")
        .iter()
        .map(|one| (one["name"].as_str(), one["value"].as_str()))
        .collect();
    assert!(env.contains(&(Some("NODEWHY_RETENTION"), Some("48h"))), "{env:?}");
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        command.args(&args).args(more).env("KUBECONFIG", "/nonexistent");
        command.envs(env.iter().filter_map(|(name, value)| Some(((*name)?, (*value)?))));
        command.output().expect("it runs").status.code()
    };
    assert_eq!(run(&[]), Some(3));
    assert_eq!(run(&["--no-such-flag"]), Some(2));
}

/// Its credentials come over port 80 (docs/aws.md), which is closed otherwise.
#[test]
fn the_agent_of_pod_identity_is_reached_where_aws_is_asked() {
    let egress = |values| {
        let policy = &with_values(values)[&("NetworkPolicy".to_owned(), "nodewhy".to_owned(), "nodewhy".to_owned())];
        policy["spec"]["egress"].as_array().expect("rules").clone()
    };
    let (closed, open) = (egress(""), egress("aws: {enabled: true}"));
    let added: Vec<_> = open.iter().filter(|rule| !closed.contains(rule)).collect();
    assert_eq!(open.len(), closed.len() + 1);
    assert_eq!(added[0]["to"][0]["ipBlock"]["cidr"], "169.254.170.23/32");
    assert_eq!(added[0]["ports"], json!([{ "protocol": "TCP", "port": 80 }]));
}

#[test]
fn the_chart_passes_helms_lints_and_has_the_version_of_the_crate() {
    output(Command::new(binaries::helm()).args(["lint", "--strict"]).arg(project("charts/nodewhy")))
        .expect("no complaint");
    let chart: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(project("charts/nodewhy/Chart.yaml")).expect("a chart"))
            .expect("YAML");
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

/// The chart takes its roles, rules and dashboard from manifests/ by links, which no registry keeps: what
/// docs/release.md pushes is installed from there as from the folder.
#[test]
fn the_chart_comes_out_of_a_registry_as_it_is_in_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let [port] = free_ports();
    let mut registry = Command::new(binaries::registry());
    registry.arg(format!("-port={port}"));
    let mut registry = Process::spawn(&registry, folder.path().join("registry.log"));
    registry.wait_until_ready(Duration::from_secs(30), || TcpStream::connect(("localhost", port)).is_ok());

    let charts = format!("oci://localhost:{port}/charts");
    let release = |arguments: &[&str]| {
        let mut command = Command::new(binaries::helm());
        output(command.current_dir(&folder).args(arguments)).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    };
    release(&["package", &project("charts/nodewhy").display().to_string()]);
    // Helm before 3.22 found out by itself that a registry has no TLS.
    let plain = "--plain-http";
    release(&["push", plain, &format!("nodewhy-{}.tgz", env!("CARGO_PKG_VERSION")), &charts]);
    assert_eq!(template(&Path::new(&charts).join("nodewhy"), &[ALL_ON, &[plain]].concat()), helm(ALL_ON));
}

/// docs/upgrade.md: Helm takes over what kustomize made, upgrades the definition, and leaves it and the verdicts when
/// it goes.
#[test]
fn helm_upgrades_the_definition_and_no_verdict_is_lost() {
    let control_plane = ControlPlane::start();
    install(&control_plane);
    control_plane.apply(json!({
        "apiVersion": "nodewhy.dev/v1alpha1",
        "kind": "NodeDiagnosis",
        "metadata": { "name": "kept" },
        "spec": { "subject": { "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "kept" } },
    }));
    let helm = |arguments: &[&str]| {
        let mut command = Command::new(binaries::helm());
        command.args(arguments).arg("--namespace=nodewhy").env("KUBECONFIG", control_plane.kubeconfig());
        output(&mut command).unwrap_or_else(|error| panic!("helm {arguments:?}: {error}"))
    };
    let chart = project("charts/nodewhy").display().to_string();
    helm(&["upgrade", "--install", "--take-ownership", "nodewhy", &chart]);

    let columns = "/spec/versions/0/additionalPrinterColumns";
    let crd =
        || control_plane.get(&["crd", "nodediagnoses.nodewhy.dev"]).expect("it is installed").pointer(columns).cloned();
    let shipped = crd();
    let older = json!([{ "op": "remove", "path": format!("{columns}/0") }]).to_string();
    control_plane.kubectl(&["patch", "crd", "nodediagnoses.nodewhy.dev", "--type=json", "--patch", &older]);
    assert_ne!(crd(), shipped);
    helm(&["upgrade", "nodewhy", &chart]);
    assert_eq!(crd(), shipped, "helm upgrade upgrades the definition too");

    helm(&["uninstall", "nodewhy"]);
    assert!(control_plane.get(&["deployment", "nodewhy", "--namespace=nodewhy"]).is_none());
    assert!(control_plane.get(&["nodediagnosis", "kept"]).is_some(), "the verdict outlives the release");
}

/// krew names the link `kubectl-nodewhy`, and kubectl runs what is called so.
#[test]
fn kubectl_runs_it_as_a_plugin() {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_nodewhy"), folder.path().join("kubectl-nodewhy")).expect("a link");
    let mut command = Command::new(binaries::control_plane("kubectl"));
    let printed = output(command.args(["nodewhy", "crd"]).env("PATH", folder.path())).expect("kubectl finds it");
    assert_eq!(
        printed,
        std::fs::read_to_string(project("crds/nodewhy.dev_nodediagnoses.yaml")).expect("the definition")
    );
}

/// What krew-release-bot makes of the template: krew takes a name like the file's, a version with `v`, and a short
/// description of a line.
#[test]
fn the_krew_manifest_names_the_files_of_a_release() {
    let template = std::fs::read_to_string(project(".krew.yaml")).expect("a template");
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let filled = template
        .replace("{{ .TagName }}", version)
        .replace(r"{{addURIAndSha ", "uri: ")
        .replace(r" .TagName }}", "\n    sha256: 0000000000000000000000000000000000000000000000000000000000000000");
    let plugin: Value = serde_saphyr::from_str(&filled).expect("YAML");
    assert_eq!(plugin["metadata"]["name"], "nodewhy");
    assert_eq!(plugin["spec"]["version"], version);
    assert!(plugin["spec"]["shortDescription"].as_str().is_some_and(|text| text.len() <= 50), "krew cuts it off");
    let release = std::fs::read_to_string(project("docs/release.md")).expect("how a release is made");
    let platforms = plugin["spec"]["platforms"].as_array().expect("platforms");
    assert_eq!(platforms.len(), 5);
    for platform in platforms {
        let machine = &platform["selector"]["matchLabels"];
        let file = format!(
            "nodewhy-{}-{}.tar.gz",
            machine["os"].as_str().expect("os"),
            machine["arch"].as_str().expect("arch")
        );
        assert!(
            platform["uri"].as_str().is_some_and(|uri| uri.ends_with(&format!("/{version}/{file}"))),
            "{platform:#}"
        );
        assert_eq!(platform["bin"], if machine["os"] == "windows" { "nodewhy.exe" } else { "nodewhy" });
        assert!(release.contains(&file), "docs/release.md does not make {file}");
    }
}

/// The API server knows every field better than a schema file: kubectl lets it refuse unknown ones.
#[test]
fn a_real_api_server_takes_every_object_and_holds_the_pod_to_the_restricted_standard() {
    let control_plane = ControlPlane::start();
    let operator = go::module_source("github.com/prometheus-operator/prometheus-operator@v0.85.0");
    for kind in ["podmonitors", "prometheusrules"] {
        control_plane
            .apply_crds(&operator.join(format!("example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml")));
    }
    install(&control_plane);
    control_plane.apply(kustomize_all());
    let versions = || {
        let all = "deployments,poddisruptionbudgets,services,networkpolicies,podmonitors,prometheusrules,configmaps,clusterroles,clusterrolebindings,roles,rolebindings";
        let list =
            control_plane.get(&[all, "--all-namespaces", "--selector=app.kubernetes.io/name=nodewhy"]).expect("a list");
        let generations =
            list["items"].as_array().expect("items").iter().map(|item| item["metadata"]["generation"].clone());
        generations.collect::<Vec<_>>()
    };
    let before = versions();
    assert!(before.len() > 12, "{before:?}");
    control_plane.apply(helm(ALL_ON).expect("the chart's values are complete"));
    assert_eq!(versions(), before, "what Helm makes is the same to the API server");

    let deployment = control_plane.get(&["deployment", "nodewhy", "--namespace=nodewhy"]).expect("installed");
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "nodewhy", "namespace": "nodewhy", "labels": deployment["spec"]["template"]["metadata"]["labels"] },
        "spec": deployment["spec"]["template"]["spec"],
    });
    let create =
        |pod: &Value| control_plane.try_kubectl_with_input(&["create", "--dry-run=server", "--filename=-"], pod);
    create(&pod).expect("the namespace enforces what the pod keeps to");
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
    let refused = create(&pod).expect_err("the standard is enforced");
    assert!(refused.contains("violates PodSecurity \"restricted"), "{refused}");
}

/// The roles that people have take in the right to see verdicts. Aggregation is the work of kube-controller-manager.
#[test]
fn who_may_view_or_edit_the_cluster_sees_verdicts_and_only_an_administrator_clears_them_away() {
    let control_plane = ControlPlane::start();
    let _controllers = control_plane.controller_manager();
    install(&control_plane);
    for role in ["view", "edit"] {
        control_plane.kubectl(&[
            "create",
            "clusterrolebinding",
            role,
            &format!("--clusterrole={role}"),
            &format!("--user={role}"),
        ]);
    }
    let may = |user: &str, verb: &str| {
        control_plane
            .try_kubectl(&["auth", "can-i", verb, "nodediagnoses.nodewhy.dev", "--as", user])
            .is_ok_and(|answer| answer.contains("yes"))
    };
    wait_until(SOON, || (may("view", "list") && may("edit", "list")).then_some(()));
    for role in ["view", "edit"] {
        for verb in ["delete", "deletecollection", "create", "patch"] {
            assert!(!may(role, verb), "{role} {verb}");
        }
    }
    // SECURITY.md says what that is worth: who edits the namespace can be nodewhy.
    let account = ["auth", "can-i", "impersonate", "serviceaccounts/nodewhy", "--namespace=nodewhy", "--as=edit"];
    assert!(control_plane.try_kubectl(&account).is_ok_and(|answer| answer.contains("yes")));
}
