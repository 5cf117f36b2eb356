//! An HTTPS proxy that answers for the hosts that it is asked for, with a certificate that a client must be told to
//! trust: for programs that take AWS at its own names and nowhere else.

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// A proxy on the loopback interface, for as long as the test runs.
pub struct TlsProxy {
    port: u16,
    /// What clients must trust.
    pub certificate: String,
}

impl TlsProxy {
    /// `answer` is given a host and the body of a request, and gives status and body.
    pub fn start(hosts: &[&str], answer: impl Fn(&str, &str) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let names: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let certified = rcgen::generate_simple_self_signed(names).expect("ring signs");
        let (certificate, config, answer) = (certified.cert.pem(), tls(&certified), Arc::new(answer));
        thread::spawn(move || {
            for connection in listener.incoming().filter_map(Result::ok) {
                let (config, answer) = (Arc::clone(&config), Arc::clone(&answer));
                // Whoever reads no further hangs up: that is no failure of the test.
                thread::spawn(move || drop(serve(connection, config, &*answer)));
            }
        });
        Self { port, certificate }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// How a server with that certificate speaks TLS.
pub(crate) fn tls(certified: &rcgen::CertifiedKey<rcgen::KeyPair>) -> Arc<ServerConfig> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("ring has them").with_no_client_auth();
    Arc::new(config.with_single_cert(vec![certified.cert.der().clone()], key).expect("the key is the certificate's"))
}

fn serve(
    mut connection: TcpStream,
    config: Arc<ServerConfig>,
    answer: &dyn Fn(&str, &str) -> (u16, String),
) -> io::Result<()> {
    // `CONNECT host:443 HTTP/1.1`. The client says no more until it is answered.
    let (head, _) = request(&mut BufReader::new(&connection))?;
    let host = head.split([' ', ':']).nth(1).unwrap_or_default().to_owned();
    connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let mut session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = Stream::new(&mut session, &mut connection);
    let (_, body) = request(&mut BufReader::new(&mut stream))?;
    let (status, text) = answer(&host, &body);
    write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len())?;
    session.send_close_notify();
    session.complete_io(&mut connection).map(drop)
}

/// Head and body.
fn request(from: &mut impl BufRead) -> io::Result<(String, String)> {
    let (mut head, mut body) = (String::new(), String::new());
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head)? == 0 {
            break;
        }
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    from.take(length.unwrap_or(0)).read_to_string(&mut body)?;
    Ok((head, body))
}
