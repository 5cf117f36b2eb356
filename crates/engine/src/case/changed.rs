//! What was changed since the launch of the machine, so that its settings at the launch are unknown.

use super::{Case, launched_with, timestamp};
use crate::api::{Blame, Confidence, Stage, Unknown, Witness};
use crate::case::finding::Finding;
use crate::cluster_state::at_launch::AtLaunch;
use crate::cluster_state::{ClassFacts, ClusterState};
use crate::objects::{Meta, NodeClaim, NodePool};
use crate::upstream::text_hash::HashKey;

impl Case<'_> {
    /// A key for the versions of the node class and the NodePool that this node was launched with. Cases with the same
    /// key see the same texts.
    pub fn texts(&self) -> String {
        fn text<T>(at_launch: Option<AtLaunch<T>>, hash: impl Fn() -> HashKey) -> String {
            match at_launch {
                None | Some(AtLaunch::Present(_)) => String::new(),
                Some(AtLaunch::Earlier(_)) => hash().to_string(),
                Some(AtLaunch::Lost(_)) => "lost".to_owned(),
            }
        }
        let meta = self.claim.map(|claim| &claim.metadata).or_else(|| self.node.map(|node| &node.metadata));
        let hash = |of: fn(&Meta) -> HashKey| meta.map(of).unwrap_or_default();
        let class = text(self.class, || hash(HashKey::of_class));
        let pool = text(self.pool, || hash(HashKey::of_pool));
        format!("{class}/{pool}")
    }

    /// The texts that changed after the launch and are no longer visible, each with a command that may show it.
    pub fn changed_since_launch(&self) -> Vec<Unknown> {
        // What is deleted is held by nothing that a class says.
        if self.stage() == Stage::Terminate {
            return Vec::new();
        }
        let class = self.class.and_then(AtLaunch::lost).map(|facts| &facts.class);
        let class = class.map(|class| {
            let of_instance = self.instance_id().map(|id| {
                format!(
                    "aws ec2 describe-instance-attribute --instance-id {id} --attribute userData --query \
                     UserData.Value --output text | base64 -d"
                )
            });
            let look = || format!("kubectl get {} {} -o yaml", class.kind.to_ascii_lowercase(), class.name());
            let lost = if class.is_ec2() { "user data" } else { "text" };
            self.unknown(
                &format!("{} {}", class.kind, class.name()),
                &class.metadata,
                lost,
                of_instance.unwrap_or_else(look),
            )
        });
        let pool = self.pool.and_then(AtLaunch::lost);
        let pool = pool.map(|pool| {
            let look = match self.claim {
                Some(claim) => format!("kubectl get nodeclaim {} -o yaml", claim.name()),
                None => format!("kubectl get nodepool {} -o yaml", pool.name()),
            };
            self.unknown(&format!("NodePool {}", pool.name()), &pool.metadata, "template", look)
        });
        class.into_iter().chain(pool).collect()
    }

    fn unknown(&self, object: &str, meta: &Meta, lost: &str, command: String) -> Unknown {
        let launched = self.claim.and_then(|claim| claim.true_since("Launched").or(claim.metadata.creation_timestamp));
        let launched = launched.or_else(|| self.node?.metadata.creation_timestamp);
        let changed = meta.last_written().map(|written| written.at).filter(|at| Some(*at) > launched);
        let at = changed.map_or_else(String::new, |at| format!(" ({})", timestamp(at)));
        let question = format!(
            "{object} changed after this node was launched{at}; its earlier {lost} is not visible. What did it say?"
        );
        Unknown { source: Witness::Cluster, question: question.into(), command: command.into() }
    }

    /// Nothing is proven of an object that says something else by now.
    pub(crate) fn within_what_is_known(&self, mut finding: Finding) -> Finding {
        if finding.blame.as_deref().is_some_and(|blame| is_lost(self.pool, self.class, blame)) {
            finding.confidence = finding.confidence.min(Confidence::Likely);
        }
        self.within_known_aws_auth(finding)
    }
}

impl<'w> Case<'w> {
    /// The image that this node was launched from, if its node class selects only others now. The class's hash does not
    /// cover its images, and nothing shows the name of an image that it no longer lists.
    /// Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass.go `AMISelectorTerms`.
    pub(crate) fn former_image(&self) -> Option<&'w str> {
        let (claim, class) = (self.claim?, self.class()?);
        let own = claim.status.image_id.as_str();
        let amis = &class.status.amis;
        let is_gone = !own.is_empty() && !amis.is_empty() && amis.iter().all(|ami| ami.id != own);
        is_gone.then_some(own)
    }
}

/// Whether the NodePool or node class that is blamed was changed since the launch, and what it said is not known.
pub(crate) fn is_forgotten(cluster: &ClusterState, claim: &NodeClaim, blame: &Blame) -> bool {
    let (pool, class) = launched_with(cluster, claim);
    is_lost(pool, class, blame)
}

fn is_lost(pool: Option<AtLaunch<NodePool>>, class: Option<AtLaunch<ClassFacts>>, blame: &Blame) -> bool {
    let class = class.and_then(AtLaunch::lost).map(|facts| &facts.class);
    class.is_some_and(|class| blame.kind == class.kind && blame.name == class.name())
        || pool.and_then(AtLaunch::lost).is_some_and(|pool| blame.kind == "NodePool" && blame.name == pool.name())
}
