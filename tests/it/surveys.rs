//! The answers to all real cases. Several tests look at them, and each case is judged once.

use chrono::{DateTime, Utc};
use engine::api::judged::JudgedBy;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::survey::Survey;
use engine::objects::MachineLog;
use engine::objects::input::Object;
use nodewhy::ingest::dump::{self, Summary};
use nodewhy::ingest::logs::{self, Bounds};
use nodewhy::report::{self, Background, Format, Style};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};
use testkit::corpus::{case_folders, load_case};

/// A real case, judged as its expectation says, with its logs.
pub struct Judged {
    pub survey: Survey,
    /// What could not be read of its dump.
    pub summary: Summary,
}

static CASES: LazyLock<Vec<(PathBuf, OnceLock<Judged>)>> =
    LazyLock::new(|| case_folders().into_iter().map(|folder| (folder, OnceLock::new())).collect());

/// Every case with its answer.
pub fn cases() -> impl Iterator<Item = (&'static Path, &'static Judged)> {
    CASES.iter().map(|(folder, judged)| (&**folder, judged.get_or_init(|| judge(folder))))
}

/// The answer to one case.
pub fn case(folder: &Path) -> &'static Judged {
    let (folder, judged) = CASES.iter().find(|(known, _)| known == folder).expect("a case");
    judged.get_or_init(|| judge(folder))
}

fn judge(folder: &Path) -> Judged {
    let expect: Value = serde_json::from_reader(File::open(folder.join("expect.json")).expect("a file")).expect("JSON");
    let now: DateTime<Utc> = expect["now"].as_str().expect("a time").parse().expect("a time");
    let mut state = ClusterState::default();
    let whole = folder.join("cluster.yaml");
    let summary = if whole.exists() { dump::load(&[whole], &mut state) } else { load_case(folder, &mut state) };
    let given = ["logs", "logs.tar.gz"].map(|name| folder.join(name)).into_iter().filter(|path| path.exists());
    for journey in logs::load(&given.collect::<Vec<_>>(), &state, Bounds::default()).journeys {
        state.apply(Object::MachineLog(MachineLog::new(journey)), DateTime::UNIX_EPOCH);
    }
    let survey = Survey::of(Judging::new(&state, now, &Thresholds::default()), JudgedBy::Given);
    Judged { survey, summary }
}

/// The answer as `nodewhy diagnose` shows it.
pub fn shown(survey: &Survey, format: Format, width: usize, details: bool) -> String {
    let style = Style { format, color: false, now: survey.judged.at, width, details };
    // Only the page needs the cluster.
    let background = Background { cluster: &ClusterState::default(), notes: &[] };
    report::render(survey.clone(), &background, style).expect("a text")
}
