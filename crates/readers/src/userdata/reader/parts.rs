//! The parts of user data, as the family and cloud-init take them.

use super::super::{
    Defect, DefectKind, Family, PartKind, bottlerocket, go_values, has_expansion, has_placeholder, ignition, mime,
    nodeconfig, placeholder,
};
use super::{Reader, mentions_kubelet};
use crate::source_text::{OF_USER_DATA, Span};

impl Reader<'_> {
    /// Splits the text into parts as the family does.
    pub(super) fn split(&mut self) {
        let whole = self.whole();
        match self.data.family {
            Family::Bottlerocket => self.part(PartKind::Bottlerocket, whole),
            Family::Windows => self.part(PartKind::PowerShell, whole),
            Family::Al2 | Family::Al2023 if mime::is_archive(self.text) => self.archive(),
            Family::Al2023 if nodeconfig::is_node_config_for_karpenter(self.text) => {
                self.part(PartKind::NodeConfig, whole);
            }
            Family::Al2 | Family::Al2023 => self.part(PartKind::Shell, whole),
            Family::Custom if mime::is_archive(self.text) || mime::is_archive_for_cloud_init(self.text) => {
                self.archive();
            }
            Family::Custom if ignition::is_config(self.text) => self.part(PartKind::Ignition, whole),
            Family::Custom => {
                let kind = self.guess(whole);
                self.part(kind, whole);
                if kind == PartKind::Unknown && placeholder::begins(self.text) {
                    self.unread(whole);
                } else if kind == PartKind::Unknown {
                    self.defect(DefectKind::ReadByNothing, Span::new(0, 0), of_no_program(self.text));
                }
            }
        }
    }

    /// What a text without a media type is, by the way it begins.
    // cloud-init cloudinit/handlers/__init__.py INCLUSION_TYPES_MAP; amazon-eks-ami 81fec2e nodeadm
    // configprovider/mime.go
    fn guess(&self, span: Span) -> PartKind {
        let text = span.of(self.text);
        let begins = text.trim_start();
        if begins.starts_with("#!") {
            PartKind::Shell
        } else if begins.starts_with("<powershell>") || begins.starts_with("<script>") {
            PartKind::PowerShell
        } else if nodeconfig::names_itself_node_config(text) {
            PartKind::NodeConfig
        } else if begins.starts_with("#cloud-config") {
            PartKind::CloudConfig
        } else if bottlerocket::names_itself_settings(text) {
            PartKind::Bottlerocket
        } else {
            PartKind::Unknown
        }
    }

    fn archive(&mut self) {
        let archive = mime::read(self.text);
        let before = self.data.defects.len();
        for entry in archive.entries {
            let kind = match entry.media_type.as_str() {
                _ if entry.encoded => {
                    self.defect(
                        DefectKind::EncodedPart,
                        entry.body,
                        "a transfer encoding hides this part from nodewhy",
                    );
                    self.unread(entry.body);
                    PartKind::Unknown
                }
                "text/x-shellscript" => PartKind::Shell,
                "application/node.eks.aws" => PartKind::NodeConfig,
                "text/cloud-config" => PartKind::CloudConfig,
                // For these two cloud-init looks at how the text begins; nodeadm wants its own type.
                "" | "text/plain" => Some(self.guess(entry.body))
                    .filter(|&kind| kind != PartKind::NodeConfig)
                    .unwrap_or(PartKind::Unknown),
                _ => PartKind::Unknown,
            };
            if kind == PartKind::Unknown && mentions_kubelet(entry.body.of(self.text)) {
                self.unread(entry.body);
            }
            if let Some(swallowed) = entry.swallowed.filter(|_| kind == PartKind::NodeConfig) {
                let message = "this line is read as the header of its MIME part, where nodeadm does not look for a \
                               NodeConfig. An empty line must come before it";
                self.defect(DefectKind::BodyInHeader, swallowed, message);
            }
            if !entry.encoded {
                self.unread_type(&entry.media_type, entry.body, kind);
            }
            self.part(kind, entry.body);
        }
        // A placeholder may hold the parts with their delimiters.
        if archive.unused_boundary.is_some() && has_placeholder(self.text) {
            self.unread(self.whole());
        } else if let Some((span, boundary)) = archive.unused_boundary {
            let (kind, reader) = if self.only_nodeadm_joins() {
                (DefectKind::NodeConfigUnreachable, "nodeadm finds no NodeConfig")
            } else {
                (DefectKind::ReadByNothing, "no program reads any of this text")
            };
            let message = format!("{reader}: no line is `--{boundary}`, so the archive has no parts");
            self.defect(kind, span, message);
        }
        if let Some((span, message)) = archive.fault {
            let (kind, reader) = if self.only_nodeadm_joins() {
                (
                    DefectKind::NodeConfigUnreachable,
                    "nodeadm finds no NodeConfig, since it refuses the whole MIME archive",
                )
            } else {
                (DefectKind::MimeUnreadable, "this is no MIME archive for Go")
            };
            let defect = Defect { kind, span, message: format!("{reader}: {message}") };
            // What follows from it comes after it.
            self.data.defects.insert(before, defect);
        }
    }

    /// A part of a type that neither nodeadm nor cloud-init reads.
    // amazon-eks-ami 81fec2e nodeadm configprovider/mime.go; cloud-init cloudinit/handlers/__init__.py,
    // cloudinit/user_data.py
    fn unread_type(&mut self, media_type: &str, body: Span, kind: PartKind) {
        let text = body.of(self.text);
        if kind != PartKind::Unknown || text.trim().is_empty() || has_expansion(media_type) {
            return;
        }
        let node_config = nodeconfig::names_itself_node_config(text);
        let message = match media_type {
            "" | "text/plain" if node_config => {
                "nodeadm reads a NodeConfig only in a part of the type application/node.eks.aws".to_owned()
            }
            // cloud-init looks at how such a part begins, and a placeholder may begin with anything.
            "" | "text/plain" => return,
            _ if OF_CLOUD_INIT.contains(&media_type) || media_type.starts_with("multipart/") => return,
            _ => format!("neither nodeadm nor cloud-init reads a part of the type {media_type}"),
        };
        // nodewhy knows of an image of the user's own only how it joins the cluster.
        if self.data.family != Family::Custom || (node_config && !self.joins_otherwise()) {
            let first = body.start + text.find('\n').unwrap_or(text.len());
            self.defect(DefectKind::ReadByNothing, Span::new(body.start, first), message);
        }
    }

    /// Whether a text in which a NodeConfig is not found may join the cluster by other means.
    fn joins_otherwise(&self) -> bool {
        let lower = self.text.to_ascii_lowercase();
        let others = ["nodeadm init", "bootstrap.sh", "kubelet ", "content-type: application/node.eks.aws\n"];
        others.iter().any(|other| lower.contains(other))
    }

    /// Whether the text that is passed through holds a NodeConfig for nodeadm to find, and nothing else that joins.
    // amazon-eks-ami 81fec2e nodeadm configprovider/mime.go: the first error ends the reading.
    fn only_nodeadm_joins(&self) -> bool {
        let lower = self.text.to_ascii_lowercase();
        let named = lower.lines().any(|line| {
            line.strip_prefix("content-type:").is_some_and(|type_| type_.trim().starts_with("application/node.eks.aws"))
        });
        self.data.family == Family::Custom
            && named
            && !["nodeadm init", "bootstrap.sh", "kubelet "].iter().any(|other| lower.contains(other))
    }
}

