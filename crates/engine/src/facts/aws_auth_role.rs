//! The first questions of the aws-auth rules: whether the machine's role is known to work, and how certain a mistake in
//! its entry can be.

use crate::api::{Blame, Confidence, Evidence, Stage, Text};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::cluster_state::AwsAuthFacts;
use crate::cluster_state::memo::Memo;
use crate::facts::access_entry::{self, EntryState};
use crate::facts::{node_role, role_in_use};
use crate::objects::input::Input;
use readers::aws_auth::identity::Identity;
use readers::aws_auth::{BOOTSTRAPPERS_GROUP, DataKey, NODES_GROUP, NodeName, RoleMapping, Verdict};
use readers::source_text;

/// The machine's node role, and the current aws-auth.
pub(crate) struct RoleInQuestion<'w> {
    /// The role's name; the instance profile's where the class names only that.
    pub role: &'w str,
    /// The role's name is IAM's secret: people often call role and profile alike, but need not.
    pub profile_only: bool,
    /// An earlier one, if that rejected the machine a moment ago.
    pub auth: &'w AwsAuthFacts,
    /// An access entry may authorize the role: nodes here join through access entries, or a machine from before the
    /// class's last change runs, with this role or with an earlier one.
    pub may_have_entry: bool,
    /// EKS says that no access entry authorizes the role.
    pub has_no_entry: bool,
}

impl RoleInQuestion<'_> {
    /// How certain a mistake in aws-auth can be as the cause.
    pub(crate) fn confidence(&self) -> Confidence {
        if self.may_have_entry || self.profile_only { Confidence::Likely } else { Confidence::Certain }
    }
}

/// The node role, if aws-auth maps it as a node. Then no mistake in aws-auth is the cause, whatever else authorizes the
/// role.
pub(crate) fn mapped<'w>(case: &Case<'w>) -> Option<&'w str> {
    mapping(case).map(|(role, ..)| role)
}

/// The same role with the object that shows it, in words that all machines share.
fn mapping<'w>(case: &Case<'w>) -> Option<(&'w str, &'w AwsAuthFacts, Text)> {
    static MAPPED: Memo<Option<Text>> = Memo::new("how aws-auth maps the role");
    let (role, auth) = (node_role::name(case)?, case.cluster.aws_auth().filter(|_| case.goes_by(Input::AwsAuth))?);
    let mapped = case.cluster.once(&MAPPED, role, || {
        matches!(auth.read.judge(role), Verdict::Mapped(_))
            .then(|| format!("aws-auth maps {role} to a node's username and to {NODES_GROUP}").into())
    });
    Some((role, auth, (*mapped).clone()?))
}

/// The entry of aws-auth that makes a node of the role under the name of its session.
pub(crate) struct SessionEntry<'w> {
    pub role: &'w str,
    pub auth: &'w AwsAuthFacts,
    pub entry: &'w RoleMapping,
}

impl SessionEntry<'_> {
    pub(crate) fn evidence(&self) -> Evidence {
        let span = self.entry.username_span.unwrap_or(self.entry.span);
        Evidence::new(
            "ConfigMap/aws-auth",
            "data.mapRoles",
            source_text::quoted(&self.auth.map_roles, span),
            "the session of an instance's role is named after the instance's id",
        )
    }

    pub(crate) fn blame(&self) -> Blame {
        Blame::object("v1", "ConfigMap", "aws-auth")
            .namespace("kube-system")
            .field("data.mapRoles")
            .at(&self.auth.map_roles, self.entry.username_span.unwrap_or(self.entry.span))
    }
}

/// The entry, unless EKS says that aws-auth does not decide. Fargate needs that user name. A kubelet on EC2 needs it
/// only if its Node is named after the instance's id.
pub(crate) fn by_session<'w>(case: &Case<'w>, role: &'w str) -> Option<SessionEntry<'w>> {
    let auth = case.cluster.aws_auth().filter(|_| case.goes_by(Input::AwsAuth))?;
    let Verdict::Mapped(entry) = auth.read.judge(role) else { return None };
    let is_session = entry.node_name() == Ok(NodeName::InstanceId) && entry.key == DataKey::MapRoles;
    let is_used = || match access_entry::entry_state(case, role) {
        EntryState::Missing { mode, .. } => mode.reads_aws_auth(),
        EntryState::NotRead | EntryState::Unseen => true,
        // An access entry beats aws-auth.
        EntryState::WrongType { .. } | EntryState::Outlived { .. } | EntryState::Fits(_) => false,
    };
    (is_session && is_used() && is_read(case) != Some(false)).then_some(SessionEntry { role, auth, entry })
}

