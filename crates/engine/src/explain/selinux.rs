//! SELinux refused what a program of the machine needs: what to say of it, what to do, and who sets it to enforcing.

use crate::api::Blame;
use crate::case::Case;
use logs::selinux::Refusal;
use readers::source_text::Span;

/// `SELinux denied the access "execute" to nodeadm (its label is user_tmp_t, the process has init_t).`
pub(crate) fn in_words(refusal: &Refusal<'_>) -> String {
    let Refusal { access, object, label, domain, .. } = refusal;
    let object = object.map_or_else(String::new, |object| format!(" to {object}"));
    format!("SELinux denied the access \"{access}\"{object} (its label is {label}, the process has {domain}).")
}

/// What to do, and what to change: the line of the user data that sets SELinux to enforcing, else the image.
pub(crate) fn fix(case: &Case) -> (&'static str, Option<Blame>) {
    match enforced_by_user_data(case) {
        Some(blame) => (
            "Remove the line of the user data that sets SELinux to enforcing. Or use an image of your own that is made \
             for it: with the package container-selinux, and with correct labels (restorecon). New nodes get the \
             change.",
            Some(blame),
        ),
        None => (
            "Use an image in which SELinux permits it: with the package container-selinux, and with correct labels \
             (restorecon). Or do not set SELinux to enforcing. Then replace the node.",
            case.class_field("spec.amiSelectorTerms"),
        ),
    }
}

/// Sources: selinux(8) (`SELINUX=` in /etc/selinux/config), setenforce(8), Linux v6.12
/// Documentation/admin-guide/kernel-parameters.txt (`enforcing=`).
fn enforced_by_user_data(case: &Case) -> Option<Blame> {
    const SETS: [&str; 4] = ["SELINUX=enforcing", "setenforce 1", "setenforce Enforcing", "enforcing=1"];
    let class = case.class()?;
    let text = class.spec.user_data.as_deref()?;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let is_other = line.trim_start().starts_with('#') || line.contains("permissive") || line.contains("disabled");
        let at = SETS.iter().find_map(|sets| Some((line.find(sets)?, sets.len()))).filter(|_| !is_other);
        if let Some((at, length)) = at {
            let span = Span::new(start + at, start + at + length);
            return Some(Blame::class(class).field("spec.userData").at(text, span));
        }
        start += line.len();
    }
    None
}
