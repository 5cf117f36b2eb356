//! The target `logs` where there is no libFuzzer, blind but for its first inputs:
//! `cargo run --example seed && cargo run --example logs -- 600`, the seconds that it takes.

use nodewhy_fuzz::read_log;
use std::{
    env, fs, io,
    panic::catch_unwind,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

/// Lines of an input.
const LINES: usize = 40;

fn main() -> io::Result<ExitCode> {
    let seconds = env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/logs");
    let lines: Vec<Vec<u8>> = fs::read_dir(&corpus)?.map(|entry| fs::read(entry?.path())).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    let mut dice = Dice(begun.elapsed().as_nanos() as u64 | u64::from(std::process::id()) << 32 | 1);
    let (mut inputs, mut bytes, mut slowest) = (0_u64, 0, Duration::ZERO);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let input = dice.input(&lines);
        let started = Instant::now();
        if catch_unwind(|| read_log(&input)).is_err() {
            let file = corpus.join("crash");
            fs::write(&file, &input)?;
            println!("{} after {inputs} inputs", file.display());
            return Ok(ExitCode::FAILURE);
        }
        slowest = slowest.max(started.elapsed());
        (inputs, bytes) = (inputs + 1, bytes + input.len());
    }
    println!("{inputs} inputs, {} MiB, the slowest took {slowest:?}", bytes >> 20);
    Ok(ExitCode::SUCCESS)
}

/// Marsaglia's xorshift: chance enough, and nothing to build.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// Lines that programs print, in what wraps them, and then damaged.
    fn input(&mut self, lines: &[Vec<u8>]) -> Vec<u8> {
        const WRAPPINGS: [&str; 9] = [
            "",
            "Jan 15 11:51:02 ip-10-0-2-20.ec2.internal kubelet[1629]: ",
            "Feb 29 23:59:60 localhost systemd[1]: ",
            "2026-01-15T11:51:02.123456Z ",
            "2026-01-15T11:51:02.123456789Z stderr F ",
            "[   12.302114] cloud-init[1700]: ",
            "[pod/aws-node-x7k2p/aws-node] ",
            "{\"__REALTIME_TIMESTAMP\":\"1768477862000000\",\"SYSLOG_IDENTIFIER\":\"kubelet\",\"MESSAGE\":\"",
            "\x1b[0;1;31m[FAILED]\x1b[0m ",
        ];
        const ENDS: [&str; 4] = ["\n", "\r\n", "\"}\n", "\0"];
        // Text with zeros is no text: then nothing is read.
        let ends = if self.below(20) == 0 { &ENDS[..] } else { &ENDS[..3] };
        let mut input = Vec::new();
        for _ in 0..=self.below(LINES) {
            input.extend(WRAPPINGS[self.below(WRAPPINGS.len())].as_bytes());
            if let Some(line) = lines.get(self.below(lines.len())) {
                input.extend(line);
            }
            input.extend(ends[self.below(ends.len())].as_bytes());
        }
        for _ in 0..self.below(30) {
            let (at, length) = (self.below(input.len()), self.below(24));
            let end = (at + length).min(input.len());
            match self.below(4) {
                0 => drop(input.drain(at..end)),
                1 => {
                    let piece = input[at..end].to_vec();
                    let to = self.below(input.len());
                    input.splice(to..to, piece);
                }
                2 => input.splice(at..at, "é{}\"\\: ".bytes()).for_each(drop),
                _ => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte = self.below(256) as u8;
                    }
                }
            }
        }
        input
    }
}
