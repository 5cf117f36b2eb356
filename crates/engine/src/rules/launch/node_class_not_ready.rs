//! Karpenter launches nothing from a node class that is not Ready: its conditions say which selector, image or
//! permission is wrong.

use crate::explain::logged::{self, Root};
use crate::explain::{auto_mode_entry, commands, launch_blame, launch_error};
use crate::facts::kubelet_version;
use crate::facts::slip::is_slip;
use crate::facts::volume_refusal::volume_refusal;
use crate::objects::{AmiTerm, Condition, NodeClass, SelectorTerm};
use crate::rules::prelude::*;
use crate::upstream::image_releases;
use logs::fact::Trouble;
use std::collections::{BTreeMap, BTreeSet};

rule! {
    cause: NodeClassNotReady,
    summary: "The node class is not Ready, so Karpenter can launch nothing from it",
    stages: [Launch],
    reads: [Nodes, NodeClasses, Deployments, ServiceAccounts, Logs],
    lint: true,
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let class = case.class()?;
    let ready = class.condition("Ready")?;
    if ready.is_true() {
        return Some(Opinion::ruled_out(class, format!("{} {} is Ready", class.kind, class.name())));
    }
    // The dependents say why; ValidationSucceeded "DependenciesNotReady" only repeats them. A False condition has a
    // known reason, an Unknown one does not.
    // Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass_status.go, pkg/controllers/nodeclass/*.go.
    let mut failing: Vec<&Condition> = class
        .status
        .conditions
        .iter()
        .filter(|c| c.type_ != "Ready" && !c.is_true() && c.reason != "DependenciesNotReady")
        .collect();
    failing.sort_by_key(|c| !c.is_false());
    // Early versions of 1 write some reasons only into Ready.
    // Source: karpenter-provider-aws v1.0.8 pkg/controllers/nodeclass/status/readiness.go.
    if failing.is_empty() && !ready.message.is_empty() {
        failing.push(ready);
    }
    let name = class.name();
    let object = format!("{}/{name}", class.kind);
    let mut said: Vec<String> =
        if failing.is_empty() { vec![ready.shown()] } else { failing.iter().map(|c| plain(case, class, c)).collect() };
    let volume = refused_volume(class, &failing);
    said.extend(volume.as_ref().map(|volume| format!("EC2 refuses the volume {}", volume.what)));
    let ended = ended_alias(case, class, &failing);
    said.extend(ended.clone());
    // If its permissions do not forbid a call, Karpenter writes the error only to its log.
    let logged = logged::root(case, &[Trouble::RequestRefused]);
    let certain = failing.iter().any(|c| c.is_false()) || logged.is_some() || ended.is_some();
    let confidence = if certain { Confidence::Certain } else { Confidence::Likely };
    let unexplained = if certain { None } else { logged::unexplained(case) };
    let quoted = || unexplained.map_or_else(String::new, logged::quoted);
    let refusal = logged.as_ref().map_or_else(quoted, Root::refusal);
    let slip = slip(case, class, &failing);
    let misspelled = slip.as_ref().map_or_else(String::new, |slip| format!(". The cluster is called {}", slip.cluster));
    let summary = format!(
        "{} {name} is not Ready, so Karpenter can launch nothing from it: {}{misspelled}.{refusal}",
        class.kind,
        said.join("; ")
    );
    let evidence = |c: &Condition| {
        Evidence::new(
            &object,
            format!(r#"status.conditions[?(@.type=="{}")]"#, c.type_),
            c.shown(),
            "Karpenter launches nothing until this is True",
        )
    };
    let mut finding = Finding::new(confidence, summary, evidence(ready))
        .with_all(failing.iter().map(|c| evidence(c)))
        .with_all(logged.as_ref().map(Root::evidence))
        .with_all(
            unexplained.map(|fact| logged::told(fact, "nodewhy does not know this line, but it may be the cause")),
        );
    finding.blame = if let Some(volume) = &volume {
        finding = finding.with(Evidence::new(
            &object,
            volume.field.clone(),
            volume.what.clone(),
            "the dry run of a launch fails on it, and Karpenter writes a refusal that is not about its permissions \
             only to its log",
        ));
        Some(Box::new(Blame::class(class).field(volume.field.clone())))
    } else if let Some(slip) = &slip {
        finding = finding.with(slip.told_by.clone());
        Some(Box::new(Blame::class(class).field(slip.field)))
    } else {
        let of_field = blame(case, class, &failing).or_else(|| tried_in_vain(case, class, &failing));
        Some(Box::new(of_field.unwrap_or_else(|| Blame::class(class))))
    };
    finding = finding.fix(match (volume, &logged) {
        _ if ended.is_some() => ANOTHER_ALIAS.to_owned(),
        (Some(volume), _) => volume.fix,
        (None, None) if let Some(slip) = &slip => format!(
            "Change {} in the selector terms to {}, if the subnets and security groups have that tag. Otherwise add \
             the tags to them.",
            slip.value, slip.cluster
        ),
        (None, Some(_)) => "Change what AWS refuses. If nothing in the class requests it, this version of Karpenter \
                            does: upgrade."
            .to_owned(),
        (None, None) => remedy(case, class, &failing),
    });
    finding = change(case, finding, class, &failing);
    // From 1.13.0 on, the message says why a dry run was refused.
    let refused =
        failing.first().filter(|_| class.is_of_aws()).and_then(|c| Some((c, launch_error::named(&c.message)?)));
    if let Some(in_aws) = refused.and_then(|(c, error)| launch_blame::in_aws(case, error, &c.message)) {
        finding = in_aws.onto(finding);
    }
    // EKS does not show the log of Auto Mode's Karpenter.
    if !certain && !class.is_auto_mode() {
        finding = finding.unknown(
            if class.is_of_aws() {
                "Which AWS call fails? Karpenter writes it only to its log."
            } else {
                "Which call to its provider fails? Karpenter writes it only to its log."
            },
            format!("{} | grep -i -e nodeclass -e {name}", commands::karpenter_log(case)),
        );
    }
    finding.inspect("See all conditions", format!("kubectl describe {} {name}", class.kind.to_ascii_lowercase())).into()
}

/// The steps that show and change what fails in the class.
fn change(case: &Case, mut finding: Finding, class: &NodeClass, failing: &[&Condition]) -> Finding {
    let selects = |type_: &str| class.is_of_aws() && failing.iter().any(|c| c.type_ == type_ && c.is_false());
    if let Some(profile) = failing.first().and_then(|c| profile_of_dry_run(case, class, c)) {
        let command = format!("aws iam get-instance-profile --instance-profile-name {profile}");
        finding = finding.inspect("See whether the instance profile exists, and its role", command);
    } else if selects("SubnetsReady") || selects("SecurityGroupsReady") {
        finding = finding
            .inspect(
                "See which subnets have the tag",
                tag_command("describe-subnets", &class.spec.subnet_selector_terms),
            )
            .inspect(
                "See which security groups have the tag",
                tag_command("describe-security-groups", &class.spec.security_group_selector_terms),
            )
            .change("Tag them, or change the selector terms", commands::edit(class));
    } else if finding.blame.is_some() {
        if let Some(role) = refused_role(class, failing) {
            return auto_mode_entry::authorize(case, finding, role);
        }
        let of_field = finding.blame.as_ref().is_some_and(|blame| blame.field.is_some());
        let first = failing.first().filter(|_| class.is_ec2() && !of_field);
        finding = if first.is_some_and(|c| is_remembered(c.reason.as_str())) {
            finding.step(Risk::LowRisk, "Make Karpenter check the node class again", Some(commands::recheck(class)))
        } else if first.is_some_and(|c| is_without_cidr(c)) {
            finding.step(Risk::LowRisk, "Allow the call to Karpenter's role", None)
        } else {
            finding.change("Change the node class", commands::edit(class))
        };
    }
    finding
}

/// Whether the fix is in a policy of AWS and not in the node class, and Karpenter remembers the refusal.
fn is_remembered(reason: &str) -> bool {
    matches!(
        reason,
        "CreateFleetAuthCheckFailed" | "CreateLaunchTemplateAuthCheckFailed" | "RunInstancesAuthCheckFailed"
    )
}

const ANOTHER_ALIAS: &str = "Use an alias that is still published, such as al2023@VERSION. Check user data, which \
                             AL2023 reads as a NodeConfig.";

/// Why an alias without an image never gets one. Versions before 1.9 do not say so.
fn ended_alias(case: &Case, class: &NodeClass, failing: &[&Condition]) -> Option<String> {
    failing.iter().find(|c| c.type_ == "AMIsReady").filter(|_| class.is_ec2())?;
    let minor = kubelet_version::of_cluster(case);
    class.spec.ami_selector_terms.iter().find_map(|term| image_releases::ended(term.alias.as_deref()?, minor))
}

/// The fix for the first failing condition.
fn remedy(case: &Case, class: &NodeClass, failing: &[&Condition]) -> String {
    let advice = failing.first().and_then(|c| advice(case, class, c));
    match (advice, failing.first().and_then(|c| launch_error::named(&c.message))) {
        // From 1.13.0 on, the message says why a dry run was refused.
        (Some(advice), Some(refused)) if advice.role => class.with_its_role(refused.fix),
        (Some(advice), _) if class.is_auto_mode() && advice.role => format!(
            "{} If a policy requires an explicit setting, use a NodeClass of your own: \
             advancedNetworking.associatePublicIPAddress, ephemeralStorage.kmsKeyID, tags.",
            class.with_its_role(advice.fix)
        ),
        (Some(advice), _) if class.is_auto_mode() => class.with_its_role(advice.fix),
        (Some(advice), _) => match controller_role(case).filter(|_| advice.role) {
            Some(role) => format!("{} Karpenter's role is {role}.", advice.fix),
            None => advice.fix.to_owned(),
        },
        (None, _) => format!("Change what the condition of {} {} names.", class.kind, class.name()),
    }
}

/// A volume that EC2 refuses.
struct RefusedVolume {
    field: String,
    /// `/dev/xvda with 2 GiB, less than the 20 GiB of the image's snapshot`
    what: String,
    fix: String,
}

/// If only the validation is open, EC2 refuses Karpenter's dry run for another reason than permissions: a volume of the
/// class that cannot be created.
/// Source: karpenter-provider-aws v1.14.1 pkg/controllers/nodeclass/validation.go `validateRunInstancesAuthorization`.
fn refused_volume(class: &NodeClass, failing: &[&Condition]) -> Option<RefusedVolume> {
    let open = |c: &Condition| c.type_ == "ValidationSucceeded" && c.status == "Unknown";
    if failing.is_empty() || !failing.iter().all(|c| open(c)) {
        return None;
    }
    class.spec.block_device_mappings.iter().enumerate().find_map(|(at, volume)| {
        let refusal = volume_refusal(class, volume).filter(|refusal| refusal.sure)?;
        Some(RefusedVolume {
            field: format!("spec.blockDeviceMappings.{at}.ebs.{}", refusal.field),
            what: format!("{} with {}", volume.device_name.as_deref().unwrap_or("a volume"), refusal.what),
            fix: refusal.fix,
        })
    })
}

/// EKS Auto Mode's message about a role without an access entry of type EC2.
const UNAUTHORIZED_NODE_ROLE: &str = "UnauthorizedNodeRole";

/// The node role that the cluster does not authorize.
fn refused_role<'w>(class: &'w NodeClass, failing: &[&Condition]) -> Option<&'w str> {
    failing.iter().any(|c| c.reason == UNAUTHORIZED_NODE_ROLE).then_some(class.spec.role.as_deref()?)
}

