//! Fields of a NodePool that contradict another one, its node class, or the DaemonSet that sets up its machines'
//! network.

use super::flaw::Flaw;
use super::requirements;
use crate::case::duration;
use crate::facts::network_plugin;
use crate::objects::{DaemonSet, NodeClass, NodePool, Requirement, quantity};
use crate::upstream::karpenter::REGISTRATION_TIMEOUT;
use crate::upstream::startup_taint;
use chrono::TimeDelta;
use readers::userdata::{Family, has_expansion};

/// All contradictions of a NodePool. `class` is `None` if it is not known. `launched` says whether the NodePool has
/// machines.
pub fn flaws<'o>(
    pool: &NodePool,
    class: Option<&NodeClass>,
    launched: bool,
    daemon_sets: impl Iterator<Item = &'o DaemonSet>,
) -> Vec<Flaw> {
    let is_possible = |flaw: &Flaw| !(flaw.fatal && launched);
    let of_class = class.into_iter().flat_map(|class| {
        [zones(pool, class), reservations(pool, class).filter(is_possible), system(pool, class).filter(is_possible)]
    });
    let own = [limit(pool), memory_limit(pool), expiry(pool), startup_taint(pool), taint(pool, daemon_sets)];
    of_class.chain(own).flatten().collect()
}

/// The requirements of one label, each with its place. Placeholders may become anything.
fn required<'p>(pool: &'p NodePool, key: &'p str) -> impl Iterator<Item = (usize, &'p Requirement)> {
    let all = pool.spec.template.spec.requirements.iter().enumerate();
    all.filter(move |(_, r)| r.key == key && !r.values.iter().any(|value| has_expansion(value)))
}

/// Zones in which the class has no subnet.
fn zones(pool: &NodePool, class: &NodeClass) -> Option<Flaw> {
    let zones = pool.zones_without_subnet(class)?;
    Some(Flaw {
        cause: "NoSubnetInZone",
        message: format!(
            "NodePool {} allows {}, where EC2NodeClass {} has no subnet: {}. Its subnets are in {}.",
            pool.name(),
            zones.missing.join(", "),
            class.name(),
            if zones.all { "nothing is ever launched for it" } else { "nothing is launched there" },
            zones.subnets.join(", "),
        ),
        fix: "Let subnetSelectorTerms select a subnet there, or allow the zones that have one.".into(),
        field: format!("spec.template.spec.requirements.{}.values", zones.at),
        fatal: zones.all,
    })
}

/// What Karpenter offers of each instance type of a Windows family, and of every other family, Custom included.
// karpenter-provider-aws v1.15.0 pkg/providers/instancetype/types.go getOS
const OF_WINDOWS: &[(&str, &str)] = &[("kubernetes.io/os", "windows"), ("kubernetes.io/arch", "amd64")];
const OF_LINUX: &[(&str, &str)] = &[("kubernetes.io/os", "linux")];

/// An operating system or an architecture that no node of the class has. Other values are reported where they stand.
fn system(pool: &NodePool, class: &NodeClass) -> Option<Flaw> {
    const KNOWN: &[&str] = &["linux", "windows", "amd64", "arm64"];
    let offered = if class.family()? == Family::Windows { OF_WINDOWS } else { OF_LINUX };
    let mut all = pool.spec.template.spec.requirements.iter().enumerate();
    let (at, requirement, (key, value)) = all.find_map(|(at, r)| {
        let (key, value) = offered.iter().find(|(key, _)| *key == requirements::normalized(&r.key))?;
        let is_read = r.values.iter().any(|own| KNOWN.contains(&own.as_str()));
        let is_open = r.values.iter().any(|own| has_expansion(own));
        (is_read && !is_open && !r.admits(value)).then_some((at, r, (key, value)))
    })?;
    Some(Flaw {
        cause: "SystemNotOffered",
        message: format!(
            "NodePool {} requires {}, but all nodes of EC2NodeClass {} ({}) have {key}={value}. Nothing is ever \
             launched for it.",
            pool.name(),
            requirement.shown(),
            class.name(),
            class.family_name()
        ),
        fix: format!("Allow {value}, or name a class of another family."),
        field: format!("spec.template.spec.requirements.{at}.values"),
        fatal: true,
    })
}

