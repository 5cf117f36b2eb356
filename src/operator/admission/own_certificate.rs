//! The certificate that nodewhy makes for its own webhook, if none is mounted. All replicas serve the same one: it is
//! kept in a Secret. Its authority signs it and nothing else, because the authority's key is thrown away.
//!
//! API servers must know an authority before anything that it signed is served. So the webhook configuration gets the
//! next authority beside the present one, and the next certificate is served an hour later.

use super::Home;
use super::certificates::{self, ServedCertificate};
use crate::kube_client;
use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The name of the Secret, the webhook configuration and the Service.
pub const NAME: &str = "nodewhy-admission";
/// Rights on the object of that name: on the Secret in nodewhy's own namespace, and on the webhook configuration.
pub const NEEDS: [(&str, &str, &[&str]); 2] = [
    ("", "secrets", &["get", "update"]),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", &["get", "patch"]),
];

/// The key of the Secret's data.
const DATA: &str = "certificates.json";
/// How long a certificate is valid.
const VALID: TimeDelta = TimeDelta::days(90);
/// The next one is made this long before the end.
const RENEWAL: TimeDelta = TimeDelta::days(30);
/// The next one is served this long after its authority was made known. One that was replaced is kept as long again,
/// because another replica may still serve it.
const KNOWN: TimeDelta = TimeDelta::hours(1);
/// Clocks of API servers may be behind.
const SKEW: TimeDelta = TimeDelta::hours(1);

/// Between two looks. After one that failed the pause is shorter at first.
const LOOK: Duration = Duration::from_mins(5);
const RETRY: Duration = Duration::from_secs(5);
/// Time limit of one look.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A certificate with its authority, as PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Issued {
    authority: String,
    certificate: String,
    key: String,
    made: DateTime<Utc>,
    ends: DateTime<Utc>,
}

