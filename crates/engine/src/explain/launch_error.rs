//! The meaning of the errors with which AWS refuses a launch: Karpenter's condition reasons, and EC2's own codes and
//! messages in the text of versions that have no reasons.

use crate::explain::denial;
use crate::objects::Condition;
use readers::source_text;

/// One kind of refusal.
#[derive(Debug)]
pub(crate) struct LaunchError {
    /// Reasons of the Launched condition and what the messages say; case matters.
    names: &'static [&'static str],
    /// The rest of "… cannot launch, because".
    pub why: &'static str,
    pub fix: &'static str,
    pub fault: FaultIn,
    /// The command that shows more.
    pub command: Option<&'static str>,
    /// Whether the error names its cause; otherwise it only shows the direction.
    pub exact: bool,
}

/// The place of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultIn {
    /// In AWS: a role, a policy, a limit that the error does not name.
    Account,
    /// The one resource in AWS that the error names: its kind and name.
    Aws(&'static str, &'static str),
    /// The vCPU quota of the instance family.
    VcpuQuota { spot: bool },
    /// A policy of the organization. It may require something that the node class can set: a tag.
    ServiceControlPolicy,
    /// A field of the node class.
    Class(&'static str),
    /// Karpenter's version.
    Karpenter,
    /// The NodePool's requirements.
    Requirements,
    /// No place: it passes, or it is capacity that EC2 does not have.
    Nowhere,
}

impl LaunchError {
    const fn new(names: &'static [&'static str], fault: FaultIn, why: &'static str, fix: &'static str) -> Self {
        Self { names, why, fix, fault, command: None, exact: true }
    }

    const fn see(self, command: &'static str) -> Self {
        Self { command: Some(command), ..self }
    }

    const fn vague(self) -> Self {
        Self { exact: false, ..self }
    }

    /// The fix, and what only partition aws-cn needs.
    /// Sources: AWS China user guide, "Endpoints and ARNs" (service principals of EC2);
    /// terraform-aws-modules/terraform-aws-eks#3057.
    pub(crate) fn fix_for(&self, message: &str) -> String {
        if self.names.contains(&"iam:PassRole") && message.contains("arn:aws-cn:") {
            return format!(
                "{} If a policy allows it already, look at its condition iam:PassedToService: in China it must be \
                 ec2.amazonaws.com.cn.",
                self.fix
            );
        }
        self.fix.to_owned()
    }

    /// Whether the image is pending, or cannot be used any more.
    pub(crate) fn is_unavailable_image(&self) -> bool {
        self.names.contains(&"InvalidAMIID.Unavailable")
    }

    /// Whether a policy lacks a permission, as far as the error shows.
    pub(crate) fn names_missing_right(&self) -> bool {
        self.names.contains(&"Unauthorized")
    }

    pub(crate) const fn is_capacity(&self) -> bool {
        matches!(self.fault, FaultIn::Nowhere) && self.exact
    }
}

const QUOTAS: &str = "aws service-quotas list-service-quotas --service-code ec2 --query \
                      'Quotas[?contains(QuotaName,`Instance`)].[QuotaName,Value]'";
const RESERVATIONS: &str = "aws ec2 describe-capacity-reservations --query \
     'CapacityReservations[].[CapacityReservationId,State,InstanceType,AvailabilityZone,AvailableInstanceCount]'";
const SCP_FIX: &str = "Allow the call in the service control policy, or make Karpenter request only what the policy \
                       allows. Often the policy restricts a tag (spec.tags of the node class), a region, an encrypted \
                       volume or an instance type. For network-interface/* it often forbids a public IP: set \
                       spec.associatePublicIPAddress: false. aws sts decode-authorization-message names the condition \
                       key.";
const NO_CAPACITY: &str = "EC2 has no capacity for it";
const MORE_TYPES: &str = "Allow more instance types, zones or capacity types in the NodePool, or add a fallback \
                          NodePool of lower weight.";
const AMIS: FaultIn = FaultIn::Class("spec.amiSelectorTerms");
const SUBNETS: FaultIn = FaultIn::Class("spec.subnetSelectorTerms");
const GROUPS: FaultIn = FaultIn::Class("spec.securityGroupSelectorTerms");
const VOLUMES: FaultIn = FaultIn::Class("spec.blockDeviceMappings");
const USER_DATA: FaultIn = FaultIn::Class("spec.userData");

