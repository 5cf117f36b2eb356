//! Leaves out of an item of a YAML list what no rule reads.

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
    for (number, line) in item.split_inclusive('\n').enumerate() {
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
    use super::super::list::Notation;
    use super::super::yaml::Yaml;
    use super::{narrow, whole};
    use engine::objects::input::{Input, Object};

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

    fn items() -> [&'static str; 2] {
        let (_, text) = LIST.split_once("items:\n").expect("a list");
        let mut items = Vec::new();
        Yaml::items(text, true, &mut items);
        items.try_into().expect("two items")
    }

    fn node(text: &str) -> Object {
        Object::from_value(Input::Nodes, serde_saphyr::from_str(text).expect("YAML")).expect("a Node")
    }

    #[test]
    fn a_machine_without_what_no_rule_reads_is_the_same_machine() {
        let [item, _] = items();
        let narrow = narrow(item);
        assert_eq!(node(&narrow), node(&whole(item)));
        assert!(["registry.k8s.io", "f:labels", "f:conditions"].iter().all(|left_out| !narrow.contains(left_out)), "{narrow}");
        assert!(["f:taints", "kubeletVersion", "          images:"].iter().all(|kept| narrow.contains(kept)), "{narrow}");
    }

    #[test]
    fn of_other_kinds_nothing_is_left_out() {
        let [_, item] = items();
        assert_eq!(narrow(item), whole(item));
    }
}
