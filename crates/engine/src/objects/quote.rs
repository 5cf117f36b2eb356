//! What others say, as a verdict quotes it: without what is another in each report of the same thing.

use std::borrow::Cow;

/// The id of a sandbox, 32 bytes in hex: a new one with every try.
/// Source: containerd v2.1 internal/cri/util/id.go `GenerateID`.
const ID: usize = 64;

/// Puts `…` for how long ago something was, how long the kubelet waits before it tries again, the id of a sandbox,
/// and the number of a mount: the first grows while nothing happens, the others change with every try.
///
/// Sources: kubernetes v1.36.3 pkg/kubelet/pleg/generic.go `Healthy` ("pleg was last seen active 3m15s ago"),
/// pkg/kubelet/kuberuntime/kuberuntime_manager.go `doBackOff` ("back-off 5m0s restarting failed container").
pub(crate) fn steady(said: &str) -> Cow<'_, str> {
    // The pod behind it is the one that it is said of.
    let said = match said.split_once(" pod=") {
        Some((told, _)) if told.contains("restarting failed container=") => told,
        _ => said,
    };
    let mut moving = Vec::new();
    let (mut at, mut before) = (0, "");
    for word in said.split_inclusive(' ') {
        let rest = said.get(at + word.len()..).unwrap_or_default();
        let text = word.trim_end();
        let is_age = is_duration(text)
            && (before == "back-off" || rest.split([' ', ';', ',', '.', ')', ']']).next() == Some("ago"));
        if is_age {
            moving.push(at..at + text.len());
        } else {
            moving.extend(ids(text).chain(mount(text)).map(|id| at + id.start..at + id.end));
        }
        (at, before) = (at + word.len(), text);
    }
    if moving.is_empty() {
        return Cow::Borrowed(said);
    }
    let mut steady = said.to_owned();
    for range in moving.into_iter().rev() {
        steady.replace_range(range, "…");
    }
    Cow::Owned(steady)
}

/// `3m15s`, `5m1.5s`: what Go prints of a duration.
fn is_duration(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(['h', 'm', 's'])
        && word.chars().all(|c| c.is_ascii_digit() || "hmsµun.".contains(c))
}

fn ids(word: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut at = 0;
    word.split(|c: char| !c.is_ascii_hexdigit()).filter_map(move |run| {
        let start = at;
        at += run.len() + word.get(start + run.len()..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        (run.len() == ID).then_some(start..start + run.len())
    })
}

/// The number of a mount that containerd makes for a moment, to look into an image.
/// Source: containerd v2.1 core/mount/temp.go `WithTempMount`.
fn mount(word: &str) -> Option<std::ops::Range<usize>> {
    const NAME: &str = "containerd-mount";
    let start = word.find(NAME)? + NAME.len();
    let digits = word.get(start..)?.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then_some(start..start + digits)
}

#[cfg(test)]
mod tests {
    use super::steady;

    #[test]
    fn what_moves_by_itself_is_left_out_and_what_it_is_measured_by_stays() {
        for (said, quoted) in [
            (
                "pleg was last seen active 3m15.2s ago; threshold is 3m0s",
                "pleg was last seen active … ago; threshold is 3m0s",
            ),
            ("[container runtime is down, seen 4m ago]", "[container runtime is down, seen … ago]"),
            ("back-off 2m40s restarting failed container=aws-node", "back-off … restarting failed container=aws-node"),
            (
                "back-off 40s restarting failed container=a pod=aws-node-x_kube-system(f72b2bd2-6e18)",
                "back-off … restarting failed container=a",
            ),
            ("on /tmpmounts/containerd-mount2992162305: no users", "on /tmpmounts/containerd-mount…: no users"),
            ("containerd-mounts fail", "containerd-mounts fail"),
            ("0/3 nodes are available after 5m", "0/3 nodes are available after 5m"),
            ("some time ago", "some time ago"),
            ("", ""),
        ] {
            assert_eq!(steady(said), quoted);
        }
        let id = "0123456789abcdef".repeat(4);
        let failed = |id: &str| format!("für sandbox \"{id}\": plugin type=\"aws-cni\" failed (add), see {id}");
        assert_eq!(steady(&failed(&id)), failed("…"));
        assert_eq!(steady(&failed(&id[1..])), failed(&id[1..]), "something else");
    }
}
