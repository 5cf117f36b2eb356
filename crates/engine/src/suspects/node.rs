//! The Node exists but is not Ready.

use super::command::CONSOLE;
use super::{CauseCandidate, Suspicion};
use crate::api::Stage;
use crate::case::Case;
use crate::explain::{logged, pull};
use crate::facts::custom_networking::custom_networking;
use crate::facts::{cni_permissions, network_plugin};
use crate::objects::input::Input;
use crate::objects::{Condition, Event, Node, Pod};
use crate::upstream::vpc_cni;
use logs::fact::Trouble;

const STAGES: &[Stage] = &[Stage::Initialize, Stage::Ready];

/// The Node without a network, its aws-node pod, and why that fails.
fn failing_cni<'w>(case: &Case<'w>) -> Option<(&'w Node, &'w Pod, String)> {
    failing_plugin(case, |name| name == vpc_cni::AWS_NODE)
}

/// The Node without a network, the pod of any network plugin, and why that fails. If its image cannot be pulled, the
/// verdict says why.
fn failing_plugin<'w>(case: &Case<'w>, is: impl Fn(&str) -> bool) -> Option<(&'w Node, &'w Pod, String)> {
    let node = case.node.filter(|node| vpc_cni::not_ready(node).is_some())?;
    let pod = case.pods().find(|pod| pod.daemon_set().is_some_and(&is) && !pod.is_ready())?;
    let trouble = pod
        .trouble()
        .map_or_else(|| pod.status.phase.clone(), |(container, why)| format!("{container}: {}", plainly(&why)));
    pull::explain(&trouble).is_none().then_some((node, pod, trouble))
}

/// The kubelet's text about its next attempt, up to the pod's UID in parentheses.
/// Source: kubernetes v1.36.3 pkg/kubelet/kuberuntime/kuberuntime_manager.go `doBackOff`.
const BACK_OFF: &str = "back-off ";

/// Without the kubelet's text about its next attempt.
fn plainly(why: &str) -> String {
    let Some((reason, rest)) = why.split_once(BACK_OFF) else { return why.to_owned() };
    let last_words = rest.split_once(')').map_or("", |(_, last_words)| last_words);
    let said = [reason, last_words].map(|part| part.trim_matches([':', ';', ',', ' ']));
    said.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

fn log_of(pod: &Pod) -> String {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("kube-system");
    format!("kubectl logs -n {namespace} {} -c aws-node --previous --tail=50", pod.metadata.name)
}

pub const CNI_OLDER_THAN_INSTANCE_TYPE: CauseCandidate = CauseCandidate {
    cause: "CniOlderThanInstanceType",
    stages: STAGES,
    behind: &["CniNotReady"],
    weigh: |case, differential| {
        let (node, pod, trouble) = failing_cni(case)?;
        let type_ = node.metadata.label("node.kubernetes.io/instance-type")?;
        let image = pod.spec.containers.first().map_or("aws-node", |c| c.image.rsplit('/').next().unwrap_or(&c.image));
        let family = type_.split_once('.').map_or(type_, |(family, _)| family);
        let known = differential.has_ready_node("instance family", family);
        let split = differential.split(case, "instance family");
        Some(
            Suspicion::new(
                format!(
                    "Perhaps {image} of DaemonSet aws-node does not know the instance type {type_}, and exits because \
                     of it."
                ),
                log_of(pod),
                "unknown instance type, or no entry for it in eni-max-pods.txt or the limits of network interfaces",
            )
            .contrast(split.as_ref(), |s| {
                format!("no Node of the instance family {} is Ready, Nodes of {} are", s.value, s.elsewhere)
            })
            .consistent(Some(format!("its pod fails ({trouble})")))
            .unlikely(known.then(|| format!("another Node of the instance family {family} is Ready"))),
        )
    },
};

pub const CNI_RIGHTS: CauseCandidate = CauseCandidate {
    cause: "CniLacksPermissions",
    stages: STAGES,
    behind: &["CniNotReady"],
    weigh: |case, differential| {
        let (_, pod, trouble) = failing_cni(case)?;
        let others = differential.own_node_is_ready();
        let six = differential.split(case, "IP family").filter(|split| split.value == "IPv6");
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the role of aws-node (pod {}) lacks AmazonEKS_CNI_Policy, or does not trust its \
                     ServiceAccount.",
                    pod.metadata.name
                ),
                log_of(pod),
                "UnauthorizedOperation, AccessDenied, AssumeRoleWithWebIdentity",
            )
            .telling(cni_permissions::denied(case, pod).map(Event::said))
            .contrast(six.as_ref(), |split| {
                format!(
                    "no Node with IPv6 addresses is Ready, those with {} are: its policy has no IPv6 permissions",
                    split.elsewhere
                )
            })
            .consistent(Some(format!("its pod fails ({trouble})")))
            .unlikely(others.then_some("other Nodes that Karpenter made are Ready")),
        )
    },
};

