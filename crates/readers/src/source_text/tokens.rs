//! Secrets that are known by their looks, whatever stands before them.

use super::Span;

/// How tokens begin, and how many characters follow at least.
///
/// The kinds are those that gitleaks knows: `tests/e2e/oracles/secrets.rs` compares. Each is reduced to its fixed
/// beginning. A prefix that people use in names too asks for more characters behind it.
#[rustfmt::skip]
const PREFIXES: &[(&str, usize)] = &[
    // AWS: access keys, temporary ones, API keys of Bedrock.
    ("AKIA", 12), ("ASIA", 12), ("ABIA", 12), ("ACCA", 12), ("A3T", 17), ("ABSK", 30), ("bedrock-api-key-", 12),
    // Google, Azure, Alibaba, DigitalOcean, Databricks, IBM, Yandex.
    ("AIza", 30), ("ya29.", 20), ("GOCSPX-", 12), ("LTAI", 16), ("dop_v1_", 12), ("doo_v1_", 12), ("dor_v1_", 12),
    ("dapi", 30), ("AQVN", 30), ("t1.9eu", 30),
    // JWTs and what else begins with `{"`.
    ("eyJ", 12), ("ZXlK", 30),
    // Code hosts and CI.
    ("ghp_", 8), ("gho_", 8), ("ghu_", 8), ("ghs_", 8), ("ghr_", 8), ("github_pat_", 8),
    ("glpat-", 8), ("gldt-", 8), ("glrt-", 8), ("glcbt-", 8), ("glptt-", 8), ("glft-", 8), ("glsoat-", 8),
    ("glimt-", 8), ("glagent-", 8), ("gloas-", 8), ("glffct-", 8), ("GR1348941", 12),
    ("ATATT3", 20), ("ATCTT3", 20), ("ATBB", 24), ("bkua_", 12), ("CCIPAT_", 8), ("CCIPRJ_", 8),
    // Chat.
    ("xoxb-", 7), ("xoxp-", 7), ("xoxa-", 7), ("xoxr-", 7), ("xoxs-", 7), ("xoxo-", 7), ("xoxe-", 7), ("xoxe.", 7), ("xapp-", 7),
    // Vault, Terraform, Consul, Doppler, 1Password, Infisical, Pulumi.
    ("hvs.", 8), ("hvb.", 8), ("hvr.", 8), ("dp.pt.", 8), ("dp.st.", 8), ("dp.ct.", 8), ("dp.sa.", 8), ("dp.scim.", 8),
    ("dp.audit.", 8), ("ops_eyJ", 12), ("A3-", 20), ("pul-", 32), ("AGE-SECRET-KEY-1", 8),
    // Networks.
    ("tskey-", 6), ("ztkey-", 6), ("nbkey-", 6), ("v1.0-", 40),
    // Registries and package indexes.
    ("dckr_pat_", 8), ("dckr_oat_", 8), ("npm_", 16), ("pypi-", 16), ("rubygems_", 16), ("oy2", 40), ("AKCp", 20),
    ("cmVmd", 30), ("CLOJARS_", 12), ("quay_", 30),
    // Observability.
    ("glc_", 12), ("glsa_", 12), ("NRAK-", 12), ("NRII-", 12), ("NRJS-", 12), ("NRAA-", 12), ("dt0c01.", 12),
    ("dt0s01.", 12), ("sntrys_", 12), ("sntryu_", 12), ("phc_", 24), ("phx_", 24), ("lsv2_pt_", 12), ("ddp_", 30),
    // Models.
    ("sk-ant-", 8), ("sk-proj-", 8), ("sk-svcacct-", 8), ("sk-admin-", 8), ("sk-or-", 12), ("hf_", 20), ("api_org_", 20),
    ("pplx-", 20), ("gsk_", 20), ("nvapi-", 12), ("r8_", 30), ("xai-", 30),
    // Shops, mail, payment and the rest.
    ("sk_live_", 8), ("sk_test_", 8), ("sk_prod_", 8), ("rk_live_", 8), ("rk_test_", 8), ("rk_prod_", 8), ("whsec_", 12), ("SG.", 16), ("xkeysib-", 12),
    ("shpat_", 12), ("shpca_", 12), ("shppa_", 12), ("shpss_", 12), ("shippo_live_", 12), ("shippo_test_", 12),
    ("sq0atp-", 12), ("sq0csp-", 12), ("EAAA", 22), ("SK", 32), ("API-", 26), ("s-s4t2", 60), ("tk-us-", 40), ("sm_pat_", 12), ("sm_sat_", 12), ("PMAK-", 12), ("ntn_", 20), ("secret_", 40), ("lin_api_", 12),
    ("figd_", 12), ("figo_", 12), ("FLWSECK", 12), ("fo1_", 20), ("fm1a_", 20), ("fm1r_", 20), ("fm2_", 20),
    ("HRKU-", 12), ("ico-", 32), ("pnu_", 30), ("pscale_", 12), ("rdme_", 20), ("sbp_", 30), ("sgp_", 30), ("EZAK", 30),
    ("EZTK", 30), ("duffel_", 20), ("fio-u-", 20), ("p8e-", 32), ("sm_aat_", 12), ("tfp_", 30), ("sha256~", 12),
];

