//! Why the pod of an agent does not work on its Node.

use super::across_images::{self, ImageSplit};
use super::agent::{Agent, INSTANCE_TYPE};
use super::behind;
use super::go_panic;
use super::host_path;
use super::machine_settings::{self, of_image};
use super::own_host::{is_outdated, outdated_host, own_host};
use super::port;
use super::proxy_skew::outdated_proxy;
use super::room::no_room;
use super::said::{self, SaidBy};
use super::sandbox_ends;
use super::waited_for;
use super::without_kube_proxy::without_kube_proxy;
use super::words::{Meaning, last_words, meaning};
use super::{reads, without_pod};
use crate::api::{Blame, Evidence, Link, Risk};
use crate::case::Case;
use crate::case::unstarted_pods::{STILL_REFUSED, waits_for_sandbox};
use crate::explain::explanation::{Explanation, Proof};
use crate::explain::logged::excerpt;
use crate::explain::pull::{self, Pull};
use crate::facts::kubelet_skew;
use crate::facts::network_plugin::{self, KUBE_PROXY};
use crate::facts::node_tallies;
use crate::objects::input::Input;
use crate::objects::{Event, Node, Pod, steady};
use crate::upstream::credentials::Credentials;
use crate::upstream::node_events::refused_sandbox;
use crate::upstream::vpc_cni;
use readers::source_text;

pub(crate) fn of_pod(case: &Case, node: &Node, pod: &Pod) -> Explanation {
    reads(case);
    let agent = Agent::of(pod);
    let trouble = pod.trouble().filter(|_| !waits_for_another_sandbox(case, node, pod));
    if let Some((container, said)) = trouble {
        let before = format!("container {container}");
        let said = why_not_pulled(case, node, pod, &said).unwrap_or(said);
        return meant(case, node, &agent, &last_words(&pull::unwrapped(&said)), &before, Some(container));
    }
    if let Some(said) = pod.unscheduled() {
        return unscheduled(case, node, &agent, said);
    }
    // While a sandbox or a volume fails, its containers only wait: an event says why.
    let waits = !pod.is_ready();
    if let Some(event) = waits.then(|| newest_warning(case, node, pod)).flatten() {
        return meant(case, node, &agent, event.message.trim_end_matches('.'), &event.reason, None);
    }
    if let Some(explanation) = waits.then(|| sandbox_ends::explained(case, node, &agent)).flatten() {
        return explanation;
    }
    if let Some((container, other)) = waits.then(|| waited_for::another(case, &agent)).flatten() {
        let deeper = of_pod(case, node, other);
        let why = format!("container {container} of pod {} waits for another, because {}", agent.name, deeper.why);
        let link = agent.link(format!("its init container {container} waits"));
        return Explanation { why, ..deeper }.after(link);
    }
    let (says, why) = if waits {
        let says = format!("it is not Ready (phase {})", pod.status.phase);
        let why = format!("pod {} is not Ready (phase {})", agent.name, pod.status.phase);
        (says, why)
    } else {
        ("it is Ready".to_owned(), format!("pod {} is Ready", agent.name))
    };
    Explanation::new(Proof::Open, why, agent.blame.clone(), agent.link(says))
        .fix(format!("Read the log of pod {}: it names the reason.", agent.name))
        .inspect("See what the pod reports", agent.describe())
        .ask(
            format!("What does pod {} log?", agent.name),
            format!("kubectl logs -n {} {} --all-containers --tail=50", agent.namespace, agent.name),
        )
}

/// While the kubelet pauses between two pulls, its status only says that. The event of the last try says why they fail.
/// Source: kubernetes v1.36.3 pkg/kubelet/images/image_manager.go `EnsureImageExists`, events/event.go.
fn why_not_pulled(case: &Case, node: &Node, pod: &Pod, said: &str) -> Option<String> {
    if pull::explain(said)?.is_explained() {
        return None;
    }
    let of_node = case.cluster.pod_events_on(node.name()).filter(|e| e.involved_object.name == *pod.metadata.name);
    let events = of_node.chain(case.cluster.events("Pod", &pod.metadata.name));
    let tells = |e: &&Event| {
        e.reason == "Failed"
            && e.last_seen() >= pod.metadata.creation_timestamp
            && pull::explain(&e.message).is_some_and(Pull::is_explained)
    };
    let event = events.filter(tells).max_by_key(|e| (e.last_seen(), &e.message))?;
    let (_, why) = event.message.split_once("\": ")?;
    Some(format!("{}: {why}", said.split(": ").next().unwrap_or_default()))
}

/// Whether a sandbox or a volume keeps the pod's containers from starting at all.
pub(crate) fn cannot_be_set_up(case: &Case, node: &Node, pod: &Pod) -> bool {
    !pod.is_ready() && !pod.has_started() && newest_warning(case, node, pod).is_some()
}

