#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Al2,
    Al2023,
    Bottlerocket,
    Windows,
    Custom,
}
impl Family {
    pub fn from_name(n: &str) -> Option<Self> {
        Some(match n {
            "AL2" => Self::Al2,
            "AL2023" => Self::Al2023,
            "Bottlerocket" => Self::Bottlerocket,
            "Custom" => Self::Custom,
            w if w.starts_with("Windows") => Self::Windows,
            _ => return None,
        })
    }
    pub fn from_alias(a: &str) -> Option<Self> {
        Some(match a.split('@').next()? {
            "al2" => Self::Al2,
            "al2023" => Self::Al2023,
            "bottlerocket" => Self::Bottlerocket,
            w if w.starts_with("windows") => Self::Windows,
            _ => return None,
        })
    }
}
#[derive(Debug)]
pub struct UserData;
pub fn read(_: &str, _: Family) -> UserData {
    UserData
}