pub const NO_SERVICE_ADDRESS: CauseCandidate =
    CauseCandidate {
        cause: "ServiceAddressUnreachable",
        stages: STAGES,
        behind: &["CniNotReady"],
        weigh: |case, differential| {
            let (node, pod, trouble) = failing_plugin(case, |name| network_plugin::rank(name).is_some())?;
            let namespace = pod.metadata.namespace.as_deref().unwrap_or("kube-system");
            let container = pod.trouble().map_or("", |(container, _)| container);
            let runs = case.pods().any(|p| p.daemon_set() == Some(network_plugin::KUBE_PROXY) && p.is_ready());
            // These containers call the API server before anything else of the plugin runs.
            let first = pod.spec.init_containers.iter().any(|init| init.name == container);
            Some(
            Suspicion::new(
                format!(
                    "Perhaps pod {} on Node {} does not reach the API server through the address of Service \
                     kubernetes: kube-proxy, or the eBPF program that replaces it, may not have set that address up.",
                    pod.metadata.name,
                    node.name()
                ),
                format!("kubectl logs -n {namespace} {} -c {container} --previous --tail=50", pod.metadata.name),
                "dial tcp ADDRESS:443: i/o timeout or connection refused, with the first address of the service range; \
                 bpfEnabled beside kube-proxy",
            )
            .telling(first.then(|| format!("its init container {container} fails")))
            .telling((!runs).then_some("no pod of kube-proxy is Ready on the Node"))
            .consistent(Some(format!("its pod fails ({trouble})")))
            .unlikely((runs && differential.own_node_is_ready()).then_some("kube-proxy runs there, and other Nodes \
                that Karpenter made are Ready")),
        )
        },
    };

pub const NO_ADDRESSES: CauseCandidate = CauseCandidate {
    cause: "PodsGetNoAddress",
    stages: STAGES,
    behind: &["CniNotReady"],
    weigh: |case, differential| {
        let (node, pod, trouble) = failing_cni(case)?;
        let zone = node.metadata.label("topology.kubernetes.io/zone")?;
        let subnets = case.class().into_iter().flat_map(|class| &class.status.subnets).filter(|s| s.zone == zone);
        let subnets: Vec<&str> = subnets.map(|subnet| subnet.id.as_str()).collect();
        let command = if subnets.is_empty() {
            log_of(pod)
        } else {
            format!(
                "aws ec2 describe-subnets --subnet-ids {} --query 'Subnets[].[SubnetId,AvailableIpAddressCount]'",
                subnets.join(" ")
            )
        };
        Some(
            Suspicion::new(
                format!("Perhaps the subnet in {zone} has no free addresses for the pods of Node {}.", node.name()),
                command,
                "fewer free addresses than a Node needs, or InsufficientFreeAddressesInSubnet in the log",
            )
            .contrast(differential.split(case, "zone").as_ref(), |s| {
                format!("no Node in {} is Ready, Nodes in {} are", s.value, s.elsewhere)
            })
            .consistent(Some(format!("aws-node fails ({trouble})"))),
        )
    },
};

pub const NO_ENI_CONFIG: CauseCandidate = CauseCandidate {
    cause: "EniConfigMissing",
    stages: STAGES,
    behind: &["CniNotReady"],
    weigh: |case, _| {
        let (node, ..) = failing_cni(case)?;
        let set = custom_networking(case)?;
        let zone = node.metadata.label("topology.kubernetes.io/zone").unwrap_or("its zone");
        Some(
            Suspicion::new(
                format!(
                    "Perhaps nothing tells DaemonSet {} which ENIConfig belongs to Node {}.",
                    set.metadata.name,
                    node.name()
                ),
                "kubectl get eniconfigs -o yaml",
                format!(
                    "no ENIConfig with the name that ENI_CONFIG_LABEL_DEF gives (most often {zone}), or one with a \
                     subnet of another zone"
                ),
            )
            .telling(Some("custom networking is on (AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true)")),
        )
    },
};