/// Its node was restarted, and since then its sandbox is refused: how its containers ended tells nothing.
fn waits_for_another_sandbox(case: &Case, node: &Node, pod: &Pod) -> bool {
    let refuses = |e: &Event| e.names(&pod.metadata) && refused_sandbox(e).is_some() && waits_for_sandbox(pod, e);
    pod.has_started() && !pod.is_ready() && case.cluster.pod_events_on(node.name()).any(refuses)
}

/// The kubelet's last message about the pod since its creation that may still hold. If a container has started, the
/// sandbox and the volumes were there.
fn newest_warning<'c>(case: &Case<'c>, node: &Node, pod: &Pod) -> Option<&'c Event> {
    // Source: kubernetes v1.36.3 pkg/kubelet/events/event.go.
    const BEFORE: &[&str] = &["FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume"];
    const AFTER: &[&str] = &["Failed", "Unhealthy"];
    let has_sandbox = pod.has_started() && !waits_for_another_sandbox(case, node, pod);
    let reasons = if has_sandbox { AFTER } else { BEFORE };
    let events = || {
        let of_node = case.cluster.pod_events_on(node.name()).filter(|e| e.involved_object.name == *pod.metadata.name);
        let events = of_node.chain(case.cluster.events("Pod", &pod.metadata.name));
        let warnings = events.filter(|e| reasons.contains(&e.reason.as_str()) && !e.message.is_empty());
        let of_pod = warnings.filter(|e| e.last_seen() >= pod.metadata.creation_timestamp);
        // It has been started anew since, or was only about to end.
        let is_over = |e: &Event| {
            let still = e.last_seen().is_some_and(|at| case.now - at <= STILL_REFUSED);
            meaning(&e.message) == Some(Meaning::StoppedUnnoticed) && !(still && e.last_seen() > pod.stopped_at())
        };
        of_pod.filter(move |e| !is_over(e))
    };
    // Of two volumes that fail by turns the same one is named each time.
    let newest = events().max_by_key(|e| e.last_seen())?;
    events().filter(|e| e.reason == newest.reason).min_by_key(|e| &e.message)
}

/// A pod without a node, though its DaemonSet created it for this one.
fn unscheduled(case: &Case, node: &Node, agent: &Agent, said: &str) -> Explanation {
    let said = source_text::mask(said.trim().trim_end_matches('.'));
    let link = agent.link(&said);
    if let Some((why, fix)) = no_room(case, node, agent, &said) {
        return Explanation::new(Proof::Lasting, why, agent.in_spec("containers"), link)
            .fix(fix)
            .inspect("See the scheduler's message", agent.describe());
    }
    let why = format!("pod {} is not scheduled: {said}", agent.name);
    if said.contains("didn't have free ports for the requested pod ports") && port::held(case, agent).is_some() {
        return port::taken(case, agent, port::held(case, agent), |rest| format!("{why}{rest}"), link);
    }
    // Source: kubernetes v1.36.3 pkg/scheduler/framework/plugins/noderesources/fit.go, nodeports/node_ports.go.
    let fits_not = ["Insufficient ", "Too many pods", "free ports"].iter().any(|part| said.contains(part));
    let (proof, blame, fix) = if fits_not {
        (
            Proof::Lasting,
            agent.in_spec("containers"),
            format!(
                "Lower the requests of DaemonSet {}, or give it a priority above that of the pods there \
                 (system-node-critical), which may evict them. Or allow larger nodes in the NodePool.",
                agent.set
            ),
        )
    } else if said.contains("untolerated taint") {
        (
            Proof::Lasting,
            agent.in_spec("tolerations"),
            format!("Add a toleration for the taint to DaemonSet {}.", agent.set),
        )
    } else {
        (Proof::Open, agent.blame.clone(), format!("Find out why pod {} is not scheduled.", agent.name))
    };
    Explanation::new(proof, why, blame, link).fix(fix).inspect("See the scheduler's message", agent.describe())
}

