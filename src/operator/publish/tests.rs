use super::*;
use crate::operator::lease::Candidate;
use engine::api::ObjectRef;
use kube::client::Body;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An API server that gives this answer to every request, and the number of requests.
fn api_server(
    answer: impl Fn(&http::Request<Body>) -> http::response::Builder + Clone + Send + Sync + 'static,
) -> (Client, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let answer = answer(&request);
        let done = br#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#;
        async move { Ok::<_, tower::BoxError>(answer.body(Body::from(done.to_vec()))?) }
    });
    (Client::new(service, "default"), requests)
}

/// A publisher with this many writes to do.
async fn publisher(client: Client, verdicts: usize) -> mpsc::Sender<Task> {
    let (mut candidate, leads) = Candidate::new(None);
    candidate.stand().expect("no thread");
    let (changes, _) = mpsc::channel::<Change>(1);
    let (tasks, _) = start(client, "test".to_owned(), leads, Arc::new(Metrics::default()), changes.downgrade());
    for n in 0..verdicts {
        let work = Work::Delete(Delete { name: format!("general-{n}"), uid: None });
        tasks.send(Task { term: 1, work }).await.expect("it lives");
    }
    tasks
}

async fn after(seconds: u64, requests: &AtomicUsize) -> usize {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    requests.swap(0, Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn a_thousand_refused_verdicts_are_no_storm() {
    for code in [403_u16, 500] {
        let (client, requests) = api_server(move |_| http::Response::builder().status(code));
        let _tasks = publisher(client, 1_000).await;
        let at_first = after(10, &requests).await;
        assert!(at_first < 12, "{code}: {at_first} in the first ten seconds");
        let later = after(600, &requests).await;
        assert!((55..=65).contains(&later), "{code}: {later} in ten minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_written_again_is_written_at_full_speed() {
    let refuses = Arc::new(AtomicUsize::new(1));
    let is_refused = Arc::clone(&refuses);
    let (client, requests) = api_server(move |_| {
        http::Response::builder().status(if is_refused.load(Ordering::Relaxed) == 1 { 500_u16 } else { 200 })
    });
    let _tasks = publisher(client, 200).await;
    after(60, &requests).await;
    refuses.store(0, Ordering::Relaxed);
    assert!(after(90, &requests).await >= 200);
}

#[tokio::test(start_paused = true)]
async fn one_verdict_that_is_never_taken_holds_up_no_other() {
    let (client, requests) = api_server(|request| {
        http::Response::builder().status(if request.uri().path().ends_with("general-7") { 500_u16 } else { 200 })
    });
    let _tasks = publisher(client, 100).await;
    assert!(after(30, &requests).await >= 100);
}

#[tokio::test(start_paused = true)]
async fn it_waits_as_long_as_the_api_server_asks() {
    let (client, requests) = api_server(|_| http::Response::builder().status(429_u16).header("Retry-After", "120"));
    let _tasks = publisher(client, 1_000).await;
    let at_first = after(5, &requests).await;
    assert!(at_first <= UNDER_WAY, "{at_first}");
    assert_eq!(after(110, &requests).await, 0);
    assert_eq!(after(10, &requests).await, 1);
}

/// After a takeover amid an incident there are thousands of them.
#[tokio::test(start_paused = true)]
async fn events_that_the_last_leader_may_have_sent_delay_no_verdict() {
    let written = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&written);
    let (client, requests) = api_server(move |request| {
        counted.fetch_add(usize::from(request.uri().path().contains("/nodediagnoses/")), Ordering::Relaxed);
        http::Response::builder()
    });
    let tasks = publisher(client, 0).await;
    for n in 0..100 {
        let work = Work::Announce(verdict(n).diagnosis);
        tasks.send(Task { term: 1, work }).await.expect("it lives");
    }
    let work = Work::Delete(Delete { name: "general-new".to_owned(), uid: None });
    tasks.send(Task { term: 1, work }).await.expect("it lives");
    let early = after(1, &requests).await;
    assert_eq!(written.load(Ordering::Relaxed), 1);
    assert_eq!(early + after(30, &requests).await, 100 + 1, "each is sent once");
}

/// Verdicts come first: they are not taken for failed, and are not written again.
#[tokio::test(start_paused = true)]
async fn an_events_api_that_hangs_holds_up_no_verdict_for_long() {
    let (client, requests) = hanging_events();
    let (mut candidate, leads) = Candidate::new(None);
    candidate.stand().expect("no thread");
    let (changes, _) = mpsc::channel::<Change>(1);
    let (tasks, _) = start(client, "test".to_owned(), leads, Arc::new(Metrics::default()), changes.downgrade());
    for n in 0..20 {
        tasks.send(Task { term: 1, work: Work::Write(Box::new(verdict(n))) }).await.expect("it lives");
    }
    assert_eq!(after(30, &requests).await, 20 * 2, "two halves each, once");
}

fn hanging_events() -> (Client, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let counted = Arc::clone(&counted);
        async move {
            if request.uri().path().ends_with("/events") {
                std::future::pending::<()>().await;
            }
            counted.fetch_add(1, Ordering::Relaxed);
            let body = serde_json::json!({
                "apiVersion": "nodewhy.dev/v1alpha1", "kind": "NodeDiagnosis", "metadata": { "name": "x" }, "spec": spec(0),
            });
            let body = Body::from(body.to_string().into_bytes());
            Ok::<_, tower::BoxError>(http::Response::builder().body(body)?)
        }
    });
    (Client::new(service, "default"), requests)
}

fn spec(n: usize) -> serde_json::Value {
    serde_json::json!({ "subject": {
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": format!("general-{n}"), "uid": n.to_string(),
    } })
}

fn verdict(n: usize) -> Write {
    let diagnosis = serde_json::json!({
        "apiVersion": "nodewhy.dev/v1alpha1", "kind": "NodeDiagnosis",
        "metadata": { "name": format!("general-{n}") }, "spec": spec(n),
        "status": {
            "stage": "Join", "cause": "Unknown", "confidence": "Possible", "summary": "s",
            "firstObservedAt": "2026-01-15T12:00:00Z",
        },
    });
    Write {
        diagnosis: Arc::new(serde_json::from_value(diagnosis).expect("a NodeDiagnosis")),
        replaces: false,
        announces: true,
        first: true,
        ends: None,
        in_vain: None,
    }
}

fn notice(kind: &str, namespace: Option<&str>, is_found: bool) -> FindingNotice {
    FindingNotice {
        regarding: ObjectRef {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            name: "batch".to_owned(),
            uid: format!("uid of the {kind}"),
        },
        namespace: namespace.map(str::to_owned),
        cause: "KubeletRefusesLabels".to_owned(),
        note: "New nodes will fail.".to_owned(),
        is_found,
        identity: format!("KubeletRefusesLabels {is_found}"),
    }
}

/// The Events that an API server was sent, each with its path.
type Sent = Arc<Mutex<Vec<(String, serde_json::Value)>>>;

/// An API server that takes every Event, and the Events that it was sent, each with its path.
fn events_api() -> (Client, Sent) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&sent);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let taken = Arc::clone(&taken);
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await?;
            taken.lock().expect("no panic").push((path, serde_json::from_slice(&body)?));
            Ok::<_, tower::BoxError>(http::Response::builder().body(Body::from(body.to_vec()))?)
        }
    });
    (Client::new(service, "default"), sent)
}

