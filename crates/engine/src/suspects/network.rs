//! The kubelet runs but does not reach the API server.

use super::bootstrap::SINGLE;
use super::command::{CONSOLE, PUBLIC_ADDRESS, SUBNET, SettlingCommand};
use super::differential::Separation;
use super::{CauseCandidate, Suspicion};
use crate::api::Stage;
use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::facts::{node_role, proxy};
use crate::objects::NodeClass;
use readers::source_text::{Span, excerpt, mask};

/// The subnets that the instance may be in: those of its zone, if the zone is known.
fn subnets<'w>(case: &Case<'w>) -> Vec<&'w str> {
    let zone = zone(case);
    let of_class = case.class().into_iter().flat_map(|class| &class.status.subnets);
    of_class.filter(|subnet| zone.is_none_or(|zone| subnet.zone == zone)).map(|subnet| subnet.id.as_str()).collect()
}

fn zone<'w>(case: &Case<'w>) -> Option<&'w str> {
    case.claim.and_then(|claim| claim.metadata.label("topology.kubernetes.io/zone"))
}

fn named(subnets: &[&str], case: &Case) -> String {
    match (subnets, case.class()) {
        ([], Some(class)) => format!("the subnet of {} {}", class.kind, class.name()),
        ([], None) => "the subnet".to_owned(),
        ([one], _) => format!("the subnet {one}"),
        (several, _) => format!("one of the subnets {}", several.join(", ")),
    }
}

fn routes(subnets: &[&str]) -> SettlingCommand {
    if subnets.is_empty() {
        return SUBNET;
    }
    let ids = subnets.join(",");
    format!(
        "aws ec2 describe-route-tables --filters Name=association.subnet-id,Values={ids} --query \
         'RouteTables[].Routes[]'"
    )
    .into()
}

const ROUTE: &str = "no default route to nat-… (igw-… only helps instances with a public IP); if the answer is empty, \
                     the subnet uses the VPC's main table";

pub const ZONE: CauseCandidate = CauseCandidate {
    cause: "ZoneNeverJoins",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let split = differential.split(case, "zone")?;
        let subnets = subnets(case);
        Some(
            Suspicion::new(
                format!("Perhaps {} in zone {} has no route to the API server.", named(&subnets, case), split.value),
                routes(&subnets),
                ROUTE,
            )
            .contrast(Some(&split), zones_differ)
            .unlikely(
                differential
                    .has_ready_node("zone", &split.value)
                    .then(|| format!("other Nodes in {} are Ready", split.value)),
            ),
        )
    },
};

fn zones_differ(split: &Separation) -> String {
    format!("no node in {} has joined, nodes in {} have", split.value, split.elsewhere)
}

pub const NO_ROUTE: CauseCandidate = CauseCandidate {
    cause: "NoRouteOut",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let subnets = subnets(case);
        Some(
            Suspicion::new(
                format!(
                    "Perhaps {} has no NAT gateway and no VPC endpoints: the instance reaches neither AWS nor the API \
                     server.",
                    named(&subnets, case)
                ),
                routes(&subnets),
                ROUTE,
            )
            .telling(differential.differs("subnets").map(|(nearest, subnets)| subnets.shown(nearest)))
            .consistent(differential.together()),
        )
    },
};

pub const NO_PUBLIC_ADDRESS: CauseCandidate = CauseCandidate {
    cause: "PublicSubnetWithoutPublicIp",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let subnets = subnets(case);
        let zone = zone(case)?;
        let several = (subnets.len() > 1).then(|| {
            format!("the class has several subnets in {zone} ({}), and EC2 chose one of them", subnets.join(", "))
        });
        let split = differential.split(case, "zone");
        let other = split.is_some() || differential.same_elsewhere("subnets");
        let together = differential.together().filter(|_| !other);
        let public = case.class().and_then(selects_public);
        // The zone has one subnet and nodes joined there, so it has a route out.
        if several.is_none() && split.is_none() && together.is_none() && public.is_none() {
            return None;
        }
        let lucky = differential.is_single(case);
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the instance is in a public subnet but has no public IP: {} may be public.",
                    listed(&subnets)
                ),
                PUBLIC_ADDRESS,
                "no public IP, in a subnet whose default route goes to igw-…",
            )
            .contrast(split.as_ref(), zones_differ)
            .telling(public)
            .telling(several.as_ref().filter(|_| lucky).cloned())
            .consistent(several.filter(|_| !lucky))
            .consistent(case.class().and_then(assigns_no_address))
            .consistent(together),
        )
    },
};

