//! What the code does to a cluster, as its own tables say it: RBAC is compared with this.

use engine::objects::input::Input;
use nodewhy::operator::lease;
use nodewhy::operator::publish::WRITES;
use std::collections::BTreeSet;

/// Namespace (none for the whole cluster), group, resource, name of the one object, verb.
pub type Right = (Option<String>, String, String, Option<String>, String);

/// Without the Lease.
pub fn needed() -> BTreeSet<Right> {
    let owned = |text: &str| text.to_owned();
    let reads = Input::ALL.into_iter().flat_map(Input::sources).flat_map(|source| {
        let (namespace, name) = (source.namespace, source.only);
        let right = move |verb: &&str| {
            (namespace.map(owned), owned(source.group), owned(source.plural), name.map(owned), owned(verb))
        };
        source.verbs.iter().map(right)
    });
    reads.chain(of(WRITES)).collect()
}

pub fn of(writes: &[(&str, &str, &[&str], Option<&str>)]) -> BTreeSet<Right> {
    let owned = |text: &str| text.to_owned();
    let rights = writes.iter().flat_map(|(group, resource, verbs, namespace)| {
        verbs.iter().map(move |verb| (namespace.map(owned), owned(group), owned(resource), None, owned(verb)))
    });
    rights.collect()
}

/// For the Lease, in the namespace of the operator.
pub fn needed_for_the_lease() -> BTreeSet<Right> {
    let (group, resource, any, named) = lease::NEEDS;
    let right = |name: Option<&str>, verb: &&str| {
        (Some("nodewhy".to_owned()), group.to_owned(), resource.to_owned(), name.map(str::to_owned), (*verb).to_owned())
    };
    any.iter().map(|verb| right(None, verb)).chain(named.iter().map(|verb| right(Some(lease::NAME), verb))).collect()
}
