//! What the aws-auth rules ask first: which role the machine has, and whether that role is known to work.

use crate::api::Stage;
use crate::case::Case;
use crate::finding::Opinion;
use crate::world::AwsAuthFacts;

/// The machine's node role, and aws-auth as it stands.
pub struct Question<'w> {
    pub role: &'w str,
    pub auth: &'w AwsAuthFacts,
}

/// `Err` is the rule's answer where the question does not arise.
pub fn ask<'w>(case: &Case<'w>) -> Result<Question<'w>, Opinion> {
    if case.stage() != Stage::Join {
        return Err(Opinion::Silent);
    }
    let (Some(class), Some(auth)) = (case.class(), case.world.aws_auth()) else { return Err(Opinion::Silent) };
    // With spec.instanceProfile alone the role's name is IAM's secret.
    let Some(role) = class.spec.role.as_deref() else { return Err(Opinion::Silent) };
    if let Some(proof) = works(case, role) {
        return Err(Opinion::RuledOut(format!("the node role {role} is let in: {proof}")));
    }
    Ok(Question { role: role.rsplit('/').next().unwrap_or(role), auth })
}

/// What shows that kubelets with this role get in, by aws-auth or by an access entry.
fn works(case: &Case, role: &str) -> Option<String> {
    let same_role = case.world.classes().filter(|c| c.class.spec.role.as_deref() == Some(role));
    let mut claims = same_role.flat_map(|c| case.world.claims_of_class(&c.class.kind, c.class.name()));
    // A removed mapping also ends running kubelets within minutes, so a Ready Node of the role speaks for now.
    let joined = claims.find(|c| case.world.nodes_with_provider_id(&c.status.provider_id).any(crate::foreign::Node::is_ready));
    if let Some(claim) = joined {
        return Some(format!("Node {} of NodeClaim {} has it and is Ready", claim.status.node_name, claim.name()));
    }
    let csr = case.world.csrs().find(|c| c.role_name() == Some(role) && c.is_approved())?;
    Some(format!("CertificateSigningRequest {} was made with it", csr.metadata.name))
}
