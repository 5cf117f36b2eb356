//! The part of a kubelet that gives logs. The API server forwards `pods/log` to the address and port that the Node
//! names, and checks no certificate unless it is told to: whoever answers there is the kubelet.

use crate::tls_proxy::tls;
use rustls::{ServerConfig, ServerConnection, Stream};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What it answers.
#[derive(Debug, Clone)]
pub enum Log {
    /// These lines.
    Lines(String),
    /// These lines, again and again for as long as somebody reads, whatever limit was asked for.
    Endless(String),
    /// These lines, and then nothing for so long.
    Stalls(String, Duration),
    /// No log: a status, and why.
    Refused(u16, &'static str),
}

/// A kubelet's port on the loopback interface, for as long as the test runs.
pub struct KubeletLogs {
    pub port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl KubeletLogs {
    /// `answer` is given the path and query: `/containerLogs/NAMESPACE/POD/CONTAINER?…`.
    pub fn start(answer: impl Fn(&str) -> Log + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("ring signs");
        let (config, answer, noted) = (tls(&certified), Arc::new(answer), Arc::clone(&asked));
        thread::spawn(move || {
            for connection in listener.incoming().filter_map(Result::ok) {
                let (config, answer, noted) = (Arc::clone(&config), Arc::clone(&answer), Arc::clone(&noted));
                // Whoever reads no further hangs up: that is no failure of the test.
                thread::spawn(move || drop(serve(connection, config, &*answer, &noted)));
            }
        });
        Self { port, asked }
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was asked so far is of no interest any more.
    pub fn forget(&self) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn serve(
    mut connection: TcpStream,
    config: Arc<ServerConfig>,
    answer: &dyn Fn(&str) -> Log,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut session = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = Stream::new(&mut session, &mut connection);
    let mut head = String::new();
    let mut reader = BufReader::new(&mut stream);
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    let mut begin = |status: &str| {
        write!(stream, "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")?;
        stream.flush()?;
        Ok::<_, std::io::Error>(())
    };
    match answer(&path) {
        Log::Refused(status, why) => {
            begin(&format!("{status} Refused"))?;
            stream.write_all(why.as_bytes())?;
        }
        Log::Lines(lines) => {
            begin("200 OK")?;
            stream.write_all(lines.as_bytes())?;
        }
        Log::Endless(lines) => {
            begin("200 OK")?;
            loop {
                stream.write_all(lines.as_bytes())?;
            }
        }
        Log::Stalls(lines, time) => {
            begin("200 OK")?;
            stream.write_all(lines.as_bytes())?;
            stream.flush()?;
            thread::sleep(time);
        }
    }
    session.send_close_notify();
    session.complete_io(&mut connection)?;
    Ok(())
}
