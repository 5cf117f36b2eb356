//! The containerd configuration in a `NodeConfig`, which nodeadm merges over its own.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::traced::Traced;
use super::{Defect, DefectKind, has_expansion};

/// The plugin that pulls images, in the configuration of containerd 1, and in that of containerd 2. nodeadm takes the
/// template of the second where the text names one of its plugins, and else has containerd migrate the first.
// amazon-eks-ami 81fec2e nodeadm/internal/containerd/config.go getConfigTemplateVersion, Version3configInNodeConfig
const CRI: &str = "io.containerd.grpc.v1.cri";
const IMAGES: &str = "io.containerd.cri.v1.images";
const RUNTIME: &str = "io.containerd.cri.v1.runtime";

/// What keeps containerd from serving the kubelet; `configs` in the order in which they are merged.
pub fn check<'a>(configs: impl Iterator<Item = &'a Traced>) -> Vec<Defect> {
    // What a template will put there is not known.
    let configs: Vec<&Traced> = configs.filter(|config| !config.is_empty()).collect();
    if configs.iter().any(|config| has_expansion(config.as_str())) {
        return Vec::new();
    }
    let (mut defects, mut roots) = (Vec::new(), Vec::new());
    for config in &configs {
        match DeTable::parse(config.as_str()) {
            Ok(root) => roots.push((*config, root)),
            // The same file: combineContainerdConfigs.
            Err(error) => {
                let span = error.span().unwrap_or_else(|| config.len()..config.len());
                let message = format!(
                    "nodeadm merges this into containerd's configuration, and it is no TOML: {}",
                    error.message().lines().next().unwrap_or_default()
                );
                let span = config.span_of(span);
                defects.push(Defect { kind: DefectKind::ContainerdConfigUnreadable, span, message });
            }
        }
    }
    let newer = configs.iter().any(|config| config.as_str().contains(IMAGES) || config.as_str().contains(RUNTIME));
    let of_plugin = |root: &Spanned<DeTable<'_>>, key: &str| {
        let plugins = root.get_ref().get("plugins")?.get_ref().get(if newer { IMAGES } else { CRI })?;
        let value = plugins.get_ref().get("registry")?.get_ref().get(key)?;
        let said = match value.get_ref() {
            DeValue::String(text) => !text.is_empty(),
            DeValue::Table(entries) => !entries.is_empty(),
            _ => return None,
        };
        Some((said, value.span()))
    };
    let last = |key: &str| roots.iter().rev().find_map(|(config, root)| Some((*config, of_plugin(root, key)?)));
    // nodeadm's templates set config_path; containerd 1.7.30 pkg/cri/config/config.go ValidatePluginConfig, 2.1.4
    // internal/cri/config/config.go ValidateImageConfig
    let takes_files = last("config_path").is_none_or(|(_, (said, _))| said);
    if let Some((config, (true, span))) = last("mirrors").filter(|_| takes_files) {
        let message = "containerd does not load its CRI plugin, which the kubelet needs: `mirrors` cannot be set when \
                       `config_path` is provided, and nodeadm provides it; write \
                       /etc/containerd/certs.d/REGISTRY/hosts.toml for each registry instead";
        let (kind, message) = (DefectKind::ContainerdConfigRefused, message.to_owned());
        defects.push(Defect { kind, span: config.span_of(span), message });
    }
    defects
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(configs: &[&str]) -> Vec<DefectKind> {
        let configs: Vec<Traced> = configs.iter().map(|config| Traced::written_at(config, 0)).collect();
        check(configs.iter()).into_iter().map(|defect| defect.kind).collect()
    }

    const OLD: &str =
        "[plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors.\"docker.io\"]\nendpoint = [\"https://m\"]\n";
    const NEW: &str =
        "[plugins.'io.containerd.cri.v1.images'.registry.mirrors.'docker.io']\nendpoint = ['https://m']\n";

    #[test]
    fn mirrors_beside_the_files_of_nodeadm_are_refused() {
        assert_eq!(found(&[OLD]), [DefectKind::ContainerdConfigRefused]);
        assert_eq!(found(&[NEW]), [DefectKind::ContainerdConfigRefused]);
        assert_eq!(found(&["", OLD, "[grpc]\nmax_recv_message_size = 1\n"]), [DefectKind::ContainerdConfigRefused]);
    }

    #[test]
    fn mirrors_that_nothing_reads_or_without_files_are_not() {
        let off = "[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"\"\n";
        assert_eq!(found(&[OLD, off]), []);
        // containerd 2 does not look there once a plugin of its own is named.
        assert_eq!(found(&[OLD, "[plugins.'io.containerd.cri.v1.runtime']\nenable_selinux = true\n"]), []);
        assert_eq!(found(&["[plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors]\n"]), []);
        assert_eq!(found(&[&OLD.replace("https://m", "{{ mirror }}")]), []);
    }

    #[test]
    fn what_is_no_toml_is_refused() {
        assert_eq!(found(&["[plugins\nx = 1\n"]), [DefectKind::ContainerdConfigUnreadable]);
        assert_eq!(found(&["[debug]\nlevel = \"debug\"\n"]), []);
    }
}
