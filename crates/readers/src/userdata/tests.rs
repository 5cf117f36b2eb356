use super::*;

const UNREGISTERED: &str = "karpenter.sh/unregistered";

fn taints(data: &UserData) -> Vec<String> {
    let taints = data.taints().unwrap_or(Ok(Vec::new())).unwrap();
    taints.iter().map(|t| format!("{}={}:{}", t.key, t.value, t.effect)).collect()
}

fn kinds(data: &UserData) -> Vec<DefectKind> {
    data.defects.iter().map(|d| d.kind).collect()
}

fn losses(data: &UserData) -> Vec<(&str, Loss)> {
    let of = |a: &'_ Argument| match a.fate {
        Fate::Lost(loss) => loss,
        _ => unreachable!(),
    };
    data.lost().map(|a| (a.name(), of(a))).collect()
}

fn node_config(kubelet: &str) -> String {
    format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n{kubelet}")
}

#[test]
fn families_are_named_by_field_and_by_alias() {
    assert_eq!(Family::from_name("Windows2022"), Some(Family::Windows));
    assert_eq!(Family::from_name("Ubuntu"), None);
    assert_eq!(Family::from_alias("al2023@latest"), Some(Family::Al2023));
    assert_eq!(Family::from_alias("bottlerocket@v1.21.0"), Some(Family::Bottlerocket));
}

#[test]
fn the_equals_form_loses_the_taint_and_a_blank_keeps_it() {
    let text = "#!/bin/bash\n/etc/eks/bootstrap.sh prod \
                --kubelet-extra-args='--register-with-taints=\"karpenter.sh/unregistered:NoExecute\"'\n";
    let data = read(text, Family::Custom);
    assert_eq!(losses(&data), [("register-with-taints", Loss::EqualsForm)]);
    assert_eq!(
        data.lost().next().unwrap().span.of(text),
        "--register-with-taints=\"karpenter.sh/unregistered:NoExecute"
    );
    assert!(data.taints().is_none());
    assert_eq!(kinds(&data), [DefectKind::OptionWithEquals]);

    let data = read(&text.replace("args=", "args "), Family::Custom);
    assert_eq!(taints(&data), ["karpenter.sh/unregistered=:NoExecute"]);
    assert!(data.effective("register-with-taints").unwrap().exact);
    assert!(data.defects.is_empty());
}

#[test]
fn the_space_form_of_a_flag_works_too() {
    let text = "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '--register-with-taints \
                \"karpenter.sh/unregistered:NoExecute\"'\n";
    assert_eq!(taints(&read(text, Family::Custom)), ["karpenter.sh/unregistered=:NoExecute"]);
}

#[test]
fn continued_lines_and_variables_are_followed() {
    let text = "#!/bin/bash\nCLUSTER=prod\nTAINTS=karpenter.sh/unregistered:NoExecute\nARGS=\"--register-with-taints=${TAINTS} \
                --node-labels=a=b\"\n/etc/eks/bootstrap.sh \"$CLUSTER\" \\\n  --use-max-pods false \\\n  \
                --kubelet-extra-args \"$ARGS\"\n";
    let data = read(text, Family::Custom);
    assert_eq!(taints(&data), ["karpenter.sh/unregistered=:NoExecute"]);
    assert_eq!(data.bootstrap_calls[0].cluster_name.as_ref().unwrap().value, "prod");
    assert!(data.arguments.iter().all(|a| a.exact));
    assert_eq!(data.arguments[0].place(Span::new(0, 25)).of(text), UNREGISTERED);
}

#[test]
fn an_unknown_variable_makes_the_value_uncertain() {
    let text =
        "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args \"--node-labels=id=$(uname -n),zone=$ZONE\"\n";
    let data = read(text, Family::Custom);
    let labels = data.effective("node-labels").unwrap();
    assert!(!labels.exact);
    assert!(labels.value.starts_with("id=$(uname"));
    assert!(data.defects.is_empty());
}

#[test]
fn inner_single_quotes_lose_everything_on_amazon_linux_2() {
    let text = "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args \"--register-with-taints='a=b:NoSchedule' \
                --v=2\"\n";
    let data = read(text, Family::Al2);
    assert_eq!(losses(&data), [("register-with-taints", Loss::AssignmentDropped), ("v", Loss::AssignmentDropped)]);
    assert!(data.arguments.iter().all(|a| a.exact));
    let data = read(text, Family::Custom);
    assert!(data.arguments.iter().all(|a| !a.exact), "another systemd would take them");
}

