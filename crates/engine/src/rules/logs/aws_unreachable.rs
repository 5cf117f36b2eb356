//! The machine's log says that AWS or the instance's metadata service does not answer.

use crate::explain::logged::{self, Root};
use crate::explain::networkd;
use crate::explain::sibling_got_through::{self, Destination};
use crate::rules::prelude::*;
use logs::fact::{Fact, Trouble};

rule! {
    cause: AwsUnreachable,
    summary: "The machine logged that it does not reach EC2, EKS, ECR or its own metadata service",
    stages: [Join, Initialize, Ready],
    reads: [Nodes, NodeClaims, NodeClasses, Pods, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::AwsUnreachable, Trouble::NoMetadata])?;
    let silence = match root.fact.names.get("attempt") {
        Some(_) => match seconds_apart(root.fact).filter(|seconds| *seconds >= TIMEOUT) {
            Some(seconds) => Some(seconds),
            // EC2 may have answered each time: that it does not know the instance yet, or that calls are too many.
            None => return None,
        },
        None => None,
    };
    let fix = if root.fact.trouble == Trouble::NoMetadata {
        "Give the instance a way to its metadata service: check httpEndpoint, httpTokens and hop limit of the node \
         class, and firewalls in user data that block 169.254.169.254. Only new nodes get the change."
    } else {
        "Give the instance's subnet a way to AWS: a route to a NAT gateway, or VPC endpoints whose security groups \
         accept the instance. This does not disrupt running nodes."
    };
    let finding = root.finding(case).fix(fix).inspect("Read the whole console", logged::command(case));
    // Of the metadata service the subnet decides nothing.
    let is_of_way = root.fact.trouble != Trouble::NoMetadata;
    let sibling = if is_of_way { sibling_got_through::sibling(case, Destination::Aws) } else { None };
    let finding = match silence {
        Some(seconds) => finding.adding(&format!(
            "Its calls are {seconds} seconds apart on average. The SDK waits {TIMEOUT} seconds for each connection, so \
             most likely nothing answers."
        )),
        None => finding,
    };
    if let Some(without) = without_proxy(case, &root) {
        return finding
            .adding(&without)
            .blaming(root.user_data(case))
            .fix(
                "Give nodeadm the proxy too, with drop-ins for nodeadm-config.service and nodeadm-run.service. Write \
                 them with a boothook (text/cloud-boothook), because nodeadm-config runs before other user data. Set \
                 NO_PROXY for 169.254.169.254, the API server and the VPC.",
            )
            .into();
    }
    if let Some(lost) = networkd::behind(case, &root) {
        let blamed = lost.blame.clone().or_else(|| case.class_field("spec.amiSelectorTerms"));
        return lost.in_finding(finding).blaming(blamed).into();
    }
    if let Some((says, fix)) = without_fips(case, &root) {
        return finding.adding(&says).fix(fix).blaming(case.class_field("spec.amiSelectorTerms")).into();
    }
    if let Some(sibling) = sibling {
        return sibling.in_finding(case, finding).into();
    }
    let finding = match silence {
        Some(_) => finding.adding("Then the subnet has no way to the EC2 API."),
        None => finding,
    };
    let blame = match root.fact.trouble {
        Trouble::NoMetadata => root.user_data(case),
        // Of the way to AWS the cluster has only the choice of the subnet.
        _ => case.class_field("spec.subnetSelectorTerms"),
    };
    finding.blaming(blame).into()
}

/// The seconds that the SDK waits for a connection. Calls that are answered are closer together: the SDK pauses for 20
/// seconds at most before the next one, and nodeadm changes only the number of attempts.
/// Sources: aws-sdk-go-v2 v1.47.1 aws/transport/http/client.go `DefaultDialConnectTimeout`, aws/retry/standard.go
/// `DefaultMaxBackoff`; amazon-eks-ami 062cf5189e nodeadm/cmd/nodeadm/init/init.go `RetryMaxAttempts`.
const TIMEOUT: i64 = 30;