/// The requirement of a failing condition.
struct Advice {
    fix: &'static str,
    /// Karpenter's own role is what to fix.
    role: bool,
}

fn advice(case: &Case, class: &NodeClass, condition: &Condition) -> Option<Advice> {
    if !class.is_of_aws() {
        return None;
    }
    let known = condition.is_false();
    let (fix, role) = match (condition.type_.as_str(), condition.reason.as_str()) {
        ("SubnetsReady" | "SecurityGroupsReady", _) if known => {
            ("Add the tags to the subnets and security groups, or select them by id.", false)
        }
        (_, "UnsupportedAlias") => (ANOTHER_ALIAS, false),
        ("AMIsReady", _) if known => (
            "Select an image that exists in this region, is shared with this account and is for this Kubernetes \
             version. Terms by name search only images of self and amazon.",
            false,
        ),
        ("AMIsReady", _) => (
            "Check that the alias has this version for this Kubernetes version, and that Karpenter's role may call \
             ssm:GetParameter and ec2:DescribeImages.",
            true,
        ),
        ("SubnetsReady", _) => {
            ("Check that Karpenter's role may call ec2:DescribeSubnets and reaches the EC2 endpoint.", true)
        }
        ("SecurityGroupsReady", _) => {
            ("Check that Karpenter's role may call ec2:DescribeSecurityGroups and reaches the EC2 endpoint.", true)
        }
        (_, UNAUTHORIZED_NODE_ROLE) => (
            "Create an access entry of type EC2 for the node role, and associate the policy AmazonEKSAutoNodePolicy \
             with it. EKS creates one only for the role of the built-in NodePools.",
            false,
        ),
        ("InstanceProfileReady", _) => (
            "Check that the role in spec.role exists. Check that Karpenter's role may call iam:GetInstanceProfile, \
             iam:CreateInstanceProfile, iam:TagInstanceProfile, iam:AddRoleToInstanceProfile, and iam:PassRole on the \
             node role. Without internet there is no IAM endpoint in the VPC: use spec.instanceProfile.",
            true,
        ),
        ("PlacementGroupReady", _) => ("Name a placement group that exists in this region.", false),
        (_, "CreateFleetAuthCheckFailed") => (
            "Allow Karpenter's role to call ec2:CreateFleet with the tags that Karpenter sets: a condition on tags, a \
             permissions boundary or a service control policy (SCP) may deny the call. Then change any annotation of \
             the node class, so that Karpenter checks it again.",
            true,
        ),
        (_, "CreateLaunchTemplateAuthCheckFailed") => (
            "Allow Karpenter's role to call ec2:CreateLaunchTemplate with the tags that Karpenter sets: a condition on \
             tags, a permissions boundary or a service control policy (SCP) may deny the call. Then change any \
             annotation of the node class, so that Karpenter checks it again.",
            true,
        ),
        (_, "RunInstancesAuthCheckFailed") => (
            "Allow Karpenter's role to call ec2:RunInstances for the image, its snapshots, subnets and security \
             groups, and iam:PassRole on the node role. A condition on tags, a permissions boundary or a service \
             control policy (SCP) may deny the call. The instance profile must exist and contain the node role. Then \
             change any annotation of the node class, so that Karpenter checks it again.",
            true,
        ),
        (_, "UserDataSizeLimitExceeded") => ("Shorten the user data: EC2 accepts 16 KiB after rendering.", false),
        (_, "TagValidationFailed") => {
            ("Remove the tag from spec.tags: Karpenter sets its own tags and those of the cluster itself.", false)
        }
        (_, "InvalidKubeletConfiguration") if is_about_own_taints(condition) => (
            "Remove registerWithTaints from spec.kubelet, and write its taints into spec.template.spec.taints of the \
             NodePool. Karpenter sets this field itself.",
            false,
        ),
        // Sources: karpenter-provider-aws v1.4.0 pkg/cache/cache.go `InstanceProfileTTL`,
        // pkg/providers/instanceprofile/instanceprofile.go; the profile is remembered by its name from v1.4.0 on, and
        // forgotten with its class since v1.5.0 (aws/karpenter-provider-aws#8074).
        _ if profile_of_dry_run(case, class, condition).is_some() => (
            "Read the error of the dry run in Karpenter's log. If there is none, check that the instance profile \
             exists and contains the node role. If it does not exist, restart Karpenter: it remembers a profile for 15 \
             minutes, and version 1.4 also the profile of a deleted class of the same name.",
            false,
        ),
        (_, reason) if let Some(fix) = since_1_15(reason) => (fix, false),
        _ if is_without_cidr(condition) => (
            "Allow Karpenter's role to call eks:DescribeCluster, and make the EKS endpoint reachable for Karpenter: \
             AL2023 needs the cluster's service CIDR.",
            true,
        ),
        _ => return None,
    };
    Some(Advice { fix, role })
}