#[test]
fn a_users_own_call_runs_before_karpenters_and_a_second_one_is_too_late() {
    let text = "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args \
                '--node-labels=a=b'\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '--v=2'\n";
    let data = read(text, Family::Al2);
    assert!(data.starts_kubelet_before_karpenter());
    assert_eq!(losses(&data), [("v", Loss::KubeletRunsAlready)]);
    assert!(data.taints().is_none());
    assert!(!read(text, Family::Custom).starts_kubelet_before_karpenter());
}

#[test]
fn only_one_branch_of_a_condition_is_taken() {
    let text = "#!/bin/bash\nif [ -f /x ]; then\n  /etc/eks/bootstrap.sh prod --kubelet-extra-args '--v=1'\nelse\n  \
                /etc/eks/bootstrap.sh prod --kubelet-extra-args '--v=2'\nfi\n";
    let data = read(text, Family::Custom);
    assert_eq!(
        data.arguments.iter().map(|a| (a.value.as_str(), a.exact, a.is_taken())).collect::<Vec<_>>(),
        [("1", false, true), ("2", false, true)]
    );
}

#[test]
fn the_last_taint_flag_wins_and_labels_add_up() {
    let text = "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '--register-with-taints=a:NoSchedule \
                --node-labels=x=1,y=1 --register-with-taints=b:NoSchedule --node-labels=x=2'\n";
    let data = read(text, Family::Custom);
    assert_eq!(taints(&data), ["b=:NoSchedule"]);
    assert!(matches!(data.arguments[0].fate, Fate::Overridden(By::Later(_))));
    let labels: Vec<_> = data.labels().into_iter().map(|(k, v, _)| (k, v)).collect();
    assert_eq!(labels, [("y".into(), "1".into()), ("x".into(), "2".into())]);
}

#[test]
fn a_flag_cut_off_from_its_value_stops_the_kubelet() {
    let text = "#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args --container-runtime containerd\n";
    let data = read(text, Family::Custom);
    assert_eq!(kinds(&data), [DefectKind::FlagWithoutValue]);
    assert_eq!(data.defects[0].span.of(text), "--container-runtime");
    let quoted =
        read(&text.replace("--container-runtime containerd", "'--container-runtime containerd'"), Family::Custom);
    assert!(quoted.defects.is_empty());
    let own_option = read(&text.replace("--kubelet-extra-args ", ""), Family::Custom);
    assert!(own_option.defects.is_empty());
}

#[test]
fn a_refused_label_and_a_bad_taint_are_defects_at_their_places() {
    let text = "#!/bin/bash -xe\n/etc/eks/bootstrap.sh batch --use-max-pods false \\\n  --kubelet-extra-args \
                '--node-labels=kubernetes.io/lifecycle=spot,workload=batch --register-with-taints=a=b:noschedule \
                --max-pods=58'\n";
    let data = read(text, Family::Custom);
    assert_eq!(kinds(&data), [DefectKind::RefusedLabel, DefectKind::InvalidTaints]);
    assert_eq!(data.defects[0].span.of(text), "kubernetes.io/lifecycle=spot");
    assert_eq!(data.defects[1].span.of(text), "a=b:noschedule");
    assert_eq!(data.refused_labels()[0].0, "kubernetes.io/lifecycle");
}

#[test]
fn a_script_without_an_interpreter_or_behind_an_exit_does_nothing() {
    let data = read("/etc/eks/bootstrap.sh prod --kubelet-extra-args '--v=2'\n", Family::Al2);
    assert_eq!(losses(&data), [("v", Loss::NoInterpreter)]);
    let data = read("#!/bin/bash\nexit 0\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '--v=2'\n", Family::Al2);
    assert_eq!(losses(&data), [("v", Loss::AfterExit)]);
    let data = read("#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '--v=2\n", Family::Al2);
    assert_eq!(losses(&data), [("v", Loss::SyntaxError)]);
    assert_eq!(kinds(&data), [DefectKind::OpenQuote]);
}

#[test]
fn shells_within_the_shell_are_followed() {
    for text in [
        "#!/bin/bash\nbash -c \"/etc/eks/bootstrap.sh prod --kubelet-extra-args '--v=2'\"\n",
        "#!/bin/bash\nsudo bash -xe <<'EOF'\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '--v=2'\nEOF\n",
        "#!/bin/bash\nsudo -E bash -x /etc/eks/bootstrap.sh prod --kubelet-extra-args '--v=2'\n",
    ] {
        let data = read(text, Family::Custom);
        assert_eq!(data.effective("v").map(|a| (a.value.as_str(), a.span.of(text))), Some(("2", "--v=2")), "{text}");
    }
}