/// `Err` is the rule's answer where the question does not arise.
pub(crate) fn ask<'w>(case: &Case<'w>) -> Result<RoleInQuestion<'w>, Option<Opinion>> {
    if case.stage() != Stage::Join {
        return Err(None);
    }
    let auth = case.cluster.aws_auth().filter(|_| case.goes_by(Input::AwsAuth));
    let (Some(class), Some(mut auth)) = (case.class(), auth) else { return Err(None) };
    if let Some((_, present, because)) = mapping(case) {
        let Some((earlier, _)) = case.rejected_by_earlier_aws_auth() else {
            return Err(Some(case.excluded_by_aws_auth(present, because)));
        };
        auth = earlier;
    }
    let Some(role) = node_role::identity(class) else { return Err(None) };
    let running = role_in_use::running(case, role);
    if let Some(let_in) = role_in_use::works(case, &running) {
        let opinion = case.aws_auth_settles().map_or_else(|| let_in.excludes(role), Opinion::LookAgain);
        return Err(Some(opinion));
    }
    let ran_before = running.any;
    let named = node_role::name(case);
    let profile_only = named.is_none();
    let role = named.unwrap_or_else(|| role.rsplit('/').next().unwrap_or(role));
    let has_no_entry = match access_entry::entry_state(case, role) {
        EntryState::Fits(entry) => {
            let because = format!("the access entry of {} is of type {}", entry.principal_arn, entry.type_);
            return Err(access_entry::excludes(case, role, because));
        }
        EntryState::Missing { mode, .. } if !mode.reads_aws_auth() => {
            let because = "the cluster's authentication mode is API, so aws-auth does not apply".to_owned();
            return Err(access_entry::mode_excludes(case, because));
        }
        // An entry beats aws-auth, and this one has its own rule.
        EntryState::WrongType { .. } | EntryState::Outlived { .. } => return Err(None),
        EntryState::Missing { .. } | EntryState::NotRead => true,
        EntryState::Unseen => false,
    };
    let may_have_entry = !has_no_entry && (ran_before || by_entries(case));
    Ok(RoleInQuestion { role, profile_only, auth, may_have_entry, has_no_entry })
}

/// Whether aws-auth authorizes anything: as EKS says, otherwise as a Node joined or as there is none. `None` if nothing
/// shows it; then access entries may decide alone.
pub(crate) fn is_read(case: &Case) -> Option<bool> {
    static BY_AWS_AUTH: Memo<bool> = Memo::new("whether Nodes joined through aws-auth");
    if !case.goes_by(Input::AwsAuth) {
        return Some(false);
    }
    let told = case.cluster_name().and_then(|name| case.cluster.aws().cluster(name).known());
    if let Some((cluster, _)) = told.filter(|(cluster, _)| cluster.authentication_mode.is_some()) {
        return Some(cluster.reads_aws_auth());
    }
    if case.cluster.aws_auth().is_none() {
        return case.cluster.missing(Input::AwsAuth).is_none().then_some(false);
    }
    let came = case.cluster.once(&BY_AWS_AUTH, "", || case.cluster.csrs().any(node_role::came_by_aws_auth));
    came.then_some(true)
}

/// Nodes that came by an access entry have no bootstrappers group.
pub(crate) fn by_entries(case: &Case) -> bool {
    static BY_ENTRIES: Memo<bool> = Memo::new("whether Nodes joined through access entries");
    *case.cluster.once(&BY_ENTRIES, "", || {
        let mut of_nodes = case.cluster.csrs().filter(|c| c.spec.username.starts_with("system:node:"));
        of_nodes.any(|c| !c.spec.groups.iter().any(|g| g == BOOTSTRAPPERS_GROUP))
    })
}

/// Only the API server knows whether the machine's kubelet may create its Node: the entry does not map it as a node,
/// but RBAC may still allow it.
pub(crate) fn in_doubt(case: &Case) -> Option<Identity> {
    let question = ask(case).ok()?;
    let entry = in_force(&question.auth.read.judge(question.role))?;
    Some(Identity::of_entry(entry)).filter(|identity| !identity.is_node() && !identity.may_do_everything())
}

/// The entry that the authenticator uses and that does not map a node.
pub(crate) fn in_force<'a>(verdict: &Verdict<'a>) -> Option<&'a RoleMapping> {
    match *verdict {
        Verdict::MissingGroups { entry, .. }
        | Verdict::WrongUsername { entry, .. }
        | Verdict::Shadowed { by: entry, .. } => Some(entry),
        _ => None,
    }
}