/// Whether Karpenter cannot get the cluster's service CIDR from EKS.
fn is_without_cidr(condition: &Condition) -> bool {
    condition.reason == "ClusterCIDRResolutionFailed"
        || condition.message.starts_with("Failed to detect the cluster CIDR")
}

/// The fixes for the reasons of ValidationSucceeded that Karpenter 1.15 has added. The API server no longer checks
/// spec.kubelet, so Karpenter does.
/// Source: karpenter-provider-aws v1.15.0 pkg/controllers/nodeclass/validation.go `Reconcile`,
/// `validateRunInstancesAuthorization`; pkg/apis/v1/kubeletconfiguration_validation.go `ValidateKubeletConfig`.
fn since_1_15(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "InvalidKubeletConfiguration" => {
            "Correct the field of spec.kubelet that the message names. Since 1.15, Karpenter refuses what the kubelet \
             does not know or would ignore, and kubectl apply does not."
        }
        "UnsupportedKubeletConfiguration" => {
            "Remove the fields that the message names from spec.kubelet, and keep one address in clusterDNS. Karpenter \
             before 1.15 ignored them for this AMI family, so nodes stay as they are. To apply them, use AL2023, or \
             set them in userData."
        }
        "KubeletExpressionsDisabled" => {
            "Write plain values for maxPods, kubeReserved and systemReserved in spec.kubelet. A mistyped quantity \
             counts as an expression. If you mean an expression, turn on NodeClassCEL in Karpenter's AWS_FEATURE_GATES."
        }
        "KubeletExpressionInvalid" => {
            "Correct the expression in the field of spec.kubelet that the message names. A mistyped quantity counts as \
             an expression."
        }
        "KubeletExpressionEvaluationFailed" => {
            "Change the expression in spec.kubelet so that it gives a valid number for every instance type. Karpenter \
             evaluates it for all types of the region, and one failure blocks the class."
        }
        "InstanceProfileNotFound" => {
            "Create the instance profile that spec.instanceProfile names, or name one that exists. Karpenter checks \
             again by itself."
        }
        "NVIDIAConsumableCapacityInvalid" => {
            "Set the annotation karpenter.k8s.aws/nvidia-consumable-capacity to a value that the message lists, or \
             remove it."
        }
        "DRADisabled" => {
            "Remove the annotation karpenter.k8s.aws/nvidia-consumable-capacity, or turn on DRANVIDIAGPU in \
             Karpenter's AWS_FEATURE_GATES."
        }
        _ => return None,
    })
}