pub const NO_POD: CauseCandidate = CauseCandidate {
    cause: "DaemonSetPodRefused",
    stages: STAGES,
    behind: &["CniNotReady"],
    weigh: |case, differential| {
        let node = case.node.filter(|node| vpc_cni::not_ready(node).is_some())?;
        let set = network_plugin::plugin(case, node)?;
        let name = set.metadata.name.as_str();
        if case.cluster.missing(Input::Pods).is_some() || case.pods().any(|pod| pod.daemon_set() == Some(name)) {
            return None;
        }
        let namespace = set.metadata.namespace.as_deref().unwrap_or("kube-system");
        Some(
            Suspicion::new(
                format!(
                    "Perhaps a quota, an admission policy or a webhook prevents DaemonSet {name} from creating a pod \
                     for Node {}.",
                    node.name()
                ),
                format!("kubectl describe daemonset -n {namespace} {name}"),
                "FailedCreate: exceeded quota, denied the request, failed calling webhook",
            )
            .telling(Some(format!("DaemonSet {name} has no pod on the Node")))
            .contrast(differential.split(case, "taint").as_ref(), |split| {
                format!("no Node with the taint {} is Ready, others are", split.value)
            })
            .contrast(differential.split(case, "label").as_ref(), |split| {
                format!("no Node with the label {} is Ready, others are", split.value)
            }),
        )
    },
};

/// Pods with their own network are one hop away from the instance's metadata, and its answers do not reach them.
pub const HOP_LIMIT: CauseCandidate = CauseCandidate {
    cause: "MetadataHopLimit",
    stages: STAGES,
    behind: &["StartupTaintStays", "AgentTaintRemains", "ExtendedResourceMissing"],
    weigh: |case, _| {
        let class = case.class().filter(|c| c.spec.metadata_options.http_put_response_hop_limit == Some(1))?;
        // Without a network such a pod does not start.
        case.node.filter(|node| vpc_cni::not_ready(node).is_none())?;
        let fails = |pod: &&Pod| pod.daemon_set().is_some() && !pod.spec.host_network && !pod.is_ready();
        let (pod, (container, why)) = case.pods().filter(fails).find_map(|pod| Some((pod, pod.trouble()?)))?;
        if pull::explain(&why).is_some() {
            return None;
        }
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        Some(
            Suspicion::new(
                format!(
                    "Perhaps pod {} asks the instance for its metadata but gets no answer: httpPutResponseHopLimit of \
                     {} {} is 1.",
                    pod.metadata.name,
                    class.kind,
                    class.name()
                ),
                format!("kubectl logs -n {namespace} {} -c {container} --previous --tail=50", pod.metadata.name),
                "a timeout of 169.254.169.254, ec2imds, or no region",
            )
            .telling(Some("the pod has its own network, and answers of the metadata service end after one hop"))
            .consistent(Some(format!("its container {container} fails ({})", plainly(&why)))),
        )
    },
};

/// The kubelet's messages about its container runtime.
/// Source: kubernetes v1.36.3 pkg/kubelet/runtime.go, pkg/kubelet/kubelet.go.
const RUNTIME_WORDS: [&str; 4] =
    ["PLEG is not healthy", "container runtime is down", "RuntimeReady=false", "status check may not have completed"];

pub const RUNTIME: CauseCandidate = CauseCandidate {
    cause: "ContainerRuntimeFails",
    stages: STAGES,
    behind: &["KubeletNotReady", "KubeletStopped"],
    weigh: |case, differential| {
        let node = case.node?;
        let ready = node.condition("Ready").filter(|c| RUNTIME_WORDS.iter().any(|word| c.message.contains(word)))?;
        let split = differential.split(case, "group").filter(|split| split.repeated);
        Some(
            Suspicion::new(
                format!("Perhaps containerd of Node {} hangs, or refuses its configuration.", node.name()),
                CONSOLE,
                "containerd: failed to load config, out of memory, a blocked task, a full disk",
            )
            .telling(Some(ready.said()))
            .consistent(split.map(|s| {
                format!("every Node of NodePool {} has it, so their image or user data may be at fault", s.value)
            })),
        )
    },
};

