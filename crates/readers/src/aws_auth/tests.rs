use super::*;

const NODE: &str = "arn:aws:iam::111122223333:role/node";
const GOOD: &str = "\
- rolearn: arn:aws:iam::111122223333:role/node
  username: system:node:{{EC2PrivateDNSName}}
  groups:
    - system:bootstrappers
    - system:nodes
";

fn roles(text: &str) -> AwsAuth {
    read(Some(text), None, None)
}

/// ARN, username and groups of each entry kept; `GOOD` is appended so that what a defect spares shows.
fn kept_beside_good(text: &str) -> Vec<(String, String, Vec<String>)> {
    let auth = roles(&format!("{text}{GOOD}"));
    assert_eq!(auth.broken, None, "{text}");
    assert!(auth.roles.last().is_some_and(|entry| entry.role_arn == NODE && entry.groups.len() == 2), "{text}");
    let (_, rest) = auth.roles.split_last().unwrap();
    rest.iter().map(|entry| (entry.role_arn.clone(), entry.username.clone(), entry.groups.clone())).collect()
}

fn entry(arn: &str, username: &str, groups: &[&str]) -> (String, String, Vec<String>) {
    (arn.to_owned(), username.to_owned(), groups.iter().map(ToString::to_string).collect())
}

fn kinds(auth: &AwsAuth) -> Vec<MappingDefectKind> {
    auth.defects.iter().map(|defect| defect.kind).collect()
}

/// The text at which a broken value's message points, and the message.
fn broken(text: &str) -> (String, String) {
    let auth = roles(text);
    assert!(auth.roles.is_empty(), "{text}");
    assert_eq!(kinds(&auth), [MappingDefectKind::Unreadable], "{text}");
    let broken = auth.broken.unwrap();
    (broken.span.of(text).to_owned(), broken.message)
}

// Every expectation below was compared with sigs.k8s.io/yaml v1.6.0, go.yaml.in/yaml/v2 v2.4.4 and Go 1.26's
// encoding/json.

#[test]
fn the_documented_entry_is_mapped_and_its_places_are_known() {
    let auth = roles(GOOD);
    assert_eq!(auth.defects, []);
    let [entry] = auth.roles.as_slice() else { panic!("{auth:?}") };
    assert_eq!(entry.arn_span.of(GOOD), NODE);
    assert_eq!(entry.username_span.unwrap().of(GOOD), "system:node:{{EC2PrivateDNSName}}");
    assert_eq!(entry.groups_span.unwrap().of(GOOD), "- system:bootstrappers\n    - system:nodes");
    assert_eq!(entry.span.of(GOOD), GOOD.trim_start_matches("- ").trim_end());
    assert_eq!(entry.node_name(), Ok(NodeName::PrivateDns));
    assert_eq!(entry.account(), Some("111122223333"));
    assert_eq!(auth.judge("node"), Verdict::Mapped(entry));
    assert_eq!(auth.judge("NODE"), Verdict::Mapped(entry));
    assert_eq!(auth.judge(NODE), Verdict::Mapped(entry));
}

#[test]
fn a_syntax_error_takes_every_role_with_it_and_spares_users_and_accounts() {
    let auth = read(Some(&format!("{GOOD}\t- x\n")), Some("- userarn: u\n"), Some("- '012345678901'\n"));
    assert!(auth.broken.is_some() && auth.roles.is_empty());
    assert_eq!(auth.users.len(), 1);
    assert_eq!(auth.accounts, ["012345678901"]);
    assert!(matches!(auth.judge("node"), Verdict::Broken(_)));
}