/// Whether Karpenter refuses only the field of spec.kubelet that it sets itself. It joins several mistakes by
/// semicolons. Source: karpenter-provider-aws v1.15.0 pkg/apis/v1/kubeletconfiguration_validation.go
/// `validateKubeletSemantics`, pkg/controllers/nodeclass/validation.go `Reconcile`.
fn is_about_own_taints(condition: &Condition) -> bool {
    let message = &condition.message;
    message.starts_with("spec.kubelet.registerWithTaints: can't be set") && !message.contains("; ")
}

/// The role of Karpenter's controller, if its ServiceAccount names it.
fn controller_role<'w>(case: &Case<'w>) -> Option<&'w str> {
    case.cluster.service_accounts().filter(|s| s.metadata.name.contains("karpenter")).find_map(|s| s.role_arn())
}

/// The condition as a sentence with the real selectors in it.
fn plain(case: &Case, class: &NodeClass, condition: &Condition) -> String {
    let (what, terms) = match condition.reason.as_str() {
        "AwaitingReconciliation" if !class.is_of_aws() => {
            return format!("Karpenter has not checked {}", condition.type_);
        }
        _ if !class.is_of_aws() => return or_shown(condition),
        "SubnetsNotFound" => ("subnet", &class.spec.subnet_selector_terms),
        "SecurityGroupsNotFound" => ("security group", &class.spec.security_group_selector_terms),
        "UnsupportedAlias" => {
            let alias =
                class.spec.ami_selector_terms.iter().find_map(|t| t.alias.as_deref()).unwrap_or("in amiSelectorTerms");
            return format!(
                "the alias {alias} has no images for this Kubernetes version ({})",
                condition.message.trim_end_matches('.')
            );
        }
        "AMINotFound" => {
            let wanted: Vec<String> = class.spec.ami_selector_terms.iter().map(image_term).collect();
            return format!(
                "no image (AMI) matches {}",
                if wanted.is_empty() { "amiSelectorTerms".to_owned() } else { wanted.join(" or ") }
            );
        }
        "AwaitingReconciliation" => return unresolved(case, class, condition),
        _ => return or_shown(condition),
    };
    let wanted: Vec<String> = terms.iter().map(shown).collect();
    if wanted.is_empty() {
        format!("the class selects no {what}")
    } else {
        format!("no {what} matches {}", wanted.join(" or "))
    }
}

