//! The command that settles a suspect, for machines that differ only in their instance.

use crate::api::Text;
use crate::case::Case;

/// A command, whole or with a place for the instance.
#[derive(Debug, Clone)]
pub enum SettlingCommand {
    Whole(Text),
    OfInstance { before: &'static str, after: &'static str },
}

/// What the instance printed while it booted.
pub const CONSOLE: SettlingCommand = SettlingCommand::OfInstance {
    before: "aws ec2 get-console-output --latest --output text --instance-id ",
    after: "",
};

/// Whether it runs, and why not.
pub const STATE: SettlingCommand = SettlingCommand::OfInstance {
    before: "aws ec2 describe-instances --instance-ids ",
    after: " --query 'Reservations[].Instances[].[State.Name,StateReason]'",
};

/// The subnet that EC2 took.
pub const SUBNET: SettlingCommand = SettlingCommand::OfInstance {
    before: "aws ec2 describe-instances --instance-ids ",
    after: " --query 'Reservations[].Instances[].[SubnetId,VpcId]'",
};

/// The same, and whether it is reached from outside.
pub const PUBLIC_ADDRESS: SettlingCommand = SettlingCommand::OfInstance {
    before: "aws ec2 describe-instances --instance-ids ",
    after: " --query 'Reservations[].Instances[].[SubnetId,PublicIpAddress]'",
};

impl SettlingCommand {
    pub fn of(&self, case: &Case) -> Text {
        match self {
            Self::Whole(text) => text.clone(),
            Self::OfInstance { before, after } => {
                [before, case.instance_id().unwrap_or("INSTANCE"), after].concat().into()
            }
        }
    }
}

impl<T: Into<Text>> From<T> for SettlingCommand {
    fn from(text: T) -> Self {
        Self::Whole(text.into())
    }
}
