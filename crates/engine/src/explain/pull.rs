//! Why an image cannot be pulled, from containerd's message.

/// The meaning of a failed pull, and its fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pull {
    pub why: &'static str,
    pub fix: &'static str,
    /// Whether the way to the registry is at fault.
    pub is_about_network: bool,
}

/// Why ECR, which can be reached, returns nothing.
pub const REFUSED_BY_ECR: Pull = Pull {
    why: "the registry refuses the node role",
    fix: "Attach AmazonEC2ContainerRegistryPullOnly to the node role (AmazonEC2ContainerRegistryReadOnly works too). \
          In a private subnet also check the policy of the ECR endpoints. Neither disrupts running nodes.",
    is_about_network: false,
};

/// Nobody got a login, for which ECR answers 401: AWS did not give one or was not reached, or the program that asks
/// for it failed.
/// Sources: kubernetes v1.36.3 pkg/credentialprovider/plugin/plugin.go: a provider that fails gives none, and the pull
/// goes on without; awsdocs/amazon-eks-user-guide#110, where only the endpoint for ecr.api was missing;
/// kubernetes/cloud-provider-aws#596, where the provider of the image did not know the kubelet's API version.
pub const NO_LOGIN_TO_ECR: Pull = Pull {
    why: "the node has no login to ECR",
    fix: "Read the kubelet's log for \"credential provider\": the ecr-credential-provider of the image may fail. \
          Attach AmazonEC2ContainerRegistryPullOnly (or ReadOnly) to the node role. In a private subnet add a NAT \
          gateway or a VPC endpoint for ecr.api, in addition to the one for ecr.dkr.",
    is_about_network: false,
};

/// The kubelet's log shows that the program fails which asks ECR for the login. The machine image brings it, and its
/// exit code does not tell why it fails.
/// Sources: kubernetes v1.36.3 pkg/credentialprovider/plugin/plugin.go `runPlugin`;
/// kubernetes/cloud-provider-aws#596, bottlerocket-os/bottlerocket#3069.
pub const PROVIDER_FAILS: &str = "Read the error behind the exit code. If it names an API version, use an AMI whose \
    ecr-credential-provider is as new as its kubelet. If AWS denies the call, attach \
    AmazonEC2ContainerRegistryPullOnly to the node role. If nothing answers, give the subnet a NAT gateway or a VPC \
    endpoint for ecr.api. Then replace the node.";

/// The region's images of EKS are another account's.
const OF_ANOTHER_ACCOUNT: Pull = Pull {
    why: "the images of EKS are in another account's registry in this region",
    fix: "Use the registry that AWS lists for this region (EKS user guide, \"View Amazon container image registries \
          for Amazon EKS add-ons\"). The add-on and eksctl use the right one. A Helm chart needs image.account and \
          image.region, or init.image.account and the like.",
    is_about_network: false,
};

/// The account whose registry has the images of EKS in most regions, and the regions where it has none.
/// Source: EKS user guide, "View Amazon container image registries for Amazon EKS add-ons" (2026-09).
const ACCOUNT_OF_MOST: &str = "602401143452.dkr.ecr.";
const NOT_ITS_REGIONS: [&str; 18] = [
    "af-south-1",
    "ap-east-1",
    "ap-south-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ca-west-1",
    "cn-north-1",
    "cn-northwest-1",
    "eu-central-2",
    "eu-south-1",
    "eu-south-2",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-iso-east-1",
];

/// Why another registry returns nothing: no role of AWS counts there, and a registry answers the same for a private
/// image as for one that does not exist.
pub const REFUSED_ELSEWHERE: Pull = Pull {
    why: "its registry requires a login that the node does not have, or has no such image",
    fix: "Correct the name of the image, or give its pods a login to that registry. The login is a Secret of type \
          kubernetes.io/dockerconfigjson in their namespace, and imagePullSecrets of the pod template or of the \
          ServiceAccount must name it. The node role counts in ECR only.",
    is_about_network: false,
};

/// The refusal if nothing names the registry.
const REFUSED: Pull = Pull {
    why: "its registry refuses the login",
    fix: "In ECR, attach AmazonEC2ContainerRegistryPullOnly to the node role. For another registry, name a Secret with \
          a login to it in imagePullSecrets.",
    is_about_network: false,
};

