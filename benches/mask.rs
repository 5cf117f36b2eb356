//! How long it takes to mask a long line, and one of twice the length: linear where both have the same throughput.
//!
//! `cargo bench --bench mask`.

use divan::{Bencher, counter::BytesCount};
use readers::source_text::mask;

fn main() {
    divan::main();
}

/// Each the beginning of something that is masked, at which a careless reader looks at all the rest of the line.
const PIECES: &[&str] = &[
    "a",
    "A1b",
    "eyJ",
    "eyJ.",
    "token",
    "token ",
    "token=",
    "password='",
    "\"",
    "://",
    "://a:",
    "ü",
    "key=",
    "auth=",
    "token: [",
    "curl -u a:b ",
    "echo x | chpasswd ",
    "vault login ",
    "password: |\n ",
    "password: 'a\n",
    "echo '\n",
    "$(",
    "[\"",
    "$6$",
];

#[divan::bench(args = PIECES, sample_count = 5, sample_size = 1)]
fn half_a_mebibyte(bencher: Bencher, piece: &str) {
    masked(bencher, piece, 512 * 1024);
}

#[divan::bench(args = PIECES, sample_count = 5, sample_size = 1)]
fn one_mebibyte(bencher: Bencher, piece: &str) {
    masked(bencher, piece, 1024 * 1024);
}

fn masked(bencher: Bencher, piece: &str, size: usize) {
    let line = piece.repeat(size / piece.len());
    bencher.counter(BytesCount::of_str(&line)).bench(|| mask(divan::black_box(&line)));
}