const RESERVED: &str = "reserved";

/// Capacity reservations that the class selects and the NodePool does not allow, and the reverse.
// karpenter-provider-aws v1.14.1 pkg/providers/instancetype/offering/offering.go: reserved offerings are those of the
// class's reservations
fn reservations(pool: &NodePool, class: &NodeClass) -> Option<Flaw> {
    let selects = !class.spec.capacity_reservation_selector_terms.is_empty();
    let mut types = required(pool, "karpenter.sh/capacity-type");
    let (at, _) = types.find(|(_, r)| if selects { !r.admits(RESERVED) } else { pool.is_reserved_only() })?;
    let (message, fix) = if selects {
        (
            format!(
                "EC2NodeClass {} selects capacity reservations, and NodePool {} does not allow the capacity type \
                 reserved: they stay unused.",
                class.name(),
                pool.name()
            ),
            "Add reserved to the values.",
        )
    } else {
        (
            format!(
                "NodePool {} allows reserved capacity only, and EC2NodeClass {} selects no capacity reservation: \
                 nothing is ever launched for it.",
                pool.name(),
                class.name()
            ),
            "Select the reservations in capacityReservationSelectorTerms, or allow another capacity type.",
        )
    };
    Some(Flaw {
        cause: if selects { "ReservationUnused" } else { "NothingReserved" },
        message,
        fix: fix.into(),
        field: format!("spec.template.spec.requirements.{at}.values"),
        fatal: !selects,
    })
}

/// A CPU limit below the smallest machine that the requirements allow. A limit of 0 switches a NodePool off on purpose.
// karpenter v1.14.1 pkg/controllers/provisioning/scheduling/scheduler.go filterByRemainingResources
fn limit(pool: &NodePool) -> Option<Flaw> {
    let text = pool.spec.limits.get("cpu")?;
    let millis = match text.strip_suffix('m') {
        Some(millis) => millis.parse().ok()?,
        None => text.parse::<u64>().ok()?.checked_mul(1_000)?,
    };
    let least = required(pool, "karpenter.k8s.aws/instance-cpu").filter_map(|(_, r)| {
        let mut values = r.values.iter().filter_map(|value| value.parse::<u64>().ok());
        match r.operator.as_str() {
            "In" => values.min(),
            "Gt" => values.next()?.checked_add(1),
            "Gte" => values.next(),
            _ => None,
        }
    });
    let least = least.max()?;
    (millis > 0 && millis < least.checked_mul(1_000)?).then(|| Flaw {
        cause: "LimitBelowSmallest",
        message: format!(
            "NodePool {} is limited to {text} CPUs, and the smallest instance type that its requirements allow has \
             {least}: nothing is ever launched for it.",
            pool.name()
        ),
        fix: format!("Make the limit {least} or more, or allow smaller instance types."),
        field: "spec.limits.cpu".into(),
        fatal: true,
    })
}

/// A memory limit below every machine: mostly a number without its unit. A limit of 0 switches a NodePool off.
fn memory_limit(pool: &NodePool) -> Option<Flaw> {
    /// No instance type has less, in bytes. Source: Amazon EC2 instance types, t3.nano.
    const SMALLEST: f64 = 512.0 * 1_048_576.0;
    let text = pool.spec.limits.get("memory")?;
    let bytes = quantity::parse(text)?;
    (bytes > 0.0 && bytes < SMALLEST).then(|| Flaw {
        cause: "LimitBelowSmallest",
        message: format!(
            "NodePool {} is limited to {text} of memory, which is less than any instance type has: nothing is ever \
             launched for it.",
            pool.name()
        ),
        fix: "Write the limit with its unit, such as 1000Gi.".into(),
        field: "spec.limits.memory".into(),
        fatal: true,
    })
}