/// The beginnings of URLs behind which a secret stands in the path.
const HOOKS: &[&str] = &[
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "api.telegram.org/bot",
    "outlook.office.com/webhook/",
];

const OF_TEAMS: &str = ".webhook.office.com/webhookb2/";

/// How base64 begins of what user data begins with, which is no secret: of gzip, `#!/`, `MIM` and `#cl`.
pub const OF_USER_DATA: [&str; 4] = ["H4sI", "IyEv", "TUlN", "I2Ns"];

/// How much of a token everybody may see.
pub(super) fn shown(token: &str) -> usize {
    OF_USER_DATA.iter().find(|begins| token.starts_with(**begins)).map_or(0, |begins| begins.len())
}

/// How crypt(3) and its relatives begin a hash.
const HASHES: &[&str] =
    &["$6$", "$5$", "$1$", "$y$", "$gy$", "$7$", "$2a$", "$2b$", "$2y$", "$apr1$", "$argon2", "$pbkdf2", "$sha1$"];

/// The length of a token that is known by its beginning at the start of `text`.
pub(super) fn begun(text: &str) -> Option<usize> {
    let first = *text.as_bytes().first()?;
    if first == b'$' {
        return hash(text);
    }
    if !BEGINS[(first & 127) as usize] {
        return None;
    }
    let (prefix, least) =
        PREFIXES.iter().find(|(prefix, _)| prefix.as_bytes()[0] == first && text.starts_with(prefix))?;
    let rest = &text[prefix.len()..];
    let plain = rest.find(|c| !is_base64(c)).unwrap_or(rest.len());
    if plain < *least {
        return None;
    }
    // A JWT goes on behind its dots.
    let end = rest.find(|c| !is_base64(c) && c != '.').unwrap_or(rest.len());
    Some(to_end(text, prefix.len() + rest[..end].trim_end_matches('.').len()))
}

/// Which bytes a token begins with.
const BEGINS: [bool; 128] = {
    let mut begins = [false; 128];
    let mut at = 0;
    while at < PREFIXES.len() {
        begins[(PREFIXES[at].0.as_bytes()[0] & 127) as usize] = true;
        at += 1;
    }
    begins
};

