//! Answers in one shape, whoever gave them.

pub mod nodewhy;
pub mod reader;

use serde::{Deserialize, Serialize};

/// What is said of one machine, NodePool or node class that does not work. Nothing is said of what does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// Every name that it goes by, as `NodeClaim/general-7xk2p` and `Node/ip-10-0-1-2.ec2.internal`.
    pub names: Vec<String>,
    /// The cause, in words.
    pub cause: String,
    /// What to do, in words.
    pub fix: String,
    /// The object to change, as `EC2NodeClass/default`; `none` where nothing in the cluster is to be changed.
    pub object: String,
    /// Whether it is said to be certain.
    pub certain: bool,
    /// Other causes that are thought possible, the likeliest first.
    pub suspects: Vec<String>,
    /// Causes that are said to be excluded, by the names of docs/causes.
    pub excluded: Vec<String>,
}
