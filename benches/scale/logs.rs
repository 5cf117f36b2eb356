//! A bundle of the size that the EKS log collector makes, beside who only looks for a word in it.

use crate::measure::{Row, whole};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// What there is to read, unpacked.
fn mebibytes() -> u64 {
    std::env::var("NODEWHY_LOG_MIB").ok().and_then(|n| n.parse().ok()).unwrap_or(1024)
}

pub fn bundle(_: usize) -> Vec<Row> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("eks_i-0a0000000000000b1_2026-01-15_1158-UTC_0.7.8.tar.gz");
    let size = mebibytes();
    write(&path, size << 20);
    let packed = std::fs::metadata(&path).expect("just written").len() >> 20;
    let mut nodewhy = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    nodewhy.args(["diagnose", "--logs"]).arg(&path);
    let what = format!("nodewhy diagnose --logs, {size} MiB, {packed} MiB as tar.gz");
    let mut rows = vec![whole(&what, &[0, 1], &mut nodewhy)];
    // A user who knows the line already; and the least that any reader takes. Of both only the shell's memory is seen.
    let of_shell = |what: &str, codes: &[i32], command: &mut Command| Row { peak: None, ..whole(what, codes, command) };
    let word = "Unable to register node with API server";
    let mut zgrep = Command::new("zgrep");
    rows.push(of_shell("zgrep -c of one line in the same", &[0, 1], zgrep.args(["-c", word]).arg(&path)));
    let mut gunzip = Command::new("gunzip");
    rows.push(of_shell("gunzip -c of the same", &[0], gunzip.arg("-c").arg(&path)));
    for row in &rows {
        #[allow(clippy::cast_precision_loss, reason = "a size")]
        let speed = size as f64 * 1.048_576 / row.time.as_secs_f64();
        println!("{:64} {speed:>9.0} MB/s", row.what);
    }
    rows
}

/// A healthy machine's journal and the log of its network plugin, with what such machines complain of: one line in
/// fifty is alarming.
fn write(path: &Path, bytes: u64) {
    const PART: u64 = 64 << 20;
    let file = File::create(path).expect("room");
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    let mut random = fastrand::Rng::with_seed(7);
    for part in 0..bytes.div_ceil(PART) {
        let mut text = String::new();
        while (text.len() as u64) < PART.min(bytes - part * PART) {
            line(&mut text, &mut random, part % 2 == 0);
        }
        let name = if part % 2 == 0 { "kubelet/kubelet.log" } else { "var_log/aws-routed-eni/ipamd.log" };
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, format!("{part}/{name}"), text.as_bytes()).expect("room");
    }
    archive.into_inner().and_then(GzEncoder::finish).expect("room");
}

fn line(text: &mut String, random: &mut fastrand::Rng, is_journal: bool) {
    let (minute, second, micros) = (random.u32(0..60), random.u32(0..60), random.u32(0..1_000_000));
    let (pod, uid, number) = (random.u32(..), random.u128(..), random.u32(0..64));
    let line = match (is_journal, random.u32(0..100)) {
        (true, 0) => {
            format!("\"Failed to pull image\" err=\"dial tcp 10.0.3.7:443: i/o timeout\" image=\"shop/web:{number}\"")
        }
        (true, 1) => "\"Unable to update cni config\" err=\"no networks found in /etc/cni/net.d\"".to_owned(),
        (true, _) => format!(
            "\"SyncLoop (PLEG): event for pod\" pod=\"shop/web-{pod:x}\" \
             event={{\"ID\":\"{uid:032x}\",\"Type\":\"ContainerStarted\"}}"
        ),
        (false, 0..2) => "Unable to reach API Server: Get \\\"https://172.20.0.1:443/version\\\": dial tcp \
                          172.20.0.1:443: i/o timeout"
            .to_owned(),
        (false, _) => format!("Send AddNetworkReply: IPv4Addr: 10.0.3.{number}, container {uid:032x}, pod web-{pod:x}"),
    };
    let written = if is_journal {
        writeln!(
            text,
            "Jan 15 11:{minute:02}:{second:02} ip-10-0-3-9.ec2.internal kubelet[1629]: I0115 \
             11:{minute:02}:{second:02}.{micros:06}    1629 kubelet.go:2402] {line}"
        )
    } else {
        writeln!(
            text,
            "{{\"level\":\"debug\",\"ts\":\"2026-01-15T11:{minute:02}:{second:02}.{micros:06}Z\",\"caller\":\"rpc/rpc.pb.go:881\",\"msg\":\"{line}\"}}"
        )
    };
    written.expect("a string takes it");
}
