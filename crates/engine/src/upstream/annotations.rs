//! The annotations that rules read, each where its writer is cited. What others write into annotations does not leave
//! the cluster.

use super::{cordons, karpenter, vpc_cni};
use crate::api::PAUSE_ANNOTATION;
use crate::objects::ROLE_ARN;

/// In addition, nodewhy reads the annotation that the VPC CNI's setting `ENI_CONFIG_ANNOTATION_DEF` names.
pub const READ: [&str; 12] = [
    karpenter::CLASS_HASH,
    karpenter::CLASS_HASH_VERSION,
    karpenter::POOL_HASH,
    karpenter::POOL_HASH_VERSION,
    karpenter::DO_NOT_DISRUPT,
    karpenter::DO_NOT_REPAIR,
    karpenter::REBOOT_GRACE_PERIOD,
    karpenter::TERMINATION_TIMESTAMP,
    cordons::CORDONED_BEFORE,
    ROLE_ARN,
    vpc_cni::ENI_CONFIG,
    PAUSE_ANNOTATION,
];
