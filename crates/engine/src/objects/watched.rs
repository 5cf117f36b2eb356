//! What a watch of the cluster reads.

use super::input::Input;

/// The data that a watch reads: an input of the rules, or the diagnoses that nodewhy wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watched {
    Input(Input),
    Diagnoses,
}

impl Watched {
    /// The name of the objects.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input(input) => input.name(),
            Self::Diagnoses => "NodeDiagnoses",
        }
    }
}

impl From<Input> for Watched {
    fn from(input: Input) -> Self {
        Self::Input(input)
    }
}