#[test]
fn an_edit_of_bootstrap_sh_is_not_followed_and_says_so() {
    let text = "#!/bin/bash\nsed -i '/^KUBELET_EXTRA_ARGS=/a KUBELET_EXTRA_ARGS+=\" --v=2\"' /etc/eks/bootstrap.sh\n";
    let data = read(text, Family::Al2);
    assert_eq!(kinds(&data), [DefectKind::KubeletEdited]);
    assert!(data.unread_from.unwrap().of(text).starts_with("sed -i"));
    assert!(
        read("#!/bin/bash\ncat /etc/eks/bootstrap.sh\nsystemctl status kubelet\n", Family::Al2).unread_from.is_none()
    );
}

#[test]
fn a_taint_flag_of_a_node_config_wins_over_karpenters_field() {
    let text = node_config("    flags:\n    - --register-with-taints=team=a:NoSchedule\n    - \"--node-labels=x=y\"\n");
    let data = read(&text, Family::Al2023);
    assert_eq!(taints(&data), ["team=a:NoSchedule"]);
    assert_eq!(
        data.effective("register-with-taints").unwrap().span.of(&text),
        "--register-with-taints=team=a:NoSchedule"
    );
    assert!(data.defects.is_empty());
}

#[test]
fn a_taint_field_of_a_node_config_is_karpenters_unless_the_family_is_custom() {
    let text = node_config(
        "    config:\n      registerWithTaints:\n      - {key: karpenter.sh/unregistered, effect: NoExecute}\n      \
         shutdownGracePeriod: 30s\n",
    );
    let data = read(&text, Family::Al2023);
    assert_eq!(data.arguments[0].fate, Fate::Overridden(By::Karpenter));
    assert_eq!(data.effective("shutdown-grace-period").unwrap().value, "30s");
    assert!(data.taints().is_none());
    assert_eq!(taints(&read(&text, Family::Custom)), ["karpenter.sh/unregistered=:NoExecute"]);
}

#[test]
fn a_flag_beats_a_field_of_the_same_document() {
    let text = node_config("    flags: [\"--max-pods=10\"]\n    config: {maxPods: 20}\n");
    let data = read(&text, Family::Custom);
    assert_eq!(data.effective("max-pods").unwrap().value, "10");
    assert!(matches!(data.arguments[0].fate, Fate::Overridden(By::Later(_))));
}

#[test]
fn a_line_end_in_a_flag_drops_what_follows() {
    let text = node_config("    flags:\n    - |\n      --v=2\n    - --node-labels=a=b\n");
    let data = read(&text, Family::Al2023);
    assert_eq!(losses(&data), [("node-labels", Loss::CutAtNewline)]);
    assert_eq!(kinds(&data), [DefectKind::CutAtNewline]);
}

#[test]
fn text_that_happens_to_be_yaml_is_misread_as_a_node_config() {
    for text in ["#cloud-config\npackages: [jq]\n", "# only a comment\n", "#!/bin/bash\nkey: value\n"] {
        let data = read(text, Family::Al2023);
        assert_eq!(kinds(&data), [DefectKind::MisreadAsNodeConfig], "{text}");
        assert_eq!(data.defects[0].consequence(Family::Al2023), Consequence::NoJoin);
    }
    assert!(read("#!/bin/bash\nset -e\necho hi\n", Family::Al2023).defects.is_empty());
}

#[test]
fn bootstrap_sh_does_not_exist_on_al2023_and_nodeadm_not_on_al2() {
    let data = read("#!/bin/bash\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '--v=2'\n", Family::Al2023);
    assert_eq!(losses(&data), [("v", Loss::NoBootstrapScript)]);
    assert_eq!(kinds(&data), [DefectKind::NoBootstrapScript]);
    let archive = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: \
         application/node.eks.aws\n\n{}\n--B--\n",
        node_config("    flags: [--v=2]\n")
    );
    assert_eq!(kinds(&read(&archive, Family::Al2)), [DefectKind::NodeConfigIgnored]);
    assert_eq!(kinds(&read(&node_config("    flags: [--v=2]\n"), Family::Al2)), [DefectKind::NodeConfigIgnored]);
    assert!(read(&archive, Family::Al2023).effective("v").is_some());
}

