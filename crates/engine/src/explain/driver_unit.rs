//! The unit of the image that sets up the driver of a device failed as the node booted, and nothing starts it again.

use crate::api::Evidence;
use crate::case::Case;
use crate::explain::logged::{driver_unit, excerpt};

/// What the node's log says of the unit.
pub(crate) struct DriverUnit {
    /// A sentence without its end.
    pub says: String,
    pub evidence: Evidence,
}

pub(crate) const FIX: &str = "Select an image in which this unit starts: a newer one, or one with what its last words \
     name. Then replace the node, because nothing starts the unit again. This evicts its pods.";

/// The failed unit of the driver for this resource.
pub(crate) fn failed(case: &Case, resource: &str) -> Option<DriverUnit> {
    const VENDORS: [&str; 4] = ["nvidia", "neuron", "habana", "amd"];
    let vendor = VENDORS.into_iter().find(|vendor| resource.contains(vendor))?;
    let failed = driver_unit(case, vendor)?;
    let step = failed.boot.as_ref()?;
    let words = step.said.first();
    let said = words.map_or_else(String::new, |line| format!(": {}", excerpt(line.text.trim_end_matches('.'))));
    let seen = words.unwrap_or(&failed.last);
    let evidence = Evidence::new(
        seen.file.clone(),
        format!("line {}", seen.line),
        seen.text.clone(),
        format!("logged when {} failed", step.unit),
    );
    let before = step.device.as_ref().map_or_else(String::new, |device| {
        format!(". Before that, {}: {}", device.means, excerpt(device.line.text.trim_end_matches('.')))
    });
    let says = format!("The unit {}, which sets up the driver, failed as the node booted{said}{before}", step.unit);
    Some(DriverUnit { says, evidence })
}
