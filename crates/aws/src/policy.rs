//! What the document of a policy says by itself, without those who it is about. What is not sure is not said.

use serde_json::Value;
use std::collections::BTreeSet;

fn statements(policy: &Value) -> &[Value] {
    match policy.get("Statement") {
        Some(Value::Array(statements)) => statements,
        Some(statement) => std::slice::from_ref(statement),
        None => &[],
    }
}

/// One value or many.
fn values(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn allows(statement: &Value) -> bool {
    statement.get("Effect").is_some_and(|effect| effect == "Allow")
}

/// The principals of a kind that a statement is about; `*` is everybody.
fn principals<'v>(statement: &'v Value, kind: &str) -> Vec<&'v str> {
    match statement.get("Principal") {
        Some(Value::Object(of_kinds)) => values(of_kinds.get(kind)),
        everybody => values(everybody),
    }
}

/// Whether a policy is the one that endpoints have by default. What another one permits is not worked out.
/// Source: AWS PrivateLink guide, "Control access to VPC endpoints using endpoint policies", default policy.
pub fn is_open(policy: &str) -> bool {
    let Ok(policy) = serde_json::from_str::<Value>(policy) else { return policy.is_empty() };
    let permits_all = |statement: &Value| {
        allows(statement)
            && ["Action", "Resource"].iter().all(|key| values(statement.get(*key)).contains(&"*"))
            && principals(statement, "AWS").contains(&"*")
            && statement.get("Condition").is_none()
    };
    let statements = statements(&policy);
    statements.iter().all(allows) && statements.iter().any(permits_all)
}

/// Whether a role's trust policy lets EC2 hand out its credentials to machines; `None` where that depends.
/// Source: IAM user guide, "Use an IAM role to grant permissions to applications running on Amazon EC2 instances".
pub fn ec2_may_assume(trust: &str) -> Option<bool> {
    let policy: Value = serde_json::from_str(trust).ok()?;
    let statements = statements(&policy);
    let mut may = (!statements.is_empty()).then_some(false)?;
    for statement in statements {
        let assumes =
            statement.get("NotAction").is_some() || values(statement.get("Action")).into_iter().any(is_assume);
        // `ec2.amazonaws.com.cn` in China.
        let is_ec2 = principals(statement, "Service").iter().any(|s| *s == "*" || s.starts_with("ec2.amazonaws.com"));
        if !assumes || !(is_ec2 || statement.get("NotPrincipal").is_some()) {
            continue;
        }
        let is_plain = ["Condition", "NotPrincipal", "NotAction"].iter().all(|key| statement.get(*key).is_none());
        may = (allows(statement) && is_plain).then_some(true)?;
    }
    Some(may)
}

fn is_assume(action: &str) -> bool {
    let action = action.to_ascii_lowercase();
    action == "sts:assumerole" || action.strip_suffix('*').is_some_and(|begin| "sts:assumerole".starts_with(begin))
}

/// Everybody in AWS whom a policy allows anything, on whatever condition.
pub fn allowed(policy: &str) -> Option<BTreeSet<String>> {
    let policy: Value = serde_json::from_str(policy).ok()?;
    let everybody = |statement: &Value| statement.get("NotPrincipal").is_some();
    let of = |statement| {
        let all = everybody(statement).then_some("*");
        principals(statement, "AWS").into_iter().chain(all).map(str::to_owned).collect::<Vec<_>>()
    };
    Some(statements(&policy).iter().filter(|statement| allows(statement)).flat_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(rest: &str) -> String {
        format!(r#"{{"Statement": [{{"Effect": "Allow", {rest}}}]}}"#)
    }

    #[test]
    fn only_a_policy_that_permits_all_to_all_is_open() {
        let all = r#""Action": "*", "Resource": "*", "Principal": "*""#;
        let denial = r#"{"Effect": "Deny", "Action": "s3:GetObject", "Resource": "*", "Principal": "*"}"#;
        for (policy, open) in [
            (String::new(), true),
            (statement(all), true),
            (statement(&all.replace(r#""Principal": "*""#, r#""Principal": {"AWS": "*"}"#)), true),
            (statement(&all.replace(r#""Action": "*""#, r#""Action": ["s3:GetObject"]"#)), false),
            (statement(&format!(r#"{all}, "Condition": {{"StringEquals": {{"aws:PrincipalOrgID": "o-1"}}}}"#)), false),
            (statement(all).replace("]}", &format!(", {denial}]}}")), false),
            ("no JSON".to_owned(), false),
            ("{}".to_owned(), false),
        ] {
            assert_eq!(is_open(&policy), open, "{policy}");
        }
    }

    #[test]
    fn ec2_may_assume_a_role_that_says_so_without_condition() {
        let ec2 = r#""Action": "sts:AssumeRole", "Principal": {"Service": ["ec2.amazonaws.com", "eks.amazonaws.com"]}"#;
        let other = r#""Action": "sts:AssumeRole", "Principal": {"Service": "eks.amazonaws.com"}"#;
        let web = r#""Action": "sts:AssumeRoleWithWebIdentity", "Principal": {"Federated": "arn:x"}, "Condition": {}"#;
        let both = format!(r#"{{"Statement": [{{"Effect": "Allow", {ec2}}}, {{"Effect": "Allow", {web}}}]}}"#);
        for (policy, may) in [
            (statement(ec2), Some(true)),
            (both, Some(true)),
            (statement(&ec2.replace("sts:AssumeRole", "sts:*")), Some(true)),
            (statement(&ec2.replace("ec2.amazonaws.com", "ec2.amazonaws.com.cn")), Some(true)),
            (statement(other), Some(false)),
            (statement(web), Some(false)),
            (statement(r#""Action": "sts:AssumeRole", "Principal": {"AWS": "AROAEXAMPLE"}"#), Some(false)),
            (statement(&format!(r#"{ec2}, "Condition": {{"Bool": {{}}}}"#)), None),
            (statement(ec2).replace("Allow", "Deny"), None),
            (statement(r#""Action": "sts:AssumeRole", "NotPrincipal": {"Service": "eks.amazonaws.com"}"#), None),
            ("{}".to_owned(), None),
            ("no JSON".to_owned(), None),
        ] {
            assert_eq!(ec2_may_assume(&policy), may, "{policy}");
        }
    }

    #[test]
    fn whom_a_policy_names_is_told_whatever_the_condition() {
        let policy = statement(r#""Action": "kms:*", "Principal": {"AWS": ["arn:a", "arn:b"]}, "Condition": {}"#);
        assert_eq!(allowed(&policy), Some(["arn:a", "arn:b"].map(str::to_owned).into()));
        assert_eq!(allowed(&policy.replace("Allow", "Deny")), Some(BTreeSet::new()));
        assert_eq!(allowed(&statement(r#""Action": "kms:*", "Principal": "*""#)), Some(["*".to_owned()].into()));
        assert_eq!(allowed("no JSON"), None);
    }
}