/// The registry answers that the request has no login, if nothing names the registry.
pub const WITHOUT_LOGIN: Pull = Pull { why: "the pull has no login that its registry accepts", ..REFUSED };

/// Registries keep layers in S3 and redirect there with a signed address. No login counts, and only the policy of the
/// VPC's endpoint may refuse it.
/// Source: <https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html>, "Minimum Amazon S3 bucket
/// permissions"; registry.k8s.io cmd/archeio/docs/request-handling.md.
const REFUSED_BY_S3: Pull = Pull {
    why: "S3 refuses a layer",
    fix: "Allow the bucket that the address names (for ECR: prod-REGION-starport-layer-bucket) in the policy of the \
          VPC's endpoint for S3, because the registry redirects there for the layers. This disrupts nothing.",
    is_about_network: false,
};

/// The volume for images and pods is too small, or something on the node fills it.
pub const DISK_FULL: Pull = Pull {
    why: "the disk of the node is full",
    fix: "Give the nodes a larger root volume (EC2NodeClass spec.blockDeviceMappings), on Bottlerocket a larger data \
          volume (/dev/xvdb). If the volume is large already, see what fills it. Only new nodes get the change.",
    is_about_network: false,
};

/// No message shows the reason.
const UNEXPLAINED: Pull = Pull {
    why: "its image cannot be pulled",
    fix: "Check that the image exists, that the node role may pull from ECR (AmazonEC2ContainerRegistryPullOnly), and \
          that the subnet has a way to ECR and S3. None of this disrupts running nodes.",
    is_about_network: false,
};

/// The same for a registry that asks no role of AWS and that no VPC endpoint serves.
const UNEXPLAINED_ELSEWHERE: Pull = Pull {
    fix: "Check that its registry has this image with this tag. Then check the way from the subnet to the registry (a \
          NAT gateway or a proxy), and whether the registry requires a login (imagePullSecrets).",
    ..UNEXPLAINED
};

/// The registry answers that it has no such image.
const MISSING: Pull = Pull {
    why: "this image does not exist in that registry",
    fix: "Correct the image: a tag that exists for the add-on, and the registry account and region that AWS lists for \
          this region.",
    is_about_network: false,
};
const MISSING_ELSEWHERE: Pull =
    Pull { fix: "Correct the image: use a name and a tag that exist in its registry.", ..MISSING };

/// The registry does not answer.
const UNREACHABLE: Pull = Pull {
    why: "the subnet has no way to the registry",
    fix: "Give the subnet a way to the registry: a NAT gateway, or VPC endpoints for ecr.api, ecr.dkr and S3 that \
          accept the nodes' security group. This does not disrupt running nodes.",
    is_about_network: true,
};
const UNREACHABLE_ELSEWHERE: Pull = Pull {
    fix: "Give the subnet a way to the registry: a NAT gateway or a proxy, because no VPC endpoint leads there. Or \
          copy the image to ECR. Neither disrupts running nodes.",
    ..UNREACHABLE
};

/// The registry takes the connection, whose packets are small, and the large ones of its certificates do not arrive.
/// Sources: <https://docs.aws.amazon.com/vpc/latest/tgw/transit-gateway-quotas.html> "MTU";
/// bottlerocket-os/bottlerocket#3341.
const CUT_SHORT: Pull = Pull {
    why: "the registry takes the connection, but the TLS handshake does not end",
    fix: "Check the way to the registry for an MTU below the node's 9001 bytes: a transit gateway passes at most 8500, \
          a VPN less. Set a lower MTU in user data, or use VPC endpoints in the VPC of the nodes. Also check for a \
          firewall or a proxy that reads TLS. This does not disrupt running nodes.",
    is_about_network: true,
};

/// An image for FIPS asks the registry by another name, which the private names of a VPC endpoint for ecr.dkr do not
/// include (`*.dkr.ecr.REGION.amazonaws.com`).
/// Source: awslabs/amazon-eks-ami#1984; v20240807 nodeadm/internal/aws/ecr/ecr.go.
const UNREACHABLE_FOR_FIPS: Pull = Pull {
    fix: "Give the subnet a way to the registry's FIPS name (dkr.ecr-fips), such as a NAT gateway: a VPC endpoint \
          for ecr.dkr does not serve that name. Or select an image that is not for FIPS. The first does not disrupt \
          running nodes.",
    ..UNREACHABLE
};

