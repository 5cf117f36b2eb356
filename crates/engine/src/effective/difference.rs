//! What one machine runs and another does not: images, taints, labels, and the values that reach the kubelet.

use super::{Effective, Kind, Machine, MergeOutcome, Origin, Value, is_map_flag, key};
use crate::objects::AmiTerm;
use std::collections::BTreeMap;

/// The part of a node that a change belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Image,
    Taint,
    Label,
    Kubelet,
    /// A setting of a NodeConfig for nodeadm itself.
    Nodeadm,
    /// Which cluster the kubelet joins.
    Cluster,
}

/// A value of one of the two machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// `maxPods`, `--max-pods`, the key of a label, key and effect of a taint.
    pub name: String,
    /// Of an image, a taint and a label: all of it.
    pub value: String,
    /// Whether `value` is the value itself.
    pub literal: bool,
    /// False if the text could not be followed with certainty.
    pub exact: bool,
    pub origin: Origin,
}

impl Change {
    /// Its name on the new side, or on the old one if only that has it.
    pub fn name(&self) -> &str {
        self.new.first().or(self.old.first()).map_or("", |given| given.name.as_str())
    }
}

impl Given {
    /// Name and origin do not matter: a node runs the same, wherever a value comes from.
    fn compared(&self) -> (&str, bool, bool) {
        (self.value.as_str(), self.literal, self.exact)
    }
}

/// Something that the two machines do not have in common. At least one side has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub part: Part,
    pub old: Vec<Given>,
    pub new: Vec<Given>,
    /// The outcome of a value that the new machine has too, and that does not reach its kubelet.
    pub dropped: Option<MergeOutcome>,
}

/// The changes from one machine to the other, by part and name. A flag and a field of the configuration that mean the
/// same are the same.
pub fn changes(old: (&Machine, &Effective), new: (&Machine, &Effective)) -> Vec<Change> {
    let mut changes: BTreeMap<(Part, String), Change> = BTreeMap::new();
    let are_images_known = [old.0, new.0].iter().all(|machine| !machine.class.status.amis.is_empty());
    for (is_new, (machine, effective)) in [(false, old), (true, new)] {
        let values = effective.values.iter().flat_map(entries);
        for entry in images(machine, are_images_known).into_iter().chain(values) {
            let change = changes.entry((entry.part, entry.key)).or_insert_with(|| Change {
                part: entry.part,
                old: Vec::new(),
                new: Vec::new(),
                dropped: None,
            });
            match (is_new, entry.outcome) {
                (false, MergeOutcome::Effective) => change.old.push(entry.given),
                (true, MergeOutcome::Effective) => change.new.push(entry.given),
                (true, outcome) => change.dropped = Some(outcome),
                (false, _) => {}
            }
        }
    }
    let mut changes: Vec<Change> = changes.into_values().collect();
    changes.retain(|change| !change.old.iter().map(Given::compared).eq(change.new.iter().map(Given::compared)));
    for change in &mut changes {
        if !change.new.is_empty() {
            change.dropped = None;
        }
    }
    changes
}

/// A value as it is compared.
struct Entry {
    part: Part,
    key: String,
    given: Given,
    outcome: MergeOutcome,
}

fn entries(value: &Value) -> Vec<Entry> {
    let entry = |part, key: String, name: String, text: &str| Entry {
        part,
        key,
        given: Given {
            name,
            value: text.to_owned(),
            literal: value.literal,
            exact: value.exact,
            origin: value.origin.clone(),
        },
        outcome: value.outcome.clone(),
    };
    let text = value.value.as_str();
    match value.name.as_str() {
        "register-with-taints" | "registerWithTaints" | "node-taints" if !text.is_empty() => {
            // `key=:Effect` is the same taint as `key:Effect`.
            let text = text.replace("=:", ":");
            let (rest, effect) = text.rsplit_once(':').unwrap_or((text.as_str(), ""));
            let taint = format!("{}:{effect}", rest.split('=').next().unwrap_or_default());
            vec![entry(Part::Taint, taint.clone(), taint, &text)]
        }
        "node-labels" => {
            let label = text.split('=').next().unwrap_or_default().to_owned();
            vec![entry(Part::Label, label.clone(), label, text)]
        }
        name if value.kind == Kind::Flag && value.literal && is_map_flag(name) && text.contains(['=', '<']) => {
            let pairs = text.split(',').filter_map(|pair| pair.split_once(['=', '<']));
            let one = |(field, text): (&str, &str)| {
                let value = Value { name: format!("{name}.{field}"), ..value.clone() };
                entry(Part::Kubelet, key(&value), format!("--{}", value.name), text)
            };
            pairs.map(one).collect()
        }
        name => {
            let (part, shown) = match value.kind {
                Kind::Cluster => (Part::Cluster, name.to_owned()),
                Kind::NodeConfig => (Part::Nodeadm, name.to_owned()),
                Kind::Flag => (Part::Kubelet, format!("--{name}")),
                Kind::Config | Kind::Setting => (Part::Kubelet, name.to_owned()),
            };
            vec![entry(part, key(value), shown, text)]
        }
    }
}