#[test]
fn an_unreadable_part_of_an_archive_points_into_the_archive() {
    let text = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: \
                application/node.eks.aws\n\nkind: NodeConfig\nspec:\n\tx: y\n--B--\n";
    let data = read(text, Family::Al2023);
    assert_eq!(kinds(&data), [DefectKind::NodeConfigUnreadable]);
    assert_eq!(crate::source_text::position(text, data.defects[0].span.start).line, 9);
}

#[test]
fn an_archive_that_go_refuses_keeps_the_machine_from_launching() {
    let text = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: \
                text/x-shellscript\n\n#!/bin/bash\n";
    let data = read(text, Family::Al2);
    assert_eq!(data.defects[0].consequence(Family::Al2), Consequence::NoLaunch);
    assert_eq!(data.defects[0].consequence(Family::Custom), Consequence::Unknown);
}

#[test]
fn custom_text_is_read_by_what_it_is() {
    let kind = |text: &str| read(text, Family::Custom).parts.first().map(|part| part.kind);
    assert_eq!(kind("#!/bin/bash\n"), Some(PartKind::Shell));
    assert_eq!(kind("<powershell>\n& $x -KubeletExtraArgs '--v=2'\n</powershell>"), Some(PartKind::PowerShell));
    assert_eq!(kind(&node_config("    flags: []\n")), Some(PartKind::NodeConfig));
    assert_eq!(kind("[settings.kubernetes]\ncluster-name = \"x\"\n"), Some(PartKind::Bottlerocket));
    assert_eq!(kind("#cloud-config\n"), Some(PartKind::CloudConfig));
    assert_eq!(kind("  \n"), None);
    assert_eq!(kinds(&read("hello", Family::Custom)), [DefectKind::ReadByNothing]);
}

#[test]
fn text_that_somebody_encoded_is_named_as_such() {
    let begins = |text: &str| read(text, Family::Custom).defects.first().map(|d| d.message[..15].to_owned());
    let gzip = "H4sIAAAAAAACA61QO2/bMBDe+StYd8h0ou06fijw4FeADkmBoinQyaCos0VYIgneyZaL/vjQ";
    assert_eq!(begins(gzip).as_deref(), Some("this is gzip in"));
    let masked = crate::source_text::mask(gzip);
    assert_eq!((masked.as_str(), begins(&masked).as_deref()), ("H4sI***", Some("this is gzip in")));
    let script = "IyEvYmluL2Jhc2gKL2V0Yy9la3MvYm9vdHN0cmFwLnNoIHNob3AK";
    assert_eq!(begins(script).as_deref(), Some("this is base64,"));
    for other in ["hello", &gzip[4..], &gzip[..30], &format!("{gzip} {gzip}")] {
        assert_eq!(begins(other).as_deref(), Some("this begins wit"), "{other}");
    }
}

#[test]
fn an_ignition_configuration_is_told_apart_and_not_judged() {
    for text in [
        r#"{"ignition":{"version":"3.1.0","config":{"replace":{"source":"s3://shop/worker.ign"}}}}"#,
        "{\n  \"systemd\": {\"units\": [{\"name\": \"kubelet.service\", \"enabled\": true}]},\n  \"ignition\": {\"version\": \"2.3.0\"}\n}\n",
        r#"{"ignition": {"version": "3.4.0"}, "storage": ${storage}}"#,
    ] {
        let data = read(text, Family::Custom);
        assert!(data.is_for_ignition() && data.defects.is_empty(), "{text}");
        assert_eq!(data.unread_from, Some(Span::new(0, text.len())), "{text}");
    }
    for text in [
        r#"{"version": "3.1.0"}"#,
        r#"{"ignition": "3.1.0"}"#,
        r#"{"ignition": {"config": {}}}"#,
        r#"[{"ignition": {"version": "3.1.0"}}]"#,
        // A bracket is missing, and no template adds it.
        r#"{"ignition": {"version": "3.1.0"}"#,
        // Butane, of which Ignition's configuration is made.
        "variant: fcos\nversion: 1.5.0\nignition:\n  config: {}\n",
    ] {
        let data = read(text, Family::Custom);
        assert!(!data.is_for_ignition(), "{text}");
        assert_eq!(kinds(&data), [DefectKind::ReadByNothing], "{text}");
    }
    // Amazon Linux has no Ignition, whatever the text is.
    let text = r#"{"ignition": {"version": "3.1.0"}}"#;
    assert!(!read(text, Family::Al2).is_for_ignition() && !read(text, Family::Al2).defects.is_empty());
    let script =
        "#!/bin/bash\necho '{\"ignition\": {\"version\": \"3.1.0\"}}' > /etc/worker.ign\n/etc/eks/bootstrap.sh shop\n";
    assert_eq!(read(script, Family::Custom).bootstrap_calls.len(), 1);
}