/// The message as it is, and its source.
fn meant(case: &Case, node: &Node, agent: &Agent, raw: &str, of_what: &str, container: Option<&str>) -> Explanation {
    let (name, set) = (agent.name, agent.set);
    let said = &*source_text::mask(&steady(raw));
    let says = &*format!("{of_what}: {said}");
    let fails = |rest: &str| format!("pod {name} fails: {says}{rest}");
    let link = || agent.link(says);
    let of = |proof, why: String, blame| Explanation::new(proof, why, blame, link());
    let Some(meaning) = meaning(said) else {
        return logged(case, node, agent, &format!("{of_what}: {}", last_words(said)), container);
    };
    let explanation = match meaning {
        Meaning::NoServices => without_services(case, node, fails, link()),
        Meaning::Missing { kind, name: missing, key } => lacks_object(agent, said, kind, missing, key, link()),
        Meaning::Image(pull) => {
            let pull = pull::of_image(pull, container.and_then(|name| agent.image_of(name)).unwrap_or_default());
            image(case, agent, pull, of(Proof::Open, fails(&format!(" ({})", pull.why)), agent.in_spec("containers")))
        }
        Meaning::OutOfMemory => {
            of(Proof::Lasting, fails("; it needs more memory than its limit"), agent.in_spec("containers"))
                .fix(format!("Raise the memory limit of DaemonSet {set}."))
                .inspect("See its limits", agent.describe())
        }
        Meaning::Architecture => of(
            Proof::Lasting,
            fails("; its image is built for another architecture than the node's"),
            agent.in_spec("containers"),
        )
        .fix(format!(
            "Give DaemonSet {set} an image for all architectures of your nodes, or limit it to those that it supports."
        )),
        Meaning::Processor => of(
            Proof::Lasting,
            fails("; its image is built for newer processors than the node's"),
            agent.in_spec("containers"),
        )
        .fix(format!(
            "Give DaemonSet {set} a version whose image supports such processors, or use instance types with a newer \
             processor: since 1.31 kube-proxy of EKS needs ARMv8.2 with the cryptography extension, or x86-64-v2."
        )),
        Meaning::KernelModule => kernel_module(case, node, agent, fails, link()),
        Meaning::InstanceType => {
            let type_ = node.metadata.label(INSTANCE_TYPE).unwrap_or("of this Node");
            of(
                Proof::Lasting,
                fails(&format!("; its version does not know the instance type {type_}")),
                agent.in_spec("containers"),
            )
            .fix(format!("Upgrade DaemonSet {set}, or exclude the type {type_} in the NodePool."))
        }
        Meaning::Forbidden { account, what } => forbidden(agent, account, what, link()),
        Meaning::AwsDenied { action } => {
            let (whose, blame) = role(case, agent);
            of(Proof::Lasting, fails(&format!("; {whose} does not permit {action}")), blame)
                .behind(Link::new(format!("Pod/{name}"), format!("{whose} does not permit {action}")))
                .fix(format!("Allow {action} in {whose}. This disrupts nothing."))
        }
        Meaning::WebIdentity => web_identity(agent, fails, link()),
        Meaning::Metadata => metadata(
            case,
            agent,
            of(Proof::Open, fails("; it cannot reach the instance's metadata"), agent.blame.clone()),
        ),
        Meaning::ApiServer { address } => api_server(case, node, agent, said, says, address),
        Meaning::Runtime { name } => machine_settings::without_runtime(case, node, name, fails, link()),
        Meaning::ImageWithoutSize => machine_settings::image_without_size(case, node, fails, link()),
        Meaning::DriverVersions => machine_settings::driver_versions(case, node, fails, link()),
        Meaning::RuntimeProgram { name: program } => {
            machine_settings::runtime_program(case, node, program, fails, link())
        }
        Meaning::RuntimeWithoutType => machine_settings::runtime_without_type(case, node, fails, link()),
        Meaning::RuntimeEnds => machine_settings::runtime_ends(case, node, fails, link()),
        Meaning::ResolverFile { path } => machine_settings::resolver_file(case, node, path, fails, link()),
        Meaning::CgroupDriver => machine_settings::cgroup_driver(case, node, fails, link()),
        Meaning::PluginPath { program, path } => {
            machine_settings::plugin_path(case, node, agent, (program, path), link())
        }
        Meaning::CniPlugin { plugin, network } => {
            if let Some(pod) = behind::failing_plugin(case, node, agent, plugin) {
                let deeper = of_pod(case, node, pod);
                let why = format!("pod {name} gets no network ({says}), because {}", deeper.why);
                return Explanation { why, ..deeper.after(agent.link(says)) };
            }
            return behind::refused_by_plugin(case, node, agent, says, (plugin, network))
                .unwrap_or_else(|| unexplained(case, node, agent, says, container));
        }
        Meaning::HostPath { path, kind } => host_path::of_wrong_kind(case, node, agent, (path, kind), fails, link()),
        Meaning::PortTaken { port } => port::taken(case, agent, port, fails, link()),
        Meaning::NoPodCidr => no_pod_cidr(agent, says, link()),
        Meaning::RunsAsRoot => runs_as_root(agent, says, link()),
        Meaning::StoppedUnnoticed => stopped_unnoticed(node, agent, says, link()),
        Meaning::Start => of(Proof::Lasting, fails(""), agent.in_spec("containers")).fix(format!(
            "Correct what the message names in DaemonSet {set}: its command, a mount, or a path that the node's image \
             does not have."
        )),
    };
    if explanation.steps.is_empty() {
        explanation.inspect("See what the pod reports", agent.describe())
    } else {
        explanation
    }
}

/// The pod needs a module of the kernel that the image lacks, or that the pod's own program cannot load.
fn kernel_module(case: &Case, node: &Node, agent: &Agent, fails: impl Fn(&str) -> String, link: Link) -> Explanation {
    let why = fails("; the kernel of the node lacks a module, or the program of the pod cannot load it");
    let image = Link::new(format!("Node/{}", node.name()), format!("image {}", node.status.node_info.os_image));
    Explanation::new(Proof::Open, why, of_image(case, node), link)
        .behind(image)
        .fix(format!(
            "Use an image whose kernel has the module that the message names, or load it in user data before the \
             kubelet starts. If the image has it, and only the pod's own modprobe cannot read it (Exec format error), \
             upgrade DaemonSet {}.",
            agent.set
        ))
        .ask("Do nodes of another image run this pod?", format!("kubectl get pods -n {} -o wide", agent.namespace))
}

