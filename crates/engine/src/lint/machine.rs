//! Machines that do not exist yet: the machine that Karpenter would launch for a node class and a NodePool, at the
//! stage of the rules that run on it.
//!
//! Nothing is guessed. A machine is created only if the files prove its state at that stage.

use crate::cluster_state::ClassFacts;
use crate::objects::{Ami, Condition, Meta, Node, NodeClaim, NodeClassRef, NodePool, Taint};
use crate::upstream::karpenter::{
    CLASS_HASH, CLASS_HASH_VERSION, DO_NOT_SYNC_TAINTS_LABEL, Karpenter, Provider, UNREGISTERED_TAINT,
};
use chrono::{DateTime, Utc};
use readers::userdata::{ArgumentOrigin, Family, Setting, UserData};

/// The name of a future machine. No real object can have this name.
pub fn name(class: &ClassFacts, pool: Option<&NodePool>) -> String {
    format!("{}-*", pool.map_or_else(|| class.class.name(), NodePool::name))
}

/// A machine before its launch. `None` if the status of its class or NodePool prevents the launch, because that is
/// judged separately.
pub fn launching(class: &ClassFacts, pool: Option<&NodePool>, at: DateTime<Utc>) -> Option<NodeClaim> {
    let of_class = class.class.status.conditions.iter();
    let mut conditions = of_class.chain(pool.into_iter().flat_map(|pool| &pool.status.conditions));
    let launched = condition("Launched", "Unknown", "AwaitingReconciliation", at);
    conditions.all(Condition::is_true).then(|| claim(class, pool, "", vec![launched], at))
}

/// A machine that was launched with this image, and has no Node yet.
pub fn joining(class: &ClassFacts, pool: Option<&NodePool>, image: &str, at: DateTime<Utc>) -> NodeClaim {
    claim(
        class,
        pool,
        image,
        vec![condition("Launched", "True", "Launched", at), condition("Registered", "Unknown", "NodeNotFound", at)],
        at,
    )
}

/// A machine with a Node that lacks taints that Karpenter expects. `None` if it has all of them, or if the files do not
/// show it.
pub fn untainted(
    class: &ClassFacts,
    pool: Option<&NodePool>,
    karpenter: Option<&Karpenter>,
    at: DateTime<Utc>,
) -> Option<(NodeClaim, Node)> {
    let taints = own_taints(class.user_data.as_ref()?)?;
    let custom = class.class.family() == Some(Family::Custom);
    let launched = condition("Launched", "True", "Launched", at);
    let conditions = if karpenter.is_some_and(|k| k.blocks_on_missing_taint(Provider::Aws)) {
        if taints.iter().any(|t| t.key == UNREGISTERED_TAINT && t.effect == "NoExecute") {
            return None;
        }
        vec![launched, condition("Registered", "False", "UnregisteredTaintNotFound", at)]
    } else if custom || keeps_the_label_away(class) || !karpenter.is_none_or(Karpenter::knows_do_not_sync_taints) {
        // Karpenter adds the taints itself.
        return None;
    } else {
        vec![
            launched,
            condition("Registered", "True", "Registered", at),
            condition("Initialized", "True", "Initialized", at),
        ]
    };
    let mut claim = claim(class, pool, "", conditions, at);
    claim.status.provider_id.clone_from(&claim.metadata.name);
    let metadata = Meta { name: claim.metadata.name.clone(), creation_timestamp: Some(at), ..Meta::default() };
    let mut node = Node { metadata, ..Node::default() };
    // karpenter-provider-aws v1.14.1 pkg/providers/launchtemplate/launchtemplate.go InjectDoNotSyncTaintsLabel
    node.metadata.labels = [(DO_NOT_SYNC_TAINTS_LABEL, "true")].into_iter().collect();
    node.spec.provider_id.clone_from(&claim.metadata.name);
    node.spec.taints = taints;
    node.status.conditions = [condition("Ready", "True", "KubeletReady", at)].into();
    Some((claim, node))
}

