//! What is masked, beside the rules of gitleaks, which many people keep up: `secrets/go.mod` pins them.

use readers::source_text::mask;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use testkit::programs::oracles;

#[derive(Deserialize)]
struct Sample {
    rule: String,
    line: String,
    secret: String,
}

/// The rules whose secrets nodewhy shows in part or whole, and why.
const SHOWN: &[(&str, &str)] = &[
    ("authress-service-client-access-key", "too many letters and dots begin like it"),
    ("azure-ad-client-secret", "only Q~ in the middle tells it"),
    ("curl-auth-user", "what is drawn has four characters"),
    ("facebook-access-token", "a number, a sign and letters"),
    ("freemius-secret-key", "PHP is no user data"),
    ("gitlab-session-cookie", "`session` names many things that are no secret"),
    ("jwt", "a real one begins with {\", which is eyJ"),
    ("jwt-base64", "a real one begins with {\", which is ZXlK"),
    ("nuget-config-password", "an attribute of XML"),
    ("planetscale-oauth-token", "what is drawn has dots and `=` at any place"),
    ("private-key", "what is drawn has no such head as real keys have"),
    ("sendgrid-api-token", "what is drawn begins with a dot"),
    ("sidekiq-sensitive-url", "the user's name is shown, the password is not"),
    ("slack-webhook-url", "what is drawn has any character for a dot of its host"),
];

/// So many characters of a secret in a row are a leak.
const LEAK: usize = 8;

fn is_shown(secret: &str, masked: &str) -> bool {
    let pieces: Vec<char> = secret.chars().collect();
    let mut pieces = pieces.windows(LEAK.min(pieces.len()));
    pieces.any(|piece| masked.contains(&piece.iter().collect::<String>()))
}

/// The rules with a sample that this mask shows.
fn shown(mask: fn(&str) -> String) -> BTreeMap<String, String> {
    let output = Command::new(oracles::secrets()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let samples: Vec<Sample> = String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let rules: BTreeSet<&str> = samples.iter().map(|sample| sample.rule.as_str()).collect();
    assert!(rules.len() > 200, "{} rules", rules.len());
    let shown = samples.iter().filter(|sample| is_shown(&sample.secret, &mask(&sample.line)));
    shown.map(|sample| (sample.rule.clone(), format!("{:?} as {:?}", sample.line, mask(&sample.line)))).collect()
}

#[test]
fn what_gitleaks_calls_a_secret_is_masked() {
    let mut shown = shown(mask);
    for (rule, why) in SHOWN {
        assert!(shown.remove(*rule).is_some(), "{rule} is masked: {why}");
    }
    assert!(shown.is_empty(), "{shown:#?}");
}

#[test]
fn a_mask_that_hides_nothing_is_found_out() {
    assert!(shown(str::to_owned).len() > 200);
}
