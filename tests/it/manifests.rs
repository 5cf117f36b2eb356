//! The RBAC that is shipped permits what the code does, and nothing else.

use nodewhy::operator::admission::own_certificate;
use nodewhy::operator::publish::{node_condition, remedy};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use testkit::rights::{self, Right, needed, needed_for_the_lease};

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

/// All objects that `kustomization.yaml` names, but for the CustomResourceDefinition.
fn objects() -> Vec<Value> {
    objects_in(".")
}

/// What the component adds for more than one replica.
fn objects_of_ha() -> Vec<Value> {
    objects_in("components/ha")
}

fn components() -> Vec<String> {
    let entries = std::fs::read_dir(manifests().join("components")).unwrap();
    entries.map(|entry| format!("components/{}", entry.unwrap().file_name().to_str().unwrap())).collect()
}

fn objects_in(folder: &str) -> Vec<Value> {
    let read = |name: &str| std::fs::read_to_string(manifests().join(folder).join(name)).unwrap();
    let kustomization: Value = serde_saphyr::from_str(&read("kustomization.yaml")).unwrap();
    let named = kustomization["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| !name.starts_with("../"));
    named.flat_map(|name| serde_saphyr::from_multiple::<Value>(&read(name)).unwrap()).collect()
}

fn of_kind<'o>(objects: &'o [Value], kind: &str) -> Vec<&'o Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The roles of Kubernetes that take this one in: then it is for people.
fn taken_in_by(role: &Value) -> BTreeSet<String> {
    let labels = role["metadata"]["labels"].as_object().into_iter().flatten().filter(|(_, value)| *value == "true");
    labels
        .filter_map(|(name, _)| name.strip_prefix("rbac.authorization.k8s.io/aggregate-to-"))
        .map(str::to_owned)
        .collect()
}

/// The roles of nodewhy itself.
fn roles<'o>(objects: &'o [Value], kind: &str) -> Vec<&'o Value> {
    of_kind(objects, kind).into_iter().filter(|role| taken_in_by(role).is_empty()).collect()
}

fn granted(objects: &[Value]) -> BTreeSet<Right> {
    granted_by(roles(objects, "ClusterRole").into_iter().chain(roles(objects, "Role")))
}

fn granted_by<'o>(roles: impl Iterator<Item = &'o Value>) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for role in roles {
        let namespace = role["metadata"]["namespace"].as_str().map(str::to_owned);
        for rule in role["rules"].as_array().unwrap() {
            let named = texts(&rule["resourceNames"]);
            let names: Vec<Option<String>> =
                if named.is_empty() { vec![None] } else { named.into_iter().map(Some).collect() };
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for name in &names {
                        for verb in texts(&rule["verbs"]) {
                            rights.insert((namespace.clone(), group.clone(), resource.clone(), name.clone(), verb));
                        }
                    }
                }
            }
        }
    }
    rights
}

#[track_caller]
fn assert_exactly(granted: &BTreeSet<Right>, needed: &BTreeSet<Right>) {
    let missing: Vec<_> = needed.difference(granted).collect();
    let idle: Vec<_> = granted.difference(needed).collect();
    assert!(missing.is_empty() && idle.is_empty(), "missing in manifests/: {missing:#?}\nnot needed there: {idle:#?}");
}

#[test]
fn rbac_is_what_the_code_needs_and_no_more() {
    assert_exactly(&granted(&objects()), &needed());
}

#[test]
fn more_than_one_replica_needs_their_lease_and_no_more() {
    assert_exactly(&granted(&objects_of_ha()), &needed_for_the_lease());
}

#[test]
fn no_other_component_gives_a_right() {
    let components = components();
    assert!(components.len() > 1, "{components:?}");
    for component in components.iter().filter(|name| {
        ![
            "components/admission",
            "components/ha",
            "components/logs",
            "components/node-condition",
            "components/remediation",
        ]
        .contains(&name.as_str())
    }) {
        let objects = objects_in(component);
        let rbac = objects.iter().filter(|object| {
            object["apiVersion"].as_str().is_some_and(|v| v.starts_with("rbac.authorization.k8s.io/"))
        });
        assert_eq!(rbac.count(), 0, "{component}");
    }
}

