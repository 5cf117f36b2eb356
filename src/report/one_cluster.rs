//! One of several clusters that are reported together.

use engine::cluster_state::ClusterState;
use engine::diagnose::survey::Survey;
use readers::source_text::shell_word;

/// The result for one of the clusters.
#[derive(Debug)]
pub struct OneCluster {
    /// Its context in the kubeconfig.
    pub name: String,
    /// The verdicts, or the reason why the cluster could not be read.
    pub seen: Result<JudgedCluster, String>,
}

/// A cluster that was read and judged.
#[derive(Debug)]
pub struct JudgedCluster {
    pub survey: Survey,
    /// Used for the page only. Empty for other formats.
    pub state: ClusterState,
    /// One sentence for each reason why inputs could not be read.
    pub notes: Vec<String>,
}

/// The command that points pasted commands to this cluster.
pub fn use_context(name: &str) -> String {
    format!("kubectl config use-context {}", shell_word(name))
}
