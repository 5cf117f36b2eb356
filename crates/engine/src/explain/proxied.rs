//! A proxy answers where a network plugin asks the API server: containerd passes its own variables on to the plugins.

use crate::api::{Blame, Link, Risk};
use crate::case::Case;
use crate::explain::commands;
use crate::explain::explanation::{Explanation, Proof};
use crate::facts::proxy;
use crate::objects::Node;
use readers::source_text::Span;

/// The texts of a status with which a proxy refuses to connect. Go reports the bare text. The API server's own refusals
/// have other words, except for `Unauthorized`.
/// Sources: Go 1.26.8 src/net/http/transport.go `dialConn`, src/net/http/status.go.
const STATUSES: [&str; 8] = [
    "Bad Request",
    "Forbidden",
    "Not Found",
    "Proxy Authentication Required",
    "Internal Server Error",
    "Bad Gateway",
    "Service Unavailable",
    "Gateway Timeout",
];

/// What the proxy said, and of which address: `Get "https://172.20.0.1:443/…": Service Unavailable`.
fn refusal(said: &str) -> Option<(&str, &str)> {
    let (_, request) = said.split_once("https://")?;
    let (url, status) = request.rsplit_once("\": ")?;
    let status = status.trim_end_matches(['.', ')', ']']);
    let status = STATUSES.into_iter().find(|text| *text == status)?;
    Some((url.split(['/', ':', '?']).next()?, status))
}

/// The explanation of a refused sandbox, if a proxy refused the plugin's request.
pub(crate) fn explained(case: &Case, node: &Node, refused: &Explanation) -> Option<Explanation> {
    let (address, status) = refusal(&refused.why)?;
    let said = refused.why.trim_end_matches('.');
    let why = format!(
        "{said}; only a proxy answers a connection with the bare words {status:?}, so the plugin asks {address} \
         through the proxy of containerd"
    );
    let exceptions = format!(
        "Add {address}, the range of the cluster's Services, .svc and 169.254.169.254 to NO_PROXY of containerd's unit"
    );
    let link = refused.links.first().cloned();
    let answers = format!("a proxy answers for {address}: {status}");
    let name = node.name();
    let of_text = || {
        let class = case.class()?;
        let text = class.spec.user_data.as_deref()?;
        let (start, name) = proxy::in_text(text)?;
        let span = Span { start, end: start + name.len() };
        let blame = Blame::class(class);
        Some((blame.field("spec.userData").at(text, span), class))
    };
    let explanation = if let Some((blame, class)) = of_text() {
        let (kind, name) = (&class.kind, class.name());
        Explanation::new(Proof::Lasting, why, blame, Link::new(format!("{kind}/{name}"), answers))
            .fix(format!("{exceptions}, in userData of {kind} {name}. New nodes will be correct, so replace this one."))
            .change("Correct userData. New nodes will be correct", commands::edit(class))
    } else {
        let blame = Blame::object("v1", "Node", name);
        Explanation::new(Proof::Open, why, blame, Link::new(format!("Node/{name}"), answers))
            .fix(format!("{exceptions}, in the image of the node or wherever its proxy is set."))
            .step(Risk::LowRisk, "Keep new pods away until then", format!("kubectl cordon {name}"))
            .ask(
                "Which proxy does containerd have there (systemctl show containerd -p Environment on the node)?",
                format!("kubectl describe node {name}"),
            )
    };
    Some(link.into_iter().fold(explanation, Explanation::after))
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn only_the_bare_text_of_a_status_is_of_a_proxy() {
        let said = |end: &str| format!("failed (add): Get \"https://172.20.0.1:443/apis/v1/pools\": {end}");
        assert_eq!(refusal(&said("Service Unavailable")), Some(("172.20.0.1", "Service Unavailable")));
        assert_eq!(refusal(&said("Service Unavailable.")), Some(("172.20.0.1", "Service Unavailable")));
        let others = ["Unauthorized", "dial tcp 172.20.0.1:443: i/o timeout", "Service Unavailable: try again"];
        assert_eq!(others.map(|end| refusal(&said(end)).is_some()), [false; 3]);
    }
}