/// No registry serves `localhost/…`: such an image is imported when the machine image is built.
/// Source: awslabs/amazon-eks-ami#2729, #2122.
const OF_MACHINE_IMAGE: &str = "Pin an AMI whose nodes join: this image comes with it, and no registry has it. Then \
                                replace the node, which moves its pods.";

/// A script of the machine image asks ECR for a login and names no region. No registry and no permission is at fault.
/// Source: awslabs/amazon-eks-ami#1629, #1626; v20240202 files/pull-sandbox-image.sh.
const NO_REGION: Pull = Pull {
    why: "a script on the node calls AWS without a region",
    fix: "Pin an AMI whose nodes join (spec.amiSelectorTerms of the node class), because the script belongs to the \
          image. Amazon Linux 2 images of v20240202 have this fault, and later releases do not.",
    is_about_network: false,
};

/// Parts of containerd's and ECR's messages. The first that matches counts.
/// Source: containerd v2.1 core/remotes/docker (resolver.go, authorizer.go, errdefs); ECR's answers as in vpc-cni#529,
/// eks-ami#1034. containerd's words around them ("pull access denied", "authorization failed") tell no more.
const MEANINGS: &[(&[&str], Pull)] = &[
    (&["401 Unauthorized", "no basic auth credentials"], WITHOUT_LOGIN),
    (&["403 Forbidden", "authorization failed", "pull access denied", "not authorized to"], REFUSED),
    (
        &["toomanyrequests", "429 Too Many Requests"],
        Pull {
            why: "the registry limits the rate of pulls",
            fix: "Pull through ECR (a pull-through cache), or wait until the limit has passed.",
            is_about_network: false,
        },
    ),
    (
        &["no match for platform", "exec format error"],
        Pull {
            why: "the image does not exist for this architecture",
            fix: "Use an image for all architectures of your nodes, or limit the NodePool to one that the image has.",
            is_about_network: false,
        },
    ),
    (&["no space left on device"], DISK_FULL),
    (&["You must specify a region"], NO_REGION),
    (&["not found", "manifest unknown", "NotFound", "does not exist"], MISSING),
    (&["TLS handshake timeout"], CUT_SHORT),
    (
        &["i/o timeout", "deadline exceeded", "connection refused", "no such host", "no route to host", "dial tcp"],
        UNREACHABLE,
    ),
];

/// The meaning of a text about a failed pull.
pub fn explain(text: &str) -> Option<Pull> {
    if !["ImagePull", "ErrImage", "InvalidImageName", "failed to pull", "failed pulling image", "get sandbox image"]
        .iter()
        .any(|sign| text.contains(sign))
    {
        return None;
    }
    Some(meaning(text))
}

/// The meaning of a text that is known to be about a pull.
pub fn meaning(text: &str) -> Pull {
    let known = MEANINGS.iter().find(|(parts, _)| parts.iter().any(|part| text.contains(part)));
    let pull = match known.map(|(_, pull)| *pull) {
        Some(REFUSED) if is_of_s3(text) => return REFUSED_BY_S3,
        pull => pull.unwrap_or(UNEXPLAINED),
    };
    // `Back-off pulling image "…"`, `failed to resolve reference "…"`, `get sandbox image "…"`.
    let image = ["image \"", "reference \""].iter().find_map(|name| text.split_once(name)?.1.split('"').next());
    of_image(pull, if is_of_ecr(text) { text } else { image.unwrap_or_default() })
}

/// The meaning for this image, if the text did not name it.
pub fn of_image(pull: Pull, image: &str) -> Pull {
    let is_elsewhere = !image.is_empty() && !is_of_ecr(image);
    match pull {
        UNEXPLAINED | MISSING | UNREACHABLE if image.starts_with("localhost/") => {
            Pull { fix: OF_MACHINE_IMAGE, ..pull }
        }
        REFUSED | WITHOUT_LOGIN if is_of_another_account(image) => OF_ANOTHER_ACCOUNT,
        REFUSED | WITHOUT_LOGIN if is_elsewhere => REFUSED_ELSEWHERE,
        WITHOUT_LOGIN if is_of_ecr(image) => NO_LOGIN_TO_ECR,
        REFUSED if is_of_ecr(image) => REFUSED_BY_ECR,
        UNEXPLAINED if is_elsewhere => UNEXPLAINED_ELSEWHERE,
        MISSING if is_elsewhere => MISSING_ELSEWHERE,
        UNREACHABLE if is_elsewhere => UNREACHABLE_ELSEWHERE,
        UNREACHABLE if image.contains(".dkr.ecr-fips.") => UNREACHABLE_FOR_FIPS,
        other => other,
    }
}

