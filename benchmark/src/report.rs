//! The tables of docs/accuracy.md and benchmark/SOURCES.md, made of what was counted.

use crate::answers::reader::{self, Reads};
use crate::answers::{Answer, nodewhy};
use crate::case::{Case, Observable};
use crate::score::{Score, Worth, score};
use std::fmt::Write;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Who is scored.
#[derive(Clone, Copy)]
pub enum Participant<'a> {
    /// nodewhy, built here.
    Nodewhy(&'a Path),
    /// A function that answers as nodewhy prints: a NodeDiagnosisList in JSON.
    Printed(&'a (dyn Fn(&Case) -> String + Sync)),
    /// Somebody who reads, and knows nothing.
    Reader(Reads),
    /// A folder with an answer a case.
    Folder(&'a Path),
}

impl Participant<'_> {
    pub fn answers(self, case: &Case) -> io::Result<Vec<Answer>> {
        match self {
            Self::Nodewhy(program) => nodewhy::answers(program, case),
            Self::Printed(print) => nodewhy::read(print(case).as_bytes()),
            Self::Reader(reads) => Ok(reader::answers(reads, &case.objects()?)),
            Self::Folder(folder) => {
                let file = folder.join(format!("{}.json", case.number()));
                // Who says nothing has found nothing.
                match std::fs::read_to_string(&file) {
                    Ok(text) => Ok(serde_json::from_str(&text)?),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// The scores of all cases, in their order.
    pub fn scores(self, cases: &[Case]) -> io::Result<Vec<Score>> {
        each(cases, |case| Ok(score(case, &self.answers(case)?)))
    }
}

/// What is worked out of each case, in the order of the cases, by as many threads as there are cores.
fn each<T: Send>(cases: &[Case], work_out: impl Fn(&Case) -> io::Result<T> + Sync) -> io::Result<Vec<T>> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> io::Result<()> {
        while let Some((at, case)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, cases.get(at)?)))
        {
            let result = work_out(case)?;
            results.lock().map_err(|_| io::Error::other("a scorer failed"))?.push((at, result));
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        started.into_iter().try_for_each(|thread| thread.join().map_err(|_| io::Error::other("a scorer failed"))?)
    })?;
    let mut results = results.into_inner().map_err(|_| io::Error::other("a scorer failed"))?;
    results.sort_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

const HEADER: &str = "\
| | right | proven | hinted at | not visible | healthy | right or among three | cause in words | object | false alarms | truth ruled out |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

/// One row: whose, and what was counted.
pub fn row(who: &str, cases: &[Case], scores: &[Score]) -> String {
    let counted = |of: &dyn Fn(&Case) -> bool, what: &dyn Fn(&Score) -> bool| {
        let of: Vec<&Score> = cases.iter().zip(scores).filter(|(case, _)| of(case)).map(|(_, score)| score).collect();
        format!("{} of {}", of.iter().filter(|score| what(score)).count(), of.len())
    };
    let sick = |seen: Observable| move |case: &Case| !case.truth.is_healthy() && case.truth.observable == seen;
    let visible = |case: &Case| !case.truth.is_healthy() && case.truth.observable != Observable::None;
    let right = Score::is_right;
    let found = |score: &Score| score.missed.is_empty();
    let cells = [
        counted(&|_| true, &right),
        counted(&sick(Observable::Full), &right),
        counted(&sick(Observable::Partial), &right),
        counted(&sick(Observable::None), &right),
        counted(&|case| case.truth.is_healthy(), &right),
        counted(&|_| true, &|score| score.worth >= Worth::Suspected),
        counted(&visible, &|score| found(score) && score.cause),
        counted(&visible, &|score| found(score) && score.object),
        counted(&|_| true, &|score| !score.false_alarms.is_empty()),
        counted(&|_| true, &|score| !score.truth_ruled_out.is_empty()),
    ];
    format!("| {who} | {} |\n", cells.join(" | "))
}

/// One line a case that is not right.
pub fn faults(cases: &[Case], scores: &[Score]) -> String {
    let mut text = String::new();
    for (case, score) in cases.iter().zip(scores).filter(|(_, score)| !score.is_right()) {
        let mut faults = Vec::new();
        let mut lists = |what: &str, names: &[String]| {
            if !names.is_empty() {
                faults.push(format!("{what} {}", names.join(", ")));
            }
        };
        lists("false alarm:", &score.false_alarms);
        lists("missed:", &score.missed);
        lists("wrongly blamed:", &score.wrongly_blamed);
        lists("truth ruled out:", &score.truth_ruled_out);
        lists("certain of what cannot be seen:", &score.overclaimed);
        let flags = [
            (!score.cause, "not the cause's words"),
            (!score.object, "not the object"),
            (score.worth == Worth::Suspected, "among the first three suspects"),
        ];
        faults.extend(flags.into_iter().filter(|(is, _)| *is).map(|(_, what)| what.to_owned()));
        let _ = writeln!(text, "{}: {}", case.name, faults.join("; "));
    }
    text
}

/// What first-run.md tells of each batch: its cases, and how many were right, partly right and wrong at first sight.
pub fn curve(first_run: &str) -> String {
    let mut text =
        "| cases | at | right at first sight | partly | wrong |\n| --- | --- | --- | --- | --- |\n".to_owned();
    let mut batch = None;
    for line in first_run.lines() {
        if let Some((cases, at)) = line.strip_prefix("## Cases ").and_then(|heading| heading.split_once(", at ")) {
            batch = Some((cases, at));
        }
        if let (Some((cases, at)), Some([right, partly, wrong, all])) = (batch, counts(line)) {
            let _ = writeln!(text, "| {cases} | {at} | {right} of {all} | {partly} | {wrong} |");
            batch = None;
        }
    }
    text
}

/// The figures of `**7 right, 15 partly, 9 wrong of 31`, and of no other sentence.
fn counts(line: &str) -> Option<[u32; 4]> {
    let (right, rest) = line.strip_prefix("**")?.split_once(" right, ")?;
    let (partly, rest) = rest.split_once(" partly, ")?;
    let (wrong, rest) = rest.split_once(" wrong of ")?;
    let all = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some([right.parse().ok()?, partly.parse().ok()?, wrong.parse().ok()?, all.parse().ok()?])
}

/// docs/accuracy.md.
pub fn accuracy(cases: &[Case], nodewhy: Participant, first_run: &str) -> io::Result<String> {
    let nodewhy = nodewhy.scores(cases)?;
    let open = faults(cases, &nodewhy).lines().fold(String::new(), |list, line| list + "* " + line + "\n");
    // Both read the same objects, and to parse them takes longer than to read them.
    let readers = each(cases, |case| {
        let objects = case.objects()?;
        let scored = |reads| score(case, &reader::answers(reads, &objects));
        Ok((scored(Reads::Describe), scored(Reads::Conditions)))
    })?;
    let (describe, conditions): (Vec<_>, Vec<_>) = readers.into_iter().unzip();
    let rows = [("nodewhy", nodewhy), ("what `kubectl describe` shows", describe), ("conditions alone", conditions)];
    let mut table = HEADER.to_owned();
    for (who, scores) in &rows {
        table += &row(who, cases, scores);
    }
    let curve = curve(first_run);
    let mut made = 0;
    for case in cases {
        made += usize::from(case.source()?.starts_with("none"));
    }
    let (count, reported) = (cases.len(), cases.len() - made);
    Ok(format!(
        "\
# How often it is right

{count} cases: {reported} are rebuilt from public reports with a confirmed cause, {made} are healthy and were made without a report.
[The benchmark](../benchmark/README.md) scores them and knows nothing of nodewhy.
`cargo benchmark table` writes this page, and a test compares nodewhy's figures with what it counts.

{table}
A *right* answer depends on what the case shows:

| case | a right answer |
| --- | --- |
| *proven*, *hinted at*: objects and logs prove the cause, or hint at it | finds every stuck node and no other, and names the cause and the object to change |
| *not visible*: objects and logs cannot tell the cause | finds every stuck node and no other, names no wrong cause, and is not certain |
| *healthy*: nothing is wrong | names no node |

*Cause in words* and *object* count the cases in which the cause is visible.

The last rows are readers without knowledge. Their cause is every condition that is not True, and every warning, in its own words. They call every
node stuck that is not ready. They have no threshold, so a young node is a false alarm for them.

## What it proves, and what not

nodewhy has seen these cases. Each was wrong, partly right or right once, and we fixed what was wrong. If you want to know how nodewhy does on a
report that it has not seen, look at the first runs. An author who did not know the rules rebuilt these reports. nodewhy judged each once, before
any change was made for it ([all of them](../tests/cases/first-run.md)). Most of these reports were chosen because something in them is visible. Not
every problem is like that.

{curve}
## Not right today

{open}"
    ))
}

/// benchmark/SOURCES.md.
pub fn sources(cases: &[Case]) -> io::Result<String> {
    let mut text = "\
# Where each case comes from

`cargo benchmark table` writes this list from the case.md of each case, which also says what is reconstruction.

| case | what can be seen | source |
| --- | --- | --- |
"
    .to_owned();
    for case in cases {
        let seen = match case.truth.observable {
            _ if case.truth.is_healthy() => "nothing is wrong",
            Observable::Full => "proof",
            Observable::Partial => "hints",
            Observable::None => "nothing",
        };
        let source = case.source()?.replace('|', "\\|");
        let _ = writeln!(text, "| [{0}](../tests/cases/{0}/case.md) | {seen} | {source} |", case.name);
    }
    Ok(text)
}

/// The table of one participant.
pub fn table(who: &str, cases: &[Case], scores: &[Score]) -> String {
    HEADER.to_owned() + &row(who, cases, scores)
}