#[test]
fn a_syntax_error_names_the_slip_behind_it() {
    let cases = [
        ("- rolearn: a\n\tusername: b\n", "\t", "tab"),
        ("-\trolearn: a\n", "\t", "tab"),
        ("- rolearn: a\n# done\n\t\n", "\t", "tab"),
        ("- rolearn: a\n  groups: [b]\n\t# done\n", "\t", "tab"),
        ("- rolearn: a\n  groups:\n  -system:nodes\n  username: b\n", "-", "blank must follow `-`"),
        ("- rolearn:arn:aws:x\n  username: b\n", ":", "blank must follow `:`"),
        ("- rolearn: a\n  username: {{SessionName}}\n", "{{SessionName}}", "quotes"),
    ];
    for (text, at, message) in cases {
        let found = broken(text);
        assert_eq!(found.0, at, "{text}");
        assert!(found.1.contains(message), "{text}: {}", found.1);
    }
}

#[test]
fn bad_indentation_breaks_the_whole_value() {
    for text in
        ["- rolearn: a\n   username: b\n", "- rolearn: a\n username: b\n", "- rolearn: a\n  groups:\n    - x\n   - y\n"]
    {
        assert_ne!(broken(text).1, "", "{text}");
    }
}

#[test]
fn a_top_level_that_is_no_list_breaks_the_whole_value() {
    for (text, kind) in [
        ("rolearn: a\n", "a mapping"),
        ("a\n", "a string"),
        ("\"- rolearn: a\"", "a string"),
        ("-rolearn: a", "a mapping"),
        ("yes", "a number or boolean"),
    ] {
        assert_eq!(broken(text).1, format!("mapRoles must be a list of entries, not {kind}"));
    }
}

#[test]
fn what_json_cannot_hold_breaks_the_whole_value() {
    for text in [
        "- rolearn: .inf\n",
        "- rolearn: a\n  ~: b\n",
        "- rolearn: a\n  [x]: b\n",
        "- rolearn: !!int x\n",
        "- <<: a\n",
        "- a: \"\\/\"\n",
        "- a: \u{7}\n",
    ] {
        broken(text);
    }
}

#[test]
fn empty_values_map_nothing_and_are_not_broken() {
    for text in ["", " \n\t", "\"\"", "''", "``", " `` \n", "~", "# nothing\n", "---\n", "[]"] {
        assert_eq!(roles(text), AwsAuth::default(), "{text:?}");
    }
    assert_eq!(read(None, None, None), AwsAuth::default());
}

#[test]
fn groups_that_are_no_list_leave_the_entry_without_groups() {
    for groups in ["system:nodes", "{a: b}", "yes", "12"] {
        let text = format!("- rolearn: a\n  username: b\n  groups: {groups}\n");
        assert_eq!(kept_beside_good(&text), [entry("a", "b", &[])], "{groups}");
        let auth = roles(&text);
        assert_eq!(kinds(&auth), [MappingDefectKind::FieldEmptied]);
        assert_eq!(auth.defects[0].span.of(&text), groups);
        assert_eq!(auth.defects_of(&auth.roles[0]).count(), 1);
    }
    assert_eq!(kept_beside_good("- rolearn: a\n  groups:\n    -system:nodes\n"), [entry("a", "", &[])]);
    assert_eq!(kept_beside_good("- rolearn: a\n  groups:\n"), [entry("a", "", &[])]);
}

#[test]
fn under_indented_groups_are_entries_of_their_own_and_dropped() {
    let text = "- rolearn: a\n  groups:\n- system:nodes\n";
    assert_eq!(kept_beside_good(text), [entry("a", "", &[])]);
    let auth = roles(text);
    assert_eq!(kinds(&auth), [MappingDefectKind::EntryDropped]);
    assert_eq!(auth.defects[0].span.of(text), "system:nodes");
}

#[test]
fn groups_that_are_no_strings_keep_their_place_and_are_empty() {
    let text = "- rolearn: a\n  groups: [x, 12, ~, on, {a: b}, 'no', 2026-01-01, 0o9]\n";
    assert_eq!(kept_beside_good(text), [entry("a", "", &["x", "", "", "", "", "no", "2026-01-01", "0o9"])]);
}

