//! An AdmissionReview in, and the answer to it. The types are our own: every field is optional, and the object stays
//! text until the views of the engine read it.
//!
//! Source: kubernetes staging/src/k8s.io/api/admission/v1/types.go (v1.36).

use super::Deny;
use chrono::{DateTime, Utc};
use engine::cluster_state::surroundings::Surroundings;
use engine::lint::LintFinding;
use engine::lint::review::{certain, lint_object, without_stale_status};
use engine::objects::input::{Object, Reading, TypeMeta};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// Maximum number of warnings about one object.
const WARNINGS: usize = 3;
/// Maximum number of characters of a warning. The API server cuts off the rest.
/// Source: kubernetes staging/src/k8s.io/apiserver/pkg/endpoints/filters/warning.go `truncateItemRunes` (v1.36).
const LONGEST: usize = 256;
/// With the value `allow`, an object passes that would be refused.
const LABEL: &str = "nodewhy.dev/admission";

#[derive(Deserialize)]
struct Review<'r> {
    #[serde(borrow)]
    request: Request<'r>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Request<'r> {
    uid: String,
    #[serde(borrow)]
    object: Option<&'r RawValue>,
    #[serde(borrow)]
    old_object: Option<&'r RawValue>,
}

/// What to answer about an object. By default it passes, and nothing is said.
#[derive(Debug, Default)]
struct Verdict {
    warnings: Vec<String>,
    /// Why it is refused.
    refusal: Option<String>,
}

/// The answer to a review. `None` if the body is no review.
pub(super) fn answer(
    body: &[u8],
    surroundings: Option<&Surroundings>,
    deny: Deny,
    now: DateTime<Utc>,
) -> Option<String> {
    let Review { request } = serde_json::from_slice(body).ok()?;
    let verdict = surroundings.map(|surroundings| judge(&request, surroundings, deny, now)).unwrap_or_default();
    let mut response = json!({"uid": request.uid, "allowed": verdict.refusal.is_none()});
    if !verdict.warnings.is_empty() {
        response["warnings"] = verdict.warnings.into();
    }
    if let Some(refusal) = verdict.refusal {
        response["status"] = json!({"code": 403, "reason": "Forbidden", "message": refusal});
    }
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Some(review.to_string())
}

/// The answer that lets the object pass and says nothing.
pub(super) fn allowed(body: &[u8]) -> Option<String> {
    answer(body, None, Deny::Nothing, DateTime::UNIX_EPOCH)
}

fn judge(request: &Request, surroundings: &Surroundings, deny: Deny, now: DateTime<Utc>) -> Verdict {
    let Some(mut object) = request.object.and_then(read) else { return Verdict::default() };
    let old = request.old_object.and_then(read);
    if let Some(old) = &old {
        object = without_stale_status(object, old);
    }
    let findings = lint_object(&object, surroundings, now);
    let warnings = findings.iter().take(WARNINGS).map(warning).collect();
    let may_be_refused = deny == Deny::Certain
        && object.meta().label(LABEL) != Some("allow")
        // Whoever only changes a label or a finalizer did not make the mistake.
        && old.is_none_or(|old| !says_the_same(&old, &object));
    if !may_be_refused {
        return Verdict { warnings, refusal: None };
    }
    let refusal = certain(&findings, &object, surroundings, now)
        .first()
        .map(|error| format!("{} (the label {LABEL}: allow lets it pass)", warning(error)));
    Verdict { warnings, refusal }
}

fn read(text: &RawValue) -> Option<Object> {
    let Reading::As(input) = TypeMeta::of_json(text.get()).reading() else { return None };
    Object::from_json(input, text.get()).ok()
}

fn says_the_same(old: &Object, new: &Object) -> bool {
    match (old, new) {
        (Object::NodeClass(old), Object::NodeClass(new)) => old.spec == new.spec,
        (Object::NodePool(old), Object::NodePool(new)) => old.spec == new.spec,
        (Object::AwsAuth(old), Object::AwsAuth(new)) => old.data == new.data,
        _ => false,
    }
}