/// Load balancers that face the internet find their subnets, which are public, by this tag.
/// Source: kubernetes-sigs/aws-load-balancer-controller docs/deploy/subnet_discovery.md.
fn selects_public(class: &NodeClass) -> Option<String> {
    const TAG: &str = "kubernetes.io/role/elb";
    let assigns = class.assigns_public_address().is_some_and(|(_, assigns)| assigns);
    let selects = class.spec.subnet_selector_terms.iter().any(|term| term.tags.contains_key(TAG));
    let (kind, name) = (&class.kind, class.name());
    (selects && !assigns).then(|| format!("{kind} {name} selects subnets by {TAG}, the tag of public subnets"))
}

/// Then the subnet's own setting does not count.
fn assigns_no_address(class: &NodeClass) -> Option<String> {
    let (field, assigns) = class.assigns_public_address()?;
    let (kind, name) = (&class.kind, class.name());
    (!assigns).then(|| format!("{kind} {name} sets {field} to false"))
}

fn listed(subnets: &[&str]) -> String {
    if subnets.is_empty() { "its subnet".to_owned() } else { subnets.join(", ") }
}

pub const OTHER_SECURITY_GROUPS: CauseCandidate = CauseCandidate {
    cause: "SecurityGroupsDiffer",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let (nearest, groups) = differential.differs("security groups")?;
        let class = case.class()?;
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the security groups of {} {} do not let the kubelet reach the API server.",
                    class.kind,
                    class.name()
                ),
                group_rules(class),
                NO_RULE,
            )
            .telling(Some(groups.shown(nearest))),
        )
    },
};

pub const SECURITY_GROUP_RULES: CauseCandidate = CauseCandidate {
    cause: "SecurityGroupBlocksKubelet",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let class = case.class().filter(|class| !class.status.security_groups.is_empty())?;
        let groups: Vec<&str> = class.status.security_groups.iter().map(|group| group.id.as_str()).collect();
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the rules of {} do not let the kubelet reach the API server, or the cluster's security \
                     group does not accept traffic from the kubelet.",
                    groups.join(", ")
                ),
                group_rules(class),
                NO_RULE,
            )
            .consistent(differential.together()),
        )
    },
};

const NO_RULE: &str = "no rule for outbound 443 to the API server, or no rule of the API server's group that admits \
                       443 from these groups";

fn group_rules(class: &NodeClass) -> String {
    let groups: Vec<&str> = class.status.security_groups.iter().map(|group| group.id.as_str()).collect();
    format!("aws ec2 describe-security-group-rules --filters Name=group-id,Values={}", groups.join(","))
}

pub const ENDPOINT_NAME: CauseCandidate = CauseCandidate {
    cause: "PrivateEndpointUnresolved",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |_, differential| {
        let never = differential.together()?;
        Some(
            Suspicion::new(
                "Perhaps the VPC of the instance cannot resolve the name of the private API endpoint.",
                CONSOLE,
                "no such host, or i/o timeout to a DNS server",
            )
            .consistent(Some(never))
            .unlikely(
                differential.foreign_node_is_ready().then_some("other Nodes are Ready, and their kubelets resolve it"),
            ),
        )
    },
};