/// What selects the image, and the images that were selected if `with_status`.
fn images(machine: &Machine, with_status: bool) -> Vec<Entry> {
    let entry = |name: &str, text: String, field: &str| Entry {
        part: Part::Image,
        key: format!("{name} {text}"),
        given: Given {
            name: name.to_owned(),
            value: text,
            literal: true,
            exact: true,
            origin: Origin::NodeClass(field.to_owned()),
        },
        outcome: MergeOutcome::Effective,
    };
    let class = machine.class;
    let mut entries = vec![entry("family", machine.family.to_string(), "spec.amiFamily")];
    for term in &class.spec.ami_selector_terms {
        entries.push(entry("selector", selected_by(term), "spec.amiSelectorTerms"));
    }
    for ami in class.status.amis.iter().filter(|_| with_status) {
        let named = if ami.name.is_empty() { &ami.id } else { &ami.name };
        entries.push(entry("image", named.clone(), "status.amis"));
    }
    entries
}

/// `alias al2023@latest`, `name my-image, owner self`.
fn selected_by(term: &AmiTerm) -> String {
    let mut parts = Vec::new();
    let fields =
        [("alias", &term.alias), ("id", &term.id), ("name", &term.name), ("ssmParameter", &term.ssm_parameter)];
    for (field, text) in fields {
        if let Some(text) = text {
            parts.push(format!("{field} {text}"));
        }
    }
    for (tag, text) in &term.tags {
        parts.push(format!("tag {tag}={text}"));
    }
    if let Some(owner) = &term.owner {
        parts.push(format!("owner {}", owner.as_str().map_or_else(|| owner.to_string(), str::to_owned)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effective::{ClusterIdentity, resolve};
    use crate::objects::NodeClass;
    use readers::userdata::Family;

    fn class(family: &str, user_data: &str) -> NodeClass {
        let mut class = NodeClass { kind: "EC2NodeClass".to_owned(), ..NodeClass::default() };
        class.spec.ami_family = Some(family.to_owned());
        class.spec.user_data = Some(user_data.to_owned());
        class
    }

    fn shown(old: &NodeClass, new: &NodeClass) -> Vec<String> {
        let machine = |class| Machine {
            class,
            family: NodeClass::family(class).expect("a family"),
            pool: None,
            karpenter: None,
            kubernetes: Some(34),
            cluster: ClusterIdentity::default(),
        };
        let (old, new) = (machine(old), machine(new));
        let changes = changes((&old, &resolve(&old)), (&new, &resolve(&new)));
        let text = |given: &[Given]| given.iter().map(|given| given.value.clone()).collect::<Vec<_>>().join(" ");
        changes.iter().map(|c| format!("{:?} {}: {} -> {}", c.part, c.name(), text(&c.old), text(&c.new))).collect()
    }

    fn node_config(kubelet: &str) -> NodeClass {
        class("AL2023", &format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n{kubelet}"))
    }

    #[test]
    fn a_flag_and_a_field_that_mean_the_same_are_no_change() {
        let field = node_config("    config:\n      podPidsLimit: 100\n");
        assert_eq!(shown(&field, &node_config("    flags: [--pod-max-pids=100]\n")), [""; 0]);
        assert_eq!(
            shown(&field, &node_config("    flags: [--pod-max-pids=200]\n")),
            ["Kubelet --pod-max-pids: 100 -> 200"]
        );
    }

    #[test]
    fn a_map_is_compared_entry_by_entry() {
        let old = node_config("    config:\n      systemReserved: {cpu: 100m, memory: 1Gi}\n");
        let new = node_config("    flags: ['--system-reserved=cpu=100m,memory=2Gi']\n");
        assert_eq!(shown(&old, &new), ["Kubelet --system-reserved.memory: 1Gi -> 2Gi"]);
    }

    #[test]
    fn taints_and_labels_are_compared_by_their_keys() {
        let old = node_config("    flags: ['--node-labels=a=1,b=1', '--register-with-taints=x=:NoSchedule']\n");
        let new =
            node_config("    flags: ['--node-labels=b=2,a=1', '--register-with-taints=x:NoSchedule,x:NoExecute']\n");
        assert_eq!(shown(&old, &new), ["Taint x:NoExecute:  -> x:NoExecute", "Label b: b=1 -> b=2"]);
    }

    #[test]
    fn another_image_is_a_change_and_another_order_is_none() {
        let with = |terms: &[&str]| {
            let mut class = class("AL2023", "");
            let term = |alias: &&str| AmiTerm { alias: Some((*alias).to_owned()), ..AmiTerm::default() };
            class.spec.ami_selector_terms = terms.iter().map(term).collect();
            class
        };
        let (one, other) = (with(&["al2023@v20250101", "al2023@latest"]), with(&["al2023@latest", "al2023@v20250101"]));
        assert_eq!(shown(&one, &other), [""; 0]);
        assert_eq!(shown(&one, &with(&["al2023@latest"])), ["Image selector: alias al2023@v20250101 -> "]);
        assert_eq!(one.family(), Some(Family::Al2023));
    }
}
