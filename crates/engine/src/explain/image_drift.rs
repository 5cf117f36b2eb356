//! Machines that Karpenter replaces because of another image, and their replacement that does not start.

use crate::api::Evidence;
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::cluster_state::memo::Memo;
use crate::explain::launch_error;
use crate::facts::machine_image;
use crate::objects::{Condition, NodeClaim, NodeClass};
use std::sync::Arc;

/// Launch errors that are about the image.
/// Source: karpenter-provider-aws v1.14.1 pkg/errors/errors.go; EC2 error codes in the text of older versions.
const IMAGE_REASONS: [&str; 3] = ["InvalidAMIID", "AMINotFound", "AMIAuthorizationFailure"];
const IMAGE_TEXTS: [&str; 3] = ["InvalidAMIID", "AMI ID", "image ID"];

/// Whether a machine may be of this architecture.
pub(crate) fn is_of(claim: &NodeClaim, arch: Option<&str>) -> bool {
    arch.is_none_or(|arch| claim.fixed("kubernetes.io/arch").is_none_or(|own| own == arch))
}

/// The machines of the class that joined and that Karpenter will replace.
struct Drifted {
    first: Option<String>,
    count: usize,
}

fn drifted(case: &Case, class: &NodeClass, arch: Option<&str>) -> Arc<Drifted> {
    static DRIFTED: Memo<Drifted> = Memo::new("machines that Karpenter replaces for another image");
    case.cluster.once(&DRIFTED, &format!("{}/{} {}", class.kind, class.name(), arch.unwrap_or_default()), || {
        let mut drifted =
            case.image_drifted_siblings().filter(|claim| is_of(claim, arch) && !claim.status.image_id.is_empty());
        let first = drifted.next().map(|claim| claim.name().to_owned());
        Drifted { count: usize::from(first.is_some()) + drifted.count(), first }
    })
}

/// A machine with a new image that takes the place of one with an old image, and does not start.
pub(crate) struct Replacement<'w> {
    /// One of the machines that Karpenter will replace.
    pub old: &'w NodeClaim,
    /// How many they are.
    pub drifted: usize,
    pub new: &'w str,
    pub launched: &'w Condition,
    pub fate: Replaced,
}

/// What happens to a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// EC2 does not launch it, and says that the image is the reason.
    ImageRefused,
    /// EC2 does not launch it, and Karpenter does not pass on the reason.
    Refused,
    /// It was launched and has not joined.
    NeverJoins,
}

/// How many machines of the class joined with this image.
pub(crate) fn joined_with(case: &Case, image: &str) -> u32 {
    case.class_members().map_or(0, |class_members| class_members.joined_with("image", image))
}

/// The image that new machines get: this one, if the class still selects it.
pub(crate) fn selected(class: &NodeClass, image: &str) -> Evidence {
    let object = format!("{}/{}", class.kind, class.name());
    let amis = &class.status.amis;
    if amis.is_empty() || amis.iter().any(|ami| ami.id == image) {
        return Evidence::new(object, "status.amis", named(class, image), "new nodes get the first entry that fits");
    }
    let others: Vec<String> = amis.iter().map(|ami| named(class, &ami.id)).collect();
    let because = format!("{image} is not among them any more, so new nodes get another image");
    Evidence::new(object, "status.amis", others.join(", "), because)
}

/// The image by its id, and by its name if the class lists it.
pub(crate) fn named(class: &NodeClass, image: &str) -> String {
    let listed = class.status.amis.iter().find(|ami| ami.id == image);
    listed.map_or_else(|| image.to_owned(), |ami| format!("{image} ({})", ami.name))
}

/// `Err` is the answer where the machine is no such replacement.
pub(crate) fn replacement<'w>(
    case: &Case<'w>,
    claim: &'w NodeClaim,
    class: &'w NodeClass,
) -> Result<Replacement<'w>, Option<Opinion>> {
    let arch = claim.fixed("kubernetes.io/arch");
    let drifted = drifted(case, class, arch);
    let Some(old) = drifted.first.as_deref().and_then(|name| case.cluster.claim(name)) else {
        return Err(None);
    };
    let Some(launched) = claim.condition("Launched") else { return Err(None) };
    // The replacement's image: its own once launched, else the newest that the class selects, which Karpenter takes
    // first.
    let Some(new) = machine_image::of(case) else { return Err(None) };
    if let Some(joined) = case.sibling_joined_with("image", new) {
        return Err(Some(Opinion::ruled_out(
            joined,
            format!("NodeClaim {} has joined with the image {new}", joined.name()),
        )));
    }
    let refused = !launched.is_true()
        && (IMAGE_REASONS.contains(&launched.reason.as_str())
            || IMAGE_TEXTS.iter().any(|t| launched.message.contains(t))
            || launched.message.contains(new));
    let fate = if refused {
        Replaced::ImageRefused
    } else if launched.is_true() {
        Replaced::NeverJoins
    } else if launched.reason == "LaunchFailed"
        && launch_error::named(&launched.message).is_none()
        && class.spec.ami_selector_terms.iter().all(|term| term.alias.is_none())
    {
        Replaced::Refused
    } else {
        // What is known to be something else is not the image's, and Amazon names an image once it is available.
        return Err(None);
    };
    Ok(Replacement { old, drifted: drifted.count, new, launched, fate })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn an_image_that_the_class_does_not_select_any_more_is_not_called_selected() {
        let class = |amis: Value| -> NodeClass {
            let class = json!({"kind": "EC2NodeClass", "metadata": {"name": "default"}, "status": {"amis": amis}});
            serde_json::from_value(class).unwrap()
        };
        let new = json!([{"id": "ami-0b", "name": "new"}]);
        for (amis, observed, is_selected) in [
            (json!([{"id": "ami-0a", "name": "old"}]), "ami-0a (old)", true),
            (json!([]), "ami-0a", true),
            (new, "ami-0b (new)", false),
        ] {
            let evidence = selected(&class(amis), "ami-0a");
            assert_eq!(evidence.observed, observed);
            assert_eq!(evidence.because == "new nodes get the first entry that fits", is_selected);
        }
    }
}
