//! The certificate of the webhook, which changes while it serves.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::sleep;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

/// Between two looks at the files. The kubelet itself updates mounted Secrets about once a minute.
/// Source: kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go `SyncFrequency` (v1.36).
const LOOK: Duration = Duration::from_secs(10);

/// The certificate that new connections get. Without one, none is accepted.
#[derive(Debug, Default)]
pub(super) struct ServedCertificate(Mutex<Option<Arc<CertifiedKey>>>);

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why a certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    #[error("not PEM: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("there is no certificate")]
    Empty,
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

impl ServedCertificate {
    /// From now on new connections get this certificate. An error leaves the one before.
    pub(super) fn serve(&self, certificate: &[u8], key: &[u8]) -> Result<(), Error> {
        let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>()?;
        if chain.is_empty() {
            return Err(Error::Empty);
        }
        let certified = CertifiedKey::from_der(chain, PrivateKeyDer::from_pem_slice(key)?, &provider())?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }
}

fn provider() -> CryptoProvider {
    default_provider()
}

/// How the webhook speaks TLS.
pub(super) fn tls(served: Arc<ServedCertificate>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let config = ServerConfig::builder_with_provider(Arc::new(provider())).with_safe_default_protocol_versions()?;
    Ok(Arc::new(config.with_no_client_auth().with_cert_resolver(served)))
}

/// Serves the certificate of a folder, and the next one when the files change.
pub(super) async fn follow(folder: PathBuf, served: Arc<ServedCertificate>) {
    let mut known = None;
    let mut complained = false;
    loop {
        match read(&folder) {
            Ok(files) if known.as_ref() == Some(&files) => {}
            Ok((certificate, key)) => match served.serve(&certificate, &key) {
                Ok(()) => {
                    tracing::info!(folder = %folder.display(), "the admission webhook serves with this certificate");
                    known = Some((certificate, key));
                    complained = false;
                }
                // For a moment the key may be the next one's. Only a look that comes later tells.
                Err(error) => complain(&error, &mut complained),
            },
            Err(error) => complain(&error, &mut complained),
        }
        sleep(LOOK).await;
    }
}

fn complain(error: &Error, complained: &mut bool) {
    if !std::mem::replace(complained, true) {
        tracing::warn!(%error, "the admission webhook cannot use its certificate; it tries again");
    }
}

/// The certificate and its key, as cert-manager mounts them.
fn read(folder: &Path) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let read = |name: &str| {
        let file = folder.join(name);
        std::fs::read(&file).map_err(|error| Error::File(file, error))
    };
    Ok((read("tls.crt")?, read("tls.key")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str) -> CertificateDer<'static> {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        std::fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
        std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        made.cert.der().clone()
    }

    fn serves(served: &ServedCertificate) -> Option<CertificateDer<'static>> {
        served.0.lock().unwrap().as_ref().map(|certified| certified.cert[0].clone())
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_certificate_is_served_without_a_restart_and_half_of_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let served = Arc::new(ServedCertificate::default());
        let _following = tokio::spawn(follow(folder.path().to_owned(), Arc::clone(&served)));
        sleep(LOOK / 2).await;
        assert_eq!(serves(&served), None);
        let first = write(folder.path(), "first");
        sleep(LOOK).await;
        assert_eq!(serves(&served).as_ref(), Some(&first));
        // The certificate of the next one with the key of this one.
        let key = std::fs::read(folder.path().join("tls.key")).unwrap();
        let second = write(folder.path(), "second");
        let next_key = std::fs::read(folder.path().join("tls.key")).unwrap();
        std::fs::write(folder.path().join("tls.key"), key).unwrap();
        sleep(LOOK).await;
        assert_eq!(serves(&served).as_ref(), Some(&first));
        std::fs::write(folder.path().join("tls.key"), next_key).unwrap();
        sleep(LOOK).await;
        assert_eq!(serves(&served).as_ref(), Some(&second));
    }

    #[test]
    fn garbage_is_no_certificate() {
        let served = ServedCertificate::default();
        for (certificate, key) in [("", ""), ("garbage", "garbage")] {
            assert!(served.serve(certificate.as_bytes(), key.as_bytes()).is_err());
        }
        assert_eq!(serves(&served), None);
    }
}
