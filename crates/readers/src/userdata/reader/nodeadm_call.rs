//! A call of nodeadm that it does not follow: without a command, or with a path where it takes a URI.

use super::super::shell::{Command, Runs, Word};
use super::super::{DefectKind, Family};
use super::Reader;

/// The commands of nodeadm, and those that the one for hybrid nodes has besides.
// amazon-eks-ami 81fec2e nodeadm/cmd/nodeadm/main.go; eks-hybrid v1.0.5 cmd/nodeadm/main.go
const COMMANDS: [&str; 7] = ["init", "config", "debug", "install", "uninstall", "upgrade", "version"];

/// What only prints something.
const PRINTS: [&str; 4] = ["--version", "--help", "-h", "help"];

/// The options that take a source of configuration.
// amazon-eks-ami 81fec2e nodeadm/internal/cli/options.go `RegisterFlagConfigSources`
const SOURCES: [&str; 3] = ["-c", "-config-source", "--config-source"];

impl Reader<'_> {
    pub(super) fn nodeadm_call(&mut self, command: &Command, name: &Word, arguments: &[Word]) {
        let is_known = command.runs == Runs::Always && arguments.iter().all(|word| word.exact);
        if !is_known || !matches!(self.data.family, Family::Custom | Family::Al2023) {
            return;
        }
        let words: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
        if words.iter().any(|word| PRINTS.contains(word)) {
            return;
        }
        // A first word that is no option may be a command of a version to come.
        let begins_with_option = words.first().is_none_or(|first| first.starts_with('-'));
        if begins_with_option && !words.iter().any(|word| COMMANDS.contains(word)) {
            let message = "nodeadm gets no command here, prints its help and ends with an error: the call that joins \
                           the node is `nodeadm init --config-source file:///FILE`";
            return self.defect(DefectKind::NodeadmCallRefused, name.text.span(), message);
        }
        let sources = arguments
            .iter()
            .zip(arguments.iter().skip(1))
            .filter_map(|(option, value)| SOURCES.contains(&option.text.as_str()).then_some(value));
        if let Some(path) = sources.into_iter().find(|value| value.text.as_str().starts_with('/')) {
            let message = format!(
                "nodeadm refuses this source of its configuration, which has no scheme: write file://{}",
                path.text.as_str()
            );
            self.defect(DefectKind::NodeadmCallRefused, path.text.span(), message);
        }
    }

    /// The services of an image of EKS find a NodeConfig in the user data without any call.
    // amazon-eks-ami 81fec2e templates/al2023/runtime/rootfs/etc/systemd/system/nodeadm-config.service
    pub(super) fn forget_needless_calls(&mut self) {
        if self.data.family == Family::Custom && !self.data.node_configs.is_empty() {
            self.data.defects.retain(|defect| defect.kind != DefectKind::NodeadmCallRefused);
        }
    }
}