impl Pull {
    /// Whether the message says why.
    pub fn is_explained(self) -> bool {
        self.why != UNEXPLAINED.why
    }
}

/// `111122223333.dkr.ecr.eu-west-1.amazonaws.com`, or dual-stack `111122223333.dkr-ecr.eu-west-1.on.aws`. Anybody may
/// read public.ecr.aws.
/// Source: <https://docs.aws.amazon.com/AmazonECR/latest/userguide/ecr-requests.html>.
fn is_of_ecr(image: &str) -> bool {
    [".dkr.ecr.", ".dkr.ecr-fips.", ".dkr-ecr.", ".dkr-ecr-fips."].iter().any(|part| image.contains(part))
}

fn is_of_another_account(image: &str) -> bool {
    let region = image.split_once(ACCOUNT_OF_MOST).and_then(|(_, rest)| rest.split('.').next());
    region.is_some_and(|region| NOT_ITS_REGIONS.contains(&region))
}

/// `https://BUCKET.s3.REGION.amazonaws.com/…`, or `.s3.dualstack.`.
fn is_of_s3(text: &str) -> bool {
    text.split_once(".s3.").is_some_and(|(_, rest)| rest.contains(".amazonaws.com/"))
}

/// The same without what gRPC and containerd wrap around it, which names the image once more with each layer.
/// Source: containerd v2.1.4 core/unpack, client/pull.go.
pub(crate) fn unwrapped(said: &str) -> String {
    let mut out = said.replace("repository does not exist or may require authorization: ", "");
    // A manifest is asked for by the image's own name; a layer may lie elsewhere.
    let layers =
        ["failed to pull and unpack image \"", "failed to resolve reference \"", "failed to do request: Head \""];
    for layer in layers {
        if let Some(start) = out.find(layer)
            && let Some(end) = out[start + layer.len()..].find("\": ")
        {
            out.replace_range(start..start + layer.len() + end + 3, "");
        }
    }
    if let Some(start) = out.find("rpc error: code = ")
        && let Some(end) = out[start..].find(" desc = ")
    {
        out.replace_range(start..start + end + " desc = ".len(), "");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{
        MISSING, MISSING_ELSEWHERE, NO_LOGIN_TO_ECR, NO_REGION, OF_ANOTHER_ACCOUNT, REFUSED, REFUSED_BY_ECR,
        REFUSED_ELSEWHERE, UNEXPLAINED, UNEXPLAINED_ELSEWHERE, UNREACHABLE, UNREACHABLE_ELSEWHERE,
        UNREACHABLE_FOR_FIPS, WITHOUT_LOGIN, explain, meaning, of_image,
    };

    #[test]
    fn the_registrys_words_tell_permission_from_network_from_a_wrong_tag() {
        let why = |text: &str| explain(text).map(|p| p.why);
        let pull = "ErrImagePull: failed to pull and unpack image \
                    \"602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/pause:3.10\": ";
        assert_eq!(
            why(&format!("{pull}unexpected status from HEAD request: 403 Forbidden")),
            Some("the registry refuses the node role")
        );
        assert_eq!(
            why(&format!("{pull}dial tcp 10.0.3.1:443: i/o timeout")),
            Some("the subnet has no way to the registry")
        );
        assert_eq!(
            why(&format!("{pull}net/http: TLS handshake timeout")),
            Some("the registry takes the connection, but the TLS handshake does not end")
        );
        assert_eq!(
            why(&format!(
                "{pull}httpReadSeeker: failed open: unexpected status code \
                 https://prod-eu-west-1-starport-layer-bucket.s3.eu-west-1.amazonaws.com/f00?X-Amz-Signature=…: 403 \
                 Forbidden"
            )),
            Some("S3 refuses a layer")
        );
        assert_eq!(why(&format!("{pull}not found")), Some("this image does not exist in that registry"));
        assert_eq!(why("ImagePullBackOff"), Some("its image cannot be pulled"));
        assert_eq!(why("CrashLoopBackOff: back-off 40s"), None);
    }

    #[test]
    fn the_node_role_is_at_fault_in_ecr_only() {
        let denied = |image: &str| {
            let said = format!(
                "Failed to pull image \"{image}\": failed to pull and unpack image \"{image}\": pull access denied"
            );
            explain(&said)
        };
        let ecr = ["111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn/x:1", "111122223333.dkr-ecr.eu-west-1.on.aws/x:1"];
        assert_eq!(ecr.map(denied), [Some(REFUSED_BY_ECR); 2]);
        let elsewhere = denied("602401143452.dkr.ecr.ap-southeast-4.amazonaws.com/amazon-k8s-cni:v1.19.4");
        assert_eq!(elsewhere, Some(OF_ANOTHER_ACCOUNT));
        assert_eq!(denied("602401143452.dkr.ecr.eu-west-1.amazonaws.com/x:1"), Some(REFUSED_BY_ECR));
        let others = ["docker.io/team/x:1", "team/x:1", "public.ecr.aws/team/x:1", "registry.example.com/x:1"];
        assert_eq!(others.map(denied), [Some(REFUSED_ELSEWHERE); 4]);
        let nameless = explain("ErrImagePull: 403 Forbidden").expect("a pull");
        assert_eq!(
            (nameless, of_image(nameless, ecr[0]), of_image(nameless, "quay.io/x")),
            (REFUSED, REFUSED_BY_ECR, REFUSED_ELSEWHERE)
        );
    }

    #[test]
    fn ecr_answers_401_to_whoever_has_no_login_and_says_nothing_of_the_role() {
        let image = "602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/kube-proxy:v1.27.16";
        let answers = [
            "pulling from host failed with status code [manifests v1.27.16]: 401 Unauthorized",
            "pull access denied, repository does not exist or may require authorization: authorization failed: no \
             basic auth credentials",
        ];
        for answer in answers {
            let said = format!("ErrImagePull: failed to resolve reference \"{image}\": {answer}");
            assert_eq!(explain(&said), Some(NO_LOGIN_TO_ECR), "{said}");
        }
        let nameless = explain("ErrImagePull: 401 Unauthorized").expect("a pull");
        assert_eq!(
            (nameless, of_image(nameless, image), of_image(nameless, "quay.io/x")),
            (WITHOUT_LOGIN, NO_LOGIN_TO_ECR, REFUSED_ELSEWHERE)
        );
    }

    #[test]
    fn advice_about_ecr_is_for_images_in_ecr() {
        let errors = [
            ("Back-off pulling image \"IMAGE\"", UNEXPLAINED, UNEXPLAINED_ELSEWHERE),
            ("failed to resolve reference \"IMAGE\": IMAGE: not found", MISSING, MISSING_ELSEWHERE),
            (
                "failed to resolve reference \"IMAGE\": dial tcp 10.0.3.1:443: i/o timeout",
                UNREACHABLE,
                UNREACHABLE_ELSEWHERE,
            ),
        ];
        for (error, in_ecr, elsewhere) in errors {
            let of = |image: &str| explain(&format!("ImagePullBackOff: {}", error.replace("IMAGE", image)));
            assert_eq!(of("602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/pause:3.10"), Some(in_ecr));
            assert_eq!(of("nvcr.io/nvidia/driver:550.54.14-amzn2"), Some(elsewhere));
            assert!(!elsewhere.fix.contains("ecr.") && in_ecr.fix != elsewhere.fix);
            assert_eq!(in_ecr.why, elsewhere.why);
        }
        let fips =
            "failed to pull image: 013241004608.dkr.ecr-fips.us-gov-west-1.amazonaws.com/eks/pause:3.5: i/o timeout";
        assert_eq!(explain(fips), Some(UNREACHABLE_FOR_FIPS));
        assert_eq!(explain("ImagePullBackOff"), Some(UNEXPLAINED), "no image is named");
        assert!(!UNEXPLAINED_ELSEWHERE.is_explained() && MISSING_ELSEWHERE.is_explained());
    }

    #[test]
    fn a_script_without_a_region_is_no_fault_of_a_registry() {
        let said = "You must specify a region. You can also configure your region by running \"aws configure\".";
        assert_eq!(meaning(said), NO_REGION);
    }
}