#[test]
fn bottlerocket_taints_are_karpenters_unless_the_family_is_custom() {
    let text = "[settings.kubernetes.node-taints]\n\"karpenter.sh/unregistered\" = \
                [\":NoExecute\"]\n[settings.kubernetes.node-labels]\n\"karpenter.sh/do-not-sync-taints\" = \"true\"\n";
    let data = read(text, Family::Bottlerocket);
    assert!(data.taints().is_none());
    assert_eq!(data.arguments.iter().filter(|a| a.fate == Fate::Overridden(By::Karpenter)).count(), 1);
    let data = read(text, Family::Custom);
    assert_eq!(taints(&data), ["karpenter.sh/unregistered=:NoExecute"]);
    assert_eq!(data.labels()[0].1, "true");
    assert_eq!(
        read("[settings", Family::Bottlerocket).defects[0].consequence(Family::Bottlerocket),
        Consequence::NoLaunch
    );
}

#[test]
fn windows_arguments_are_never_certain() {
    let text = "& $f -EKSClusterName prod -KubeletExtraArgs '--register-with-taints=a:NoSchedule'\nexit 0\n";
    let data = read(text, Family::Windows);
    assert!(!data.effective("register-with-taints").unwrap().exact);
    assert_eq!(kinds(&data), [DefectKind::EndsBeforeKarpenter]);
}

/// What is wrong in a text, with its place.
fn marked(text: &str, family: Family) -> Vec<(DefectKind, &str, Consequence)> {
    read(text, family).defects.iter().map(|d| (d.kind, d.span.of(text), d.consequence(family))).collect()
}

#[test]
fn an_option_of_linux_in_a_call_of_windows_is_lost_only_where_karpenters_own_call_follows() {
    let call = "& $f -EKSClusterName shop --kubelet-extra-args '--v=2'\n";
    let of = |consequence| (DefectKind::OptionOfBootstrapSh, "--kubelet-extra-args", consequence);
    assert_eq!(marked(call, Family::Windows), [of(Consequence::Lost)]);
    let custom = format!("<powershell>\n{call}</powershell>\n");
    assert!(marked(&custom, Family::Custom).contains(&of(Consequence::NoJoin)));
    assert!(read(&custom, Family::Custom).unread_from.is_some());
    let right = custom.replace("--kubelet-extra-args", "-KubeletExtraArgs");
    assert!(!kinds(&read(&right, Family::Custom)).contains(&DefectKind::OptionOfBootstrapSh));
}

#[test]
fn carriage_returns_break_a_call_only_where_nothing_takes_them_out() {
    let mixed = "#!/bin/bash\nset -e\n/etc/eks/bootstrap.sh shop\r\n";
    assert_eq!(marked(mixed, Family::Custom), [(DefectKind::CarriageReturn, "\r", Consequence::NoJoin)]);
    // cloud-init takes them out where the first line has one, Karpenter wherever it renders.
    assert!(marked(&mixed.replace('\n', "\r\n").replace("\r\r", "\r"), Family::Custom).is_empty());
    assert!(!marked(mixed, Family::Al2).iter().any(|d| d.0 == DefectKind::CarriageReturn));
    let elsewhere = read("#!/bin/bash\nset -e\r\n/etc/eks/bootstrap.sh shop\n", Family::Custom);
    assert!(elsewhere.defects.is_empty() && elsewhere.unread_from.is_some());
}

#[test]
fn typographic_quotes_and_dashes_are_pointed_at() {
    let call = |name: &str, option: &str, flags: &str| {
        format!("#!/bin/bash\n# don’t\necho “hi”\n/etc/eks/bootstrap.sh {name} {option} {flags}\n")
    };
    let (option, flags) = ("--kubelet-extra-args", "'--node-labels=a=b'");
    assert!(marked(&call("shop", option, flags), Family::Custom).is_empty());
    let kind = DefectKind::TypographicCharacter;
    assert_eq!(marked(&call("“shop”", option, flags), Family::Custom), [(kind, "“", Consequence::NoJoin)]);
    assert_eq!(
        marked(&call("shop", option, "“--node-labels=a=b”"), Family::Custom),
        [(kind, "“", Consequence::NoJoin)]
    );
    assert_eq!(marked(&call("shop", option, "'–node-labels=a=b'"), Family::Custom), [(kind, "–", Consequence::NoJoin)]);
    let dash = call("shop", "–kubelet-extra-args", flags);
    assert_eq!(marked(&dash, Family::Custom), [(DefectKind::TypographicOption, "–", Consequence::Lost)]);
    let config = node_config("    flags: ['--node-labels=a=b', '–-v=2']\n");
    assert_eq!(marked(&config, Family::Al2023), [(kind, "–", Consequence::NoJoin)]);
}

