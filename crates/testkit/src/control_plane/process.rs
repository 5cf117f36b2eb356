//! A child process that never outlives the test which started it.

use crate::patience::Patience;
use std::{
    env,
    fs::{self, File},
    io::Write,
    net::TcpListener,
    path::PathBuf,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::Duration,
};

/// `exec` keeps the process id, so the child answers to signals and reports its exit status as if nobody stood between.
/// The subshell beside it reads a pipe whose other end only the test holds: end of file means that the test is gone,
/// however it died. A line means "let it be".
const SUPERVISE: &str = r#"
exec 3<&0
(trap '' HUP INT TERM; read -r _ <&3 || kill -KILL $$) &
exec "$@" 3<&- </dev/null
"#;

#[must_use = "it is killed when it is dropped"]
pub struct Process {
    child: Child,
    lifeline: ChildStdin,
    log: PathBuf,
}

impl Process {
    /// Starts the command under supervision, both its outputs in the file `log`.
    pub fn spawn(command: &Command, log: PathBuf) -> Self {
        let output = File::create(&log).expect("the log's folder exists");
        let mut child = supervised(command)
            .stdin(Stdio::piped())
            .stdout(output.try_clone().expect("the log can be opened twice"))
            .stderr(output)
            .spawn()
            .expect("sh starts");
        let lifeline = child.stdin.take().expect("stdin is a pipe");
        Self { child, lifeline, log }
    }

    /// Polls until `ready`; panics with the end of the log when the process exits before that, or time runs out.
    pub fn wait_until_ready(&mut self, timeout: Duration, mut ready: impl FnMut() -> bool) {
        let patience = Patience::of(timeout);
        while !ready() {
            if let Some(status) = self.exited() {
                panic!("it exited with {status}; {}", self.log_tail());
            }
            assert!(!patience.is_over(), "not ready after {timeout:?}; {}", self.log_tail());
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// How the process ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the child is ours to wait for")
    }

    /// SIGKILL, and it is gone when this returns.
    pub fn kill(&mut self) {
        self.child.kill().expect("the child is ours");
        self.child.wait().expect("the child is ours to wait for");
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Holds it still (`STOP`) or lets it go on (`CONT`).
    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status().expect("kill runs");
        assert!(sent.success(), "it is gone; {}", self.log_tail());
    }

    /// Asks it to end (SIGTERM, as kubelet does) and returns how it did; panics when it ignores that.
    pub fn terminate(mut self) -> ExitStatus {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status().expect("kill runs");
        assert!(sent.success(), "it was gone before SIGTERM; {}", self.log_tail());
        let patience = Patience::of(Duration::from_secs(20));
        loop {
            if let Some(status) = self.exited() {
                return status;
            }
            assert!(!patience.is_over(), "it ignored SIGTERM; {}", self.log_tail());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Everything it has said so far.
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        format!("the end of {}:\n{}", self.log.display(), lines[lines.len().saturating_sub(30)..].join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The process id may belong to somebody else from here on: send the watching subshell home.
        let _ = self.lifeline.write_all(b"\n");
    }
}

/// The command as one that dies when the other end of its standard input is closed.
pub fn supervised(command: &Command) -> Command {
    let mut supervised = Command::new("sh");
    supervised
        .args(["-c", SUPERVISE, "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    supervised
}

/// Ports of the loopback interface that nobody listens on, all different. They are used later, so they come from below
/// the range that the kernel gives to connections and to port 0 (32768 and up), and each test that runs at the same
/// time has 200 of its own.
pub fn free_ports<const N: usize>() -> [u16; N] {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let slot = env::var("NEXTEST_TEST_GLOBAL_SLOT").ok().and_then(|slot| slot.parse().ok());
    let slot = slot.unwrap_or_else(|| u16::try_from(std::process::id() % 80).expect("it is below 80"));
    std::array::from_fn(|_| {
        let mut ports = (0..200).map(|_| 15_000 + 200 * (slot % 80) + NEXT.fetch_add(1, Ordering::Relaxed) % 200);
        ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("one of 200 ports is free")
    })
}
