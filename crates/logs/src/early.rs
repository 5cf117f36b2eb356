//! Whether anything but the kernel and its initrd has run: user data is read later.

use crate::wrapping::Line;

/// The boot that a file tells of, up to the line that was read last.
#[derive(Debug, Default)]
pub(crate) struct Early {
    /// The file has the kernel's first line.
    is_begun: bool,
    in_initrd: bool,
    has_left: bool,
}

impl Early {
    /// Takes in each line.
    pub(crate) fn hear(&mut self, line: &Line<'_>) {
        let message = &*line.message;
        match line.program.as_deref() {
            None | Some("kernel") if message.starts_with("Linux version ") => {
                *self = Self { is_begun: true, ..Self::default() };
            }
            _ if !self.is_begun || self.has_left => {}
            // Sources: systemd v257 src/core/main.c ("Running in initrd.", before v252 "Running in initial RAM disk."),
            // src/shared/switch-root.c, units/initrd-switch-root.target.
            Some("systemd") if message.starts_with("Running in init") => self.in_initrd = true,
            _ if message.contains("Switching root") || message.contains("Switch Root") => self.has_left = true,
            Some("kernel") => {}
            // The kernel's own IOAPIC[0] is no process.
            Some(program) => {
                self.has_left |= !self.in_initrd && program.chars().any(|c| c.is_ascii_lowercase());
            }
            None => self.has_left |= !self.in_initrd && is_status(message) || is_welcome(message),
        }
    }

    /// Whether no user data can have run. A file that begins in the middle of a boot does not tell.
    pub(crate) fn is_before_user_data(&self) -> bool {
        self.is_begun && !self.has_left
    }
}

/// `[  OK  ] Started …` on the console.
fn is_status(message: &str) -> bool {
    ["[  OK  ]", "[FAILED]", "[DEPEND]"].iter().any(|status| message.contains(status))
}

/// `Welcome to Amazon Linux 2023!`, and not that of the initrd, whose name says "(Initramfs)".
/// Source: systemd v257 src/core/main.c `status_welcome`; dracut 059 modules.d/99base.
fn is_welcome(message: &str) -> bool {
    message.starts_with("Welcome to ") && !message.contains("nitramfs") && !message.contains("dracut")
}

#[cfg(test)]
mod tests {
    use crate::{FileLimits, LogReader};

    const BEGIN: &str = "[    0.000000] Linux version 4.4.115-k8s (root@x) (gcc version 7.3.0) #1 SMP";
    const IOAPIC: &str = "[    0.100000] IOAPIC[0]: apic_id 0, version 32, address 0xfec00000, GSI 0-23";
    const INITRD: &str = "[    2.100000] systemd[1]: Running in initrd.";
    const UNIT: &str = "[    2.600000] systemd[1]: Starting Setup Virtual Console...";
    const PANIC: &str = "[    3.262143] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b";

    fn is_early(lines: &[&str]) -> bool {
        let mut reader = LogReader::new(FileLimits::default());
        reader.file("console.log", lines.join("\n").as_bytes(), None).expect("text");
        let fact = reader.of_one_machine().facts.into_iter().find(|fact| fact.means.contains("panicked"));
        fact.expect("the panic").before_user_data
    }

    #[test]
    fn a_panic_of_the_kernel_or_in_its_initrd_is_before_user_data() {
        assert!(is_early(&[BEGIN, IOAPIC, PANIC]));
        assert!(is_early(&[BEGIN, INITRD, UNIT, "[  OK  ] Reached target Basic System.", PANIC]));
    }

    #[test]
    fn one_of_a_machine_that_has_booted_may_be_behind_it() {
        assert!(!is_early(&[PANIC]), "the log begins later");
        assert!(!is_early(&[BEGIN, UNIT, PANIC]));
        assert!(!is_early(&[BEGIN, INITRD, "[    3.0] systemd[1]: Switching root.", PANIC]));
        assert!(!is_early(&[BEGIN, "Welcome to Amazon Linux 2023!", PANIC]));
    }
}
