//! Entries out of YAML as Go's `encoding/json` fills the authenticator's structs: one field's wrong type costs that
//! field only.

use super::yaml::{self, Content, Document, DocumentNode, NodeId, Pair};
use super::{AwsAuth, Broken, DataKey, Dropped, MappingDefect, MappingDefectKind, RoleMapping};
use crate::source_text::Span;

/// The JSON names in pkg/config/types.go `RoleMapping` and `UserMapping`. Field names match without regard to case.
const ROLE_FIELDS: &[&str] = &["rolearn", "sso", "username", "groups", "userid"];
const USER_FIELDS: &[&str] = &["userarn", "username", "groups", "userid"];

/// `mapRoles` or `mapUsers`.
pub fn mappings(text: &str, key: DataKey, auth: &mut AwsAuth) -> Result<Vec<RoleMapping>, Broken> {
    let document = yaml::parse(text)?;
    let mut decoder = Decoder { document: &document, key, auth };
    decoder.note_later_document(text);
    let Some((root, node)) = root(&document) else { return Ok(Vec::new()) };
    let Content::List(items) = &node.content else {
        let message = format!("{key} must be a list of entries, not {}", kind_of(&node.content));
        return Err(Broken { message, span: document.span(root) });
    };
    Ok(items.iter().filter_map(|&item| decoder.entry(item)).collect())
}

/// `mapAccounts`: yaml.v2 into `[]string`, which takes numbers and booleans in their own spelling.
pub fn accounts(text: &str, auth: &mut AwsAuth) -> Result<Vec<String>, Broken> {
    let document = yaml::parse(text)?;
    let mut decoder = Decoder { document: &document, key: DataKey::MapAccounts, auth };
    decoder.note_later_document(text);
    let Some((root, node)) = root(&document) else { return Ok(Vec::new()) };
    let Content::List(items) = &node.content else {
        let message = format!("mapAccounts must be a list of account numbers, not {}", kind_of(&node.content));
        return Err(Broken { message, span: document.span(root) });
    };
    let mut accounts = Vec::new();
    for &item in items {
        match document.node(item).map(|node| &node.content) {
            Some(Content::Text(account) | Content::Other(account)) => accounts.push(account.clone()),
            Some(Content::Null) => accounts.push(String::new()),
            _ => decoder.defect(
                MappingDefectKind::EntryDropped,
                document.span(item),
                "an account number is expected".to_owned(),
            ),
        }
    }
    Ok(accounts)
}

/// The top of the document; `null` decodes to no entries.
fn root(document: &Document) -> Option<(NodeId, &DocumentNode)> {
    let root = document.root?;
    document.node(root).filter(|node| !matches!(node.content, Content::Null)).map(|node| (root, node))
}

fn kind_of(content: &Content) -> &'static str {
    match content {
        Content::Null | Content::Alias(_) => "nothing",
        Content::Text(_) => "a string",
        Content::Other(_) => "a number or boolean",
        Content::List(_) => "a list",
        Content::Map(_) => "a mapping",
    }
}

struct Decoder<'a> {
    document: &'a Document,
    key: DataKey,
    auth: &'a mut AwsAuth,
}