/// Who may view the cluster sees verdicts, and nobody writes one by hand or clears it away: remediation counts on them.
/// nodewhy has these rights from its own role or not at all.
#[test]
fn people_may_see_verdicts_and_no_more() {
    let all: Vec<_> =
        [objects()].into_iter().chain(components().iter().map(|name| objects_in(name))).flatten().collect();
    let for_people: Vec<_> = of_kind(&all, "ClusterRole")
        .into_iter()
        .chain(of_kind(&all, "Role"))
        .filter(|role| !taken_in_by(role).is_empty())
        .collect();
    let verdicts = |verbs: &[&str]| -> BTreeSet<Right> {
        verbs
            .iter()
            .map(|verb| (None, "nodewhy.dev".to_owned(), "nodediagnoses".to_owned(), None, (*verb).to_owned()))
            .collect()
    };
    for role in ["view", "edit", "admin"] {
        let taken_in = for_people.iter().copied().filter(|shipped| taken_in_by(shipped).contains(role));
        assert_exactly(&granted_by(taken_in), &verdicts(&["get", "list", "watch"]));
    }
    for binding in of_kind(&all, "ClusterRoleBinding").into_iter().chain(of_kind(&all, "RoleBinding")) {
        assert!(for_people.iter().all(|role| role["metadata"]["name"] != binding["roleRef"]["name"]), "{binding:#}");
    }
}

#[test]
fn every_role_is_bound_to_the_service_account_of_the_deployment() {
    let base = objects();
    let deployment = of_kind(&base, "Deployment")[0];
    let account = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
    let ha = objects_of_ha();
    for (objects, kind) in [(&base, "ClusterRole"), (&base, "Role"), (&ha, "Role")] {
        let bindings = of_kind(objects, &format!("{kind}Binding"));
        assert_eq!(roles(objects, kind).len(), bindings.len());
        for (role, binding) in roles(objects, kind).into_iter().zip(bindings) {
            assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
            assert_eq!(binding["metadata"]["namespace"], role["metadata"]["namespace"]);
            assert_eq!(&binding["subjects"][0]["name"], account);
            assert_eq!(binding["subjects"][0]["namespace"], deployment["metadata"]["namespace"]);
        }
    }
}

/// What the Pod Security Standard "restricted" demands, which the namespace enforces.
#[test]
fn the_pod_is_restricted() {
    let objects = objects();
    let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for container in pod["containers"].as_array().unwrap() {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["readOnlyRootFilesystem"], true);
        assert_eq!(texts(&context["capabilities"]["drop"]), ["ALL"]);
        assert!(context["capabilities"]["add"].is_null());
    }
    assert_eq!(
        of_kind(&objects, "Namespace")[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
        "restricted"
    );
}

/// What it may talk to and who may talk to it; the port is the one that it serves on.
#[test]
fn the_network_policy_leaves_in_scrapes_and_probes_and_out_the_api_server() {
    let objects = objects();
    let policy = &of_kind(&objects, "NetworkPolicy")[0]["spec"];
    let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"];
    assert_eq!(policy["podSelector"]["matchLabels"], pod["metadata"]["labels"]);
    assert_eq!(policy["policyTypes"], serde_json::json!(["Ingress", "Egress"]));
    let ports = |way: &str| {
        policy[way]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|rule| rule["ports"].as_array().unwrap())
            .map(|p| p["port"].clone())
            .collect::<Vec<_>>()
    };
    // Only pods of this cluster.
    let from: Vec<_> = policy["ingress"].as_array().unwrap().iter().map(|rule| rule["from"].clone()).collect();
    assert_eq!(from, [serde_json::json!([{ "namespaceSelector": {} }])]);
    assert_eq!(ports("ingress"), [pod["spec"]["containers"][0]["ports"][0]["name"].clone()]);
    assert!(ports("egress").contains(&443.into()));
}

/// It must not depend on the machines that it diagnoses.
#[test]
fn it_never_runs_on_a_machine_of_karpenter() {
    let objects = objects();
    let affinity = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"]["affinity"]["nodeAffinity"];
    let terms = &affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchExpressions"][0]["key"], "karpenter.sh/nodepool");
    assert_eq!(terms[0]["matchExpressions"][0]["operator"], "DoesNotExist");
}