/// The length of a token that is known by its looks at the start of `text`, where a word begins.
pub(super) fn token(text: &str) -> Option<usize> {
    /// Enough for an AWS secret access key.
    const LONG: usize = 40;
    /// The shortest token that is known by its looks.
    const HIDDEN: usize = 11;
    if let Some(len) = begun(text) {
        return Some(len);
    }
    let word = &text[..text.find(|c| !is_base64(c)).unwrap_or(text.len())];
    if let Some(len) = with_dot(text, word.len()) {
        return Some(len);
    }
    // What was hidden already.
    let hidden = &word[shown(word)..];
    if hidden.len() >= HIDDEN && hidden.bytes().all(|b| b == b'x') {
        return Some(word.len());
    }
    if word.len() < LONG {
        return None;
    }
    let count = |what: fn(&u8) -> bool| word.bytes().filter(what).count();
    let mixed = count(u8::is_ascii_uppercase) > 3 && count(u8::is_ascii_lowercase) > 3 && count(u8::is_ascii_digit) > 1;
    // A path has a slash every few letters, a name its hyphens; base64 has neither.
    let joints = word.bytes().filter(|b| matches!(b, b'/' | b'-' | b'_')).count();
    (mixed && joints * 12 <= word.len()).then(|| to_end(text, word.len()))
}

/// Where a token ends that may hold characters as a URL writes them: `%2F`.
fn to_end(text: &str, len: usize) -> usize {
    let rest = &text[len..];
    if !rest.starts_with('%') {
        return len;
    }
    len + rest.find(|c| !is_base64(c) && c != '%').unwrap_or(rest.len())
}

/// Vault's tokens before 1.10 (`s.` and 24 letters and digits), and Terraform's (`.atlasv1.` in the middle).
fn with_dot(text: &str, word: usize) -> Option<usize> {
    let behind = text[word..].strip_prefix('.')?;
    let rest = &behind[..behind.find(|c| !is_base64(c)).unwrap_or(behind.len())];
    let is_mixed = |s: &str| s.bytes().any(|b| b.is_ascii_digit()) && s.bytes().any(|b| b.is_ascii_alphabetic());
    if matches!(&text[..word], "s" | "b")
        && rest.len() >= 24
        && is_mixed(rest)
        && !behind[rest.len()..].starts_with('.')
    {
        return Some(word + 1 + rest.len());
    }
    // Harness: `pat.ACCOUNT.ID.SECRET`.
    if matches!(&text[..word], "pat" | "sat") && rest.len() == 22 {
        let end = text.find(|c| !is_base64(c) && c != '.').unwrap_or(text.len());
        return Some(end);
    }
    // Airtable.
    if text.starts_with("pat") && word == 17 && rest.len() == 64 {
        return Some(word + 1 + rest.len());
    }
    if rest == "atlasv1" {
        let last = behind[rest.len()..].strip_prefix('.')?;
        let len = last.find(|c| !is_base64(c)).unwrap_or(last.len());
        return Some(word + 1 + rest.len() + 1 + len);
    }
    None
}

fn hash(text: &str) -> Option<usize> {
    const LEAST: usize = 20;
    HASHES.iter().find(|begins| text.starts_with(**begins))?;
    let of_hash = |c: char| c.is_ascii_alphanumeric() || "$./=,+_-".contains(c);
    let len = text.find(|c| !of_hash(c)).unwrap_or(text.len());
    (len >= LEAST).then_some(len)
}

/// The password in `://user:password@host` at the start of `text`; the whole of a user part without one; of a webhook
/// what its path begins with.
pub(super) fn in_url(text: &str) -> Option<Span> {
    let url = text.strip_prefix("://")?;
    let end = url.find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'')).unwrap_or(url.len());
    if let Some(at) = url[..end].rfind('@') {
        let start = url[..at].find(':').map_or(0, |colon| colon + 1);
        return (start < at).then(|| Span::new(3 + start, 3 + at));
    }
    // Teams gives each customer a host of its own.
    let of_teams = || url.find(OF_TEAMS).map(|at| at + OF_TEAMS.len());
    let hook = HOOKS.iter().find(|hook| url.starts_with(**hook)).map(|hook| hook.len()).or_else(of_teams)?;
    let secret = &url[hook..];
    let len = secret.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ')')).unwrap_or(secret.len());
    (len > 0).then(|| Span::new(3 + hook, 3 + hook + len))
}

pub(super) const fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '_' | '-')
}