#[test]
fn a_node_config_that_is_no_yaml_becomes_a_shell_script() {
    let text = node_config("    flags:\n\t- --v=2\n");
    let data = read(&text, Family::Al2023);
    assert_eq!(kinds(&data), [DefectKind::MisreadAsShell]);
    assert_eq!(data.defects[0].consequence(Family::Al2023), Consequence::Lost);
    assert_eq!(crate::source_text::position(&text, data.defects[0].span.start).line, 6);
    // A script that writes a NodeConfig is a script.
    assert!(
        read("#!/bin/bash\nset -e\necho 'apiVersion: node.eks.aws/v1alpha1' > /etc/x\n", Family::Al2023)
            .defects
            .is_empty()
    );
}

#[test]
fn more_than_ec2_takes_is_too_large() {
    let text = |length: usize| format!("#!/bin/bash\n{}\n", "#".repeat(length));
    assert!(marked(&text(16_000), Family::Custom).is_empty());
    assert_eq!(marked(&text(17_000), Family::Custom), [(DefectKind::TooLarge, "", Consequence::NoLaunch)]);
}

#[test]
fn a_second_call_and_a_call_behind_an_exit_are_pointed_at() {
    let call = "/etc/eks/bootstrap.sh shop";
    let twice = format!("#!/bin/bash\n{call}\n{call} --kubelet-extra-args '--v=2'\n");
    assert_eq!(marked(&twice, Family::Custom)[0].0, DefectKind::SecondBootstrap);
    let branches = format!("#!/bin/bash\nif [ -e /x ]; then {call}; else {call}; fi\n");
    assert!(marked(&branches, Family::Custom).is_empty());
    let exit = format!("#!/bin/bash\nexit 0\n{call}\n");
    assert_eq!(marked(&exit, Family::Custom), [(DefectKind::NeverReached, call, Consequence::NoJoin)]);
    // On AL2 Karpenter's own call stands in a script of its own.
    assert_eq!(marked(&exit, Family::Al2), [(DefectKind::NeverReached, call, Consequence::Lost)]);
    assert!(marked(&format!("#!/bin/bash\n[ -e /x ] || exit 0\n{call}\n"), Family::Custom).is_empty());
}

#[test]
fn flags_that_the_kubelet_does_not_have_are_pointed_at() {
    let flags = |flags: &str| node_config(&format!("    flags: [{flags}]\n"));
    let unknown = flags("--register-with-taint=a=b:NoSchedule");
    let data = read(&unknown, Family::Al2023);
    assert_eq!(kinds(&data), [DefectKind::UnknownFlag]);
    assert!(data.defects[0].message.ends_with("--register-with-taints is one"), "{}", data.defects[0].message);
    assert_eq!(
        marked(&flags("-v=2, -node-labels=a=b"), Family::Al2023),
        [(DefectKind::SingleDash, "-node-labels=a=b", Consequence::NoJoin)]
    );
    assert_eq!(kinds(&read(&flags("--max-pods"), Family::Al2023)), [DefectKind::FlagWithoutValue]);
    assert_eq!(kinds(&read(&flags("--max-pods"), Family::Custom)), [DefectKind::FlagWithoutValue]);
    let gone = read(&flags("--container-runtime=remote"), Family::Al2023);
    assert!(gone.defects.is_empty() && gone.removed_flags(26).next().is_none());
    assert_eq!(
        gone.removed_flags(27).map(|(argument, since)| (argument.name(), since)).collect::<Vec<_>>(),
        [("container-runtime", 27)]
    );
    assert!(read(&flags("--container-runtime-endpoint=x"), Family::Al2023).removed_flags(36).next().is_none());
}

#[test]
fn a_bottlerocket_table_of_strings_takes_no_number() {
    let text = "[settings.kubernetes.node-labels]\nteam = 7\n";
    assert_eq!(
        marked(text, Family::Bottlerocket),
        [(DefectKind::TomlWrongType, "{", Consequence::NoLaunch)].map(|d| (
            d.0,
            marked(text, Family::Bottlerocket)[0].1,
            d.2
        ))
    );
    assert_eq!(marked(text, Family::Custom)[0].2, Consequence::NoJoin);
    assert!(marked("[settings.kubernetes.node-labels]\nteam = \"7\"\n", Family::Custom).is_empty());
}

