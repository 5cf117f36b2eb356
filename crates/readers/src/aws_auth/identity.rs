//! The user and groups that aws-auth gives a kubelet, and whether they may create Nodes.

use crate::aws_auth::{NODES_GROUP, RoleMapping};
use crate::source_text::shell_word;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// Everybody who is let in has it. k8s.io/apiserver v0.36.3 pkg/authentication/group/authenticated_group_adder.go
const AUTHENTICATED: &str = "system:authenticated";
/// Nobody asks what its members may do. Kubernetes v1.36.3 pkg/kubeapiserver/authorizer/reload.go
/// (`NewPrivilegedGroups`)
const MASTERS: &str = "system:masters";
/// Stands for the machine's own name, which only EC2 knows. RBAC binds no user who changes with each machine.
const ANY: &str = "nodewhy-asks";

/// A user and the groups, those aside that everybody has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    user: String,
    groups: BTreeSet<String>,
}

impl Identity {
    pub fn new(user: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let groups = groups.into_iter().filter(|group| !group.is_empty() && group != AUTHENTICATED).collect();
        Self { user: user.into(), groups }
    }

    /// What the authenticator makes of an entry: pkg/server/server.go `renderTemplate`. Templates that it does not know
    /// stay.
    pub fn of_entry(entry: &RoleMapping) -> Self {
        let render = |text: &str| {
            let known = ["{{EC2PrivateDNSName}}", "{{SessionName}}", "{{SessionNameRaw}}", "{{AccessKeyID}}"];
            let text = text.replace("{{AccountID}}", entry.account().unwrap_or(ANY));
            known.iter().fold(text, |text, template| text.replace(template, ANY))
        };
        Self::new(render(&entry.username), entry.groups.iter().map(|group| render(group)))
    }

    /// The Node authorizer lets it create Nodes, and NodeRestriction compares the names: RBAC has no say.
    /// Kubernetes v1.36.3 pkg/auth/nodeidentifier/default.go
    pub fn is_node(&self) -> bool {
        self.user.starts_with("system:node:") && self.groups.contains(NODES_GROUP)
    }

    pub fn may_do_everything(&self) -> bool {
        self.groups.contains(MASTERS)
    }

    /// The question as the API server takes it.
    pub fn review(&self) -> Value {
        let groups: Vec<_> = self.groups.iter().map(String::as_str).chain([AUTHENTICATED]).collect();
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": { "user": self.user, "groups": groups, "resourceAttributes": { "verb": "create", "resource": "nodes" } },
        })
    }

    /// The same question for people. kubectl takes no groups without a user.
    pub fn command(&self) -> String {
        let user = if self.user.is_empty() { ANY } else { &self.user };
        let groups: Vec<_> = self.groups.iter().map(|group| format!(" --as-group={}", shell_word(group))).collect();
        format!("kubectl auth can-i create nodes --as={}{}", shell_word(user), groups.concat())
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {:?}", self.user)?;
        let mut before = " with the groups ";
        for group in &self.groups {
            write!(f, "{before}{group}")?;
            before = ", ";
        }
        if self.groups.is_empty() { f.write_str(" without groups") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws_auth;

    fn identity(username: &str, groups: &str) -> Identity {
        let text = format!("- rolearn: arn:aws:iam::111122223333:role/x\n  username: {username}\n  groups: {groups}\n");
        Identity::of_entry(&aws_auth::read(Some(&text), None, None).roles[0])
    }

    #[test]
    fn templates_that_exist_are_rendered_in_groups_too() {
        let rendered = identity(
            "system:node:{{EC2PrivateDNSName}}",
            "[\"nodes-of-{{AccountID}}\", b, \"\", system:authenticated]",
        );
        assert_eq!(
            rendered,
            Identity::new("system:node:nodewhy-asks", ["b".to_owned(), "nodes-of-111122223333".to_owned()])
        );
        assert!(!rendered.is_node());
        assert_eq!(identity("system:node:{{EC2PrivateDnsName}}", "[]").user, "system:node:{{EC2PrivateDnsName}}");
        assert!(identity("system:node:{{SessionName}}", "[system:nodes]").is_node());
        assert!(!identity("karpenter", "[system:nodes]").is_node());
    }

    #[test]
    fn a_strangers_text_is_one_word_of_the_command() {
        assert_eq!(
            identity("a", "[b, system:nodes]").command(),
            "kubectl auth can-i create nodes --as=a --as-group=b --as-group=system:nodes"
        );
        assert_eq!(identity("\"$(id) 'x\"", "[]").command(), r"kubectl auth can-i create nodes --as='$(id) '\''x'");
        assert_eq!(identity("", "[b]").command(), "kubectl auth can-i create nodes --as=nodewhy-asks --as-group=b");
    }
}
