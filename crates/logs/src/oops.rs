//! In which module of the kernel a fault lies that ends in a panic. The panic does not say so. The report above it
//! does.

use crate::fact::{LogLine, Oops};
use crate::quoted::shown;
use crate::wrapping::{plain, unwrapped, without_colors};

/// The end of a fault, and what the report of it begins with: a panic for another reason may come long after one.
/// Sources: Linux v6.12 arch/x86/kernel/dumpstack.c `oops_end`, `__die_header` ("Oops: 0002 [#1] SMP");
/// arch/arm64/kernel/traps.c `die`, `__die` ("Internal error: Oops: 96000007 [#1] SMP"); kernel/watchdog.c
/// `watchdog_timer_fn`; kernel/panic.c `check_panic_on_warn`, `__warn`.
const REPORTS: [(&str, &str); 3] = [
    ("Fatal exception", " [#"),
    ("softlockup: hung tasks", "BUG: soft lockup"),
    ("panic_on_warn set", "WARNING: CPU: "),
];

/// What begins the line that says where the processor was: of x86, of arm64, and of arm64 before 5.8.
/// Sources: Linux v6.12 arch/x86/kernel/dumpstack.c `show_ip`; arch/arm64/kernel/process.c `__show_regs`, v4.14 too.
const PLACES: [&str; 3] = ["RIP: ", "pc : ", "PC is at "];

/// Source: Linux v6.12 kernel/module/main.c `print_modules`.
const MODULES: &str = "Modules linked in: ";

/// The module in which the kernel failed, or whose function had called what failed. `lines` are those before the panic,
/// each with its number.
pub(crate) fn oops<'r>(
    lines: impl Iterator<Item = (u64, &'r [u8])>,
    panic: &str,
    year: Option<i32>,
    file: &str,
) -> Option<Oops> {
    let (_, begin) = REPORTS.iter().find(|(end, _)| panic.contains(end))?;
    let mut year = year;
    let mut report: Vec<LogLine> = Vec::new();
    for (number, raw) in lines {
        let text = String::from_utf8_lossy(raw);
        let text = without_colors(&text);
        let line = unwrapped(&text, &mut year);
        // The journal names the kernel, and the console nobody.
        if line.program.as_deref().is_some_and(|program| program != "kernel") {
            continue;
        }
        let message = plain(&line.message);
        if message.contains(begin) {
            report.clear();
        } else if report.is_empty() {
            continue;
        }
        report.push(LogLine { file: file.to_owned(), line: number, time: line.time, text: message.trim().to_owned() });
    }
    let at_fault = report.iter().find(|line| PLACES.iter().any(|place| line.text.starts_with(place)));
    let own = at_fault.and_then(|line| Some((line, frame(&line.text)?, false)));
    let (line, (function, module), calls) = own.or_else(|| caller(&report))?;
    let linked = report.iter().find_map(|line| line.text.strip_prefix(MODULES));
    Some(Oops {
        module: module.to_owned(),
        function: function.to_owned(),
        calls,
        flags: linked.and_then(|linked| flags(linked, module)),
        line: LogLine { text: shown(&line.text), ..line.clone() },
    })
}

/// The innermost function of a module in the call trace. A frame with a question mark is a guess.
/// Sources: Linux v6.12 arch/x86/kernel/dumpstack.c `show_trace_log_lvl`, arch/arm64/kernel/stacktrace.c
/// `dump_backtrace`.
fn caller(report: &[LogLine]) -> Option<(&LogLine, (&str, &str), bool)> {
    let begin = report.iter().position(|line| line.text.eq_ignore_ascii_case("call trace:"))?;
    let trace = report.iter().skip(begin + 1);
    let is_part = |text: &str| text.starts_with(['<', '?']) || text.contains("+0x");
    let mut frames = trace.take_while(|line| is_part(&line.text) && !line.text.starts_with("RIP: "));
    frames.find_map(|line| {
        let is_guess = line.text.split_ascii_whitespace().any(|word| word == "?");
        let frame = frame(&line.text).filter(|_| !is_guess)?;
        Some((line, frame, true))
    })
}

/// `record_event_consumer+0x188/0xb58 [falco]`: the function, and the module that it is of. One of the kernel's own has
/// none. Source: Linux v6.12 kernel/kallsyms.c `__sprint_symbol` (behind the module may be the id of its build).
fn frame(text: &str) -> Option<(&str, &str)> {
    let (before, module) = text.rsplit_once(" [")?;
    let function = before.rsplit([' ', ':']).next().filter(|function| function.contains("+0x"))?;
    let module = module.strip_suffix(']')?.split([' ', '(']).next()?;
    let is_name = |name: &str, most: usize| {
        let may_be_in = |c: char| c.is_ascii_alphanumeric() || "_-.+/".contains(c);
        !name.is_empty() && name.len() <= most && name.chars().all(may_be_in)
    };
    (is_name(function, 200) && is_name(module, 64)).then_some((function, module))
}

