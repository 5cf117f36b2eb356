//! The image of a machine.

use crate::case::Case;
use crate::objects::Ami;

/// The image of the machine: its own, otherwise the first of the class that runs on its architecture.
pub fn of<'w>(case: &Case<'w>) -> Option<&'w str> {
    let class = case.class()?;
    let arch = case.claim.and_then(|c| c.fixed("kubernetes.io/arch"));
    let own = case.claim.map(|c| c.status.image_id.as_str()).filter(|id| !id.is_empty());
    own.or_else(|| class.status.amis.iter().find(|ami| runs(ami, arch)).map(|ami| ami.id.as_str()))
}

/// Whether machines of this architecture can run the image, as far as the class says.
pub(crate) fn runs(ami: &Ami, arch: Option<&str>) -> bool {
    let wanted = ami.requirements.iter().find(|r| r.key == "kubernetes.io/arch" && r.operator == "In");
    wanted.is_none_or(|r| arch.is_none_or(|own| r.values.iter().any(|v| v == own)))
}
