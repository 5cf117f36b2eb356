//! Images that a class of the files selects by the names under which EKS publishes them.

use crate::objects::{Ami, AmiTerm, NodeClass};
use readers::userdata::image_name;

/// Gives a class without status the image that its names tell of, for the rules that judge an image by its name. The
/// names of all terms must tell the same.
pub fn suppose(class: &mut NodeClass) {
    if !class.status.amis.is_empty() {
        return;
    }
    let terms = &class.spec.ami_selector_terms;
    let Some(names) = terms.iter().map(published).collect::<Option<Vec<&str>>>() else { return };
    let Some(first) = names.first() else { return };
    let family = image_name::family(first);
    if family.is_some() && names.iter().all(|name| image_name::family(name) == family) {
        class.status.amis = vec![Ami { id: (*first).to_owned(), name: (*first).to_owned(), ..Ami::default() }];
    }
}

/// The name in a term that selects images of Amazon. Images of one's own may be called like them.
// karpenter-provider-aws v1.15.0 pkg/providers/amifamily/types.go, ami.go: without an owner, self and amazon
fn published(term: &AmiTerm) -> Option<&str> {
    let is_of_amazon = term.owner.as_ref().is_none_or(|owner| owner == "amazon");
    term.name.as_deref().filter(|_| is_of_amazon)
}