#[test]
fn the_image_has_the_version_of_the_crate() {
    let objects = objects();
    let image =
        of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
    assert_eq!(image.rsplit_once(':').unwrap().1, env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_component_remediation_permits_to_patch_nodes_and_nothing_else() {
    let component = objects_in("components/remediation");
    assert_exactly(&granted(&component), &rights::of(remedy::WRITES));
    let [binding] = of_kind(&component, "ClusterRoleBinding")[..] else { panic!("one binding") };
    assert_eq!(binding["roleRef"]["name"], of_kind(&component, "ClusterRole")[0]["metadata"]["name"]);
    assert_eq!(binding["subjects"], of_kind(&objects(), "ClusterRoleBinding")[0]["subjects"]);
    assert!(granted(&objects()).is_disjoint(&granted(&component)), "without the component no Node can be changed");
}

#[test]
fn the_component_node_condition_permits_to_patch_the_status_of_nodes_and_nothing_else() {
    let component = objects_in("components/node-condition");
    assert_exactly(&granted(&component), &rights::of(node_condition::WRITES));
    let [binding] = of_kind(&component, "ClusterRoleBinding")[..] else { panic!("one binding") };
    assert_eq!(binding["roleRef"]["name"], of_kind(&component, "ClusterRole")[0]["metadata"]["name"]);
    assert_eq!(binding["subjects"], of_kind(&objects(), "ClusterRoleBinding")[0]["subjects"]);
    assert!(granted(&objects()).is_disjoint(&granted(&component)), "without the component no Node can be changed");
}

#[test]
fn the_component_logs_permits_to_read_logs_where_it_says_so_and_nothing_else() {
    let component = objects_in("components/logs");
    let needed: &[_] = &[("", "pods/log", &["get"][..], Some("kube-system"))];
    assert_exactly(&granted(&component), &rights::of(needed));
    let [binding] = of_kind(&component, "RoleBinding")[..] else { panic!("one binding") };
    let role = of_kind(&component, "Role")[0];
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    assert_eq!(binding["metadata"]["namespace"], role["metadata"]["namespace"]);
    assert_eq!(binding["subjects"], of_kind(&objects(), "ClusterRoleBinding")[0]["subjects"]);
    let patch: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(manifests().join("components/logs/deployment.yaml")).unwrap())
            .unwrap();
    let env = &patch["spec"]["template"]["spec"]["containers"][0]["env"][0];
    assert_eq!((&env["name"], &env["value"]), (&"NODEWHY_POD_LOGS".into(), &role["metadata"]["namespace"]));
}

#[test]
fn the_component_admission_permits_to_keep_one_certificate_and_nothing_else() {
    let component = objects_in("components/admission");
    let [secret, webhook] = own_certificate::NEEDS;
    let rights = |(group, resource, verbs): (&str, &str, &[&str]), namespace: Option<&str>| {
        let right = |verb: &&str| {
            let name = own_certificate::NAME.to_owned();
            (namespace.map(str::to_owned), group.to_owned(), resource.to_owned(), Some(name), (*verb).to_owned())
        };
        verbs.iter().map(right).collect::<BTreeSet<Right>>()
    };
    let needed = rights(secret, Some("nodewhy")).into_iter().chain(rights(webhook, None)).collect();
    assert_exactly(&granted(&component), &needed);
    for (role, binding) in [("Role", "RoleBinding"), ("ClusterRole", "ClusterRoleBinding")] {
        let [binding] = of_kind(&component, binding)[..] else { panic!("one binding") };
        assert_eq!(binding["roleRef"]["name"], of_kind(&component, role)[0]["metadata"]["name"]);
        assert_eq!(binding["subjects"], of_kind(&objects(), "ClusterRoleBinding")[0]["subjects"]);
    }
}

/// Whatever happens to nodewhy, the API server stores the object.
#[test]
fn the_webhook_can_stop_nobody_and_is_not_called_for_more_than_it_judges() {
    let component = objects_in("components/admission");
    let [configuration] = of_kind(&component, "ValidatingWebhookConfiguration")[..] else {
        panic!("one configuration")
    };
    assert_eq!(configuration["metadata"]["name"], own_certificate::NAME);
    let webhooks = configuration["webhooks"].as_array().unwrap();
    assert_eq!(webhooks.len(), 2);
    for webhook in webhooks {
        assert_eq!(webhook["failurePolicy"], "Ignore");
        assert_eq!(webhook["sideEffects"], "None");
        assert_eq!(webhook["timeoutSeconds"], 2);
        let service = &webhook["clientConfig"]["service"];
        assert_eq!(service["name"], of_kind(&component, "Service")[0]["metadata"]["name"]);
        for rule in webhook["rules"].as_array().unwrap() {
            assert_eq!(texts(&rule["operations"]), ["CREATE", "UPDATE"]);
            assert!(texts(&rule["resources"]).iter().all(|resource| !resource.contains(['/', '*'])), "{rule:#}");
        }
    }
}
