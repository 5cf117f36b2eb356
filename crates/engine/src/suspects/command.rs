//! The command that confirms a suspect, for machines that differ only in their instance.

use crate::api::Text;
use crate::case::Case;

/// A command, complete or with a placeholder for the instance.
#[derive(Debug, Clone)]
pub enum SettlingCommand {
    Whole(Text),
    OfInstance { before: &'static str, after: &'static str },
}

/// The console output of the instance's boot.
pub const CONSOLE: SettlingCommand = SettlingCommand::OfInstance {
    before: "aws ec2 get-console-output --latest --output text --instance-id ",
    after: "",
};

/// Whether the instance runs, and why not.
pub const STATE: SettlingCommand = SettlingCommand::OfInstance {
    before: "aws ec2 describe-instances --instance-ids ",
    after: " --query 'Reservations[].Instances[].[State.Name,StateReason]'",
};

/// The subnet that EC2 chose.
pub const SUBNET: SettlingCommand = SettlingCommand::OfInstance {
    before: "aws ec2 describe-instances --instance-ids ",
    after: " --query 'Reservations[].Instances[].[SubnetId,VpcId]'",
};

/// The subnet that EC2 chose, and the instance's public IP.
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
