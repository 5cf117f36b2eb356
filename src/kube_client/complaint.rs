//! Why a cluster cannot be reached, and what to do about it, in one sentence that names the server.

use kube::client::AuthError;
use readers::source_text;
use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;

/// The API server to reach, and how.
#[derive(Debug, Clone)]
pub struct Target {
    pub server: String,
    /// The command of the kubeconfig's exec plugin, if it has one.
    pub plugin: Option<String>,
    /// Maximum time to wait for an answer.
    pub within: Duration,
}

impl Target {
    /// A sentence for whoever sits at the terminal.
    pub fn complaint(&self, error: &(dyn Error + 'static)) -> String {
        let server = &self.server;
        let links = || links(error);
        if let Some(auth) = links().find_map(|link| link.downcast_ref::<AuthError>()) {
            return self.of_credentials(auth);
        }
        if let Some(kube::Error::Api(status)) = links().find_map(|link| link.downcast_ref::<kube::Error>()) {
            return match status.code {
                401 => format!(
                    "{server} does not know these credentials (401 Unauthorized): log in again, or check --context"
                ),
                code => format!("{server} answers {code} {}", source_text::mask(&status.message)),
            };
        }
        let root = links().last().map(ToString::to_string).unwrap_or_default();
        match links().find_map(|link| link.downcast_ref::<std::io::Error>()).map(std::io::Error::kind) {
            Some(ErrorKind::ConnectionRefused) => {
                format!("{server} refuses the connection: nothing listens there, or a tunnel to it is closed")
            }
            Some(ErrorKind::TimedOut) => self.silence(),
            Some(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => {
                format!("{server} cannot be reached from here ({root}): is it private, and is the VPN off?")
            }
            _ if root.contains("failed to lookup address") || root.contains("dns error") => {
                format!("the name of {server} is not known here ({root}): is it private, and is the VPN off?")
            }
            _ if root.contains("certificate") => {
                format!(
                    "the certificate of {server} is not trusted ({root}): does certificate-authority-data \
                     in the kubeconfig belong to this cluster?"
                )
            }
            _ => format!("{server} cannot be asked: {root}"),
        }
    }

    /// The complaint about a server that accepts a connection and does not answer.
    pub fn silence(&self) -> String {
        let Self { server, within, .. } = self;
        format!(
            "{server} did not answer within {}s (--request-timeout permits more): is it private, and is the VPN off?",
            within.as_secs()
        )
    }

    fn of_credentials(&self, error: &AuthError) -> String {
        let (server, plugin) = (&self.server, self.plugin.as_deref().unwrap_or_default());
        match error {
            AuthError::AuthExecStart(error) => {
                format!(
                    "the kubeconfig's exec plugin {plugin} for {server} cannot be started ({error}): install it, or \
                     put it on the PATH"
                )
            }
            AuthError::AuthExecRun { out, .. } => {
                // What it says it has said on this terminal, unless it was told to be quiet. It may hold a token.
                let said =
                    source_text::mask(String::from_utf8_lossy(&out.stderr).trim().lines().last().unwrap_or_default());
                let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
                let status =
                    out.status.code().map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
                let login = if plugin.ends_with("aws") { ", for example with aws sso login" } else { "" };
                format!(
                    "the kubeconfig's exec plugin {plugin} for {server} ended with {status}{said}: log in again{login}"
                )
            }
            other => format!("no credentials for {server}: {other}"),
        }
    }
}

/// The error, what caused it, and so on to the root.
fn links<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |link| {
        let link: &'e (dyn Error + 'static) = *link;
        link.source()
    })
}
