//! moto, the AWS that the tests ask: installed from pinned wheels into `target/`, started on a free port, with what
//! `server.py` adds.

use crate::control_plane::Process;
use crate::patience::Patience;
use crate::{project, python, target};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// A server that runs until it is dropped.
pub struct Moto {
    port: u16,
    _server: Process,
}

impl Moto {
    /// One of a test's own, for one that takes long: the others wait for theirs. Its log is `target/moto/NAME.log`.
    pub fn start(name: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
        let mut command = Command::new(python::moto());
        command.arg(project().join("crates/programs/moto/server.py")).arg(port.to_string());
        let server = Process::spawn(&command, target().join(format!("moto/{name}.log")));
        let moto = Self { port, _server: server };
        let patience = Patience::of(Duration::from_secs(90));
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(!patience.is_over(), "moto does not start: see target/moto/{name}.log");
            std::thread::sleep(Duration::from_millis(100));
        }
        moto
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Tells the server what its AWS shall be like; gives what it says.
    pub fn tell(&self, what: &str, body: &Value) -> Value {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).expect("moto runs");
        let body = body.to_string();
        let head = format!("POST /test/{what} HTTP/1.0\r\nContent-Length: {}\r\n\r\n", body.len());
        socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body.as_bytes())).expect("moto listens");
        let mut reader = BufReader::new(socket);
        let mut line = String::new();
        reader.read_line(&mut line).expect("moto answers");
        assert!(line.contains(" 200 "), "{what}: {line}; see target/moto");
        let mut rest = String::new();
        reader.read_to_string(&mut rest).expect("moto answers");
        serde_json::from_str(rest.split_once("\r\n\r\n").expect("head and body").1).expect("JSON")
    }

    /// The calls since the last look, as IAM names them.
    pub fn calls(&self) -> Vec<String> {
        let calls = self.tell("calls", &Value::Null);
        calls.as_array().expect("a list").iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

/// The server that runs until the tests end, with nothing in it, for one test at a time.
pub fn moto() -> MutexGuard<'static, Moto> {
    static MOTO: OnceLock<Mutex<Moto>> = OnceLock::new();
    let moto = MOTO.get_or_init(|| Mutex::new(Moto::start("server"))).lock().unwrap_or_else(PoisonError::into_inner);
    moto.tell("reset", &Value::Object(serde_json::Map::new()));
    moto
}
