//! Cuts YAML as kubectl prints it, line by line: documents, the items of a `List`, and of a machine what no rule reads.

use super::type_of_items;
use crate::input::TypeMeta;

/// A line with its number, from 0, and the place where it begins.
fn lines(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut end = 0;
    text.split_inclusive('\n').enumerate().map(move |(number, line)| {
        end += line.len();
        (number, end - line.len(), line)
    })
}

/// The documents of a file, each with the number of its first line, from 1.
pub(super) fn documents(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut start_line) = (0, 1);
    for (number, at, line) in lines(text) {
        let line = line.trim_end_matches(['\n', '\r']);
        if at > start && (line == "---" || line.starts_with("--- ") || line.starts_with("---\t")) {
            parts.push((start_line, &text[start..at]));
            (start, start_line) = (at, number + 1);
        }
    }
    parts.push((start_line, &text[start..]));
    parts
}

/// The items of a `List` as kubectl prints it, cut apart without reading them: `items:` and `- ` stand in the first column.
///
/// Each with its dash, and with the number of lines before it. `None` where the document is no such list.
pub(super) fn list_items(document: &str) -> Option<(TypeMeta, Vec<(usize, &str)>)> {
    let mut type_ = TypeMeta::default();
    let mut in_items = false;
    let mut open: Option<(usize, usize)> = None;
    let mut items = Vec::new();
    for (number, at, line) in lines(document) {
        let begins = in_items && line.starts_with('-') && matches!(line.as_bytes().get(1), None | Some(b' ' | b'\r' | b'\n'));
        let goes_on = in_items && matches!(line.as_bytes().first(), None | Some(b' ' | b'\t' | b'\r' | b'\n'));
        if begins || !(goes_on || line.starts_with('#')) {
            items.extend(open.take().map(|(number, start)| (number, &document[start..at])));
        }
        if begins {
            open = Some((number, at));
        } else if goes_on {
            open?;
        } else if !line.starts_with('#') {
            in_items = line.trim_end() == "items:";
            match line.split_once(": ") {
                Some(("apiVersion", value)) => value.trim().trim_matches(['"', '\'']).clone_into(&mut type_.api_version),
                Some(("kind", value)) => value.trim().trim_matches(['"', '\'']).clone_into(&mut type_.kind),
                _ => {}
            }
        }
    }
    items.extend(open.map(|(number, start)| (number, &document[start..])));
    (type_.kind.ends_with("List") && !items.is_empty()).then(|| (type_of_items(&type_.api_version, &type_.kind), items))
}

/// An item as a document of its own, in the lines and columns that it has in the list.
pub(super) fn whole(item: &str) -> String {
    item.replacen('-', " ", 1)
}

/// The same without the list of images of a Node, and without the metadata and status in `managedFields` of a Node or NodeClaim: three
/// quarters of their lines, which no rule reads. The lines after them have other numbers.
pub(super) fn narrow(item: &str) -> String {
    let mut kept = String::with_capacity(item.len() / 2);
    let (mut machine, mut field, mut within) = (false, "", "");
    let mut left_out: Option<usize> = None;
    for (number, _, line) in lines(item) {
        let content = line.trim();
        let indent = line.len() - line.trim_start_matches(' ').len();
        if let Some(under) = left_out {
            if content.is_empty() || indent > under || (indent == under && content.starts_with("- ")) {
                continue;
            }
            left_out = None;
        }
        match indent {
            _ if number == 0 || content.starts_with("- ") => {}
            2 => {
                machine |= matches!(content, "kind: Node" | "kind: NodeClaim");
                (field, within) = (content, "");
            }
            4 => within = content,
            _ => {}
        }
        let unread = match (field, within) {
            ("metadata:", "managedFields:") => {
                matches!(content.strip_suffix(':').map(|key| key.trim_matches(['"', '\''])), Some("f:metadata" | "f:status"))
            }
            ("status:", "images:") => content == "images:",
            _ => false,
        };
        if machine && unread {
            left_out = Some(indent);
        } else {
            kept.push_str(line);
        }
    }
    whole(&kept)
}

#[cfg(test)]
mod tests {
    use super::{list_items, narrow, whole};
    use crate::input::{Input, Object};

    const LIST: &str = r#"apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    annotations:
      note: |
        managedFields:
        - f:status:
            images:
    managedFields:
    - apiVersion: v1
      fieldsV1:
        f:metadata:
          f:labels:
            .: {}
        f:spec:
          f:taints: {}
      manager: kubelet
      operation: Update
      time: "2026-01-15T11:00:00Z"
    - fieldsV1:
        "f:status":
          f:conditions: {}
      manager: agent
      subresource: status
    name: images
    uid: "1"
  spec:
    providerID: aws:///eu-west-1a/i-0a
  status:
    conditions:
    - message: "images:"
      status: "True"
      type: Ready
    images:
    - names:
      - >-
        registry.k8s.io/pause

      sizeBytes: 1
    nodeInfo:
      kubeletVersion: v1.34.1
- apiVersion: v1
  data:
    mapRoles: |
      status:
        images:
          - left
  kind: ConfigMap
  metadata:
    name: aws-auth
    namespace: kube-system
kind: List
"#;

    fn node(text: &str) -> Object {
        Object::from_value(Input::Nodes, serde_saphyr::from_str(text).expect("YAML")).expect("a Node")
    }

    #[test]
    fn a_machine_without_what_no_rule_reads_is_the_same_machine() {
        let (_, items) = list_items(LIST).expect("a list");
        let (at, item) = items[0];
        assert_eq!(at, 2);
        let narrow = narrow(item);
        assert_eq!(node(&narrow), node(&whole(item)));
        assert!(["registry.k8s.io", "f:labels", "f:conditions"].iter().all(|left_out| !narrow.contains(left_out)), "{narrow}");
        assert!(["f:taints", "kubeletVersion", "          images:"].iter().all(|kept| narrow.contains(kept)), "{narrow}");
    }

    #[test]
    fn of_other_kinds_nothing_is_left_out() {
        let (_, items) = list_items(LIST).expect("a list");
        assert_eq!(narrow(items[1].1), whole(items[1].1));
    }
}