pub const MEMORY: CauseCandidate = CauseCandidate {
    cause: "MemoryExhausted",
    stages: &[Stage::Ready],
    behind: &["KubeletStopped"],
    weigh: |case, differential| {
        let (node, ready) = silent(case)?;
        let out_of_memory = case.event("SystemOOM").map(Event::said);
        // The condition is Unknown after the kubelet stops, and then keeps its earlier reason.
        let pressed = node.condition("MemoryPressure").filter(|c| c.is_true()).map(Condition::shown);
        let alone = differential.split(case, "group").is_none_or(|split| !split.repeated);
        Some(
            Suspicion::new(
                format!("Perhaps the kubelet of Node {} stopped because the node ran out of memory.", node.name()),
                format!("kubectl describe node {}", node.name()),
                "SystemOOM among the events, pods without memory limits, or no kubeReserved",
            )
            .telling(out_of_memory)
            .telling(pressed)
            .consistent(alone.then(|| {
                format!("the Node worked, then stopped reporting from one moment to the next ({})", ready.reason)
            })),
        )
    },
};

pub const INSTANCE_GONE: CauseCandidate = CauseCandidate {
    cause: "InstanceEnded",
    stages: &[Stage::Ready],
    behind: &["KubeletStopped"],
    weigh: |case, differential| {
        let (node, ready) = silent(case)?;
        let id = case.instance_id()?;
        let spot = differential.split(case, "capacity type").filter(|split| split.value == "spot");
        let alone = differential.split(case, "group").is_none_or(|split| !split.repeated);
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the instance {id} of Node {} was terminated, hangs, or its hardware fails.",
                    node.name()
                ),
                format!("aws ec2 describe-instance-status --include-all-instances --instance-ids {id}"),
                "a state other than running, or a check that is impaired",
            )
            .consistent(alone.then(|| {
                format!("the Node worked, then stopped reporting from one moment to the next ({})", ready.reason)
            }))
            .contrast(spot.as_ref(), |split| {
                format!("every spot Node stopped reporting, those of {} are Ready", split.elsewhere)
            }),
        )
    },
};

/// Whether the type has CPU credits.
/// Source: EC2 user guide, "Burstable performance instances".
fn is_burstable(type_: &str) -> bool {
    ["t2.", "t3.", "t3a.", "t4g."].iter().any(|family| type_.starts_with(family))
}

pub const CPU_CREDITS: CauseCandidate = CauseCandidate {
    cause: "CpuCreditsExhausted",
    stages: &[Stage::Ready],
    behind: &["KubeletStopped"],
    weigh: |case, differential| {
        let (node, _) = silent(case)?;
        let type_ = node.metadata.label("node.kubernetes.io/instance-type").filter(|type_| is_burstable(type_))?;
        let id = case.instance_id().filter(|_| case.event("SystemOOM").is_none())?;
        let silences = case.events().filter(|event| event.reason == "NodeNotReady").map(Event::times).sum::<u32>();
        let family = differential.split(case, "instance family").filter(|split| split.repeated);
        if silences < 2 && family.is_none() {
            return None;
        }
        let asks_for_none = |pod: &&Pod| pod.daemon_set().is_none() && !pod.requests().any(|(name, _)| name == "cpu");
        let unasked = case.pods().filter(asks_for_none).count();
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the CPU credits of instance {id} ({type_}) are used up. EC2 then gives it a fraction of \
                     its CPUs, and the kubelet of Node {} is too slow to report.",
                    node.name()
                ),
                format!("aws ec2 describe-instance-credit-specifications --instance-ids {id}"),
                "CpuCredits standard, and CPUCreditBalance 0 in CloudWatch before the Node stopped reporting",
            )
            .telling((silences > 1).then(|| {
                format!("the Node was NotReady {silences} times and reported again in between: it was slow, not gone")
            }))
            .contrast(family.as_ref(), |split| {
                format!(
                    "every Node of the family {} stopped reporting, those of {} are Ready",
                    split.value, split.elsewhere
                )
            })
            .consistent(
                (unasked > 0)
                    .then(|| format!("{unasked} of its pods request no CPU, so the scheduler counts nothing for them")),
            ),
        )
    },
};

/// A Node whose kubelet has posted a status and no longer does. The verdict itself names a kernel panic, and a kubelet
/// that systemd stopped.
fn silent<'w>(case: &Case<'w>) -> Option<(&'w Node, &'w Condition)> {
    if logged::of_kind(case, Trouble::KernelPanicked).is_some() {
        return None;
    }
    let node = case.node?;
    let ready = node.condition("Ready").filter(|c| c.reason == "NodeStatusUnknown")?;
    let stopped = ready.last_transition_time.and_then(|silent| logged::stopped_kubelet(case, silent));
    stopped.is_none().then_some((node, ready))
}
