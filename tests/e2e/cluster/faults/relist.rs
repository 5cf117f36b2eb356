//! Objects are deleted while a list of several pages is under way, and the list's state is compacted away.

use super::proxy::{Proxy, Traffic};
use super::{is_up, outcome, started, stuck, version};
use crate::cluster::life::{claims, cluster, diagnosed, remove};
use futures::{StreamExt, stream};
use kube::api::{ObjectMeta, PostParams};
use std::collections::BTreeSet;
use testkit::control_plane::recipes::{SOON, wait_until};

/// More than one page; they have just been made and wait for their launch.
const YOUNG: usize = 520;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_between_two_pages_of_a_list_ends_and_nothing_else_does() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let proxy = Proxy::start(&control_plane).await;
    let nodewhy = started(&control_plane, &proxy.kubeconfig(&rights), &[]);
    // In the order of names: the first and the second on the first page, the last on the second.
    stuck(&control_plane, &client, &["general-a", "general-b", "general-z"]).await;
    stream::iter(0..YOUNG)
        .for_each_concurrent(16, |number| {
            let (api, like) = (claims(&client), claims(&client));
            async move {
                let mut claim = like.get("general-a").await.unwrap();
                let labels = claim.metadata.labels.clone();
                claim.metadata =
                    ObjectMeta { name: Some(format!("general-m-{number:03}")), labels, ..ObjectMeta::default() };
                claim.data.as_object_mut().unwrap().remove("status");
                api.create(&PostParams::default(), &claim).await.unwrap();
            }
        })
        .await;
    let settled = version(&control_plane, "general-b");

    proxy.set(Traffic::Refused(503));
    proxy.cut();
    wait_until(SOON, || (!is_up(&nodewhy, "nodeclaims")).then_some(()));
    proxy.set(Traffic::Held("continue="));
    wait_until(SOON, || (proxy.held() > 0).then_some(()));
    remove(&client, &["general-a".to_owned(), "general-z".to_owned()]).await;
    control_plane.compact();
    assert_eq!(outcome(&control_plane, "general-a"), None);
    proxy.set(Traffic::Flows);

    wait_until(SOON, || (outcome(&control_plane, "general-a")? == "Deleted").then_some(()));
    wait_until(SOON, || (outcome(&control_plane, "general-z")? == "Deleted").then_some(()));
    wait_until(SOON, || is_up(&nodewhy, "nodeclaims").then_some(()));
    assert_eq!(version(&control_plane, "general-b"), settled);
    let all: BTreeSet<_> = ["general-a", "general-b", "general-z"].map(str::to_owned).into();
    assert_eq!(diagnosed(&control_plane), all, "a claim that is merely young is not stuck");
}
