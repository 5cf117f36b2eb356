//! A clock that nothing sets, on a machine whose credentials AWS does not accept: each alone has other reasons, and
//! together they mean that the time in its signatures is wrong.

use crate::fact::{Fact, LogLine, Phase, Trouble};
use serde::{Deserialize, Serialize};

/// Chrony 4.5 sources.c `SRC_SelectSource` ("no sources", "no selectable sources", "no majority"), and timedatectl of
/// systemd v257 src/timedate/timedatectl.c `print_status_info`, of v219 with "NTP".
const UNSYNCHRONIZED: [&str; 3] = ["Can't synchronise: no ", "System clock synchronized: no", "NTP synchronized: no"];

/// Chrony 4.5 sources.c `SRC_SelectSource`; timesyncd of systemd v257 src/timesync/timesyncd-manager.c.
const SYNCHRONIZED: [&str; 3] = ["Selected source ", "ontacted time server ", "nitial clock synchronization to "];

/// Source: EC2 API reference, "Error codes": AuthFailure. With the keys of an instance's role, the time is what is
/// left: kubernetes/kubernetes#11371.
const REFUSED: [&str; 1] = ["AWS was not able to validate the provided access credentials"];

/// What makes a line worth a look.
pub(crate) const NEEDLES: [&[&str]; 3] = [&UNSYNCHRONIZED, &SYNCHRONIZED, &REFUSED];

/// What a machine's log says of its clock, the newest line of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Clock {
    #[serde(skip_serializing_if = "Option::is_none")]
    unsynchronized: Option<LogLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    synchronized: Option<LogLine>,
    /// AWS does not accept the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<LogLine>,
}

impl Clock {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes in a line that one of [`NEEDLES`] may be in.
    pub(crate) fn hear(&mut self, message: &str, seen: impl Fn() -> LogLine) {
        let has = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
        let kept = if has(&UNSYNCHRONIZED) {
            &mut self.unsynchronized
        } else if has(&SYNCHRONIZED) {
            &mut self.synchronized
        } else if has(&REFUSED) {
            &mut self.refused
        } else {
            return;
        };
        *kept = Some(seen());
    }

    /// Takes in what another file says.
    pub(crate) fn extend(&mut self, other: Self) {
        let newest = |own: Option<LogLine>, other: Option<LogLine>| match (own, other) {
            (Some(own), Some(other)) => Some(if own.is_after(&other) { own } else { other }),
            (own, other) => own.or(other),
        };
        self.unsynchronized = newest(self.unsynchronized.take(), other.unsynchronized);
        self.synchronized = newest(self.synchronized.take(), other.synchronized);
        self.refused = newest(self.refused.take(), other.refused);
    }

    /// That the clock is wrong, if nothing has set it and AWS refused the machine.
    pub(crate) fn fact(&self) -> Option<Fact> {
        let (unset, refused) = (self.unsynchronized.clone()?, self.refused.clone()?);
        if self.synchronized.as_ref().is_some_and(|set| set.is_after(&unset) || set.is_after(&refused)) {
            return None;
        }
        let means = "nothing sets the clock, and AWS does not accept credentials that are signed with a wrong time";
        let fact = Fact::of_no_row("chronyd", means.to_owned(), Trouble::ClockWrong, Phase::Registered, unset);
        Some(Fact { ends: false, vague: false, unknown: false, cause: Some(refused), ..fact })
    }
}

#[cfg(test)]
mod tests {
    use crate::fact::Trouble;
    use crate::{FileLimits, LogReader};

    const UNSET: &str = "Sep 08 14:12:17 ip-10-88-20-5 chronyd[2791]: Can't synchronise: no selectable sources";
    const SET: &str = "Sep 08 14:12:40 ip-10-88-20-5 chronyd[2791]: Selected source 169.254.169.123";
    const REFUSED: &str = "Sep 08 14:12:31 ip-10-88-20-5 cloud-init[3104]: An error occurred (AuthFailure) when \
        calling the DescribeInstances operation: AWS was not able to validate the provided access credentials";

    fn is_wrong(lines: &[&str]) -> bool {
        let mut reader = LogReader::new(FileLimits::default());
        let written = "2022-09-08T15:00:00Z".parse().ok();
        for (at, line) in lines.iter().enumerate() {
            reader.file(&format!("{at}.log"), line.as_bytes(), written).expect("text");
        }
        reader.journeys().iter().any(|journey| journey.open().iter().any(|fact| fact.trouble == Trouble::ClockWrong))
    }

    #[test]
    fn an_unset_clock_and_refused_credentials_mean_a_wrong_clock() {
        assert!(is_wrong(&[&[UNSET, REFUSED].join("\n")]));
        assert!(is_wrong(&[UNSET, REFUSED]), "in two files");
    }

    #[test]
    fn neither_alone_does_nor_a_clock_that_was_set() {
        for lines in [&[UNSET][..], &[REFUSED], &[UNSET, REFUSED, SET]] {
            assert!(!is_wrong(&[&lines.join("\n")]), "{lines:?}");
        }
    }
}
