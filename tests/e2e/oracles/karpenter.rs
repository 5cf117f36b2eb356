//! Karpenter's AWS provider, which takes user data apart before any machine sees it.

use std::process::Command;

use readers::userdata::{Consequence, Family, mime, nodeconfig, read};
use serde::{Deserialize, Serialize};

use testkit::compare::{Random, ask, compare};
use testkit::programs::oracles;

#[derive(Serialize)]
struct Question<'a> {
    family: &'a str,
    text: &'a str,
}

#[derive(Debug, Deserialize)]
struct Answer {
    error: String,
    parts: Option<Vec<Part>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Part {
    content_type: String,
    content: String,
}

fn answers(family: &str, texts: &[String]) -> Vec<Answer> {
    let questions: Vec<Question> = texts.iter().map(|text| Question { family, text }).collect();
    ask(&mut Command::new(oracles::karpenter()), &questions)
}

const PIECES: &[&str] = &[
    "MIME-Version: 1.0\n",
    "Content-Type: multipart/mixed; boundary=\"B\"\n",
    "content-type: Multipart/Mixed; Boundary=B\n",
    "Content-Type: multipart/mixed;\n  boundary=B\n",
    "Content-Type: text/plain\n",
    "X-Other: y\n",
    "no header\n",
    "\n",
    "\n",
    "\r\n",
    "--B\n",
    "--B\n",
    "--B \n",
    "--B--\n",
    "--B--",
    "--Bx\n",
    "Content-Type: text/x-shellscript; charset=\"us-ascii\"\n",
    "Content-Type: application/node.eks.aws\n",
    "#!/bin/bash\n",
    "echo hi\n",
    "text",
    " \n",
];

/// A text that begins like an archive more often than not.
fn archive(random: &mut Random) -> String {
    let head = random.pick(&[
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n",
        "Content-Type: multipart/mixed; boundary=B\nMIME-Version: 1.0\n\n",
        "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"B\"\r\n\r\n",
        "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n",
        "MIME-Version: 1.0\n",
        "\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n",
    ]);
    let mut text = head.to_owned();
    for _ in 0..random.below(3) {
        text += random.pick(&[
            "--B\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/bash\n",
            "--B\n\nno type\n",
            "--B\nContent-Type: application/node.eks.aws\n\nkind: x\n\n",
        ]);
    }
    text += &random.text(PIECES, 4);
    text + random.pick(&["", "\n--B--\n", "--B--\n"])
}

#[test]
fn archives_have_the_same_parts() {
    let mut random = Random::new();
    let mut texts: Vec<String> = (0..6_000).map(|_| archive(&mut random)).collect();
    texts.sort();
    texts.dedup();
    let theirs: Vec<Option<Vec<(String, String)>>> = answers("AL2023", &texts)
        .into_iter()
        .map(|answer| {
            let part = |part: Part| {
                (part.content_type.split(';').next().unwrap().trim().to_lowercase(), part.content.replace('\r', ""))
            };
            answer.error.is_empty().then(|| answer.parts.unwrap_or_default().into_iter().map(part).collect())
        })
        .collect();
    let ours = |text: &str| {
        let read = mime::read(text);
        let part = |entry: mime::Entry| (entry.media_type.clone(), entry.body.of(text).replace('\r', ""));
        read.fault.is_none().then(|| read.entries.into_iter().map(part).collect::<Vec<_>>())
    };
    assert!(theirs.iter().flatten().filter(|parts| !parts.is_empty()).count() > 300, "many cases are archives");
    compare(&texts, &theirs, |text, _| mime::is_archive(text).then(|| ours(text))).agrees(2_000);
    compare(&texts, &theirs, |text, _| mime::is_archive(text).then(|| ours(text.trim_start()))).finds_the_mistake();
}

#[test]
fn plain_text_is_taken_for_the_same_thing() {
    // Not among them: what ends a document without a marker, where Go reads no further and we see a mistake. See
    // nodeconfig.rs.
    const LINES: &[&str] = &[
        "#!/bin/bash\n",
        "#cloud-config\n",
        "# comment\n",
        "key: value\n",
        "key: value: x\n",
        "echo hi\n",
        "set -e\n",
        "- item\n",
        "foo() {\n}\n",
        "  indented\n",
        "\ttab\n",
        "a: [1, 2]\n",
        "a: {b\n",
        "'quoted'\n",
        "\"q\": 1\n",
        "export X=y\n",
        "if true; then\n",
        "X: 'y\n",
        "---\n",
        "a: *b\n",
        "a: &b c\n",
        "12: x\n",
        "true: x\n",
        "[x]\n",
        "@x: y\n",
        "`x`: y\n",
        "key: |\n",
        "key:\n",
        "cat <<EOF\n",
        "EOF\n",
        "ö: ü\n",
        "a:b\n",
        "\n",
    ];
    let texts: Vec<String> =
        Random::new().texts(LINES, 4, 8_000).into_iter().filter(|text| !mime::is_archive(text)).collect();
    let theirs: Vec<bool> = answers("AL2023", &texts)
        .into_iter()
        .map(|answer| {
            answer.parts.unwrap_or_default().first().is_some_and(|part| part.content_type == "application/node.eks.aws")
        })
        .collect();
    compare(&texts, &theirs, |text, _| Some(nodeconfig::is_node_config_for_karpenter(text))).agrees(4_000);
    compare(&texts, &theirs, |text, _| Some(!text.starts_with("#!"))).finds_the_mistake();
}

#[test]
fn bottlerocket_settings_are_refused_alike() {
    const LINES: &[&str] = &[
        "[settings]\n",
        "[settings.kubernetes]\n",
        "[settings.kubernetes]\n",
        "[settings.kubernetes.node-labels]\n",
        "[settings.kubernetes.node-taints]\n",
        "max-pods = 5\n",
        "max-pods = \"5\"\n",
        "a = \"b\"\n",
        "a = [\"b:NoSchedule\"]\n",
        "a = 1\n",
        "event-qps = 0\n",
        "cluster-dns-ip = \"1\"\n",
        "image-gc-high-threshold-percent = \"85\"\n",
        "image-gc-high-threshold-percent = 85\n",
        "allowed-unsafe-sysctls = [\"a\"]\n",
        "seccomp-default = true\n",
        "[settings.kubernetes.eviction-hard]\n",
        "\"memory.available\" = \"15%\"\n",
        "[settings.host-containers.admin]\n",
        "enabled = true\n",
        "= 1\n",
        "x\n",
        "# c\n",
        "cpu-manager-policy = \"static\"\n",
        "kube-api-qps = 1.5\n",
        "static-pods = {}\n",
        "log-level = 2\n",
        "topology-manager-scope = \"pod\"\n",
    ];
    let texts = Random::new().texts(LINES, 4, 4_000);
    let theirs: Vec<bool> = answers("Bottlerocket", &texts).into_iter().map(|answer| answer.error.is_empty()).collect();
    let launches = |text: &str| {
        let data = read(text, Family::Bottlerocket);
        data.defects.iter().all(|defect| defect.consequence(data.family) != Consequence::NoLaunch)
    };
    compare(&texts, &theirs, |text, _| Some(launches(text))).agrees(2_000);
    compare(&texts, &theirs, |text, _| Some(launches(&text.replace("= \"5\"", "= 5")))).finds_the_mistake();
}