/// Its message, which names the fault.
fn or_shown(condition: &Condition) -> String {
    match condition.message.trim_end_matches('.') {
        "" => format!("{} is {}", condition.type_, condition.shown()),
        message => message.to_owned(),
    }
}

/// A check that Karpenter has not finished: an AWS call fails, or Karpenter has not reached it.
fn unresolved(case: &Case, class: &NodeClass, condition: &Condition) -> String {
    match condition.type_.as_str() {
        "InstanceProfileReady" => match (&class.spec.role, &class.spec.instance_profile) {
            (Some(role), _) => format!("Karpenter has not created an instance profile for the role {role}"),
            (None, Some(profile)) => format!("Karpenter has not resolved the instance profile {profile}"),
            (None, None) => "Karpenter has no instance profile".to_owned(),
        },
        "AMIsReady" => {
            let wanted: Vec<String> = class.spec.ami_selector_terms.iter().map(image_term).collect();
            format!("Karpenter has not resolved its AMIs ({})", wanted.join(", "))
        }
        "SubnetsReady" => "Karpenter has not resolved its subnets".to_owned(),
        "SecurityGroupsReady" => "Karpenter has not resolved its security groups".to_owned(),
        other => match profile_of_dry_run(case, class, condition) {
            Some(profile) => format!(
                "Karpenter has not checked {other}. Its dry run of a launch with the instance profile {profile} has \
                 not succeeded, and the condition does not say why"
            ),
            None => format!("Karpenter has not checked {other}"),
        },
    }
}