#[test]
fn noise_of_sixteen_kib_is_read_to_its_end_and_without_a_panic() {
    const FAMILIES: [Family; 5] = [Family::Al2, Family::Al2023, Family::Bottlerocket, Family::Windows, Family::Custom];
    let alphabet = "'\"\\$(){}<>|&;`\n\t =:-ax#,[]ö\r%*!@~^--B\n#!/bin/bash\nbootstrap.sh --kubelet-extra-args <<EOF \
                    ${X} X=$X MIME-Version: [settings]";
    let pieces: Vec<char> = alphabet.chars().collect();
    let mut state = 7_usize;
    for round in 0..40 {
        let mut text = [
            "",
            "#!/bin/bash\n",
            "#!/bin/bash\nbootstrap.sh a ",
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\n",
        ][round % 4]
            .to_owned();
        while text.len() < 16 * 1024 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push(pieces[(state >> 33) % pieces.len()]);
        }
        for family in FAMILIES {
            let data = read(&text, family);
            assert!(data.defects.iter().all(|d| d.span.end <= text.len()));
        }
    }
    for piece in [
        "'",
        "\"",
        "$(",
        "`",
        "${",
        "<<E\n",
        "((",
        "(",
        "{ ",
        "\\",
        "$",
        "[",
        "- ",
        "a: ",
        "--a=",
        "[[a]]\n",
        "if ",
        "bash -c '",
        "<(",
        "a=(",
        "&a [*a,*a]\n",
        "{,",
        "{..",
        "--B\n",
        "-KubeletExtraArgs ",
    ] {
        for head in ["#!/bin/bash\n", "", "#!/bin/bash\nbootstrap.sh x --kubelet-extra-args "] {
            let text = format!("{head}{}", piece.repeat(16 * 1024 / piece.len()));
            for family in FAMILIES {
                read(&text, family);
            }
        }
    }
}

/// Of such a taint nothing is written, and the text ends.
#[test]
fn an_empty_taint_at_the_end_is_pointed_at_within_the_text() {
    for (text, defects) in [
        (node_config("    config:\n      registerWithTaints:\n      - "), vec![DefectKind::InvalidTaints]),
        (
            node_config("    config: {registerWithTaints: [ö: x]}\n"),
            vec![DefectKind::FieldIgnored, DefectKind::InvalidTaints],
        ),
    ] {
        let data = read(&text, Family::Custom);
        assert_eq!(kinds(&data), defects, "{text}");
        assert!(data.defects.iter().all(|defect| text.get(defect.span.start..defect.span.end).is_some()), "{text}");
    }
}

/// Of the one label that the kubelet refuses in this call of bootstrap.sh: whether that is a defect, which only what is
/// certain is.
fn refuses(call: &str) -> bool {
    let data = read(&format!("#!/bin/bash\n/etc/eks/bootstrap.sh {call}\n"), Family::Custom);
    assert_eq!(data.refused_labels().len(), usize::from(!call.contains("x${")), "{call}");
    kinds(&data).contains(&DefectKind::RefusedLabel)
}

#[test]
fn an_expansion_leaves_certain_what_it_cannot_change() {
    for certain in [
        "${NAME} --kubelet-extra-args '--node-labels=kubernetes.io/x=y'",
        "\"${NAME}\" --apiserver-endpoint \"${ENDPOINT}\" --kubelet-extra-args '--node-labels=kubernetes.io/x=y'",
        "shop --kubelet-extra-args '--node-labels=kubernetes.io/x=y' --dns-cluster-ip \"$DNS\"",
        "shop --kubelet-extra-args \"--node-labels=team=${TEAM},kubernetes.io/x=y\"",
        "shop --kubelet-extra-args \"--max-pods=$(max 'pods') --node-labels=kubernetes.io/x=y\"",
        "{{ .Values.name }} --kubelet-extra-args '--node-labels=team={{ .Values.team }},kubernetes.io/x=y'",
    ] {
        assert!(refuses(certain), "{certain}");
    }
    for open in [
        // Nothing at all would let the option take the next word, and several words may hold the option again.
        "shop --apiserver-endpoint ${ENDPOINT} --kubelet-extra-args '--node-labels=kubernetes.io/x=y'",
        "shop --kubelet-extra-args '--node-labels=kubernetes.io/x=y' ${MORE}",
        "shop --kubelet-extra-args '--node-labels=kubernetes.io/x=y' \"$@\"",
        "shop --kubelet-extra-args \"--node-labels=kubernetes.io/x${SUFFIX}=y\"",
    ] {
        assert!(!refuses(open), "{open}");
    }
}