/// AWS rejects the token with which the pod asks for the role of its ServiceAccount.
fn web_identity(agent: &Agent, fails: impl Fn(&str) -> String, link: Link) -> Explanation {
    let (namespace, account) = (agent.namespace, agent.account());
    let why = fails(&format!("; AWS rejects the token of ServiceAccount {account}"));
    Explanation::new(Proof::Lasting, why, agent.account_blame(), link)
        .fix(format!(
            "Allow system:serviceaccount:{namespace}:{account} of this cluster's OIDC provider in the trust policy of \
             the role that ServiceAccount {account} names. This disrupts nothing."
        ))
        .inspect("See the role that it names", format!("kubectl get serviceaccount -n {namespace} {account} -o yaml"))
}

/// The pod needs an object that does not exist, or that lacks a key.
fn lacks_object(agent: &Agent, said: &str, kind: &str, missing: Option<&str>, key: bool, link: Link) -> Explanation {
    let (name, namespace, set) = (agent.name, agent.namespace, agent.set);
    let missing_is = missing.map_or_else(|| format!("a {kind} that it names"), |name| format!("{kind} {name}"));
    let lacks =
        if key { format!("{missing_is} lacks a key that it needs") } else { format!("{missing_is} does not exist") };
    let blame = match (missing, kind) {
        (None, _) => agent.blame.clone(),
        (Some(missing), "RuntimeClass") => Blame::object("node.k8s.io/v1", kind, missing),
        (Some(missing), _) => Blame::object("v1", kind, missing).namespace(namespace),
    };
    let object = blame.object.clone();
    Explanation::new(Proof::Lasting, format!("pod {name} cannot start: {lacks} ({said})"), blame, link)
        .behind(Link::new(object, lacks))
        .fix(format!("Create it under the name that DaemonSet {set} uses, or correct the name there."))
        .inspect("See which ones exist", format!("kubectl get {}s -n {namespace}", kind.to_ascii_lowercase()))
        .inspect("See what the pod reports", agent.describe())
}

/// The API server denies a call to the agent's ServiceAccount.
fn forbidden(agent: &Agent, account: &str, what: &str, link: Link) -> Explanation {
    let (name, namespace, set) = (agent.name, agent.namespace, agent.set);
    let (_, account) = account.split_once(':').unwrap_or(("", account));
    let (blame, fix) = match own_cluster_role(set) {
        Some(role) => (
            Blame::object("rbac.authorization.k8s.io/v1", "ClusterRole", role),
            format!(
                "Apply the whole manifest of the version of DaemonSet {set}: ClusterRole {role} lacks what the message \
                 names, or ServiceAccount {account} is not bound to it. This disrupts nothing."
            ),
        ),
        None => (
            Blame::object("v1", "ServiceAccount", account).namespace(namespace),
            format!(
                "Bind ServiceAccount {account} to the ClusterRole of its chart: it lacks what the message names. This \
                 disrupts nothing."
            ),
        ),
    };
    let why = format!("pod {name} fails: its ServiceAccount {account} cannot {what}");
    Explanation::new(Proof::Lasting, why, blame, link)
        .behind(Link::new(format!("ServiceAccount/{account}"), format!("it cannot {what}")))
        .fix(fix)
        .inspect(
            "See what it may do",
            format!("kubectl auth can-i --list --as=system:serviceaccount:{namespace}:{account}"),
        )
}

/// Cilium's operator divides the cluster's range into one for each Node. A CiliumNode keeps its own range as long as it
/// exists, with or without its node.
/// Sources: cilium v1.14 pkg/ipam/allocator/podcidr/podcidr.go (`allocator full`); cilium/cilium#17837.
fn no_pod_cidr(agent: &Agent, says: &str, link: Link) -> Explanation {
    let why = format!(
        "pod {} gets no range of addresses for the Node's pods: the operator does not run, or assigns none because its \
         pool is used up, also by CiliumNodes whose nodes are gone ({says})",
        agent.name
    );
    Explanation::new(Proof::Open, why, agent.blame.clone(), link)
        .fix(
            "If the operator does not run, fix that first. Otherwise delete CiliumNodes whose nodes are gone, which \
             disrupts nothing, or give the pool another range (cluster-pool-ipv4-cidr).",
        )
        .inspect(
            "See what the operator logs",
            format!(
                "kubectl logs -n {} -l name=cilium-operator --tail=100 | grep -i -e allocat -e error",
                agent.namespace
            ),
        )
}

