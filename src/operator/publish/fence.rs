//! The last look at the Lease, just before a request leaves.
//!
//! A leader that was held still (a frozen machine, a paused virtual one) wakes up amid its writes, and another has led
//! for long: the first thing it would do is to send the next half of what it had begun.

use crate::operator::lease::{Leads, right_in};
use kube::Client;

/// A client that sends only while this replica leads in that term.
pub(super) fn fenced(client: Client, leads: Leads, term: u64) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request| {
        let may_write = right_in(&leads, term).is_some();
        let client = client.clone();
        async move {
            if may_write {
                client.send(request).await
            } else {
                Err(kube::Error::Service("not sent: this replica no longer leads in the term that decided it".into()))
            }
        }
    });
    Client::new(service, namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::lease::Candidate;
    use k8s_openapi::api::core::v1::Node;
    use kube::api::{Api, DeleteParams};
    use kube::client::Body;

    fn api_server() -> Client {
        let answer =
            |_: http::Request<Body>| async { Ok::<_, kube::Error>(http::Response::new(Body::from(b"{}".to_vec()))) };
        Client::new(tower::service_fn(answer), "default")
    }

    #[tokio::test]
    async fn who_does_not_lead_sends_nothing() {
        let (mut candidate, leads) = Candidate::new(None);
        let nodes: Api<Node> = Api::all(fenced(api_server(), leads.clone(), 1));
        let sent = nodes.delete("a", &DeleteParams::default()).await;
        assert!(sent.is_err_and(|error| error.to_string().contains("no longer leads")));
        candidate.stand().expect("no thread");
        assert!(nodes.delete("a", &DeleteParams::default()).await.is_ok());
        let of_another_term: Api<Node> = Api::all(fenced(api_server(), leads, 2));
        assert!(of_another_term.delete("a", &DeleteParams::default()).await.is_err());
    }
}
