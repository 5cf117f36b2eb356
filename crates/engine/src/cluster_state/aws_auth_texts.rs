//! What aws-auth said before its last changes. The authenticator judged the machines that tried to join by those texts,
//! and no object shows them any more.

use super::memo::{Derived, Memo};
use super::{AwsAuthFacts, ClusterState, Touched};
use crate::objects::input::Input;
use chrono::{DateTime, Utc};
use readers::aws_auth::{RoleMapping, Verdict};

/// The most texts, and the most bytes of all of them.
const MOST: usize = 3;
const MOST_BYTES: usize = 256 << 10;

/// The texts that nodewhy saw. Each was in force until the next one, without a gap.
#[derive(Debug, Default)]
pub(super) struct AwsAuthTexts {
    /// Oldest first, without the present text.
    earlier: Vec<EarlierText>,
    /// The time from which on the present text is in force, at the latest. `None` if it is not known.
    since: Option<DateTime<Utc>>,
}

#[derive(Debug)]
struct EarlierText {
    /// `None` if there was no ConfigMap.
    facts: Option<AwsAuthFacts>,
    since: DateTime<Utc>,
    until: DateTime<Utc>,
}

impl EarlierText {
    fn bytes(&self) -> usize {
        self.facts.as_ref().map_or(0, |facts| facts.map_roles.len() + facts.map_users.len())
    }
}

impl AwsAuthTexts {
    /// Keeps the text that was in force until this time.
    fn keep(&mut self, facts: Option<AwsAuthFacts>, until: Option<DateTime<Utc>>) {
        let (Some(since), Some(until)) = (self.since, until) else {
            *self = Self { earlier: Vec::new(), since: until };
            return;
        };
        // A ConfigMap that is recreated has the second of its deletion.
        let until = until.max(since);
        if since < until {
            self.earlier.push(EarlierText { facts, since, until });
        }
        self.since = Some(until);
        while self.earlier.len() > MOST || self.earlier.iter().map(EarlierText::bytes).sum::<usize>() > MOST_BYTES {
            self.earlier.remove(0);
        }
    }

    /// The place of the text that was in force at this time.
    fn in_force(&self, at: DateTime<Utc>) -> Option<usize> {
        self.earlier.iter().position(|text| text.since <= at && at < text.until)
    }
}

/// An earlier text of aws-auth, and what it did for a role.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlierAwsAuth<'w> {
    /// `None` if there was no ConfigMap.
    pub facts: Option<&'w AwsAuthFacts>,
    pub until: DateTime<Utc>,
    pub treatment: Treatment,
}

/// What an earlier text did for a role, compared with the present text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// The same.
    Alike,
    /// It did not map the role as a node. The present text does.
    Rejected,
    /// It mapped the role as a node, in another way or unlike the present text.
    Mapped,
    /// Neither of them maps the role as a node, each for its own reason.
    Otherwise,
}

impl ClusterState {
    /// The texts of aws-auth from this time on, the present one left out, and what they did for a role. `None` if
    /// nodewhy did not see all of them.
    pub(crate) fn aws_auth_since<'w>(&'w self, from: DateTime<Utc>, role: &str) -> Option<Vec<EarlierAwsAuth<'w>>> {
        static TREATMENTS: Memo<Vec<Treatment>> = Memo::new("what earlier texts of aws-auth did for a role");
        self.asks(Input::AwsAuth);
        let texts = &self.aws_auth_texts;
        if texts.since? <= from {
            return Some(Vec::new());
        }
        let first = texts.in_force(from)?;
        let treatments = self.once(&TREATMENTS, &format!("{} {role}", texts.earlier.len()), || {
            let present = self.aws_auth.as_ref();
            texts.earlier.iter().map(|text| treatment(text.facts.as_ref(), present, role)).collect()
        });
        let view = |(text, treatment): (&'w EarlierText, &Treatment)| EarlierAwsAuth {
            facts: text.facts.as_ref(),
            until: text.until,
            treatment: *treatment,
        };
        Some(texts.earlier.iter().zip(treatments.iter()).skip(first).map(view).collect())
    }

    /// How many texts are kept that are not the present one.
    #[cfg(test)]
    pub(crate) fn earlier_aws_auths(&self) -> usize {
        self.aws_auth_texts.earlier.len()
    }

    /// `is_seen`: the object comes from a watch, not from a dump, where nothing was seen to happen.
    pub(super) fn put_aws_auth(&mut self, new: AwsAuthFacts, is_seen: bool) {
        let written = new.written.as_ref().map(|written| written.at);
        let is_same = self.aws_auth.as_ref().is_some_and(|old| is_same_text(old, &new));
        let old = self.aws_auth.replace(new);
        if !is_seen {
            self.aws_auth_texts = AwsAuthTexts::default();
        } else if !is_same {
            self.aws_auth_texts.keep(old, written);
            self.forget_aws_auth_texts();
        }
    }

    /// Forgets the ConfigMap, as somebody deleted it at this time, and keeps what it said.
    pub(crate) fn remove_aws_auth(&mut self, now: DateTime<Utc>) -> Touched {
        self.derived = Derived::default();
        if let Some(old) = self.aws_auth.take() {
            self.aws_auth_texts.keep(Some(old), Some(now));
            self.forget_aws_auth_texts();
        }
        Touched::Everything
    }

    /// Forgets the texts that changed before the first of the present NodeClaims was created.
    pub(super) fn forget_aws_auth_texts(&mut self) {
        let Self { claims, aws_auth_texts, .. } = self;
        let is_older =
            |until: DateTime<Utc>| claims.values().any(|claim| claim.metadata.creation_timestamp < Some(until));
        aws_auth_texts.earlier.retain(|text| is_older(text.until));
    }
}

fn is_same_text(old: &AwsAuthFacts, new: &AwsAuthFacts) -> bool {
    (&old.map_roles, &old.map_users, &old.read) == (&new.map_roles, &new.map_users, &new.read)
}

fn treatment(earlier: Option<&AwsAuthFacts>, present: Option<&AwsAuthFacts>, role: &str) -> Treatment {
    let (before, now) = (rights(earlier, role), rights(present, role));
    match (before, now) {
        (Rights::Node(before), Rights::Node(now)) | (Rights::Other(before), Rights::Other(now))
            if (&before.username, &before.groups) == (&now.username, &now.groups) =>
        {
            Treatment::Alike
        }
        (Rights::Nothing, Rights::Nothing) => Treatment::Alike,
        (Rights::Node(_), _) => Treatment::Mapped,
        (_, Rights::Node(_)) => Treatment::Rejected,
        _ => Treatment::Otherwise,
    }
}

/// The entry that the authenticator uses for a role.
enum Rights<'a> {
    Node(&'a RoleMapping),
    /// It does not make a node, but RBAC may still allow what a node needs.
    Other(&'a RoleMapping),
    Nothing,
}

fn rights<'a>(auth: Option<&'a AwsAuthFacts>, role: &str) -> Rights<'a> {
    match auth.map(|auth| auth.read.judge(role)) {
        Some(Verdict::Mapped(entry)) => Rights::Node(entry),
        Some(
            Verdict::MissingGroups { entry, .. }
            | Verdict::WrongUsername { entry, .. }
            | Verdict::Shadowed { by: entry, .. },
        ) => Rights::Other(entry),
        _ => Rights::Nothing,
    }
}