#[test]
fn a_field_of_the_wrong_type_is_emptied_and_the_rest_stays() {
    for value in ["123", "0x1f", "017", "08", "1_000", "1e3", ".5", "-0b1", "y", "Off", "[a]", "!!float 3"] {
        assert_eq!(
            kept_beside_good(&format!("- rolearn: a\n  username: {value}\n  groups: [g]\n")),
            [entry("a", "", &["g"])],
            "{value}"
        );
    }
    for value in ["1.2.3.4", "12:30", "+", "0x", "1e400", "yEs", "! 12", "!!str 12", "'12'", "=", "system:node:x"] {
        let kept = kept_beside_good(&format!("- rolearn: a\n  username: {value}\n"));
        assert!(!kept[0].1.is_empty(), "{value}");
    }
}

#[test]
fn an_entry_without_an_arn_drops_itself_only() {
    let sso = "- sso: {permissionSetName: x, accountID: '111122223333'}\n";
    for text in [
        "- role_arn: a\n",
        "- roleArns: a\n",
        "-\n",
        "- just text\n",
        "- [a]\n",
        "- {}\n",
        "- rolearn: ''\n",
        "- rolearn: 12\n",
        sso,
    ] {
        assert_eq!(kept_beside_good(text), [], "{text}");
    }
    assert_eq!(kept_beside_good("- rolearn: a\n  sso: {}\n"), []);
    assert_eq!(kept_beside_good("- rolearn: a\n  sso:\n"), [entry("a", "", &[])]);
    assert_eq!(kinds(&roles(sso)), []);
}

#[test]
fn field_names_match_without_case_and_the_last_in_sorted_order_wins() {
    assert_eq!(kept_beside_good("- roleARN: a\n  userName: u\n  GROUPS: [g]\n"), [entry("a", "u", &["g"])]);
    assert_eq!(kept_beside_good("- rolearn: lower\n  RoleARN: upper\n"), [entry("lower", "", &[])]);
    assert_eq!(kept_beside_good("- rolearn: first\n  rolearn: last\n"), [entry("last", "", &[])]);
    let auth = roles("- rolearn: a\n  group: [g]\n  cheese: x\n");
    assert_eq!(kinds(&auth), [MappingDefectKind::FieldIgnored, MappingDefectKind::FieldIgnored]);
    assert!(auth.defects[0].message.contains("groups is meant"));
}