pub const PROXY: CauseCandidate = CauseCandidate {
    cause: "ProxyWithoutExceptions",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        if differential.text_joins {
            return None;
        }
        let class = case.class()?;
        let of_text = || {
            let text = class.spec.user_data.as_deref()?;
            let (at, name) = proxy::in_text(text)?;
            let line = excerpt(text, Span { start: at, end: at + name.len() }).shown;
            Some(("user data".to_owned(), line.trim().to_owned()))
        };
        let of_auto_mode = || {
            let class_name = format!("{} {}", class.kind, class.name());
            Some((class_name, format!("advancedNetworking.httpsProxy: {}", mask(class.https_proxy()?))))
        };
        let (place, setting) = of_text().or_else(of_auto_mode)?;
        let role = node_role::identity(class).map_or_else(String::new, |role| format!(" for {role}"));
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the proxy in {place} is unreachable, or does not pass on the calls to the API server and \
                     to the instance's metadata."
                ),
                CONSOLE,
                format!("proxyconnect, 403 from the proxy, or no credentials{role}"),
            )
            .telling(Some(format!("{place} sets a proxy: `{setting}`")))
            .consistent(without_certificates(class))
            .consistent(without_metadata(class))
            .consistent(differential.together()),
        )
    },
};

/// A proxy that reads TLS signs with a certificate of its own.
// Amazon EKS user guide, Create a Node Class for Amazon EKS: "commonly requires certificateBundles as well"
fn without_certificates(class: &NodeClass) -> Option<&'static str> {
    class.https_proxy().filter(|_| class.spec.certificate_bundles.is_empty())?;
    Some("it has no certificateBundles, so nodes reject the certificates of a proxy that decrypts TLS")
}

fn without_metadata(class: &NodeClass) -> Option<&'static str> {
    const METADATA: [&str; 2] = ["169.254.169.254", "[fd00:ec2::254]"];
    class.https_proxy()?;
    let excepted = &class.spec.advanced_networking.as_ref()?.no_proxy;
    let is_excepted = excepted.iter().any(|host| METADATA.contains(&host.as_str()));
    (!is_excepted).then_some("its noProxy does not list the instance's metadata (169.254.169.254)")
}

/// EC2 refuses calls above a rate that the whole account shares.
/// Source: Amazon EC2 API reference, "Error codes", `RequestLimitExceeded`.
const TOO_OFTEN: &str = "RequestLimitExceeded";

pub const THROTTLED: CauseCandidate = CauseCandidate {
    cause: "Ec2CallsThrottled",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        const MANY: usize = 20;
        let refused = throttled(case);
        let single = (refused.is_some() && differential.is_single(case)).then_some(SINGLE);
        let burst = differential.text_joins && case.class_members()?.waiting() >= MANY;
        Some(
            Suspicion::new(
                "Perhaps EC2 refuses the instance's calls because the account makes too many calls at once, so the \
                 boot gives up before it knows the instance's name.",
                CONSOLE,
                "RequestLimitExceeded, or repeated attempts of DescribeInstances",
            )
            .telling(refused)
            .telling(single)
            .consistent(
                burst.then_some("many machines of the class wait at once, and others with the same text have joined"),
            ),
        )
    },
};

/// EC2 refused Karpenter's launch for this NodePool in the same way.
fn throttled(case: &Case) -> Option<String> {
    static THROTTLED: Memo<Option<String>> = Memo::new("a launch that EC2 throttled");
    let (pool, cluster) = (case.pool()?.name(), case.cluster);
    let name = cluster.once(&THROTTLED, pool, || {
        let launches = cluster.claims_of_pool(pool).filter_map(|claim| Some((claim, claim.condition("Launched")?)));
        let refused = launches.filter(|(_, launched)| launched.message.contains(TOO_OFTEN));
        let events = cluster.claim_events_of_pool(pool).filter(|event| event.message.contains(TOO_OFTEN));
        let refused = refused.map(|(claim, _)| claim.name().to_owned());
        refused.chain(events.map(|event| event.involved_object.name.clone())).next()
    });
    Some(format!("EC2 refused the launch of NodeClaim {} with {TOO_OFTEN}", name.as_ref().as_ref()?))
}