/// The instance profile of a dry run without a result, if nothing else is missing and Karpenter's log does not say why.
/// Karpenter tries again without a word if EC2 does not find the profile, or throttles it.
/// Source: karpenter-provider-aws v1.4.0, v1.14.1 pkg/controllers/nodeclass/validation.go `requiredConditions`,
/// `validateRunInstancesAuthorization`.
fn profile_of_dry_run<'c>(case: &Case, class: &'c NodeClass, condition: &Condition) -> Option<&'c str> {
    let is_open = condition.type_ == "ValidationSucceeded" && condition.reason == "AwaitingReconciliation";
    let is_resolved = class.condition("InstanceProfileReady").is_some_and(Condition::is_true)
        && class.status.conditions.iter().all(|c| c.is_true() || c.type_ == condition.type_ || c.type_ == "Ready");
    if !class.is_ec2() || !is_open || !is_resolved || refused_volume(class, &[condition]).is_some() {
        return None;
    }
    class.instance_profile().filter(|_| logged::root(case, &[Trouble::RequestRefused]).is_none())
}

fn image_term(term: &AmiTerm) -> String {
    let plain = [("alias", &term.alias), ("id", &term.id), ("name", &term.name), ("ssmParameter", &term.ssm_parameter)];
    let plain = plain.into_iter().filter_map(|(what, value)| Some(format!("{what} {}", value.as_deref()?)));
    plain.chain(term.tags.iter().map(|(k, v)| format!("tag {k}: {v}"))).collect::<Vec<_>>().join(" and ")
}

fn shown(term: &SelectorTerm) -> String {
    let tags = term.tags.iter().map(|(k, v)| format!("the tag {k}: {v}"));
    let id = term.id.iter().map(|id| format!("the id {id}"));
    let name = term.name.iter().map(|name| format!("the name {name}"));
    tags.chain(id).chain(name).collect::<Vec<_>>().join(" and ")
}

/// A selector requires a value that is one letter off the cluster's name.
struct Slip<'w> {
    field: &'static str,
    value: &'w str,
    cluster: &'w str,
    told_by: Evidence,
}

fn slip<'w>(case: &Case<'w>, class: &'w NodeClass, failing: &[&Condition]) -> Option<Slip<'w>> {
    let selects = |type_: &str| class.is_of_aws() && failing.iter().any(|c| c.type_ == type_ && c.is_false());
    let fields = [
        ("SubnetsReady", "spec.subnetSelectorTerms", &class.spec.subnet_selector_terms),
        ("SecurityGroupsReady", "spec.securityGroupSelectorTerms", &class.spec.security_group_selector_terms),
    ];
    let (cluster, told_by) = cluster_of(case, class)?;
    let fields = fields.into_iter().filter(|(type_, ..)| selects(type_));
    fields.flat_map(|(_, field, terms)| terms.iter().map(move |term| (field, term))).find_map(|(field, term)| {
        let value = term.tags.values().find(|value| is_slip(value, cluster))?;
        Some(Slip { field, value, cluster, told_by: told_by.clone() })
    })
}

