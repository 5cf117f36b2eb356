//! Names of Nodes, found by an instance's id that they hold.

use std::collections::BTreeMap;

/// By each part of a name that begins with `i-`, up to the name's end.
#[derive(Debug, Default)]
pub(crate) struct NamesWithIds(BTreeMap<String, String>);

impl NamesWithIds {
    pub(crate) fn of<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let parts = names.flat_map(|name| name.match_indices("i-").map(move |(at, _)| (name, at)));
        Self(parts.filter_map(|(name, at)| Some((format!("{} {name}", name.get(at..)?), name.to_owned()))).collect())
    }

    /// The names that hold this id.
    pub(crate) fn holding(&self, id: &str) -> impl Iterator<Item = &str> {
        let id = id.to_owned();
        let from = self.0.range(id.clone()..);
        from.take_while(move |(part, _)| part.starts_with(&id)).map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::NamesWithIds;

    #[test]
    fn a_name_is_found_by_the_id_that_it_holds_wherever_that_stands() {
        let names = ["i-0a1", "i-0a1.eu-west-1.compute.internal", "ip-10-0-0-1", "shop-i-0b2-i-0c3"];
        let names = NamesWithIds::of(names.into_iter());
        let holding = |id| names.holding(id).collect::<Vec<_>>();
        assert_eq!(holding("i-0a1"), ["i-0a1", "i-0a1.eu-west-1.compute.internal"]);
        assert_eq!(holding("i-0b2"), ["shop-i-0b2-i-0c3"]);
        assert_eq!(holding("i-0c3"), ["shop-i-0b2-i-0c3"]);
        assert_eq!(holding("i-0d4"), [""; 0]);
    }
}