#[tokio::test(start_paused = true)]
async fn a_finding_is_an_event_on_its_object_in_the_namespace_of_the_object() {
    let (client, sent) = events_api();
    let tasks = publisher(client, 0).await;
    let notices = [
        notice("EC2NodeClass", None, true),
        notice("ConfigMap", Some("kube-system"), true),
        notice("EC2NodeClass", None, false),
    ];
    for notice in notices {
        tasks.send(Task { term: 1, work: Work::Notice(Box::new(notice)) }).await.expect("it lives");
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let sent = std::mem::take(&mut *sent.lock().expect("no panic"));
    let told: Vec<_> = sent
        .iter()
        .map(|(path, event)| (path.as_str(), event["type"].as_str(), event["regarding"]["kind"].as_str()))
        .collect();
    let (default, system) =
        ("/apis/events.k8s.io/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/kube-system/events");
    assert_eq!(
        told,
        [
            (default, Some("Warning"), Some("EC2NodeClass")),
            (system, Some("Warning"), Some("ConfigMap")),
            (default, Some("Normal"), Some("EC2NodeClass")),
        ]
    );
    assert_eq!(sent[1].1["regarding"]["namespace"], "kube-system");
    assert_eq!(sent[0].1["reason"], "KubeletRefusesLabels");
    let name = |at: usize| sent[at].1["metadata"]["name"].as_str().expect("a name");
    assert_ne!(name(0), name(2));
}

#[tokio::test(start_paused = true)]
async fn a_finding_has_one_event_name_and_a_follower_sends_none() {
    let (client, sent) = events_api();
    let tasks = publisher(client, 0).await;
    // Term 2 is another replica's.
    for term in [1, 2] {
        let work = Work::Notice(Box::new(notice("EC2NodeClass", None, true)));
        tasks.send(Task { term, work }).await.expect("it lives");
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let first = std::mem::take(&mut *sent.lock().expect("no panic"));
    assert_eq!(first.len(), 1);
    let (client, sent) = events_api();
    let tasks = publisher(client, 0).await;
    let work = Work::Notice(Box::new(notice("EC2NodeClass", None, true)));
    tasks.send(Task { term: 1, work }).await.expect("it lives");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let again = std::mem::take(&mut *sent.lock().expect("no panic"));
    assert_eq!(again[0].1["metadata"]["name"], first[0].1["metadata"]["name"], "after a restart the same name");
}

/// The API server has the Event already, or cannot take it.
#[tokio::test(start_paused = true)]
async fn an_event_about_a_finding_is_not_sent_again() {
    for code in [409_u16, 500] {
        let (client, requests) = api_server(move |_| http::Response::builder().status(code));
        let tasks = publisher(client, 0).await;
        let work = Work::Notice(Box::new(notice("EC2NodeClass", None, true)));
        tasks.send(Task { term: 1, work }).await.expect("it lives");
        assert_eq!(after(600, &requests).await, 1, "{code}");
    }
}
