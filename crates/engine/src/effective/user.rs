//! What the user's text asks for.

use super::{Kind, MergeOutcome, Origin, Value};
use readers::source_text::Span;
use readers::userdata::{self, Argument, By, Family, Fate, Located, Loss, UserData};

/// The arguments and the cluster of the text, in the kubelet's order.
pub fn values(data: &UserData) -> Vec<Value> {
    let mut values = cluster(data);
    values.extend(node_configs(data));
    for (number, argument) in (1..).zip(&data.arguments) {
        values.extend(expand(data, argument).into_iter().map(|value| Value { occurrence: number, ..value }));
    }
    values
}

/// Each taint and each label as a value of its own.
fn expand(data: &UserData, argument: &Argument) -> Vec<Value> {
    let (kind, name) = match (&argument.setting, argument.origin) {
        (userdata::Setting::Flag(name), userdata::ArgumentOrigin::BottlerocketSetting)
            if name == "register-with-taints" =>
        {
            (Kind::Setting, "node-taints")
        }
        (_, userdata::ArgumentOrigin::BottlerocketSetting) => (Kind::Setting, argument.name()),
        (userdata::Setting::Flag(name), _) => (Kind::Flag, name.as_str()),
        (userdata::Setting::Field(name), _) => (Kind::Config, name.as_str()),
    };
    let outcome = match &argument.fate {
        // Karpenter's own value follows, and overrides this one.
        Fate::Taken | Fate::Overridden(By::Karpenter) => MergeOutcome::Effective,
        Fate::Overridden(By::Later(span)) => {
            MergeOutcome::Overridden { by: Origin::UserData(*span), because: "the last occurrence wins" }
        }
        Fate::Lost(loss) => MergeOutcome::Lost(loss.to_string()),
    };
    let value = |value: &str, span: Span, outcome: MergeOutcome| Value {
        kind,
        name: name.to_owned(),
        value: value.to_owned(),
        literal: true,
        origin: Origin::UserData(span),
        outcome,
        exact: argument.exact && data.unread_from.is_none_or(|from| from.start >= span.start),
        occurrence: 0,
    };
    let listed = matches!(name, "register-with-taints" | "registerWithTaints" | "node-taints" | "node-labels");
    if !listed || argument.value.is_empty() {
        return vec![value(&argument.value, argument.span, outcome)];
    }
    let mut values = Vec::new();
    let mut start = 0;
    for part in argument.value.split(',') {
        let span = argument.place(Span::new(start, start + part.len()));
        start += part.len() + 1;
        // The kubelet checks such a taint and drops it without a word.
        let dropped = part.ends_with('-') && name != "node-labels" && outcome == MergeOutcome::Effective;
        let outcome = if dropped {
            MergeOutcome::Lost("a taint that ends in `-` asks for its removal and is dropped".to_owned())
        } else {
            outcome.clone()
        };
        values.push(value(part, span, outcome));
    }
    values
}

/// The cluster that the text names, of every call and document.
fn cluster(data: &UserData) -> Vec<Value> {
    let value = |name: &str, located: &Located<String>, outcome: MergeOutcome, exact: bool| Value {
        kind: Kind::Cluster,
        name: name.to_owned(),
        value: located.value.clone(),
        literal: true,
        origin: Origin::UserData(located.span),
        outcome,
        exact,
        occurrence: 0,
    };
    let mut values = Vec::new();
    for call in &data.bootstrap_calls {
        let outcome = match data.family {
            Family::Al2023 => MergeOutcome::Lost(Loss::NoBootstrapScript.to_string()),
            _ => MergeOutcome::Effective,
        };
        let named = call.cluster_name.iter().map(|name| ("name", name));
        let options = call.options.iter().filter_map(|(option, value)| match option.as_str() {
            "--apiserver-endpoint" => Some(("apiServerEndpoint", value)),
            "--b64-cluster-ca" => Some(("certificateAuthority", value)),
            _ => None,
        });
        values.extend(
            named
                .chain(options)
                .map(|(name, located)| value(name, located, outcome.clone(), call.starts_kubelet && call.exact)),
        );
    }
    let outcome = match data.family {
        Family::Custom => MergeOutcome::Effective,
        _ => MergeOutcome::Overridden { by: Origin::Karpenter, because: "Karpenter's part is merged last" },
    };
    for config in &data.node_configs {
        let fields = [
            ("name", &config.cluster_name),
            ("apiServerEndpoint", &config.api_server_endpoint),
            ("certificateAuthority", &config.certificate_authority),
            ("cidr", &config.cidr),
        ];
        values.extend(
            fields.into_iter().filter_map(|(name, field)| Some(value(name, field.as_ref()?, outcome.clone(), true))),
        );
    }
    values
}

/// The settings of a NodeConfig for nodeadm itself. Karpenter's NodeConfig is merged last.
fn node_configs(data: &UserData) -> Vec<Value> {
    let mut values = Vec::new();
    for (number, config) in (30_000..).zip(&data.node_configs) {
        let value = |name: &str, text: String, span: Span| Value {
            kind: Kind::NodeConfig,
            name: name.to_owned(),
            value: text,
            literal: true,
            origin: Origin::UserData(span),
            outcome: MergeOutcome::Effective,
            exact: true,
            occurrence: number,
        };
        if let Some(strategy) = &config.local_storage {
            values.push(value("instance.localStorage.strategy", strategy.value.clone(), strategy.span));
        }
        let gates = [("InstanceIdNodeName", &config.instance_id_node_name), ("FastImagePull", &config.fast_image_pull)];
        for (gate, on) in gates {
            values.extend(on.as_ref().map(|on| value(&format!("featureGates.{gate}"), on.value.to_string(), on.span)));
        }
        // Those of several documents are merged, and none overrides another one whole.
        if let Some((lines, span)) = config.containerd_lines() {
            let text = format!("{lines} {} of TOML", if lines == 1 { "line" } else { "lines" });
            values.push(Value { literal: false, occurrence: 29_999, ..value("containerd.config", text, span) });
        }
    }
    values
}
