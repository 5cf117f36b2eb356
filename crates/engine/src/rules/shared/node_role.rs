//! Which role the machines of a node class have.

use crate::case::Case;
use crate::objects::{InstanceProfile, NodeClass};

/// The name of the role that the machines have: as the class names it, else as IAM says of the class's profile.
pub(crate) fn name<'w>(case: &Case<'w>) -> Option<&'w str> {
    let of_profile = || profile(case).and_then(|profile| profile.role_arn.as_deref());
    let role = case.class()?.spec.role.as_deref().or_else(of_profile)?;
    role.rsplit('/').next()
}

/// The instance profile of the machines, as IAM has it.
pub(crate) fn profile<'w>(case: &Case<'w>) -> Option<&'w InstanceProfile> {
    let name = case.class()?.instance_profile()?;
    case.cluster.aws().instance_profile(name).known().map(|(profile, _)| profile)
}

/// What the class says of who its machines are.
pub(crate) fn identity(class: &NodeClass) -> Option<&str> {
    class.spec.role.as_deref().or(class.spec.instance_profile.as_deref())
}