/// What the kernel notes of a module in the list of all: `OE` of `falco(OE)`, nothing of `ena`.
/// Source: Linux v6.12 kernel/module/main.c `module_flags`.
fn flags(linked: &str, module: &str) -> Option<String> {
    let mut entries = linked.split_ascii_whitespace();
    let rest =
        entries.find_map(|entry| entry.strip_prefix(module).filter(|rest| rest.is_empty() || rest.starts_with('(')))?;
    let letters = rest.trim_matches(['(', ')']);
    (letters.len() <= 10 && letters.chars().all(|c| c.is_ascii_uppercase() || "+-".contains(c)))
        .then(|| letters.to_owned())
}

#[cfg(test)]
mod tests {
    use super::oops;
    use crate::fact::Oops;

    fn read(lines: &[&str], panic: &str) -> Option<Oops> {
        let numbered = (1..).zip(lines.iter().map(|line| line.as_bytes()));
        oops(numbered, panic, None, "console.txt")
    }

    const FATAL: &str = "Kernel panic - not syncing: Fatal exception";
    const ARM: [&str; 8] = [
        "[358445.127000] Internal error: Oops: 96000007 [#1] SMP",
        "[358445.127000] Modules linked in: falco(OE) veth overlay ena",
        "[358445.127000] CPU: 1 PID: 28114 Comm: falco Tainted: G           OE     5.10.220 #1",
        "[358445.127000] pc : record_event_consumer+0x188/0xb58 [falco]",
        "[358445.127000] lr : record_event_all_consumers+0x94/0x108 [falco]",
        "[358445.137000] Call trace:",
        "[358445.137000]  record_event_consumer+0x188/0xb58 [falco]",
        "[358445.147000] ---[ end trace 4f0c1be9a86d72d1 ]---",
    ];
    const X86: [&str; 10] = [
        "Jan 15 11:47:00 node kernel: BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "Jan 15 11:47:00 node kernel: Oops: 0002 [#1] PREEMPT SMP NOPTI",
        "Jan 15 11:47:00 node kernel: RIP: 0010:__list_del_entry_valid+0x2b/0x90",
        "Jan 15 11:47:00 node kernel: Call Trace:",
        "Jan 15 11:47:00 node kernel:  <TASK>",
        "Jan 15 11:47:00 node kernel:  ? nf_hook_slow+0x41/0xc0 [nf_tables]",
        "Jan 15 11:47:00 node kernel:  rb_erase+0x1/0x2",
        "Jan 15 11:47:00 node kernel:  efa_destroy_qp+0x7a/0x190 [efa 0123456789abcdef]",
        "Jan 15 11:47:00 node kernel:  </TASK>",
        "Jan 15 11:47:00 node kernel: Modules linked in: efa nvidia(POE)",
    ];

    #[test]
    fn the_module_is_that_of_the_place_where_the_kernel_failed() {
        let found = read(&ARM, "Kernel panic - not syncing: Oops: Fatal exception").expect("a module");
        assert_eq!((found.module.as_str(), found.calls, found.flags.as_deref()), ("falco", false, Some("OE")));
        assert_eq!(found.function, "record_event_consumer+0x188/0xb58");
        assert_eq!((found.line.line, found.is_foreign()), (4, Some(true)));
    }

    #[test]
    fn if_the_kernels_own_code_failed_it_is_that_of_the_caller() {
        let found = read(&X86, FATAL).expect("a module");
        assert_eq!((found.module.as_str(), found.calls, found.is_foreign()), ("efa", true, Some(false)));
        assert_eq!(found.line.line, 8);
        let old = [
            "general protection fault: 0000 [#1] SMP",
            "RIP: 0010:[<ffffffffc05>]  [<ffffffffc05>] f+0x1/0x2 [lustre]",
        ];
        assert_eq!(read(&old, FATAL).map(|oops| (oops.module, oops.flags)), Some(("lustre".to_owned(), None)));
    }

    #[test]
    fn a_panic_for_another_reason_has_none() {
        assert_eq!(read(&ARM, "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"), None);
        assert_eq!(read(&ARM, "Kernel panic - not syncing: softlockup: hung tasks"), None);
        // Without the begin of the report nothing tells what it is of.
        assert_eq!(read(&ARM[1..], FATAL), None);
        let of_no_module = X86.map(|line| if line.contains("[efa") { "efa_destroy_qp+0x7a/0x190" } else { line });
        assert_eq!(read(&of_no_module, FATAL), None, "a guess is no frame");
        // A module of which an earlier report speaks is not that of the last one.
        let later = ["Oops: 0002 [#2] SMP", "RIP: 0010:kfree+0x2b/0x90"];
        assert_eq!(read(&[&ARM[..], &later[..]].concat(), FATAL), None);
        let of_a_program = ["node app[12]: Oops: 0002 [#1]", "node app[12]: RIP: 0010:f+0x1/0x2 [m]"];
        let of_a_program = of_a_program.map(|line| format!("Jan 15 11:47:00 {line}"));
        assert_eq!(read(&of_a_program.each_ref().map(String::as_str), FATAL), None);
    }
}