/// If the kubelet's message tells nothing, the container's own may.
fn logged(case: &Case, node: &Node, agent: &Agent, says: &str, container: Option<&str>) -> Explanation {
    let Some(said) = said::last(case, agent) else { return unexplained(case, node, agent, says, container) };
    let text = excerpt(&said.line.text);
    let log = match said.by {
        SaidBy::Own | SaidBy::Nobody => "its log".to_owned(),
        SaidBy::Other(pod) => format!("the log of {pod}, which fails as it does"),
    };
    if meaning(&text).is_none() {
        // That the kubelet pauses between two tries is no news where it is known how they end.
        let says = says.split(": back-off ").next().unwrap_or(says);
        return unexplained(case, node, agent, &format!("{says}; {log}{ENDS_WITH}{text}"), container);
    }
    let place = format!("{} line {}", said.line.file, said.line.line);
    let explanation = meant(case, node, agent, &text, &format!("{log} ({place})"), container);
    // Another pod of its DaemonSet may have said it.
    let is_own = said.by == SaidBy::Own || explanation.proof == Proof::None;
    if is_own { explanation } else { Explanation { proof: Proof::Open, ..explanation } }
}

/// The kubelet repeats the pod's name, which differs for every pod.
fn runs_as_root(agent: &Agent, says: &str, link: Link) -> Explanation {
    let (name, set) = (agent.name, agent.set);
    let why = says.split_once(" (pod: \"").map_or(says, |(why, _)| why);
    Explanation::new(Proof::Lasting, format!("pod {name} fails: {why}"), agent.in_spec("containers"), link).fix(format!(
        "Remove runAsNonRoot from DaemonSet {set}, or set a user there that is not root (runAsUser), if it can work so."
    ))
}

/// The kubelet probes a container that is no longer running.
fn stopped_unnoticed(node: &Node, agent: &Agent, says: &str, link: Link) -> Explanation {
    let why = format!(
        "pod {} fails: one of its containers has stopped, but containerd missed that and reports it as running \
         ({says})",
        agent.name
    );
    Explanation::new(Proof::Open, why, Blame::object("v1", "Node", node.name()), link)
        .fix(
            "Restart containerd on the node (systemctl restart containerd), which leaves running pods alone, or \
             replace the node. Nothing else makes containerd check again. An image with another release of containerd \
             may not have this fault.",
        )
        .inspect("See the releases of containerd", "kubectl get nodes -o wide".to_owned())
        .ask("Does the node have a process of that container (crictl ps, ps aux on the node)?", agent.describe())
}

/// The kubelet gives a pod the addresses of Services once it has read them.
fn without_services(case: &Case, node: &Node, fails: impl Fn(&str) -> String, link: Link) -> Explanation {
    if let Some(skew) = kubelet_skew::ahead_of_api_server(case, node) {
        let (blame, fix) = skew.blame_and_fix(case, node);
        let proof = if skew.proven { Proof::Lasting } else { Proof::Open };
        return Explanation::new(proof, fails(&format!("; {}", skew.why)), blame, link)
            .behind(Link::new(format!("Node/{}", node.name()), skew.why))
            .fix(fix);
    }
    let why = fails("; its kubelet has not read the Services once");
    let open = Explanation::new(Proof::Open, why, Blame::object("v1", "Node", node.name()), link).fix(
        "Find out why the kubelet cannot list Services: its version is newer than the API server's, it lacks \
         permissions, or it cannot reach the API server.",
    );
    match case.cluster.api_server().version {
        Some(_) => open,
        None => open.ask("Which version has the API server?", "kubectl version"),
    }
}

/// The ClusterRole of the DaemonSet's own manifest, which a new version may need to be a new one.
/// Sources: amazon-vpc-cni-k8s v1.12.0 config/master/aws-k8s-cni.yaml; cilium v1.17.3
/// install/kubernetes/cilium/templates/cilium-agent/clusterrole.yaml; calico v3.29.2 manifests/calico.yaml.
fn own_cluster_role(set: &str) -> Option<&str> {
    ["aws-node", "cilium", "calico-node"].contains(&set).then_some(set)
}

fn image(case: &Case, agent: &Agent, pull: Pull, explanation: Explanation) -> Explanation {
    let explanation = explanation.fix(pull.fix);
    if !pull.is_explained() {
        return explanation.ask(format!("Why can the image of pod {} not be pulled?", agent.name), agent.describe());
    }
    if pull.is_about_network {
        let blame = case.class_field("spec.subnetSelectorTerms").unwrap_or_else(|| explanation.blame.clone());
        return Explanation { blame, ..explanation }.ask(
            "Does a route, an endpoint, a security group or DNS block the path from the subnet to the registry?",
            agent.describe(),
        );
    }
    let blame = match pull {
        pull::REFUSED_BY_ECR | pull::NO_LOGIN_TO_ECR => case.class_field("spec.role"),
        pull::REFUSED_ELSEWHERE => Some(agent.in_spec("imagePullSecrets")),
        pull::DISK_FULL => case.class_field("spec.blockDeviceMappings"),
        _ => None,
    };
    let volumes = if pull == pull::DISK_FULL { volumes(case) } else { None };
    let blame = blame.unwrap_or_else(|| explanation.blame.clone());
    let is_open = matches!(pull, pull::NO_LOGIN_TO_ECR | pull::WITHOUT_LOGIN);
    let proof = if is_open { Proof::Open } else { Proof::Lasting };
    let explanation = Explanation { proof, blame, ..explanation };
    match volumes {
        Some(volumes) => explanation.with(volumes),
        None => explanation,
    }
}