/// `userData line 3: …; see nodewhy explain KubeletRefusesLabels`
fn warning(finding: &LintFinding) -> String {
    let place = place(finding);
    let more = finding.documentation.as_ref().map(|_| format!("; see nodewhy explain {}", finding.cause));
    let more = more.unwrap_or_default();
    let message: String = said(finding).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let room = LONGEST.saturating_sub(place.chars().count() + more.chars().count() + 2);
    format!("{place}: {}{more}", shortened(&message, room))
}

/// The field, without what all fields of a spec have before it, and the line.
fn place(finding: &LintFinding) -> String {
    let field = finding.blame.field.as_deref().unwrap_or(&finding.blame.object);
    let field = ["spec.template.spec.", "spec.template.", "spec.", "data."]
        .iter()
        .find_map(|prefix| field.strip_prefix(prefix))
        .unwrap_or(field);
    match finding.blame.line {
        Some(line) => format!("{field} line {line}"),
        None => field.to_owned(),
    }
}

/// The message, without the place if it begins with that.
fn said(finding: &LintFinding) -> &str {
    let message = finding.message.trim_end_matches('.');
    let blame = &finding.blame;
    let Some(line) = blame.line else { return message };
    let begins = format!("userData of {} {}, line {line}", blame.kind, blame.name);
    message.strip_prefix(&begins).map_or(message, |rest| rest.trim_start_matches([',', ':', ' ']))
}