/// Types of parts that cloud-init hands to a program.
// cloud-init cloudinit/handlers/*.py list_types, cloudinit/user_data.py
const OF_CLOUD_INIT: &[&str] = &[
    "text/x-shellscript",
    "text/x-shellscript-per-boot",
    "text/x-shellscript-per-instance",
    "text/x-shellscript-per-once",
    "text/cloud-config",
    "text/cloud-config-jsonp",
    "text/cloud-config-archive",
    "text/cloud-boothook",
    "text/jinja2",
    "text/part-handler",
    "text/upstart-job",
    "text/x-include-url",
    "text/x-include-once-url",
    "text/x-not-multipart",
    "text/x-python",
];

/// Why no program reads a text. Karpenter encodes userData for EC2 itself.
// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/custom.go `Script`
fn of_no_program(text: &str) -> &'static str {
    let [gzip, ..] = OF_USER_DATA;
    let text = text.trim();
    // In a dump the rest is masked.
    let is_encoded = go_values::is_base64(text) && !text.contains([' ', '\t']);
    if is_encoded && text.starts_with(gzip) {
        "this is gzip in base64, but userData must be plain text: Karpenter encodes it once more, so no program reads it"
    } else if is_encoded && OF_USER_DATA.iter().any(|begins| text.starts_with(begins)) {
        "this is base64, but userData must be plain text: Karpenter encodes it once more, so no program reads it"
    } else {
        "this begins with nothing that cloud-init, nodeadm, Bottlerocket or Windows is known to read"
    }
}
