//! How long a machine may wait at each stage.

use crate::api::Stage;
use chrono::TimeDelta;

/// How long a machine may wait at a stage before it counts as stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Created, but no instance.
    pub launch: TimeDelta,
    /// Instance launched, but no Node. Counted from the launch, not from the claim's creation.
    pub join: TimeDelta,
    /// Node there, but not registered by Karpenter.
    pub register: TimeDelta,
    /// Registered, but not initialized.
    pub initialize: TimeDelta,
    /// The same where device plugins or drivers are awaited.
    pub devices: TimeDelta,
    /// Ready before, not Ready or of no use now; twice that for pressure and missing addresses.
    pub ready: TimeDelta,
    /// Deleted, and no step further since.
    pub terminate: TimeDelta,
    /// The least wait at any stage: enough where the cause is proven, or where an older machine of the same class is
    /// stuck there.
    pub proven: TimeDelta,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            launch: TimeDelta::minutes(2),
            join: TimeDelta::minutes(5),
            register: TimeDelta::minutes(2),
            initialize: TimeDelta::minutes(5),
            devices: TimeDelta::minutes(10),
            ready: TimeDelta::minutes(5),
            terminate: TimeDelta::hours(1),
            proven: TimeDelta::minutes(2),
        }
    }
}

/// The least that any machine is given at a stage before it counts as stuck.
pub fn least_patience(stage: Stage, t: &Thresholds) -> TimeDelta {
    match stage {
        Stage::Launch => t.launch,
        Stage::Join => t.join,
        Stage::Initialize => t.initialize.min(t.devices),
        // Those that Karpenter refused are stuck at once, and so is broken hardware.
        Stage::Register | Stage::Ready => TimeDelta::zero(),
        Stage::Terminate => TimeDelta::MAX,
    }
}