#[test]
fn json_comments_anchors_and_merges_are_read() {
    assert_eq!(kept_beside_good("# c\n- {\"rolearn\": \"a\", \"groups\": [\"g\"]}\n"), [entry("a", "", &["g"])]);
    let json = format!(r#"[{{"rolearn":"{NODE}","username":"u","groups":["g"]}}]"#);
    assert_eq!(roles(&json).roles.len(), 1);
    let merged = "- &a\n  rolearn: a\n  username: u\n  groups: &g [x]\n- <<: *a\n  rolearn: b\n- rolearn: c\n  groups: \
                  *g\n  <<: [{username: v}, *a]\n";
    // yaml.v2 lets a merge overwrite what stands before it.
    assert_eq!(kept_beside_good(merged), [entry("a", "u", &["x"]), entry("b", "u", &["x"]), entry("a", "v", &["x"])]);
}

#[test]
fn only_the_first_document_is_read() {
    let auth = roles(&format!("- rolearn: a\n---\n{GOOD}"));
    assert_eq!(auth.roles.len(), 1);
    assert_eq!(kinds(&auth), [MappingDefectKind::DocumentIgnored]);
}

#[test]
fn of_entries_with_one_arn_the_last_wins_whole() {
    let admin = format!("- rolearn: {}\n  username: test\n  groups: [system:masters]\n", NODE.to_uppercase());
    let auth = roles(&format!("{GOOD}{admin}"));
    assert_eq!(auth.roles[0].shadowed_by, Some(1));
    assert_eq!(kinds(&auth), [MappingDefectKind::EntryReplaced]);
    assert_eq!(auth.judge("node"), Verdict::Shadowed { entry: &auth.roles[0], by: &auth.roles[1] });
    let auth = roles(&format!("{admin}{GOOD}"));
    assert_eq!(auth.judge("node"), Verdict::Mapped(&auth.roles[1]));
}

#[test]
fn accounts_take_numbers_in_their_own_spelling() {
    let auth = read(None, None, Some("- 012345678901\n- '111122223333'\n- {a: b}\n"));
    assert_eq!(auth.accounts, ["012345678901", "111122223333"]);
    assert_eq!(kinds(&auth), [MappingDefectKind::EntryDropped]);
    assert_eq!(kinds(&read(None, None, Some("111122223333"))), [MappingDefectKind::Unreadable]);
}

fn node_entry(arn: &str, username: &str, groups: &str) -> AwsAuth {
    roles(&format!("- rolearn: {arn}\n  username: '{username}'\n  groups: [{groups}]\n"))
}

#[test]
fn a_username_that_is_no_nodes_is_named() {
    let flaw = |username: &str| roles(&format!("- rolearn: {NODE}\n  username: '{username}'\n")).roles[0].node_name();
    assert_eq!(flaw(""), Err(UsernameFlaw::Empty));
    assert_eq!(flaw("admin"), Err(UsernameFlaw::NoNodePrefix));
    assert_eq!(flaw("System:node:{{EC2PrivateDNSName}}"), Err(UsernameFlaw::NoNodePrefix));
    assert_eq!(
        flaw("system:node:{{EC2PrivateDnsName}}"),
        Err(UsernameFlaw::UnknownTemplate("{{EC2PrivateDnsName}}".to_owned()))
    );
    assert_eq!(flaw("system:node:{{SessionName}}{{x"), Err(UsernameFlaw::UnknownTemplate("{{x".to_owned())));
    assert_eq!(flaw("system:node:ip-10-0-0-1"), Err(UsernameFlaw::NotTheNodeName));
    assert_eq!(flaw("system:node:{{AccountID}}"), Err(UsernameFlaw::NotTheNodeName));
    assert_eq!(flaw("system:node:{{SessionName}}"), Ok(NodeName::InstanceId));
    let auth = node_entry(NODE, "admin", "system:nodes");
    assert_eq!(auth.judge("node"), Verdict::WrongUsername { entry: &auth.roles[0], flaw: UsernameFlaw::NoNodePrefix });
}

#[test]
fn a_node_needs_the_nodes_group_and_no_other() {
    let auth = node_entry(NODE, "system:node:{{EC2PrivateDNSName}}", "system:bootstrappers");
    assert_eq!(auth.judge("node"), Verdict::MissingGroups { entry: &auth.roles[0], missing: vec![NODES_GROUP] });
    let auth = node_entry(NODE, "system:node:{{EC2PrivateDNSName}}", "system:nodes");
    assert_eq!(auth.judge("node"), Verdict::Mapped(&auth.roles[0]));
    assert_eq!(auth.roles[0].missing_node_groups(), [BOOTSTRAPPERS_GROUP]);
}

#[test]
fn an_arn_about_the_role_that_never_matches_says_why() {
    let cases = [
        ("arn:aws:iam::111122223333:role/team/node", Miss::PathInArn),
        ("arn:aws:iam::111122223333:instance-profile/node", Miss::InstanceProfileArn),
        ("arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0", Miss::AssumedRoleArn),
        ("'arn:aws:iam::111122223333:role/node '", Miss::Blank),
        ("node", Miss::NotAnArn),
        ("role/node", Miss::NotAnArn),
    ];
    for (arn, miss) in cases {
        let auth = node_entry(arn, "system:node:{{EC2PrivateDNSName}}", "system:nodes");
        assert_eq!(auth.judge("node"), Verdict::NearMiss { entry: &auth.roles[0], miss }, "{arn}");
        assert_eq!(auth.entries_with_role_name("node").count(), 1, "{arn}");
        assert_eq!(auth.judge("unrelated"), Verdict::Unmapped, "{arn}");
    }
    let malformed = [
        "iam:us-east-1:111122223333:role/node",
        "iam::1111:role/node",
        "sts::111122223333:role/node",
        "iam::111122223333:node",
        "iam:111122223333:role/node",
    ];
    for rest in malformed {
        let auth = node_entry(&format!("arn:aws:{rest}"), "u", "g");
        assert!(matches!(auth.judge("node"), Verdict::NearMiss { miss: Miss::Malformed(_), .. }), "{rest}");
    }
}

#[test]
fn account_and_partition_count_where_the_roles_arn_is_known() {
    let auth = roles(GOOD);
    let miss = |arn: &str| match auth.judge(arn) {
        Verdict::NearMiss { miss, .. } => Some(miss),
        _ => None,
    };
    assert_eq!(miss("arn:aws:iam::999999999999:role/node"), Some(Miss::OtherAccount));
    assert_eq!(miss("arn:aws-cn:iam::111122223333:role/node"), Some(Miss::OtherPartition));
    assert_eq!(miss("arn:aws:iam::111122223333:role/team/node"), None);
}

#[test]
fn a_similar_name_is_a_near_miss_and_ranks_below_the_name_itself() {
    let auth = roles("- rolearn: arn:aws:iam::111122223333:role/KarpenterNodeRol\n- rolearn: KarpenterNodeRole\n");
    assert_eq!(auth.judge("KarpenterNodeRole"), Verdict::NearMiss { entry: &auth.roles[1], miss: Miss::NotAnArn });
    assert_eq!(
        auth.judge("KarpenterNodeRoles"),
        Verdict::NearMiss { entry: &auth.roles[1], miss: Miss::Similar { distance: 1 } }
    );
    assert_eq!(auth.judge("Karpenter"), Verdict::Unmapped);
}

#[test]
fn a_dropped_entry_of_the_role_is_found() {
    let auth = roles(&format!("- role_arn: {NODE}\n  username: u\n"));
    let Verdict::Dropped { defect } = auth.judge("node") else { panic!("{auth:?}") };
    assert!(defect.message.contains("`role_arn`"));
    let in_users = read(None, Some(GOOD), None);
    assert!(matches!(in_users.judge("node"), Verdict::Dropped { .. }));
}

#[test]
fn a_role_in_map_users_works_by_userarn() {
    let text = GOOD.replace("rolearn", "userarn");
    let auth = read(None, Some(&text), None);
    assert_eq!(auth.judge("node"), Verdict::Mapped(&auth.users[0]));
}

#[test]
fn alias_bombs_and_self_references_are_refused_and_deep_nesting_does_not_overflow() {
    let mut bomb = "- &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        bomb.extend(["- &a", &level.to_string(), " [", &vec![alias; 10].join(", "), "]\n"]);
    }
    assert_eq!(broken(&bomb).1, "document contains excessive aliasing");
    broken("- &a\n  groups: *a\n");
    let merges: Vec<_> = (1..20_000).map(|i| format!("- &m{i}\n  <<: *m{}\n", i - 1)).collect();
    broken(&format!("- &m0\n  rolearn: a\n{}", merges.concat()));
    for nested in ["[".repeat(50_000), "- ".repeat(25_000), "{a: ".repeat(20_000), "? ".repeat(25_000)] {
        let _ = roles(&nested).judge("node");
    }
}

#[test]
fn every_prefix_of_a_text_is_read_without_panic() {
    let text = "- &a\n  rolearn: \"ä\\u00e4\"\n  <<: {username: '{{x'}\n  groups: [a, 12, !!str b]\n\t# c\n- \
                *a\n---\n- |\n  x\n";
    for end in (0..=text.len()).filter(|&end| text.is_char_boundary(end)) {
        let part = &text[..end];
        let auth = read(Some(part), Some(part), Some(part));
        for defect in &auth.defects {
            assert!(part.get(defect.span.start..defect.span.end).is_some(), "{part:?}: {defect:?}");
        }
        let _ = auth.judge("x");
    }
}