/// The cluster's name, from Karpenter's settings or from the instance profile that it created: `CLUSTER_HASH`.
/// Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass.go `InstanceProfileName`.
fn cluster_of<'w>(case: &Case<'w>, class: &'w NodeClass) -> Option<(&'w str, Evidence)> {
    let because = "the selectors require a tag that is one letter off the cluster's name";
    if let (Some(cluster), Some(karpenter)) = (case.cluster_name(), case.karpenter()) {
        let object = format!("Deployment/{}", karpenter.deployment);
        let said = format!("CLUSTER_NAME={cluster}");
        return Some((cluster, Evidence::new(object, "spec.template.spec.containers[0].env", said, because)));
    }
    let profile = class.status.instance_profile.as_deref().filter(|_| class.spec.instance_profile.is_none())?;
    let (cluster, hash) = profile.rsplit_once('_')?;
    let is_made = hash.len() > 8 && hash.bytes().all(|b| b.is_ascii_digit());
    let object = format!("{}/{}", class.kind, class.name());
    is_made.then(|| (cluster, Evidence::new(object, "status.instanceProfile", profile, because)))
}

/// If several selectors fail by one tag, the tags in AWS are missing; otherwise the class must change. A missing
/// permission belongs to no field of the class.
fn blame(case: &Case, class: &NodeClass, failing: &[&Condition]) -> Option<Blame> {
    let known: Vec<&Condition> = failing.iter().copied().filter(|c| c.is_false()).collect();
    if !class.is_of_aws() {
        return Some(Blame::class(class));
    }
    let field = |type_: &str| match type_ {
        "SubnetsReady" => Some(("spec.subnetSelectorTerms", &class.spec.subnet_selector_terms)),
        "SecurityGroupsReady" => Some(("spec.securityGroupSelectorTerms", &class.spec.security_group_selector_terms)),
        _ => None,
    };
    let selectors: Vec<_> = known.iter().filter_map(|c| field(&c.type_)).collect();
    let terms = selectors.iter().flat_map(|(_, terms)| terms.iter());
    let tags: BTreeSet<&BTreeMap<String, String>> = terms.map(|t| &t.tags).collect();
    let one_tag = tags.first().filter(|t| tags.len() == 1 && t.len() == 1).and_then(|t| t.keys().next());
    if let (Some(key), true) = (one_tag, selectors.len() == known.len() && selectors.len() > 1) {
        return Some(Blame::object("", "EC2Tags", key));
    }
    let blame = Blame::class(class);
    let field = selectors.first().map(|(field, _)| *field).or_else(|| {
        let first = failing.first()?;
        match (first.type_.as_str(), first.reason.as_str()) {
            ("AMIsReady", _) => Some("spec.amiSelectorTerms"),
            ("InstanceProfileReady", _) => Some("spec.role"),
            (_, "UserDataSizeLimitExceeded") => Some("spec.userData"),
            (_, "TagValidationFailed") => Some("spec.tags"),
            (_, "InstanceProfileNotFound") => Some("spec.instanceProfile"),
            (_, "NVIDIAConsumableCapacityInvalid" | "DRADisabled") => Some("metadata.annotations"),
            (_, "InvalidKubeletConfiguration") if is_about_own_taints(first) => Some("spec.kubelet.registerWithTaints"),
            (_, reason) if since_1_15(reason).is_some() => Some("spec.kubelet"),
            _ => None,
        }
    });
    match (field, failing.first().and_then(|c| advice(case, class, c))) {
        (Some(field), _) => Some(blame.field(field)),
        // AWS's own policies give Auto Mode its permissions: a refusal is about something that the class sets or omits.
        (None, Some(advice)) if advice.role && !class.is_auto_mode() => None,
        (None, _) => Some(blame),
    }
}

/// EC2 refused a dry run of what the class requests. Either the permissions of Karpenter's role forbid it, or a policy
/// about something that the class or its NodePools request does.
fn tried_in_vain(case: &Case, class: &NodeClass, failing: &[&Condition]) -> Option<Blame> {
    failing.iter().find(|c| c.is_false() && c.reason.ends_with("AuthCheckFailed"))?;
    let role = controller_role(case).and_then(|arn| arn.rsplit('/').next());
    Some(match role {
        Some(role) => Blame::object("", "IAMRole", role),
        None => Blame::class(class),
    })
}

fn tag_command(verb: &str, terms: &[SelectorTerm]) -> Option<String> {
    let (key, value) = terms.iter().find_map(|t| t.tags.iter().next())?;
    let filter =
        if value == "*" { format!("Name=tag-key,Values={key}") } else { format!("Name=tag:{key},Values={value}") };
    Some(format!("aws ec2 {verb} --filters {filter}"))
}