/// Whether Karpenter's own label, by which it leaves the taints to the kubelet, never reaches that: its call of
/// bootstrap.sh comes too late.
fn keeps_the_label_away(class: &ClassFacts) -> bool {
    class.user_data.as_ref().is_some_and(|user_data| {
        let labels = user_data.labels();
        user_data.family == Family::Al2
            && user_data.starts_kubelet_before_karpenter()
            && !labels.iter().any(|(key, ..)| key == DO_NOT_SYNC_TAINTS_LABEL)
    })
}

/// The images that Karpenter may choose: the first of those with the same requirements.
///
/// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/ami.go `MapToInstanceTypes`; the newest stands first
/// (types.go `Sort`).
pub fn images(class: &ClassFacts) -> Vec<&Ami> {
    let mut images: Vec<&Ami> = Vec::new();
    for image in &class.class.status.amis {
        if !images.iter().any(|chosen| chosen.requirements == image.requirements) {
            images.push(image);
        }
    }
    images
}

/// The taints that the kubelet registers with, if the user's text sets them. `None` if Karpenter sets them, or if the
/// text cannot be read to its end.
fn own_taints(user_data: &UserData) -> Option<Vec<Taint>> {
    if user_data.unread_from.is_some() || !user_data.bootstrap_calls.iter().all(|call| call.extra_args_exact) {
        return None;
    }
    let argument = user_data.effective("register-with-taints");
    if argument.is_some_and(|argument| !argument.exact) {
        return None;
    }
    let starts_kubelet = match user_data.family {
        // A kubelet that is started by hand may have a configuration file of its own.
        Family::Custom => {
            let by_hand = user_data.arguments.iter().any(|a| a.origin == ArgumentOrigin::DirectKubelet);
            !by_hand && (!user_data.bootstrap_calls.is_empty() || !user_data.node_configs.is_empty())
        }
        Family::Al2 => user_data.starts_kubelet_before_karpenter(),
        _ => false,
    };
    let replaces = argument.is_some_and(|argument| matches!(argument.setting, Setting::Flag(_)));
    if !starts_kubelet && !replaces {
        return None;
    }
    let taints = user_data.taints().unwrap_or_else(|| Ok(Vec::new())).ok()?;
    Some(
        taints
            .into_iter()
            .map(|t| Taint { key: t.key.into(), value: t.value.into(), effect: t.effect.into(), time_added: None })
            .collect(),
    )
}

fn claim(
    class: &ClassFacts,
    pool: Option<&NodePool>,
    image: &str,
    conditions: Vec<Condition>,
    at: DateTime<Utc>,
) -> NodeClaim {
    let of_class = &class.class;
    let hash = |key| of_class.metadata.annotation(key).map(|value| (key, value));
    let template = pool.map(|pool| &pool.spec.template);
    let own = pool.map(|pool| ("karpenter.sh/nodepool", pool.name()));
    let labels = template.into_iter().flat_map(|t| t.metadata.labels.iter()).chain(own).collect();
    let mut claim = NodeClaim {
        metadata: Meta {
            name: name(class, pool).into(),
            creation_timestamp: Some(at),
            labels,
            annotations: [CLASS_HASH, CLASS_HASH_VERSION].into_iter().filter_map(hash).collect(),
            ..Meta::default()
        },
        ..NodeClaim::default()
    };
    claim.spec.node_class_ref = NodeClassRef {
        group: "karpenter.k8s.aws".into(),
        kind: of_class.kind.as_str().into(),
        name: of_class.name().into(),
    };
    if let Some(template) = template {
        claim.spec.requirements.clone_from(&template.spec.requirements);
        claim.spec.taints.clone_from(&template.spec.taints);
        claim.spec.startup_taints.clone_from(&template.spec.startup_taints);
    }
    claim.status.image_id = image.into();
    claim.status.conditions = conditions.into();
    claim
}

fn condition(type_: &str, status: &str, reason: &str, at: DateTime<Utc>) -> Condition {
    Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        last_transition_time: Some(at),
        ..Condition::default()
    }
}