/// The volumes that the node class asks for: `/dev/xvda 4Gi, /dev/xvdb 100Gi`.
fn volumes(case: &Case) -> Option<Evidence> {
    let class = case.class()?;
    let sizes = class.spec.block_device_mappings.iter().filter_map(|volume| {
        let (name, size) = (volume.device_name.as_deref()?, volume.ebs.as_ref()?.volume_size.as_deref()?);
        Some(format!("{name} {size}"))
    });
    let sizes: Vec<String> = sizes.collect();
    let object = format!("{}/{}", class.kind, class.name());
    let because = "the volumes of its nodes";
    (!sizes.is_empty()).then(|| Evidence::new(object, "spec.blockDeviceMappings", sizes.join(", "), because))
}

/// The permissions that the pod uses.
fn role(case: &Case, agent: &Agent) -> (String, Blame) {
    match (Credentials::of(agent.pod), case.class()) {
        (Credentials::Irsa(role), _) => {
            (format!("the role {role} of its ServiceAccount {}", agent.account()), agent.account_blame())
        }
        (Credentials::PodIdentity, _) => {
            let blame = Blame::object("v1", "ServiceAccount", agent.account()).namespace(agent.namespace);
            (format!("the role of the Pod Identity association of {}/{}", agent.namespace, agent.account()), blame)
        }
        (Credentials::Node, Some(class)) => {
            let role = class.spec.role.as_deref().or(class.spec.instance_profile.as_deref()).unwrap_or_default();
            let field = if class.spec.role.is_some() { "spec.role" } else { "spec.instanceProfile" };
            let blame = Blame::class(class).field(field);
            (format!("the node role {role}").trim_end().to_owned(), blame)
        }
        (Credentials::Node, None) => {
            ("the node role".to_owned(), case.class_field("spec.role").unwrap_or_else(|| agent.account_blame()))
        }
    }
}

/// A pod with a network of its own is one hop away from the instance's metadata.
fn metadata(case: &Case, agent: &Agent, explanation: Explanation) -> Explanation {
    let class = case.class().filter(|c| c.spec.metadata_options.http_put_response_hop_limit == Some(1));
    match class.filter(|_| !agent.pod.spec.host_network) {
        Some(class) => {
            let field = "spec.metadataOptions.httpPutResponseHopLimit";
            let object = format!("{}/{}", class.kind, class.name());
            let blame = Blame::class(class).field(field);
            Explanation { proof: Proof::Lasting, blame, ..explanation }
                .behind(Link::new(object, "httpPutResponseHopLimit is 1, and the pod is one hop away"))
                .fix(format!(
                    "Set httpPutResponseHopLimit to 2, which takes effect on nodes that are launched afterwards. Or \
                     let DaemonSet {} work without the instance's metadata (IRSA or Pod Identity, AWS_REGION).",
                    agent.set
                ))
        }
        None => explanation
            .fix(format!(
                "Open the way from pod {} to the instance's metadata, or configure it to work without metadata.",
                agent.name
            ))
            .ask("Why does the pod not reach the instance's metadata?", agent.describe()),
    }
}

/// kube-proxy makes the API server's Service reachable, or a plugin that knows the server's own address.
fn api_server(case: &Case, node: &Node, agent: &Agent, said: &str, says: &str, address: &str) -> Explanation {
    let here = agent.link(says);
    let host = own_host(case, agent);
    let called = address.split_once(':').map_or(address, |(ip, _)| ip);
    if let Some(host) = host.as_deref().filter(|host| is_outdated(case, agent, host, called)) {
        let without_network = without_network(case, node, agent, says);
        return without_network.unwrap_or_else(|| outdated_host(agent, host, here, &format!("{address} ({said})")));
    }
    let proxy = case.pods().find(|p| p.daemon_set() == Some(KUBE_PROXY)).filter(|_| host.is_none());
    if let Some(proxy) = proxy.filter(|p| !p.is_ready() && agent.set != KUBE_PROXY) {
        let deeper = of_pod(case, node, proxy);
        let why = format!(
            "pod {} cannot reach the API server at {address}, because kube-proxy does not run there: {}",
            agent.name, deeper.why
        );
        return Explanation { why, ..deeper.after(here) };
    }
    let needs_proxy = host.is_none() && agent.set != KUBE_PROXY;
    if proxy.is_none() && needs_proxy && case.cluster.missing(Input::Pods).is_none() {
        if let Some(told) = without_kube_proxy(case, node, agent, (agent.set, agent.pod)) {
            let why = format!(
                "pod {} cannot reach the API server at {address}, because {}. The pod reports: {said}",
                agent.name, told.why
            );
            return Explanation { why, proof: Proof::Lasting, ..told.after(here) };
        }
        let deeper = without_pod(case, node, KUBE_PROXY);
        let why = format!("pod {} cannot reach the API server at {address}, because {}", agent.name, deeper.why);
        return Explanation { why, ..deeper.after(here) };
    }
    let deeper = without_network(case, node, agent, says);
    if let Some(deeper) = deeper.or_else(|| outdated_proxy(case, node, agent, says)) {
        return deeper;
    }
    let why = format!("pod {} cannot reach the API server at {address}: {says}", agent.name);
    Explanation::new(Proof::Open, why, agent.blame.clone(), here)
        .fix(
            "Open the way from the node to the API server: port 443 in its security group and the cluster's, and the \
             component that makes the Service kubernetes.default reachable there.",
        )
        .ask(
            format!("Can other pods of Node {} reach {address}?", node.name()),
            format!("kubectl logs -n {} {} --all-containers --tail=50", agent.namespace, agent.name),
        )
}

