//! A string that is stored once however many objects hold it.
//!
//! Ten thousand Nodes say the same thirty labels and the same six conditions. With [`Interned`]s a Node and its
//! NodeClaim take an eighth of what they take with `String`s (tests/budget.rs).

use arcstr::ArcStr;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A string of eight bytes that is stored once. It orders and hashes as text does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Interned(ArcStr);

impl Interned {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Every word that somebody holds, and some that were held.
#[derive(Default)]
struct Table {
    words: HashSet<ArcStr>,
    /// How many it may hold before it looks for those that nobody needs any more.
    full_at: usize,
}

impl Table {
    fn word(&mut self, text: &str) -> ArcStr {
        if let Some(word) = self.words.get(text) {
            return word.clone();
        }
        if self.words.len() >= self.full_at {
            self.words.retain(|word| ArcStr::strong_count(word) != Some(1));
            // Twice what is in use, so that looking costs each new word a constant.
            self.full_at = (2 * self.words.len()).max(1 << 12);
        }
        let word = ArcStr::from(text);
        self.words.insert(word.clone());
        word
    }
}

impl Deref for Interned {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Interned {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Interned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Interned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl From<&str> for Interned {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        Self(TABLE.lock().unwrap_or_else(PoisonError::into_inner).word(text))
    }
}

impl From<String> for Interned {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&Interned> for String {
    fn from(word: &Interned) -> Self {
        word.as_str().to_owned()
    }
}

impl From<Interned> for String {
    fn from(word: Interned) -> Self {
        word.as_str().to_owned()
    }
}

impl PartialEq<str> for Interned {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Interned {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<Interned> for str {
    fn eq(&self, other: &Interned) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Interned> for &str {
    fn eq(&self, other: &Interned) -> bool {
        *self == other.as_str()
    }
}

impl PartialEq<Interned> for String {
    fn eq(&self, other: &Interned) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<String> for Interned {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl Serialize for Interned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Interned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Interned;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Interned, E> {
                Ok(text.into())
            }
        }
        // Not by way of a String or a Cow, which is made anew each time: most words are in the table.
        deserializer.deserialize_str(Text)
    }
}