impl Decoder<'_> {
    fn defect(&mut self, kind: MappingDefectKind, span: Span, message: String) {
        self.auth.defects.push(MappingDefect { key: self.key, kind, span, message });
    }

    fn note_later_document(&mut self, text: &str) {
        if let Some(at) = self.document.next {
            self.defect(
                MappingDefectKind::DocumentIgnored,
                Span::new(at, text.len()),
                "only the first YAML document is read".to_owned(),
            );
        }
    }

    fn drop_entry(&mut self, item: NodeId, span: Span, message: String) {
        let defect = MappingDefect { key: self.key, kind: MappingDefectKind::EntryDropped, span, message };
        self.auth.defects.push(defect.clone());
        self.auth.dropped.push(Dropped { defect, scalars: self.document.scalars(item).map(str::to_owned).collect() });
    }

    fn entry(&mut self, item: NodeId) -> Option<RoleMapping> {
        let document = self.document;
        let span = document.span(item);
        let node = document.node(item)?;
        match &node.content {
            Content::Map(pairs) => self.mapping(item, span, pairs),
            Content::Text(text) if text.starts_with("system:") => {
                let message = format!(
                    "`{text}` stands where an entry is expected; as a group it must be indented below `groups:`"
                );
                self.drop_entry(item, span, message);
                None
            }
            other => {
                let message = format!("an entry must be a mapping, this is {}", kind_of(other));
                self.drop_entry(item, span, message);
                None
            }
        }
    }

    fn mapping(&mut self, item: NodeId, span: Span, pairs: &[Pair]) -> Option<RoleMapping> {
        let document = self.document;
        let (arn_field, known) =
            if self.key == DataKey::MapUsers { ("userarn", USER_FIELDS) } else { ("rolearn", ROLE_FIELDS) };
        let mut entry = RoleMapping {
            key: self.key,
            role_arn: String::new(),
            username: String::new(),
            groups: Vec::new(),
            span,
            arn_span: span,
            username_span: None,
            groups_span: None,
            shadowed_by: None,
        };
        let mut sso = false;
        let mut unknown = Vec::new();
        for (name, (name_at, value)) in document.fields(pairs) {
            let Some(field) = known.iter().find(|field| field.eq_ignore_ascii_case(name)) else {
                unknown.push((name, document.span(name_at)));
                continue;
            };
            let at = document.span(value);
            match *field {
                "username" => {
                    entry.username_span = Some(at);
                    self.string(field, value, &mut entry.username);
                }
                "groups" => {
                    entry.groups_span = Some(at);
                    self.groups(value, &mut entry.groups);
                }
                "sso" => sso = !matches!(document.node(value)?.content, Content::Null),
                "userid" => {}
                _ => {
                    entry.arn_span = at;
                    self.string(field, value, &mut entry.role_arn);
                }
            }
        }
        for &(name, at) in &unknown {
            self.defect(MappingDefectKind::FieldIgnored, at, unknown_field(name, known));
        }
        // config/mapper.go Validate(). An entry by `sso` alone is kept, but no node comes in through it.
        match (entry.role_arn.is_empty(), sso) {
            (false, false) => return Some(entry),
            (true, true) => {}
            (false, true) => self.drop_entry(item, span, "an entry may have rolearn or sso, not both".to_owned()),
            (true, false) => {
                let near = unknown.iter().find(|(name, _)| nearest(name, &[arn_field]).is_some());
                let message = match near {
                    Some((name, _)) => {
                        format!("the entry has no {arn_field}: `{name}` is not a name the authenticator knows")
                    }
                    None => format!("the entry has no {arn_field}"),
                };
                self.drop_entry(item, near.map_or(span, |&(_, at)| at), message);
            }
        }
        None
    }

    fn string(&mut self, field: &str, value: NodeId, into: &mut String) {
        match self.document.node(value).map(|node| &node.content) {
            Some(Content::Text(text)) => into.clone_from(text),
            None | Some(Content::Null) => {}
            Some(other) => {
                let message = format!("{field} must be a string, not {}: it counts as empty", kind_of(other));
                self.defect(MappingDefectKind::FieldEmptied, self.document.span(value), message);
            }
        }
    }

    fn groups(&mut self, value: NodeId, into: &mut Vec<String>) {
        let document = self.document;
        match document.node(value).map(|node| &node.content) {
            Some(Content::List(items)) => *into = items.iter().map(|&item| self.group(item)).collect(),
            None | Some(Content::Null) => into.clear(),
            Some(other) => {
                let dash = matches!(other, Content::Text(text) if text.starts_with('-'));
                let hint = if dash { " (a blank must follow each `-`)" } else { "" };
                let message = format!("groups must be a list, not {}: the entry has no groups{hint}", kind_of(other));
                self.defect(MappingDefectKind::FieldEmptied, document.span(value), message);
            }
        }
    }

    fn group(&mut self, item: NodeId) -> String {
        match self.document.node(item).map(|node| &node.content) {
            Some(Content::Text(group)) => group.clone(),
            None | Some(Content::Null) => String::new(),
            Some(other) => {
                let message = format!("a group must be a string, not {}: it counts as empty", kind_of(other));
                self.defect(MappingDefectKind::GroupEmptied, self.document.span(item), message);
                String::new()
            }
        }
    }
}

fn unknown_field(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(meant) => format!("the authenticator does not know the field `{name}`; {meant} is meant"),
        None => format!("the authenticator does not know the field `{name}`"),
    }
}

/// The known name that `name` is a spelling of: one that differs by separators or by two letters.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let bare: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    known.iter().copied().find(|field| super::verdict::distance(&bare, field, 2).is_some())
}