/// The certificates that are in use or will be, the oldest first.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Issues(Vec<Issued>);

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Client(#[from] kube_client::Error),
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("cannot create a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error(transparent)]
    Certificate(#[from] certificates::Error),
    #[error("cannot write it: {0}")]
    Json(#[from] serde_json::Error),
}

impl Issues {
    fn of(secret: &Secret) -> Self {
        let kept = secret.data.as_ref().and_then(|data| data.get(DATA));
        kept.and_then(|ByteString(kept)| serde_json::from_slice(kept).ok()).unwrap_or_default()
    }

    /// The certificate to serve: the newest that API servers have had the time to know.
    fn served(&self, now: DateTime<Utc>) -> Option<&Issued> {
        self.0.iter().rev().find(|issued| issued.made + KNOWN <= now).or_else(|| self.0.first())
    }

    /// The authorities that API servers trust.
    fn bundle(&self) -> String {
        self.0.iter().map(|issued| issued.authority.as_str()).collect()
    }

    /// The certificates as they should be. `None` if they are so.
    fn renewed(
        &self,
        now: DateTime<Utc>,
        make: impl FnOnce() -> Result<Issued, rcgen::Error>,
    ) -> Result<Option<Self>, rcgen::Error> {
        let mut next = self.clone();
        next.0.retain(|issued| now < issued.ends);
        if let Some(newest) = next.0.last().filter(|newest| newest.made + KNOWN * 2 <= now).cloned() {
            next.0 = vec![newest];
        }
        if next.0.last().is_none_or(|newest| newest.ends - RENEWAL <= now) {
            next.0.push(make()?);
        }
        Ok(Some(next).filter(|next| next != self))
    }
}

/// A new authority, and what it signs for this name.
fn make(name: &str, now: DateTime<Utc>) -> Result<Issued, rcgen::Error> {
    let ends = now + VALID;
    let params = |common_name: String| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        // Source: RFC 5280 4.1.2.5; the crate takes its own kind of time.
        let at = |time: DateTime<Utc>| {
            rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(time.timestamp().try_into().unwrap_or_default())
        };
        params.not_before = at(now - SKEW);
        params.not_after = at(ends);
        params
    };
    // Each authority has a name of its own, so that no certificate is checked with the wrong one.
    let mut authority = params(format!("{NAME} {}", now.timestamp()));
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();

    let mut serving = params(name.to_owned());
    serving.subject_alt_names = vec![rcgen::SanType::DnsName(name.try_into()?)];
    serving.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = serving.signed_by(&key, &Issuer::new(authority, authority_key))?.pem();
    Ok(Issued { authority: authority_pem, certificate, key: key.serialize_pem(), made: now, ends })
}

/// Keeps the certificate, for as long as the webhook serves.
pub(super) async fn keep(home: Home, served: Arc<ServedCertificate>) {
    // It logs the first failure, not each that follows.
    let mut failing = None;
    loop {
        let error = match timeout(TIMEOUT, look(&home, &served)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the API server does not answer".to_owned()),
        };
        failing = match (error, failing) {
            (None, _) => None,
            (Some(_), Some(pause)) => Some(LOOK.min(pause * 2)),
            (Some(error), None) => {
                tracing::warn!(error, "cannot keep the certificate of the admission webhook; nodewhy tries again");
                Some(RETRY)
            }
        };
        sleep(failing.unwrap_or(LOOK)).await;
    }
}

/// Each look has a client of its own: they are minutes apart, and credentials change.
async fn look(home: &Home, served: &ServedCertificate) -> Result<(), Error> {
    let client = home.cluster.lasting_client(Arc::clone(&home.clock)).await?;
    let namespace = home.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    let now = home.clock.now();
    let issues = kept(&Api::namespaced(client.clone(), &namespace), &namespace, now).await?;
    if let Some(issued) = issues.served(now) {
        served.serve(issued.certificate.as_bytes(), issued.key.as_bytes())?;
    }
    announce(client, &issues.bundle()).await
}

/// The certificates of the Secret, renewed if it is time. Of two replicas that renew at once, one gets a conflict.
async fn kept(secrets: &Api<Secret>, namespace: &str, now: DateTime<Utc>) -> Result<Issues, Error> {
    let mut secret = secrets.get(NAME).await?;
    let known = Issues::of(&secret);
    let Some(next) = known.renewed(now, || make(&format!("{NAME}.{namespace}.svc"), now))? else { return Ok(known) };
    secret.data.get_or_insert_default().insert(DATA.to_owned(), ByteString(serde_json::to_vec(&next)?));
    secrets.replace(NAME, &PostParams::default(), &secret).await?;
    tracing::info!("nodewhy has renewed the certificates of the admission webhook");
    Ok(next)
}

/// Writes the authorities into the webhook configuration, if it has others.
async fn announce(client: Client, bundle: &str) -> Result<(), Error> {
    let configurations = Api::<ValidatingWebhookConfiguration>::all(client);
    let configuration = configurations.get(NAME).await?;
    let webhooks = configuration.webhooks.unwrap_or_default();
    let wanted = ByteString(bundle.as_bytes().to_vec());
    let stale: Vec<_> = webhooks
        .iter()
        .filter(|webhook| webhook.client_config.ca_bundle.as_ref() != Some(&wanted))
        .map(|webhook| json!({"name": webhook.name, "clientConfig": {"caBundle": wanted}}))
        .collect();
    if !stale.is_empty() {
        // A strategic merge finds each webhook by its name, and leaves the rest of it.
        let patch = Patch::Strategic(json!({"webhooks": stale}));
        configurations.patch(NAME, &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> DateTime<Utc> {
        "2026-01-15T12:00:00Z".parse().unwrap()
    }

    fn issued(made: DateTime<Utc>) -> Issued {
        let text = |what: &str| format!("{what} {made}\n");
        Issued {
            authority: text("authority"),
            certificate: text("certificate"),
            key: text("key"),
            made,
            ends: made + VALID,
        }
    }

    fn renewed(issues: &Issues, now: DateTime<Utc>) -> Option<Issues> {
        issues.renewed(now, || Ok(issued(now))).unwrap()
    }

    #[test]
    fn api_servers_know_an_authority_for_an_hour_before_its_certificate_is_served() {
        let mut issues = renewed(&Issues::default(), start()).unwrap();
        let first = issues.0[0].clone();
        assert!(issues.served(start()) == Some(&first), "there is no other");
        let renewal = first.ends - RENEWAL;
        assert!(renewed(&issues, renewal - TimeDelta::seconds(1)).is_none());

        issues = renewed(&issues, renewal).unwrap();
        assert_eq!(issues.0.len(), 2);
        let second = issues.0[1].clone();
        assert_eq!(issues.bundle(), format!("{}{}", first.authority, second.authority));
        assert!(issues.served(renewal + KNOWN - TimeDelta::seconds(1)) == Some(&first));
        assert!(issues.served(renewal + KNOWN) == Some(&second));
        // Another replica may not have looked yet.
        assert!(renewed(&issues, renewal + KNOWN).is_none());
        issues = renewed(&issues, renewal + KNOWN * 2).unwrap();
        assert!(issues.0 == [second]);
        assert!(renewed(&issues, renewal + KNOWN * 3).is_none());
    }

    #[test]
    fn after_a_long_pause_no_certificate_that_ended_is_served() {
        let issues = renewed(&Issues::default(), start()).unwrap();
        let later = start() + VALID;
        let issues = renewed(&issues, later).unwrap();
        assert!(issues.served(later).is_some_and(|issued| later < issued.ends));
        assert_eq!(issues.0.len(), 1);
    }

    #[test]
    fn what_is_made_can_be_kept_and_served() {
        let made = make("nodewhy-admission.nodewhy.svc", start()).unwrap();
        assert!(ServedCertificate::default().serve(made.certificate.as_bytes(), made.key.as_bytes()).is_ok());
        let issues = Issues(vec![made]);
        let kept = ByteString(serde_json::to_vec(&issues).unwrap());
        let secret = Secret { data: Some([(DATA.to_owned(), kept)].into()), ..Secret::default() };
        assert!(Issues::of(&secret) == issues);
        assert!(Issues::of(&Secret::default()) == Issues::default());
        let garbage = Secret { data: Some([(DATA.to_owned(), ByteString(b"x".to_vec()))].into()), ..Secret::default() };
        assert!(Issues::of(&garbage) == Issues::default());
    }
}
