//! Schedules of disruption budgets that Karpenter cannot read. The schema takes them. The budget then fails closed.

use super::place::{Piece, Place};
use super::{Level, Mistake};
use crate::api::Blame;
use readers::userdata::has_expansion;
use serde_json::Value;

/// One of the five fields of a schedule.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// Names for its values, from the least on.
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

// robfig/cron v3.0.1 spec.go
const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, names: &[] },
    Field { name: "hour", least: 0, most: 23, names: &[] },
    Field { name: "day of the month", least: 1, most: 31, names: &[] },
    Field { name: "month", least: 1, most: 12, names: MONTHS },
    Field { name: "day of the week", least: 0, most: 6, names: DAYS },
];

// robfig/cron v3.0.1 parser.go parseDescriptor
const NAMED: &[&str] = &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// The schedules of a NodePool that Karpenter cannot read, each with its place. `is_told` knows the fields that have a
/// finding.
// karpenter v1.15.0 pkg/apis/v1/nodepool.go IsActive, GetAllowedDisruptions
pub fn flaws(blame: &Blame, object: &Value, piece: &Piece, is_told: &dyn Fn(&str) -> bool) -> Vec<(Mistake, Place)> {
    if object["apiVersion"] != "karpenter.sh/v1" {
        return Vec::new();
    }
    let budgets = object["spec"]["disruption"]["budgets"].as_array().into_iter().flatten().enumerate();
    let mut flaws = Vec::new();
    for (at, budget) in budgets {
        let Some(schedule) = budget.get("schedule").and_then(Value::as_str) else { continue };
        let path = ["spec", "disruption", "budgets", &at.to_string(), "schedule"].map(str::to_owned);
        let field = path.join(".");
        if has_expansion(schedule) || is_told(&field) {
            continue;
        }
        let Err(why) = read(schedule) else { continue };
        let mistake = Mistake {
            level: Level::Warning,
            cause: "ScheduleUnreadable".to_owned(),
            message: format!(
                "{}: Karpenter cannot read {field}: {why}. The budget then allows no disruption, at any time.",
                blame.object
            ),
            fix: None,
            blame: blame.clone().field(field),
            grave: false,
        };
        flaws.push((mistake, piece.place_of(&path)));
    }
    flaws
}

/// Reads a schedule as Karpenter does, which puts `TZ=UTC` before it. An error says what is wrong.
// robfig/cron v3.0.1 parser.go ParseStandard
fn read(schedule: &str) -> Result<(), String> {
    let schedule = schedule.trim();
    if schedule.starts_with('@') {
        let is_known = NAMED.contains(&schedule) || schedule.starts_with("@every ");
        return if is_known { Ok(()) } else { Err(format!("no schedule has the name {schedule}")) };
    }
    if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
        return Err("it names a time zone, and Karpenter reads every schedule in UTC".to_owned());
    }
    let written: Vec<&str> = schedule.split_whitespace().collect();
    if written.len() != FIELDS.len() {
        return Err(format!("it has {} fields, not five", written.len()));
    }
    for (text, field) in written.into_iter().zip(&FIELDS) {
        for range in text.split(',').filter(|range| !range.is_empty()) {
            field.read(range)?;
        }
    }
    Ok(())
}

impl Field {
    /// Reads `5`, `1-5`, `*/15` or `mon`.
    // robfig/cron v3.0.1 parser.go getRange
    fn read(&self, range: &str) -> Result<(), String> {
        let (ends, step) = range.split_once('/').map_or((range, None), |(ends, step)| (ends, Some(step)));
        let (first, last) = ends.split_once('-').map_or((ends, None), |(first, last)| (first, Some(last)));
        let (start, end) = match (first, last) {
            ("*" | "?", _) => (self.least, self.most),
            (_, Some(last)) => (self.number(first)?, self.number(last)?),
            (_, None) if step.is_some() => (self.number(first)?, self.most),
            (_, None) => (self.number(first)?, self.number(first)?),
        };
        let wrong_step = step.filter(|step| !step.parse::<u32>().is_ok_and(|step| step > 0));
        let name = self.name;
        if start < self.least {
            Err(format!("the {name} {start} is below {}", self.least))
        } else if end > self.most {
            Err(format!("the {name} {end} is above {}", self.most))
        } else if start > end {
            Err(format!("the {name} {start} is behind {end}, where the range ends"))
        } else if let Some(step) = wrong_step {
            Err(format!("the step {step} of the {name} is no number above 0"))
        } else {
            Ok(())
        }
    }

    fn number(&self, text: &str) -> Result<u32, String> {
        let named = self.names.iter().zip(self.least..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = named.map(|(_, number)| number).or_else(|| text.parse().ok());
        number.ok_or_else(|| format!("{text:?} is no {}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn schedules_are_read_as_karpenter_reads_them() {
        for fine in [
            "0 9 * * mon-fri",
            "*/15 0-23/2 1,15 JAN-mar ?",
            " @daily ",
            "@midnight",
            "5/10 * * * 6",
            "00 +7 31 12 0",
            "0 0 * * sun,sat",
            "0 22 * * 1-5,",
        ] {
            assert_eq!(read(fine), Ok(()), "{fine}");
        }
        for wrong in [
            "61 * * * *",
            "0 25 * * *",
            "0 24 * * *",
            "0 0 0 * *",
            "0 0 * 13 *",
            "0 0 * * 7",
            "0 0 * * fri-mon",
            "0 0 * *",
            "0 0 0 * * *",
            "TZ=Europe/Berlin 0 0 * * *",
            "CRON_TZ=UTC 0 0 * * *",
            "@dailyx",
            "@daily 0 0 * *",
            "0 0 * * monday",
            "*/0 * * * *",
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "-1 * * * *",
            "a b c d e",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
