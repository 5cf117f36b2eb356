//! A string that is stored once however many objects hold it.
//!
//! Ten thousand Nodes say the same thirty labels and the same six conditions. With [`Word`]s a Node and its NodeClaim take a sixth of
//! what they take with `String`s (tests/budget.rs).

use serde::{Deserialize, Deserializer};
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;
use string_cache::DefaultAtom;

/// An interned string of eight bytes; freed with its last holder. It orders as text does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Word(DefaultAtom);

impl Word {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Word {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Without `Hash`, which would have to agree with that of `str`.
impl Borrow<str> for Word {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&Word> for String {
    fn from(word: &Word) -> Self {
        word.as_str().to_owned()
    }
}

impl From<Word> for String {
    fn from(word: Word) -> Self {
        word.as_str().to_owned()
    }
}

impl PartialEq<str> for Word {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Word {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<Word> for str {
    fn eq(&self, other: &Word) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Word> for &str {
    fn eq(&self, other: &Word) -> bool {
        *self == other.as_str()
    }
}

impl PartialEq<Word> for String {
    fn eq(&self, other: &Word) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<String> for Word {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer).map(|text| Self(text.into()))
    }
}