/// A pod in the network of its Node, which no component has set up.
fn without_network(case: &Case, node: &Node, agent: &Agent, says: &str) -> Option<Explanation> {
    if agent.pod.spec.host_network || network_plugin::is_before_the_network(agent.pod.daemon_set()?) {
        return None;
    }
    let plugin = &network_plugin::plugin(case, node)?.metadata.name;
    let pod = case.pods().find(|p| p.daemon_set() == Some(plugin) && !p.is_ready())?;
    let deeper = of_pod(case, node, pod);
    let why = format!("pod {} fails ({says}) because the network of its Node is not up: {}", agent.name, deeper.why);
    // That it fails for want of the network nobody says.
    let proof = if deeper.proof == Proof::None { Proof::None } else { Proof::Open };
    Some(Explanation { why, proof, ..deeper.after(agent.link(says)) })
}

/// Between a log and its last words.
const ENDS_WITH: &str = " ends with: ";

/// Whether its log, or that of a pod that fails as it does, ends with something else than an address that it does not
/// reach.
fn ends_with_other_words(says: &str) -> bool {
    const UNREACHED: [&str; 5] = ["dial ", "timeout", "timed out", "refused", "unreachable"];
    let lower = says.to_lowercase();
    lower.contains(ENDS_WITH) && !UNREACHED.iter().any(|word| lower.contains(word))
}

/// The pod fails and no message says why.
fn unexplained(case: &Case, node: &Node, agent: &Agent, says: &str, container: Option<&str>) -> Explanation {
    let (name, namespace, set) = (agent.name, agent.namespace, agent.set);
    let link = agent.link(says);
    let logs = match container {
        Some(container) => format!("kubectl logs -n {namespace} {name} -c {container} --previous --tail=50"),
        None => agent.describe(),
    };
    let question = format!("Which error does pod {name} log before it exits?");
    let deeper = behind::found(case, node, agent, says).or_else(|| without_network(case, node, agent, says));
    if let Some(deeper) = deeper.or_else(|| outdated_proxy(case, node, agent, says)) {
        return deeper;
    }
    let reports =
        (Risk::Inspect, "Read its log", format!("kubectl logs -n {namespace} {name} --all-containers --tail=50"));
    if let Some((because, fix)) = go_panic::known(case, agent, says) {
        let why = format!("pod {name} fails: {says}; {because}");
        let blame = agent.in_spec("containers[0].env");
        return Explanation::new(Proof::Open, why, blame, link)
            .behind(Link::new(format!("DaemonSet/{set}"), because))
            .fix(fix)
            .step(reports.0, reports.1, reports.2);
    }
    let kube_proxy_runs = case.pods().any(|p| p.daemon_set() == Some(KUBE_PROXY));
    if network_plugin::rank(set).is_some()
        && !kube_proxy_runs
        && case.cluster.missing(Input::Pods).is_none()
        && !ends_with_other_words(says)
        && let Some(told) = without_kube_proxy(case, node, agent, (agent.set, agent.pod))
    {
        let why = format!("pod {name} fails: {says}. The reason may be that {}", told.why);
        return Explanation { why, ..told.after(link) }.ask(question, logs);
    }
    let image = agent.pod.spec.containers.first().map(|c| c.image.rsplit('/').next().unwrap_or(&c.image));
    let of_types = image.zip(network_plugin::rank(set).and_then(|_| only_this_family(case, node)));
    let explanation = if let Some((image, split)) = of_types {
        let why = format!(
            "pod {name} fails: {says}; {image} works on nodes of {}, but on none of {}",
            split.others, split.family
        );
        let says = format!("{image} works on {}, but on no {}", split.others, split.family);
        Explanation::new(Proof::Open, why, agent.in_spec("containers"), link)
            .behind(Link::new(format!("DaemonSet/{set}"), says))
            .fix(format!(
                "Upgrade DaemonSet {set} to a version that knows {}, or exclude {0} in the NodePool.",
                split.family
            ))
    } else {
        let why = format!("pod {name} fails: {says}");
        let fix = if go_panic::is_bug(says) {
            go_panic::fix(agent, image.unwrap_or(set))
        } else if set == vpc_cni::AWS_NODE {
            AWS_NODE_FIX.to_owned()
        } else {
            format!("Read the log of pod {name}: it names the reason.")
        };
        let release = || across_images::of_release(case, node, set);
        if let Some(split) = across_images::image_split(case, node, set) {
            on_one_image(case, agent, &split, &why, link, &fix)
        } else if let Some(port) = port::taken_where_it_fails(case, set) {
            let where_else = |holder: &str| {
                format!("{why}{holder} there, as on each Node where this agent fails, and on none where it works")
            };
            Explanation { proof: Proof::Open, ..port::taken(case, agent, Some(port), where_else, link) }
        } else if let Some(split) = release() {
            on_one_image(case, agent, &split, &why, link, &fix)
        } else {
            Explanation::new(Proof::Open, why, agent.blame.clone(), link).fix(fix)
        }
    };
    let explanation = explanation.step(reports.0, reports.1, reports.2);
    // The log has said which error, and no setting or instance type excuses it.
    if go_panic::is_bug(says) {
        let history = format!("kubectl rollout history daemonset -n {namespace} {set}");
        return explanation.ask(
            format!("Is this panic a known bug of {}? Which change came before it?", image.unwrap_or(set)),
            history,
        );
    }
    match (image, node.metadata.label(INSTANCE_TYPE)) {
        // Source: amazon-vpc-cni-k8s v1.9.0 pkg/awsutils/awsutils.go `GetInstanceHypervisorFamily` exits on a type that
        // is not in pkg/awsutils/vpc_ip_resource_limit.go; v1.9.1 and later ask EC2.
        (Some(image), Some(type_)) if set == vpc_cni::AWS_NODE => explanation
            .ask(format!("Which error does aws-node exit with? Does {image} know the instance type {type_}?"), logs),
        _ => explanation.ask(question, logs),
    }
}