/// The seconds between two lines of a fact, on average.
fn seconds_apart(fact: &Fact) -> Option<i64> {
    let (first, last) = fact.first.time.zip(fact.last.time)?;
    let gaps = i64::try_from(fact.count.checked_sub(1)?).ok()?;
    last.signed_duration_since(first).num_seconds().checked_div(gaps)
}

/// A systemd unit only has its own environment, so nodeadm does not get the proxy of bash and the kubelet.
/// Source: awslabs/amazon-eks-ami nodeadm-config.service, nodeadm-run.service; systemd.exec(5) `Environment=`.
fn without_proxy(case: &Case, root: &Root) -> Option<String> {
    let (_, text) = case.user_data().filter(|_| root.fact.program == "nodeadm")?;
    let text = text.to_ascii_lowercase();
    let has = |part: &str| text.contains(part);
    let of_others = ["https_proxy", "http_proxy"].iter().any(|name| has(name));
    // Where the whole of systemd has it, so has nodeadm.
    let of_nodeadm = ["nodeadm-config", "nodeadm-run", "nodeadm-", "defaultenvironment", "environment.d"]
        .iter()
        .any(|part| has(part));
    // cloud-init 23.4 config/cloud.cfg.tmpl: these run before nodeadm-config.service, and scripts in its final stage.
    let is_early = ["boothook", "bootcmd", "write_files"].iter().any(|part| has(part));
    let name = case.class()?.name();
    if !of_others || (of_nodeadm && is_early) {
        return None;
    }
    Some(if of_nodeadm {
        format!(
            "User data of {name} sets a proxy for the units of nodeadm in a script, but cloud-init runs scripts after \
             nodeadm-config has started."
        )
    } else {
        format!(
            "User data of {name} sets the proxy for {}, but not for nodeadm-config.service and nodeadm-run.service. \
             They run first, so they try to reach AWS without the proxy.",
            others(&text)
        )
    })
}

/// The programs that user data gives the proxy, as its drop-ins and files show.
fn others(text: &str) -> String {
    const PLACES: [(&str, &str); 5] = [
        ("containerd.service", "containerd"),
        ("kubelet.service", "the kubelet"),
        ("export http", "the shell"),
        ("/etc/profile", "the shell"),
        ("/etc/environment", "the shell"),
    ];
    let mut found: Vec<&str> = PLACES.iter().filter(|(place, _)| text.contains(place)).map(|(_, name)| *name).collect();
    found.dedup();
    match found.as_slice() {
        [] => "other programs".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// An image for FIPS asks the FIPS endpoints of AWS, which EC2 has in the regions of North America only.
/// Source: <https://docs.aws.amazon.com/general/latest/gr/ec2-service.html>, 2026-11;
/// bottlerocket-os/bottlerocket#4363.
fn without_fips(case: &Case, root: &Root) -> Option<(String, &'static str)> {
    const WITH_FIPS: [&str; 3] = ["us-", "ca-", "mx-"];
    let class = case.class()?;
    let terms = class.spec.ami_selector_terms.iter();
    let mut named = terms.flat_map(|term| [term.alias.as_deref(), term.name.as_deref()]).flatten();
    let is_fips = named.any(|name| name.contains("fips"))
        || case.node.is_some_and(|node| node.status.node_info.os_image.to_lowercase().contains("fips"));
    // `aws:///eu-west-1a/i-0…`, and the region without the letter of the zone.
    let provider_id =
        case.claim.map(|c| c.status.provider_id.as_str()).or(case.node.map(|n| n.spec.provider_id.as_str()))?;
    let zone = provider_id.strip_prefix("aws:///")?.split('/').next()?;
    let region = zone.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let is_without = !WITH_FIPS.iter().any(|begin| region.starts_with(begin));
    (is_fips && is_without && root.fact.trouble == Trouble::AwsUnreachable).then(|| {
        let says =
            format!("Its image is one for FIPS, which calls FIPS endpoints of AWS, but EC2 has none in {region}.");
        (
            says,
            "Select the variant of the image that is not for FIPS, or use it in a region whose services have FIPS \
             endpoints.",
        )
    })
}
