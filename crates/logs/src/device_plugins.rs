//! Whether the kubelet has lost its connection to the device plugin of a resource. No row of the table tells it: what
//! counts is which line comes last, for each resource by itself.

use crate::fact::LogLine;
use crate::quoted::named;
use serde::{Deserialize, Serialize};

/// Sources: k8s.io/kubernetes v1.28.15, v1.34.2, v1.36.3, v1.37.2 pkg/kubelet/cm/devicemanager/plugin/v1beta1/server.go
/// `Register`, client.go `Run`.
const REGISTERED: &str = "Got registration request from device plugin with resource";
const ENDED: &str = "ListAndWatch ended unexpectedly for device plugin";

/// Another kubelet starts, and all plugins register with it again.
/// Source: k8s.io/kubernetes v1.36.3 cmd/kubelet/app/server.go.
const STARTS: &str = "Kubelet version";

/// What makes a line worth a look.
pub(crate) const NEEDLES: [&str; 3] = [REGISTERED, ENDED, STARTS];

/// The connections of a machine's kubelet to device plugins, by the resource.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DevicePlugins {
    resources: Vec<Connections>,
}

/// The connections for one resource.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Connections {
    resource: String,
    begun: u32,
    ended: u32,
    /// The first end since the last registration.
    lost: Option<LogLine>,
    /// The last line about it.
    last: LogLine,
}

impl DevicePlugins {
    pub(crate) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Takes in a line of the kubelet that one of [`NEEDLES`] may be in.
    pub(crate) fn hear(&mut self, message: &str, seen: impl Fn() -> LogLine) {
        /// A machine with more has odd plugins.
        const MOST: usize = 40;
        if message.contains(STARTS) {
            self.resources.clear();
            return;
        }
        let (is_end, is_begin) = (message.contains(ENDED), message.contains(REGISTERED));
        let key = if is_end { " resource=" } else { " resourceName=" };
        let Some(resource) = value(message, key).filter(|_| is_end || is_begin) else { return };
        if let Some(own) = self.resources.iter_mut().find(|own| own.resource == resource) {
            own.hear(is_end, seen());
        } else if self.resources.len() < MOST {
            let mut own = Connections { resource, ..Connections::default() };
            own.hear(is_end, seen());
            self.resources.push(own);
        }
    }

    /// Takes in what another file says. Of each resource the newer one counts: the files may have the same lines.
    pub(crate) fn extend(&mut self, other: Self) {
        for theirs in other.resources {
            match self.resources.iter_mut().find(|own| own.resource == theirs.resource) {
                None => self.resources.push(theirs),
                Some(own) if theirs.last.is_after(&own.last) => *own = theirs,
                Some(_) => {}
            }
        }
    }

    /// The line that says that the connection for this resource ended, if no plugin has registered for it since.
    pub fn lost(&self, resource: &str) -> Option<&LogLine> {
        self.resources.iter().find(|own| own.resource == resource)?.lost()
    }

    /// The resources whose connections are lost.
    pub(crate) fn all_lost(&self) -> impl Iterator<Item = &String> {
        self.resources.iter().filter(|own| own.lost().is_some()).map(|own| &own.resource)
    }
}

impl Connections {
    fn hear(&mut self, is_end: bool, seen: LogLine) {
        self.last = seen.clone();
        if is_end {
            self.ended = self.ended.saturating_add(1);
            self.lost.get_or_insert(seen);
        } else {
            self.begun = self.begun.saturating_add(1);
            self.lost = None;
        }
    }

    /// A plugin that starts again may register before the kubelet says that its former connection ended. Since 1.37 the
    /// kubelet keeps the new one then. Before, it closes that, too, and says that it ended.
    /// Source: k8s.io/kubernetes v1.36.3, v1.37.2 pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go `runClient`.
    fn lost(&self) -> Option<&LogLine> {
        self.lost.as_ref().filter(|_| self.ended >= self.begun)
    }
}

/// ` resource="nvidia.com/gpu"`, without quotes from a kubelet that logs JSON.
fn value(message: &str, key: &str) -> Option<String> {
    let (_, rest) = message.rsplit_once(key)?;
    let value = rest.trim_start_matches('"').split(['"', ' ']).next()?;
    (!value.is_empty()).then(|| named(value))
}

#[cfg(test)]
mod tests {
    use crate::{FileLimits, LogReader};

    const BEFORE: &str = "Oct 17 12:05:33 node kubelet[1655]: I1017 12:05:33.325133    1655 ";
    const GPU: &str =
        r#"server.go:144] "Got registration request from device plugin with resource" resourceName="nvidia.com/gpu""#;
    const ENDS: &str = "client.go:90] \"ListAndWatch ended unexpectedly for device plugin\" err=\"rpc error: code = \
         Unavailable desc = error reading from server: EOF\" resource=\"nvidia.com/gpu\"";
    const STARTS: &str = r#"server.go:484] "Kubelet version" kubeletVersion="v1.30.4""#;

    /// Whether the connection for the GPU is lost.
    fn is_lost(lines: &[&str]) -> bool {
        let log = format!("{BEFORE}{}\n", lines.join(&format!("\n{BEFORE}")));
        let mut reader = LogReader::new(FileLimits::default());
        reader.file("journal", log.as_bytes(), "2024-10-17T13:00:00Z".parse().ok()).expect("text");
        reader.of_one_machine().device_plugins.lost("nvidia.com/gpu").is_some()
    }

    #[test]
    fn a_connection_is_lost_until_a_plugin_registers_again() {
        assert!(is_lost(&[STARTS, GPU, ENDS]));
        assert!(is_lost(&[GPU, ENDS, ENDS]));
        assert!(is_lost(&[ENDS]));
        assert!(!is_lost(&[GPU]));
        assert!(!is_lost(&[GPU, ENDS, GPU]));
        assert!(!is_lost(&[GPU, ENDS, ENDS, GPU]));
        assert!(!is_lost(&[GPU, ENDS, STARTS]));
    }

    #[test]
    fn a_plugin_may_register_before_its_former_connection_ends() {
        assert!(!is_lost(&[GPU, GPU, ENDS]));
        assert!(is_lost(&[GPU, GPU, ENDS, ENDS]));
    }

    #[test]
    fn each_resource_counts_by_itself() {
        let efa = |line: &str| line.replace("nvidia.com/gpu", "vpc.amazonaws.com/efa");
        assert!(is_lost(&[GPU, &efa(GPU), ENDS, &efa(GPU)]));
        assert!(!is_lost(&[GPU, &efa(GPU), &efa(ENDS)]));
    }

    #[test]
    fn what_another_program_says_counts_for_nothing() {
        let other = format!("{BEFORE}{ENDS}\n").replace("kubelet[", "other[");
        let mut reader = LogReader::new(FileLimits::default());
        reader.file("journal", other.as_bytes(), "2024-10-17T13:00:00Z".parse().ok()).expect("text");
        assert_eq!(reader.of_one_machine().device_plugins.lost("nvidia.com/gpu"), None);
    }
}