/// The same DaemonSet works on the Nodes with another image: the image differs, which the node class selects.
fn on_one_image(case: &Case, agent: &Agent, split: &ImageSplit, why: &str, link: Link, fix: &str) -> Explanation {
    let only = format!("it works with image {}, but nowhere with {}", split.other, split.own);
    let blame = case.class_field("spec.amiSelectorTerms").unwrap_or_else(|| agent.blame.clone());
    let image = blame.object.clone();
    let explanation = Explanation::new(Proof::Open, format!("{why}; {only}"), blame, link)
        .behind(Link::new(format!("DaemonSet/{}", agent.set), only));
    let explanation = if image == agent.blame.object {
        explanation
    } else {
        explanation.behind(Link::new(image, format!("it selects {}", split.own)))
    };
    explanation.fix(format!(
        "Pin the release of the image with which it works ({}), or give DaemonSet {} a version that works on the \
         other. {fix}",
        split.other, agent.set
    ))
}

const AWS_NODE_FIX: &str = "Read aws-node's log (kubectl logs, and /var/log/aws-routed-eni/ipamd.log on the instance). \
                            The usual reasons are a role without AmazonEKS_CNI_Policy, no way to the API server \
                            through kube-proxy, a subnet without free addresses, and a version older than the instance \
                            type.";

/// No node of the Node's instance family is usable, while those of others are.
struct FamilySplit {
    family: String,
    others: String,
}

fn only_this_family(case: &Case, node: &Node) -> Option<FamilySplit> {
    let own = node_tallies::family(node)?;
    let tallies = node_tallies::tallies(case);
    let (_, here) = tallies.by("instance family").find(|(family, _)| *family == own)?;
    let others = || tallies.by("instance family").filter(|(family, _)| *family != own);
    // One machine is no pattern, and what fails on other families too is not the family's.
    let elsewhere_well = others().all(|(_, tally)| tally.without_network == 0);
    let others: Vec<&str> = others().map(|(family, _)| family).collect();
    (here.ready == 0 && here.without_network >= 2 && !others.is_empty() && elsewhere_well)
        .then(|| FamilySplit { family: own.to_owned(), others: others.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::ends_with_other_words;

    #[test]
    fn the_log_of_a_pod_that_fails_alike_tells_that_an_address_is_not_the_reason() {
        let another = "container calico-node: Error, exit code 1; the log of calico-node-x1, which fails as it does";
        assert!(ends_with_other_words(&format!("{another} ends with: BPF program load failed: Invalid argument")));
        assert!(!ends_with_other_words(&format!("{another} ends with: dial tcp 172.20.0.1:443: i/o timeout")));
        assert!(!ends_with_other_words("container calico-node: Error, exit code 1"));
    }
}