/// Specific before general: the first match wins.
///
/// Sources: karpenter-provider-aws v1.14.1 pkg/errors/errors.go (`ToReasonMessage`, `unfulfillableCapacityErrorCodes`);
/// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>.
const ERRORS: &[LaunchError] = &[
    LaunchError::new(
        &[
            "SpotSLRCreationFailed",
            "ServiceLinkedRoleCreationNotPermitted",
            "spot-service-linked-role",
            "service-linked role for EC2 Spot",
        ],
        FaultIn::Aws("IAMRole", "AWSServiceRoleForEC2Spot"),
        "the spot service-linked role does not exist and Karpenter is not allowed to create it",
        "Create the service-linked role AWSServiceRoleForEC2Spot once per account: aws iam create-service-linked-role \
         --aws-service-name spot.amazonaws.com.",
    )
    .see("aws iam get-role --role-name AWSServiceRoleForEC2Spot"),
    LaunchError::new(
        &[
            "AssumeRoleWithWebIdentity",
            "WebIdentityErr",
            "InvalidIdentityToken",
            "failed to refresh cached credentials",
            "no EC2 IMDS role found",
            "NoCredentialProviders",
            "InvalidClientTokenId",
            "UnrecognizedClientException",
        ],
        FaultIn::Account,
        "Karpenter itself has no valid AWS credentials",
        "Correct the trust of Karpenter's own role: the role ARN on its ServiceAccount with the cluster's OIDC \
         provider (IRSA), or its Pod Identity association. This disrupts no node.",
    )
    .see("kubectl get serviceaccounts -A -l app.kubernetes.io/name=karpenter -o yaml"),
    // Source: Google Compute Engine API, errors `quotaExceeded` and `QUOTA_EXCEEDED`.
    LaunchError::new(
        &["QUOTA_EXCEEDED", "quotaExceeded"],
        FaultIn::Account,
        "a quota of the project is used up in the region",
        "Raise the quota that the message names, or allow instance types, zones or regions that do not count towards \
         it.",
    ),
    LaunchError::new(
        &["iam:PassRole"],
        FaultIn::Account,
        "Karpenter's role is not allowed to pass the node role to EC2 (iam:PassRole)",
        "Allow iam:PassRole on the node role (spec.role of the node class) in the policy of Karpenter's role.",
    ),
    // Source: karpenter-provider-aws v1.14.1 pkg/providers/amifamily/resolver.go `Resolve`.
    LaunchError::new(
        &["no instance types satisfy requirements of amis"],
        AMIS,
        "none of the images (AMIs) that the node class selects is for the architecture (amd64, arm64) and the \
         accelerator of the instance types that it may have",
        "Select an image for these instance types, or allow instance types that fit the selected images.",
    ),
    // Source: aws/karpenter-provider-aws#5785; the request has an entry for each subnet, image and instance type.
    LaunchError::new(
        &["payload for the body of the request is too large"],
        FaultIn::Class("spec.subnetSelectorTerms"),
        "the request for a fleet is too large: it has an entry for each subnet, image and instance type that is \
         allowed",
        "Select fewer subnets (one in each zone) in the node class, or allow fewer instance types in the NodePool. \
         Later versions of Karpenter send fewer.",
    ),
    LaunchError::new(
        &["MaxTemplateLimitExceeded"],
        FaultIn::Aws("ServiceQuota", "Launch templates"),
        "the account has reached its number of launch templates in the region",
        "Delete unused launch templates, such as those of deleted clusters, or request a higher limit.",
    )
    .see("aws ec2 describe-launch-templates --query 'LaunchTemplates[].[LaunchTemplateName,CreateTime]'"),
    // Source: karpenter-provider-aws v1.14.1 pkg/errors/errors.go `IsSpreadPlacementGroupLimitError`.
    LaunchError::new(
        &["limit of instances in this spread placement group"],
        FaultIn::Class("spec.placementGroupSelector"),
        "the spread placement group of the node class already holds the maximum of instances in the zone (seven)",
        "Allow more zones in the NodePool (and subnets in them). Or set a partition or cluster placement group, or \
         none, in the node class.",
    )
    .see("aws ec2 describe-placement-groups"),
    LaunchError::new(
        &["no amis exist given constraints"],
        AMIS,
        "the node class selects no image (AMI)",
        "Select an image that exists in this region, for this account and this Kubernetes version.",
    ),
    // Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html>.
    LaunchError::new(
        &["explicit deny in a service control policy"],
        FaultIn::ServiceControlPolicy,
        "an explicit deny in a service control policy (SCP) of the organization refuses it",
        SCP_FIX,
    ),
    LaunchError::new(
        &["service control policy"],
        FaultIn::ServiceControlPolicy,
        "a service control policy (SCP) of the organization denies it",
        SCP_FIX,
    ),
    LaunchError::new(
        &["permissions boundary", "permission boundary"],
        FaultIn::Account,
        "the permissions boundary of Karpenter's role does not allow it",
        "Add the action that the message names to the permissions boundary of Karpenter's role.",
    ),
    LaunchError::new(
        &["AMIAuthorizationFailure", "Not authorized for images"],
        AMIS,
        "this account is not allowed to use the image",
        "Share the image (and the key of its snapshot) with this account, or select a shared one. EKS makes old \
         Windows images private.",
    ),
    LaunchError::new(
        &["OptInRequired"],
        AMIS,
        "the image is a Marketplace product that this account has not subscribed to",
        "Subscribe to the product in AWS Marketplace, or select another image.",
    ),
    LaunchError::new(
        &[
            "Unauthorized",
            "AccessDenied",
            "not authorized to perform",
            "EncodedAuthorizationFailure",
            "Encoded authorization failure",
        ],
        FaultIn::Account,
        "Karpenter's role lacks the permission",
        "Give Karpenter's role the action that the message names. Its policy may also require a tag that the request \
         lacks. If the message is encoded, decode it.",
    )
    .see("aws sts decode-authorization-message --query DecodedMessage --output text --encoded-message MESSAGE"),
    // Source: aws/karpenter-provider-aws#1042 and others; no source of EC2 is public.
    LaunchError::new(
        &["has no associated IAM Roles"],
        FaultIn::Class("spec.instanceProfile"),
        "the instance profile has no role",
        "Add the node role to the instance profile (aws iam add-role-to-instance-profile). This disrupts nothing.",
    ),
    LaunchError::new(
        &["InstanceProfileNameInvalid", "Invalid IAM Instance Profile"],
        FaultIn::Class("spec.instanceProfile"),
        "the instance profile does not exist",
        "Create the instance profile, or name one that exists.",
    ),
    // Sources: EC2 API reference, "Error codes"; karpenter-provider-aws v1.2.2 pkg/providers/amifamily/types.go.
    LaunchError::new(
        &["InvalidAMIID.Unavailable", "currently pending"],
        AMIS,
        "the image is not available: it is pending, failed, disabled or deregistered",
        "If the image is pending, wait: launches succeed when it is available. Otherwise select another image. Give an \
         image the name or tag that the node class selects only when it is available: Karpenter before 1.2.2 also \
         selects pending images.",
    )
    .see("aws ec2 describe-images --image-ids AMI --query 'Images[].State'"),
    LaunchError::new(
        &["AMINotFound", "InvalidAMIID.NotFound"],
        AMIS,
        "the image does not exist in this region, or is not shared with this account",
        "Select an image that exists in this region and is shared with this account. The old one may have been \
         deregistered.",
    ),
    LaunchError::new(
        &["(ENA) is required for the"],
        AMIS,
        "the image is not registered for the Elastic Network Adapter (ENA), and the instance type has no other network",
        "Select an image that is registered with EnaSupport. Or register this one with it, if the image has the \
         driver.",
    ),
    LaunchError::new(
        &["an AMI with a boot mode of"],
        AMIS,
        "the image has a boot mode (UEFI or legacy BIOS) that the instance type does not support",
        "Select an image with the boot mode uefi-preferred, or allow instance types with this image's boot mode.",
    ),
    LaunchError::new(
        &["does not match the architecture"],
        AMIS,
        "the image is for another architecture than the instance type",
        "Select an image for the architecture of the instance types, or allow types of the image's architecture.",
    ),
    LaunchError::new(
        &["InvalidAMIID", "UnsupportedArchitecture"],
        AMIS,
        "the image cannot be used",
        "Select an available image. A pending, failed or deregistered one cannot start, and neither can one of another \
         architecture.",
    ),
    LaunchError::new(
        &["SecurityGroupSubnetVPCMismatch", "belong to different networks", "must be in the same VPC"],
        GROUPS,
        "its security groups and subnets are of different VPCs",
        "Select security groups and subnets of one VPC. A tag that two clusters share selects too much.",
    ),
    LaunchError::new(
        &["InvalidGroup.NotFound", "InvalidSecurityGroupID", "InvalidSecurityGroup"],
        GROUPS,
        "a security group does not exist any more",
        "Select security groups that exist.",
    ),
    LaunchError::new(
        &["InvalidSubnetID", "InvalidSubnet."],
        SUBNETS,
        "a subnet does not exist any more",
        "Select subnets that exist.",
    ),
    LaunchError::new(
        &["InsufficientFreeAddressesInSubnet"],
        SUBNETS,
        "the subnets have no free IP addresses",
        "Select larger or more subnets. Prefix delegation and warm targets of the VPC CNI also use addresses.",
    )
    .see(
        "aws ec2 describe-subnets --query 'Subnets[].[SubnetId,AvailabilityZone,AvailableIpAddressCount]' --output \
         text",
    ),
    LaunchError::new(
        &["InvalidBlockDeviceMapping", "smaller than snapshot"],
        VOLUMES,
        "a volume in blockDeviceMappings does not fit the image: its size must be at least the snapshot's, its device \
         name the image's",
        "Enlarge the volume to the size that the message names, or correct its device name.",
    ),
    // Source: aws/karpenter-provider-aws#5666. Karpenter gives an instance one interface per network card if a pod
    // requests EFA.
    LaunchError::new(
        &["associatePublicIPAddress parameter cannot be specified"],
        FaultIn::Class("spec.associatePublicIPAddress"),
        "the node class requests a public IP address, and EC2 gives none to an instance with several network \
         interfaces, such as one with EFA",
        "Remove spec.associatePublicIPAddress from the node class, or use another node class for these instances.",
    ),
    LaunchError::new(
        &["InvalidKMSKey", "InvalidKmsKey", "KMSKeyNotAccessible", "kms:"],
        VOLUMES,
        "the KMS key of the encrypted volumes cannot be used",
        "Enable the key. Allow Karpenter's role and, for spot, AWSServiceRoleForEC2Spot in its policy or in a grant.",
    ),
    LaunchError::new(
        &["UserDataSizeLimitExceeded", "User data is limited to"],
        USER_DATA,
        "the rendered user data is larger than 16 KiB",
        "Shorten the user data: EC2 accepts 16 KiB after rendering. Download the long part at boot, or put it into the \
         image.",
    ),
    LaunchError::new(
        &[
            "invalid UserData",
            "InvalidUserData",
            "parsing custom UserData",
            "parsing custom user data",
            "unreadable user data",
        ],
        USER_DATA,
        "Karpenter or EC2 cannot read the user data",
        "Correct the user data: Bottlerocket needs TOML, the other families MIME, a shell script or a NodeConfig.",
    ),
    LaunchError::new(
        &["TagPolicy", "tag policies", "InvalidTag", "InvalidParameterValue: Tag"],
        FaultIn::Class("spec.tags"),
        "EC2 or a tag policy refuses a tag",
        "Correct spec.tags of the node class.",
    ),
    LaunchError::new(
        &["SpotQuotaExceeded", "MaxSpotInstanceCountExceeded"],
        FaultIn::VcpuQuota { spot: true },
        "the account's spot quota is used up",
        "Raise the quota (All … Spot Instance Requests, in vCPUs), or allow on-demand instances too.",
    )
    .see(QUOTAS),
    LaunchError::new(
        &["VCPULimitExceeded", "VcpuLimitExceeded", "InstanceLimitExceeded"],
        FaultIn::VcpuQuota { spot: false },
        "the account's vCPU quota is used up",
        "Raise the quota (Running On-Demand … instances, in vCPUs), or lower the demand. In a new account the quota \
         for GPUs is 0.",
    )
    .see(QUOTAS),
    LaunchError::new(
        &["FleetQuotaExceeded", "MaxFleetCountExceeded"],
        FaultIn::Account,
        "the account's fleet quota is used up",
        "Raise the fleet quota, or delete unused fleets.",
    )
    .see(QUOTAS),
    LaunchError::new(
        &["VolumeLimitExceeded", "MaxIOPSLimitExceeded"],
        FaultIn::Account,
        "the account's EBS quota is used up",
        "Raise the EBS storage quota of this volume type, or delete volumes.",
    ),
    LaunchError::new(
        &["ReservationCapacityExceeded"],
        FaultIn::Requirements,
        "the capacity reservation is used up",
        "Enlarge the reservation, or allow other capacity types.",
    )
    .see(RESERVATIONS),
    // An interruptible reservation, while its owner takes it back. A capacity error since 1.14.3.
    // Source: karpenter-provider-aws v1.15.0 pkg/errors/errors.go `capacityReservationStateUnavailableErrorCode`.
    LaunchError::new(
        &["InvalidCapacityReservationState.Unavailable"],
        FaultIn::Requirements,
        "the capacity reservation is not available: AWS is taking an interruptible reservation back",
        "Allow other capacity types, or select another reservation. Karpenter uses the reservation again when it is \
         available.",
    )
    .see(RESERVATIONS),
    // A capacity error since 1.14.3. Karpenter sets no highest price, so it is EC2's own: the on-demand price.
    // Source: karpenter-provider-aws v1.15.0 pkg/errors/errors.go `unfulfillableCapacityErrorCodes`.
    LaunchError::new(
        &["SpotMaxPriceTooLow"],
        FaultIn::Requirements,
        "the spot price of the instance types has reached the on-demand price, above which EC2 launches no spot \
         instance",
        "Allow more instance types or zones, or on-demand instances too. Karpenter before 1.14.3 repeats the launch, \
         and later versions try other offerings.",
    ),
    // What is left is cut to 60 types, of which each minValues still wants so many values. From 1.13 on this is a
    // capacity error. Sources: karpenter-provider-aws v1.12.0, v1.14.1 pkg/providers/instance/instance.go; aws#9142.
    LaunchError::new(
        &["InstanceTypeFilteringFailed", "truncating instance types"],
        FaultIn::Requirements,
        "the instance types that still have capacity have fewer different values than the minValues of the NodePool \
         require",
        "Lower minValues (or start Karpenter with --min-values-policy=BestEffort), or allow more instance types and \
         zones. Delete the NodeClaim: Karpenter before 1.13 repeats its launch, and makes no node for other pods until \
         it is gone.",
    ),
    LaunchError::new(
        &["AccountPendingVerification", "PendingVerification"],
        FaultIn::Account,
        "AWS has not verified the account yet",
        "Wait until AWS has verified the account. A support case speeds it up.",
    ),
    LaunchError::new(
        &["FreeTierIneligible", "not eligible for Free Tier"],
        FaultIn::Account,
        "the account's free plan does not include the instance type",
        "Upgrade the account's plan, or allow instance types of the free tier.",
    ),
    LaunchError::new(
        &["SubnetResolutionFailed", "InstanceTypeResolutionFailed"],
        FaultIn::Account,
        "Karpenter cannot ask EC2 for its subnets or instance types",
        "Check Karpenter's log: its role lacks ec2:Describe…, or it cannot reach the EC2 endpoint.",
    )
    .vague(),
    LaunchError::new(
        &["LaunchTemplateNotFound", "InvalidLaunchTemplate"],
        FaultIn::Account,
        "the launch template is gone",
        "Wait for Karpenter to create it again, and find out who deletes launch templates.",
    ),
    LaunchError::new(
        &["RequestLimitExceeded", "Throttling"],
        FaultIn::Account,
        "EC2 throttles the account's requests",
        "Wait, or find the program that calls EC2 so often.",
    ),
    // Source: karpenter-provider-aws v1.0.1, v1.6.0, v1.7.0 pkg/providers/amifamily/resolver.go
    // `httpProtocolUnsupportedRegions`.
    LaunchError::new(
        &["HttpProtocolIpv6"],
        FaultIn::Karpenter,
        "the region does not know the metadata option httpProtocolIPv6, which Karpenter before 1.7.0 always sends",
        "Update Karpenter to 1.7.0 or later, which leaves the option out in isolated regions. No value of \
         spec.metadataOptions avoids it.",
    ),
    LaunchError::new(
        &["configuration for this AWS Marketplace product is not supported"],
        FaultIn::Requirements,
        "the image is a Marketplace product that does not support the instance type",
        "Allow only instance types that the product supports, which AWS Marketplace lists, or select another image.",
    ),
    // It names the operation or the option: EC2 API reference, "Error codes".
    LaunchError::new(
        &["UnsupportedOperation"],
        FaultIn::Class("spec"),
        "EC2 does not support what the launch asks for",
        "Change what the message names: a field of the node class, its image, or the instance types that the NodePool \
         allows.",
    )
    .vague(),
    LaunchError::new(
        &["Unsupported"],
        FaultIn::Requirements,
        "the instance type is not offered in the zone, or not with this configuration",
        "Allow instance types that the zone offers, or other zones.",
    ),
    LaunchError::new(
        &["InsufficientInstanceCapacity", "InsufficientHostCapacity"],
        FaultIn::Nowhere,
        NO_CAPACITY,
        MORE_TYPES,
    ),
    LaunchError::new(
        &["'amiIdList' cannot be empty"],
        FaultIn::Class("spec.launchTemplate"),
        "the launch template that it names has no image (AMI)",
        "Give the launch template an image (ImageId), or name none and let Karpenter create its own.",
    ),
    LaunchError::new(
        &["InvalidParameter"],
        FaultIn::Class("spec"),
        "EC2 refuses a parameter that the node class sets",
        "Correct the field of the node class that the message names.",
    )
    .vague(),
    // EC2 says it beside the error of a request that it cannot fulfill, so every other error comes first.
    LaunchError::new(&["UnfulfillableCapacity"], FaultIn::Nowhere, NO_CAPACITY, MORE_TYPES),
    LaunchError::new(
        &["InternalError", "ServiceUnavailable"],
        FaultIn::Nowhere,
        "EC2 has an internal error",
        "Wait. If the error lasts, open a support case with AWS and name the request id from Karpenter's log.",
    )
    .vague(),
];

