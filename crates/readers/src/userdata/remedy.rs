//! What to write instead of a defect, where one change is right for every text.

use super::DefectKind;

impl DefectKind {
    /// The change as the end of "Correct line 3: …". `None` if the message of the defect names it, or if it depends on
    /// what the text is for.
    pub const fn remedy(self) -> Option<&'static str> {
        use DefectKind as D;
        Some(match self {
            D::BodyInHeader => "put an empty line between the header of the part and its text",
            D::NoInterpreter => "begin the script with `#!/bin/bash` in its very first bytes",
            D::OpenQuote => "close the quote",
            D::OpenDocument | D::CallInDocument => {
                "end the here-document with its word alone on a line, without a blank beside it"
            }
            D::BlankAfterBackslash => "remove the blank after the `\\`",
            D::OptionWithEquals => "write a blank instead of the `=` after the option",
            D::OptionWithoutValue => "give the option a value, or remove it",
            D::ClusterNameIsOption | D::ClusterNameMissing => {
                "give bootstrap.sh the name of the cluster as its first argument"
            }
            D::CutAtNewline => "write the value of the flag on one line",
            D::FlagWithoutValue => "give the flag a value, or remove it",
            D::SingleDash => "begin the flag with two dashes",
            D::StrayArgument => "remove the word, or write it as the value of its flag",
            D::UnknownFlag => "correct the name of the flag, or remove it",
            D::RemovedFlag => "remove the flag",
            D::InvalidTaints => "write each taint as KEY=VALUE:EFFECT, with commas between them",
            D::InvalidLabels => "write each label as KEY=VALUE, with commas between them",
            D::NodeNameFixed => "remove the name, so that each kubelet uses that of its instance",
            D::NeverReached => "move the call before the `exit`, or remove the `exit`",
            D::EndsBeforeKarpenter => "remove what ends the script",
            D::CarriageReturn => "save the text with line ends of Unix (LF)",
            D::TypographicCharacter | D::TypographicOption => "write the ASCII quote or dash instead",
            D::OwnTags => "remove the tags, which Karpenter writes itself",
            D::TooLarge => "shorten the text, or let it download its long part at boot",
            D::SettingRefused
            | D::TomlWrongType
            | D::KernelParameterRefused
            | D::InvalidField
            | D::InvalidFlagValue => "give it a value that is accepted, or remove it",
            D::MimeUnreadable
            | D::NodeConfigUnreachable
            | D::EncodedPart
            | D::MisreadAsNodeConfig
            | D::NodeConfigUnreadable
            | D::NodeConfigWrongKind
            | D::NodeConfigWrongType
            | D::NodeConfigIgnored
            | D::LocalDisksRefused
            | D::ClusterIncomplete
            | D::FieldIgnored
            | D::DocumentIgnored
            | D::ContainerdConfigUnreadable
            | D::ContainerdConfigRefused
            | D::NoBootstrapScript
            | D::BootstrapBeforeKarpenter
            | D::AssignmentDropped
            | D::NotStarted
            | D::RefusedLabel
            | D::TomlInvalid
            | D::UnknownSetting
            | D::UnfamiliarSetting
            | D::BootImageUnreachable
            | D::ContainerImageUnreachable
            | D::EndsAtFailure
            | D::NodeadmCallRefused
            | D::PowerShellRefused
            | D::UnknownCmdlet
            | D::CmdletEndsScript
            | D::OptionOfBootstrapSh
            | D::KubeletEdited
            | D::ReadByNothing
            | D::MisreadAsShell
            | D::SecondBootstrap
            | D::OtherCluster
            | D::DropsTaints
            | D::Template => return None,
        })
    }
}