#[test]
fn an_expansion_is_no_mistake_itself() {
    for value in [
        "${ARGS}",
        "${ARGS} value",
        "--node-labels=id=$(curl -s 'http://x')",
        "--max-pods={{ .Values.max }}",
        "--$FLAG=1",
    ] {
        let text = format!("#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args \"{value}\"\n");
        assert_eq!(kinds(&read(&text, Family::Custom)), [], "{value}");
    }
    let text =
        "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args \"--max-pods=${MAX} stray --nope=${NOPE}\"\n";
    assert_eq!(kinds(&read(text, Family::Custom)), [DefectKind::StrayArgument, DefectKind::UnknownFlag]);
    let flags = node_config("    flags:\n    - --node-labels=team={{ .Values.team }}\n");
    assert_eq!(kinds(&read(&flags, Family::Al2023)), []);
}

#[test]
fn the_last_to_set_a_kernel_parameter_before_the_kubelet_starts_is_what_it_finds() {
    let al2023 = |lines: &str| kinds(&read(&format!("#!/bin/bash\n{lines}\n"), Family::Al2023));
    assert_eq!(al2023("sysctl -w vm.overcommit_memory=0"), [DefectKind::KernelParameterRefused]);
    assert_eq!(al2023("sysctl -w vm/panic_on_oom=1 net.core.somaxconn=4096"), [DefectKind::KernelParameterRefused]);
    assert_eq!(al2023("sysctl -w vm.overcommit_memory=0\nsysctl -w vm.overcommit_memory=1"), []);
    assert_eq!(al2023("if [ -e /tuned ]; then sysctl -w vm.overcommit_memory=0; fi"), []);
    let own = "/etc/eks/bootstrap.sh prod\nsysctl -w vm.overcommit_memory=0";
    assert_eq!(kinds(&read(&format!("#!/bin/bash\n{own}\n"), Family::Custom)), [], "another image's kubelet");
    let tolerant = "/etc/eks/bootstrap.sh prod --kubelet-extra-args '--protect-kernel-defaults=false'";
    let al2 = read(&format!("#!/bin/bash\nsysctl -w kernel.panic=0\n{tolerant}\n"), Family::Al2);
    assert!(!kinds(&al2).contains(&DefectKind::KernelParameterRefused));
}

#[test]
fn nodeadm_wants_a_command_and_a_uri() {
    const CONFIG: &str = "cat > /etc/eks/n.yaml <<EOF\nkind: NodeConfig\nEOF\n";
    let found = |call: &str, family: Family| kinds(&read(&format!("#!/bin/bash\n{CONFIG}{call}\n"), family));
    let refused = [DefectKind::NodeadmCallRefused];
    for call in [
        "/usr/local/bin/nodeadm --config /etc/eks/n.yaml",
        "nodeadm",
        "nodeadm init -c /etc/eks/n.yaml",
        "nodeadm init --config-source /etc/eks/n.yaml",
        "sudo nodeadm -c file:///etc/eks/n.yaml",
    ] {
        assert_eq!(found(call, Family::Custom), refused, "{call}");
        assert_eq!(found(call, Family::Al2023), refused, "{call}");
    }
    for call in [
        "nodeadm init -c file:///etc/eks/n.yaml",
        "nodeadm init --config-source=file:///etc/eks/n.yaml --skip run",
        "nodeadm -c imds://user-data init",
        "nodeadm config check -c file:///etc/eks/n.yaml",
        "nodeadm --version",
        "nodeadm $ARGUMENTS",
        "nodeadm init -c \"$CONFIG\"",
        "if [ -e /x ]; then nodeadm; fi",
        "nodeadm-internal",
    ] {
        assert_eq!(found(call, Family::Custom), [], "{call}");
    }
    // The services of the image read the other part.
    let archive = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: \
                   application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {cluster: {name: \
                   a, apiServerEndpoint: \"https://x\", certificateAuthority: eA==, cidr: 10.0.0.0/16}}\n\
                   --B\nContent-Type: text/x-shellscript\n\n#!/bin/bash\nnodeadm\n--B--\n";
    assert!(!kinds(&read(archive, Family::Custom)).contains(&DefectKind::NodeadmCallRefused));
}