/// The first entry of [`ERRORS`] that a reason or a message names.
pub(crate) fn named(text: &str) -> Option<&'static LaunchError> {
    ERRORS.iter().find(|error| error.names.iter().any(|name| text.contains(name)))
}

/// Karpenter's own reason is more certain than words in a message. But "Unauthorized" has variants that only the
/// message distinguishes.
pub(crate) fn known(launched: &Condition, logged: Option<&str>) -> Option<&'static LaunchError> {
    let by_reason = named(&launched.reason);
    let by_message = named(&launched.message);
    match launched.reason.as_str() {
        "LaunchFailed" => {
            let by_log = || named(logged?);
            by_message.or_else(by_log).or(by_reason)
        }
        "Unauthorized" => by_message.or(by_reason),
        _ => by_reason.or(by_message),
    }
}

/// Reason and message, cut to fit a sentence. The evidence has the whole text.
pub(crate) fn said(launched: &Condition) -> String {
    const ENOUGH: usize = 240;
    // Half a secret no longer looks like a secret.
    let message = source_text::mask(launched.message.trim_end_matches('.'));
    let is_long = message.chars().count() > ENOUGH;
    let denied = if is_long { denial::shortened(&message, ENOUGH) } else { None };
    let cut = denied.unwrap_or_else(|| message.chars().take(ENOUGH).chain(is_long.then_some('…')).collect());
    // Karpenter cuts it too: core v1.14.1 pkg/controllers/nodeclaim/lifecycle/launch.go `truncateMessage`.
    let is_cut = launched.message.ends_with("...") && !cut.ends_with('…');
    let cut = if is_cut { cut + "…" } else { cut };
    if cut.is_empty() { launched.reason.to_string() } else { format!("{}: {cut}", launched.reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of public reports, shortened.
    #[test]
    fn messages_of_old_versions_are_told_apart() {
        let why = |text: &str| named(text).map_or("", |e| e.why);
        for (text, part) in [
            (
                "creating instance, with fleet error(s), UnauthorizedOperation: You are not authorized to perform this \
                 operation. User: arn:aws:sts::1:assumed-role/k/1 is not authorized to perform: ec2:RunInstances on \
                 resource: arn:aws:ec2:us-east-2:1:instance/* with an explicit deny in a service control policy",
                "SCP",
            ),
            (
                "User: arn:aws:sts::1:assumed-role/k/1 is not authorized to perform: iam:PassRole on resource: \
                 arn:aws:iam::1:role/n because no identity-based policy allows the iam:PassRole action",
                "iam:PassRole",
            ),
            (
                "creating instance, creating fleet, UnauthorizedOperation: You are not authorized to perform this \
                 operation. Encoded authorization failure message: x",
                "lacks the permission",
            ),
            (
                "with fleet error(s), AuthFailure.ServiceLinkedRoleCreationNotPermitted: The provided credentials do \
                 not have permission to create the service-linked role for EC2 Spot Instances.",
                "service-linked role",
            ),
            (
                "InvalidBlockDeviceMapping: Volume of size 20GB is smaller than snapshot 'snap-0', expect size >= 30GB",
                "blockDeviceMappings",
            ),
            (
                "InvalidParameterValue: Invalid IAM Instance Profile name: value (KarpenterNodeInstanceProfile-x)",
                "instance profile",
            ),
            (
                "InvalidParameterCombination: Enhanced networking with the Elastic Network Adapter (ENA) is required \
                 for the 'm5.large' instance type. Ensure that you are using an AMI that is enabled for ENA.",
                "no other network",
            ),
            (
                "InvalidParameterValue: The t2.micro instance type does not support an AMI with a boot mode of UEFI. \
                 Only instance types built on the Nitro System support UEFI.",
                "has a boot mode",
            ),
            (
                "InvalidParameterValue: The architecture 'arm64' of the specified instance type does not match the \
                 architecture 'x86_64' of the specified AMI.",
                "another architecture",
            ),
            ("InvalidAMIID.Unavailable: The image ID 'ami-0' is not available", "not available: it is pending"),
            (
                "with fleet error(s), InvalidCapacityReservationState.Unavailable: The capacity reservation is not \
                 available",
                "taking an interruptible reservation back",
            ),
            (
                "with fleet error(s), SpotMaxPriceTooLow: Your Spot request price of 0.5 is lower than the minimum \
                 required Spot request fulfillment price of 0.6.",
                "has reached the on-demand price",
            ),
            (
                "InvalidParameter: Security group sg-1 and subnet subnet-1 belong to different networks.",
                "different VPCs",
            ),
            (
                "creating instance, with fleet error(s), InvalidParameterCombination: The associatePublicIPAddress \
                 parameter cannot be specified when launching with multiple network interfaces.; \
                 UnfulfillableCapacity: Unable to fulfill capacity due to your request configuration.",
                "requests a public IP address",
            ),
            (
                "with fleet error(s), UnfulfillableCapacity: Unable to fulfill capacity due to your request \
                 configuration.; InvalidParameterValue: The value is not valid.",
                "refuses a parameter",
            ),
            ("UnfulfillableCapacity: Unable to fulfill capacity", "no capacity"),
            (
                "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 allows",
                "vCPU quota",
            ),
            (
                "operation error EC2: CreateFleet, get identity: get credentials: failed to refresh cached \
                 credentials, operation error STS: AssumeRoleWithWebIdentity",
                "credentials",
            ),
            (
                "Unsupported: Your requested instance type (m7i.large) is not supported in your requested Availability \
                 Zone (us-east-1e).",
                "not offered in the zone",
            ),
            (
                "UnsupportedOperation: Specifying HttpProtocolIpv6 Metadata Options for an instance is not supported \
                 in this region",
                "httpProtocolIPv6",
            ),
            (
                "UnsupportedOperation: The instance configuration for this AWS Marketplace product is not supported.",
                "Marketplace product",
            ),
            ("UnsupportedOperation: Enclaves are not supported with this image.", "what the launch asks for"),
        ] {
            assert!(why(text).contains(part), "{text}: {}", why(text));
        }
        assert!(named("Instance launch failed").is_none());
    }

    #[test]
    fn the_service_of_china_is_named_in_china_only() {
        let fix = |message: &str| named(message).map(|error| error.fix_for(message)).unwrap_or_default();
        let pass_role = "is not authorized to perform: iam:PassRole on resource: ";
        assert!(fix(&format!("{pass_role}arn:aws-cn:iam::1:role/n")).contains("must be ec2.amazonaws.com.cn"));
        assert!(!fix(&format!("{pass_role}arn:aws:iam::1:role/n")).contains("amazonaws"));
        assert!(!fix("UnauthorizedOperation: arn:aws-cn:ec2:cn-north-1:1:instance/*").contains("amazonaws"));
    }

    #[test]
    fn every_name_is_reached() {
        for error in ERRORS {
            for name in error.names {
                assert_eq!(named(name).map(|e| e.why), Some(error.why), "{name} is hidden by an earlier entry");
            }
        }
    }
}
