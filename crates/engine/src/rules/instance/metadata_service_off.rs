//! The instance's metadata service is turned off, so nothing on it can read its user data.

use crate::explain::commands;
use crate::rules::prelude::*;
use readers::userdata::Family;

rule! {
    cause: MetadataServiceOff,
    summary: "The EC2NodeClass turns the instance metadata service off, but every EKS image needs it to boot",
    stages: [Join],
    reads: [NodeClaims, NodeClasses],
    lint: true,
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let class = case.class()?;
    if class.spec.metadata_options.http_endpoint.as_deref() != Some("disabled") {
        return None;
    }
    if let Some(sibling) = case.same_spec_sibling_joined() {
        return Some(Opinion::ruled_out(
            sibling,
            format!("NodeClaim {} joined without the metadata service", sibling.name()),
        ));
    }
    // Another image may need something else.
    let confidence = match class.family() {
        None | Some(Family::Custom) => Confidence::Possible,
        Some(_) => Confidence::Certain,
    };
    let name = class.name();
    Finding::new(
        confidence,
        format!(
            "{} {name} turns the instance metadata service off (httpEndpoint: disabled). The instance never gets its \
             user data, its name or its credentials, so no Node appears.",
            class.kind
        ),
        Evidence::new(
            format!("{}/{name}", class.kind),
            "spec.metadataOptions.httpEndpoint",
            "disabled",
            "user data, the node's name and the role's credentials all come from the metadata service",
        ),
    )
    .blaming(Blame::class(class).field("spec.metadataOptions.httpEndpoint"))
    .fix(format!(
        "Set httpEndpoint of {} {name} to enabled. To keep pods away from the service, leave httpPutResponseHopLimit \
         at 1.",
        class.kind
    ))
    .change("Turn it on (new nodes are then correct)", commands::edit(class))
    .into()
}