/// The text, cut off after a word if it has more characters.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let end = text.char_indices().nth(most.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let words = &text[..end];
    let cut = words.rfind(' ').map_or(words, |at| &words[..at]);
    format!("{}…", cut.trim_end_matches([',', ';', ':', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::cluster_state::ClusterState;
    use serde_json::Value;

    const CONFIG: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n";
    const MISTAKE: &str = "--node-labels=node-role.kubernetes.io/batch=true";
    const FINE: &str = "--v=4";

    fn now() -> DateTime<Utc> {
        "2026-01-15T12:00:00Z".parse().unwrap()
    }

    fn class(flags: &[&str]) -> Value {
        let lines = flags.iter().map(|flag| format!("    - {flag}\n")).collect::<Vec<_>>().concat();
        json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "batch", "uid": "1"},
            "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodes", "userData": format!("{CONFIG}{lines}")},
        })
    }

    /// The response about an object of an empty cluster.
    fn response(old: Option<&Value>, object: &Value, deny: Deny) -> Value {
        let surroundings = ClusterState::default().surroundings();
        let review = json!({"request": {"uid": "u", "object": object, "oldObject": old}}).to_string();
        let answer = answer(review.as_bytes(), surroundings.as_ref(), deny, now()).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&answer["kind"], &answer["response"]["uid"]), (&json!("AdmissionReview"), &json!("u")));
        answer["response"].clone()
    }

    #[test]
    fn a_mistake_is_one_short_warning_and_a_harmless_object_has_none() {
        let response_of = |flags: &[&str]| response(None, &class(flags), Deny::Nothing);
        let mistaken = response_of(&[MISTAKE]);
        assert_eq!(mistaken["allowed"], true);
        let [warning] = &mistaken["warnings"].as_array().unwrap()[..] else { panic!("{mistaken:#}") };
        let warning = warning.as_str().unwrap();
        assert!(warning.starts_with("userData line 6: gives the kubelet the label"), "{warning}");
        assert!(warning.ends_with("; see nodewhy explain KubeletRefusesLabels"), "{warning}");
        assert_eq!(response_of(&[FINE]), json!({"uid": "u", "allowed": true}));
    }

    #[test]
    fn at_most_three_warnings_of_at_most_256_characters() {
        let wrong = |n| json!({"key": format!("karpenter.sh/wrong-{n}"), "operator": "Exists"});
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a".repeat(60)},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "batch"},
                "requirements": (0..5).map(wrong).collect::<Vec<_>>(),
            }}},
        });
        let surroundings = ClusterState::default().surroundings().unwrap();
        let object = read(&serde_json::value::to_raw_value(&pool).unwrap()).unwrap();
        assert_eq!(lint_object(&object, &surroundings, now()).len(), 5);
        let response = response(None, &pool, Deny::Nothing);
        let warnings = response["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), WARNINGS);
        for (n, warning) in warnings.iter().filter_map(Value::as_str).enumerate() {
            assert!(warning.chars().count() <= LONGEST, "{warning}");
            assert!(warning.starts_with(&format!("requirements.{n}.key: NodePool aaa")), "{warning}");
        }
    }

    #[test]
    fn a_long_message_is_cut_off_after_a_word_and_keeps_its_place_and_page() {
        let mut finding = {
            let surroundings = ClusterState::default().surroundings().unwrap();
            let object = read(&serde_json::value::to_raw_value(&class(&[MISTAKE])).unwrap()).unwrap();
            lint_object(&object, &surroundings, now()).remove(0)
        };
        finding.message = "wörter\n".repeat(100);
        let warning = warning(&finding);
        assert!(warning.chars().count() <= LONGEST && !warning.contains('\n'), "{warning}");
        assert!(warning.starts_with("userData line 6: wörter ") && warning.contains("wörter…; see"), "{warning}");
    }

    #[test]
    fn only_the_second_opt_in_refuses_and_a_label_lets_the_object_pass() {
        assert_eq!(response(None, &class(&[MISTAKE]), Deny::Nothing)["allowed"], true);
        let refused = response(None, &class(&[MISTAKE]), Deny::Certain);
        assert_eq!((&refused["allowed"], &refused["status"]["code"]), (&json!(false), &json!(403)));
        let message = refused["status"]["message"].as_str().unwrap();
        assert!(
            message.contains("KubeletRefusesLabels") && message.contains("nodewhy.dev/admission: allow"),
            "{message}"
        );
        assert_eq!(response(None, &class(&[FINE]), Deny::Certain)["allowed"], true);

        let mut labeled = class(&[MISTAKE]);
        labeled["metadata"]["labels"] = json!({LABEL: "allow"});
        let passes = response(None, &labeled, Deny::Certain);
        assert_eq!(passes["allowed"], true);
        assert_eq!(passes["warnings"].as_array().map(Vec::len), Some(1), "{passes:#}");
    }

    #[test]
    fn whoever_did_not_make_the_mistake_is_not_refused() {
        let old = class(&[MISTAKE]);
        let mut labeled = class(&[MISTAKE]);
        labeled["metadata"]["labels"] = json!({"team": "batch"});
        assert_eq!(response(Some(&old), &labeled, Deny::Certain)["allowed"], true);
        assert_eq!(response(Some(&class(&[FINE])), &old, Deny::Certain)["allowed"], false);
        let mut leaving = old.clone();
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-15T12:00:00Z");
        assert_eq!(response(Some(&old), &leaving, Deny::Certain), json!({"uid": "u", "allowed": true}));
    }

    #[test]
    fn what_nodewhy_cannot_judge_passes_without_a_warning() {
        let review = json!({"request": {"uid": "u", "object": class(&[MISTAKE])}}).to_string();
        let silent =
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"uid":"u"}}"#;
        assert_eq!(answer(review.as_bytes(), None, Deny::Certain, now()).as_deref(), Some(silent), "no state yet");
        assert_eq!(allowed(review.as_bytes()).as_deref(), Some(silent));
        let surroundings = ClusterState::default().surroundings();
        for object in [
            "null",
            "1",
            "{}",
            r#"{"apiVersion": "v1", "kind": "Pod"}"#,
            r#"{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": 1}"#,
        ] {
            let review = format!(r#"{{"request": {{"uid": "u", "object": {object}, "oldObject": []}}}}"#);
            assert_eq!(
                answer(review.as_bytes(), surroundings.as_ref(), Deny::Certain, now()).as_deref(),
                Some(silent),
                "{object}"
            );
        }
        for garbage in ["", "garbage", "[]", "{}", r#"{"request": 1}"#] {
            assert_eq!(answer(garbage.as_bytes(), surroundings.as_ref(), Deny::Certain, now()), None, "{garbage}");
        }
    }
}
