//! Findings of `nodewhy lint` as JUnit XML: each a test that failed, in a suite of its file or object.

use super::{in_object, is_of_cluster};
use crate::report::visible;
use engine::lint::LintFinding;
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

/// The report; where nothing was found, one test that passed, for an empty report fails in some CI systems.
pub fn report(findings: &[LintFinding]) -> Result<String, SerializeError> {
    let mut report = Report::new("nodewhy lint");
    for of_file in findings.chunk_by(|a, b| suite_of(a) == suite_of(b)) {
        let Some(first) = of_file.first() else { continue };
        let mut suite = TestSuite::new(suite_of(first));
        suite.add_test_cases(of_file.iter().map(case));
        report.add_test_suite(suite);
    }
    if findings.is_empty() {
        let mut suite = TestSuite::new("nodewhy lint");
        suite.add_test_case(TestCase::new("nothing found", TestCaseStatus::success()));
        report.add_test_suite(suite);
    }
    report.to_string()
}

fn suite_of(finding: &LintFinding) -> &str {
    if is_of_cluster(finding) { &finding.blame.object } else { &finding.file }
}

fn case(finding: &LintFinding) -> TestCase {
    let LintFinding { file, line, column, cause, message, fix, documentation, .. } = finding;
    let message = visible(message);
    let place = if is_of_cluster(finding) { in_object(finding) } else { format!("{file}:{line}:{column}") };
    let more = [Some(place.as_str()), Some(message.as_str()), fix.as_deref(), documentation.as_deref()];
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(super::level(finding.level));
    status.set_message(message.as_str());
    status.set_description(visible(&more.into_iter().flatten().collect::<Vec<_>>().join("\n")));
    let name = if is_of_cluster(finding) { format!("{cause} {place}") } else { format!("{cause} {line}:{column}") };
    let mut case = TestCase::new(name, status);
    case.set_classname(suite_of(finding));
    case
}
