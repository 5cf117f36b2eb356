//! SELinux refused what a program of the machine needs: what to say of it, what to do, and who sets it to enforcing.

use crate::api::Blame;
use crate::case::Case;
use crate::explain::user_data_line;
use logs::selinux::Refusal;

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
             for it: with the package container-selinux, and with correct labels (restorecon). Only new nodes get the \
             change.",
            Some(blame),
        ),
        None => (
            "Use an image in which SELinux permits this: with the package container-selinux, and with correct labels \
             (restorecon). Or do not set SELinux to enforcing. Then replace the node.",
            case.class_field("spec.amiSelectorTerms"),
        ),
    }
}

/// Sources: selinux(8) (`SELINUX=` in /etc/selinux/config), setenforce(8), Linux v6.12
/// Documentation/admin-guide/kernel-parameters.txt (`enforcing=`).
fn enforced_by_user_data(case: &Case) -> Option<Blame> {
    const SETS: [&str; 4] = ["SELINUX=enforcing", "setenforce 1", "setenforce Enforcing", "enforcing=1"];
    user_data_line::with(case, &SETS, &["permissive", "disabled"]).map(|line| line.blame)
}
