//! Why an image cannot be pulled, as containerd says it.

/// What a failed pull means, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pull {
    pub why: &'static str,
    pub fix: &'static str,
    /// Whether the way to the registry is at fault.
    pub is_about_network: bool,
}

/// Why a registry that can be reached gives nothing.
pub const REFUSED: Pull = Pull {
    why: "the registry refuses the node role",
    fix: "Attach AmazonEC2ContainerRegistryPullOnly to the node role (AmazonEC2ContainerRegistryReadOnly does too); in a private subnet also check the policy of the ECR endpoints.",
    is_about_network: false,
};

/// Nothing says why.
pub const UNEXPLAINED: Pull = Pull {
    why: "its image cannot be pulled",
    fix: "Let the node role pull from ECR (AmazonEC2ContainerRegistryPullOnly), give the subnet a way to ECR and S3, and check that the image exists.",
    is_about_network: false,
};

/// Parts of containerd's and ECR's messages. The first that fits is meant.
/// Source: containerd v2.1 core/remotes/docker (resolver.go, authorizer.go, errdefs); ECR's answers as in vpc-cni#529,
/// eks-ami#1034.
const MEANINGS: &[(&[&str], Pull)] = &[
    (
        &[
            "403 Forbidden",
            "401 Unauthorized",
            "no basic auth credentials",
            "authorization failed",
            "pull access denied",
            "not authorized to",
        ],
        REFUSED,
    ),
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
            fix: "Use an image for all architectures of the Nodes, or keep the NodePool to one that the image has.",
            is_about_network: false,
        },
    ),
    (
        &["no space left on device"],
        Pull {
            why: "the disk of the Node is full",
            fix: "Give the machines a larger root volume (EC2NodeClass spec.blockDeviceMappings).",
            is_about_network: false,
        },
    ),
    (
        &["not found", "manifest unknown", "NotFound", "does not exist"],
        Pull {
            why: "this image does not exist in that registry",
            fix: "Correct the image: a tag that exists for the add-on, and the registry account and region that AWS lists for this region.",
            is_about_network: false,
        },
    ),
    (
        &[
            "i/o timeout",
            "deadline exceeded",
            "connection refused",
            "no such host",
            "TLS handshake timeout",
            "no route to host",
            "dial tcp",
        ],
        Pull {
            why: "the registry cannot be reached from the subnet",
            fix: "Give the subnet a way to the registry: a NAT gateway, or VPC endpoints for ecr.api, ecr.dkr and S3 that admit the Node's security group.",
            is_about_network: true,
        },
    ),
];

/// Where a text tells of a failed pull, what it means.
pub fn explain(text: &str) -> Option<Pull> {
    if !["ImagePull", "ErrImage", "InvalidImageName", "failed to pull", "get sandbox image"]
        .iter()
        .any(|sign| text.contains(sign))
    {
        return None;
    }
    let known = MEANINGS.iter().find(|(parts, _)| parts.iter().any(|part| text.contains(part)));
    Some(known.map_or(UNEXPLAINED, |(_, pull)| *pull))
}

/// The same without what gRPC and containerd wrap around it, which names the image once more with each layer.
/// Source: containerd v2.1.4 core/unpack, client/pull.go.
pub(crate) fn unwrapped(said: &str) -> String {
    let mut out = said.replace("repository does not exist or may require authorization: ", "");
    for layer in ["failed to pull and unpack image \"", "failed to resolve reference \""] {
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
    use super::explain;

    #[test]
    fn the_registrys_words_tell_permission_from_network_from_a_wrong_tag() {
        let why = |text: &str| explain(text).map(|p| p.why);
        let pull = "ErrImagePull: failed to pull and unpack image \"602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/pause:3.10\": ";
        assert_eq!(
            why(&format!("{pull}unexpected status from HEAD request: 403 Forbidden")),
            Some("the registry refuses the node role")
        );
        assert_eq!(
            why(&format!("{pull}dial tcp 10.0.3.1:443: i/o timeout")),
            Some("the registry cannot be reached from the subnet")
        );
        assert_eq!(why(&format!("{pull}not found")), Some("this image does not exist in that registry"));
        assert_eq!(why("ImagePullBackOff"), Some("its image cannot be pulled"));
        assert_eq!(why("CrashLoopBackOff: back-off 40s"), None);
    }
}