/// A lifetime shorter than the time that Karpenter gives a machine to register.
fn expiry(pool: &NodePool) -> Option<Flaw> {
    let text = pool.spec.template.spec.expire_after.as_deref()?;
    (lifetime(text)? < REGISTRATION_TIMEOUT).then(|| Flaw {
        cause: "ExpiresTooSoon",
        message: format!(
            "NodePool {} replaces each machine {text} after it was made, and one may take {} to join.",
            pool.name(),
            duration(REGISTRATION_TIMEOUT)
        ),
        fix: "Write hours, such as 720h, or Never.".into(),
        field: "spec.template.spec.expireAfter".into(),
        fatal: false,
    })
}

/// `1h30m`. Source: karpenter v1.14.1 pkg/apis/v1/nodeclaim.go, the pattern of `ExpireAfter`.
fn lifetime(text: &str) -> Option<TimeDelta> {
    let mut rest = text;
    let mut seconds: i64 = 0;
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let unit = match behind.chars().next()? {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            _ => return None,
        };
        seconds = seconds.checked_add(number.parse::<i64>().ok()?.checked_mul(unit)?)?;
        rest = behind.get(1..)?;
    }
    TimeDelta::try_seconds(seconds)
}

/// A startup taint, which an agent removes, in `taints`. If it is in `startupTaints` too, `taints_twice` reports it.
fn startup_taint(pool: &NodePool) -> Option<Flaw> {
    let spec = &pool.spec.template.spec;
    let taint = startup_taint::among_taints(pool)
        .filter(|taint| spec.startup_taints.iter().all(|startup| startup.key != taint.key))?;
    let at = spec.taints.iter().position(|own| own.key == taint.key)?;
    Some(Flaw {
        cause: "StartupTaintAmongTaints",
        message: format!(
            "NodePool {} has {taint} among its lasting taints: {} removes it once it runs, but Karpenter launches \
             nothing for pods that do not tolerate it.",
            pool.name(),
            startup_taint::owner(taint).map_or("an agent", |owner| owner.name)
        ),
        fix: "Move it from taints to startupTaints.".into(),
        field: format!("spec.template.spec.taints.{at}.key"),
        fatal: false,
    })
}

/// A taint that keeps the network plugin away: the machine never gets a network, so it is never Ready.
fn taint<'o>(pool: &NodePool, daemon_sets: impl Iterator<Item = &'o DaemonSet>) -> Option<Flaw> {
    let plugins = daemon_sets.filter_map(|set| Some((network_plugin::rank(&set.metadata.name)?, set)));
    let (_, plugin) = plugins.min_by_key(|(rank, _)| *rank)?;
    let spec = &pool.spec.template.spec;
    let lists = [("taints", &spec.taints), ("startupTaints", &spec.startup_taints)];
    let mut taints = lists.into_iter().flat_map(|(list, taints)| taints.iter().enumerate().map(move |t| (list, t)));
    let (list, (at, taint)) = taints
        .find(|(_, (_, taint))| taint.keeps_pods_off() && !has_expansion(&taint.key) && !plugin.tolerates(taint))?;
    Some(Flaw {
        cause: "TaintKeepsNetworkAway",
        message: format!(
            "NodePool {} gives its nodes the taint {}:{}, which DaemonSet {} does not tolerate: they get no network \
             from it and never become Ready.",
            pool.name(),
            taint.key,
            taint.effect,
            plugin.metadata.name
        ),
        fix: format!("Let DaemonSet {} tolerate every taint (operator: Exists).", plugin.metadata.name),
        field: format!("spec.template.spec.{list}.{at}.key"),
        fatal: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_read_as_its_pattern_says() {
        assert_eq!(lifetime("1h30m"), TimeDelta::try_minutes(90));
        assert_eq!(lifetime("10m"), TimeDelta::try_minutes(10));
        assert_eq!([lifetime("Never"), lifetime("30d"), lifetime("30")], [None; 3]);
    }
}
