//! Messages that a program gives when the node's kernel lacks a module.

/// Whether the message is one of them.
/// Sources: mount(2), ENODEV; lustre lustre/utils/mount_lustre.c; util-linux v2.40 libmount/src/context_mount.c;
/// netfilter iptables v1.8.10 iptables/iptables-restore.c, libiptc/libiptc.c, libxtables/xtables.c; cilium v1.14
/// pkg/datapath/iptables/iptables.go.
pub fn is_missing(said: &str) -> bool {
    const WORDS: [&str; 8] = [
        "failed: No such device",
        "modules loaded?",
        "unknown filesystem type",
        "unable to initialize table",
        "do you need to insmod?",
        "missing kernel module?",
        "iptables or your kernel needs to be upgraded",
        "could not load module",
    ];
    WORDS.iter().any(|word| said.contains(word))
}
