//! Files that are templates: they are YAML only once something has filled them in.

use crate::objects::input::kind_of_karpenter;
use serde_saphyr::granit_parser::{self, Event, Parser};

/// Nobody's template is larger. Of what is, only a part is here, which may end anywhere.
const LARGEST: usize = 256 * 1024;

/// Marks that only a template has: an action of Helm or Jinja, a directive or an interpolation of Terraform.
const MARKS: [&str; 4] = ["{{", "{%", "%{", "${"];

/// Whether this becomes YAML only when Helm, Terraform or Jinja has rendered it. What stands in a block of text, such
/// as user data, is that text's own.
pub fn is_template(text: &str) -> bool {
    let is_json = text.starts_with(['{', '[']) && !text.starts_with("{{") && !text.starts_with("{%");
    if text.len() > LARGEST || is_json || !MARKS.iter().any(|mark| text.contains(mark)) {
        return false;
    }
    let mut key_may_begin = false;
    for event in Parser::new_from_str_with_options(text, granit_parser::options! { emit_comments: false }) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let at = error.marker().line().saturating_sub(1);
                let near = text.lines().skip(at.saturating_sub(1)).take(2).filter(|line| !is_comment(line));
                return text.lines().any(begins_an_action)
                    || near.flat_map(|line| MARKS.map(|mark| line.contains(mark))).any(|has| has);
            }
        };
        let is_map = matches!(event, Event::MappingStart(..));
        // To YAML `{{ .Values.x }}` is a map whose key is a map. No object of Kubernetes has such a thing.
        if is_map
            && key_may_begin
            && text.lines().nth(span.start.line().saturating_sub(1)).is_some_and(|line| line.contains("{{"))
        {
            return true;
        }
        key_may_begin = is_map;
    }
    false
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// Whether an action is all that this line has, or its value.
fn begins_an_action(line: &str) -> bool {
    let value = line.split_once(": ").map_or(line, |(_, value)| value).trim_start();
    let value = value.strip_prefix("- ").unwrap_or(value).trim_start();
    ["{{", "{%", "%{"].iter().any(|mark| value.starts_with(mark))
}

/// A sentence that says how to render the template in `file`.
pub fn told(file: &str, text: &str) -> String {
    let file = file.strip_prefix("./").unwrap_or(file);
    let is_of_helm = text.contains("{{") && !text.contains("{%");
    if !is_of_helm {
        let with = if text.contains("{%") { "" } else { ", for example with terraform console" };
        return format!("{file} is a template; render it first{with}");
    }
    let chart = file.rsplit_once("/templates/").map(|(chart, _)| chart);
    let chart = chart.filter(|chart| !chart.contains(char::is_whitespace)).unwrap_or("CHART");
    format!("{file} is a template; render it first: helm template {chart} | nodewhy lint -f -")
}

/// Whether text that cannot be read names a kind that is judged.
pub fn names_a_kind(text: &str) -> bool {
    // No manifest is longer.
    let text = text.get(..text.floor_char_boundary(LARGEST)).unwrap_or(text);
    let mut kinds = text.match_indices("kind").map(|(at, word)| {
        let rest = text.get(at + word.len()..).unwrap_or_default();
        let value = rest.trim_start_matches(['"', '\'', ' ']).strip_prefix(':').unwrap_or_default();
        let value = value.trim_start_matches(['"', '\'', ' ']);
        value.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default()
    });
    kinds.any(|kind| match kind {
        "ConfigMap" => text.contains("aws-auth"),
        kind => matches!(kind_of_karpenter(kind), Some("EC2NodeClass" | "NodeOverlay" | "NodePool")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_told_from_text_that_only_holds_braces() {
        for template in [
            "kind: X\nmetadata:\n  name: {{ .Values.name }}\n",
            "{{- if .Values.x }}\nkind: X\n{{- end }}\n",
            "kind: X\nspec:\n  {{- toYaml .Values.spec | nindent 2 }}\n",
            "kind: X\nitems:\n- {{ .Values.item }}\n",
            "kind: X\nspec:\n  a: {{ .Values.a | quote }}-{{ .b }}\n",
            "kind: X\nspec:\n  terms:\n%{ for a in aliases ~}\n  - alias: ${a}\n%{ endfor ~}\n",
            "kind: X\n{% if x %}\na: b\n{% endif %}\n",
            "kind: X\nids: [${a}, ${b}]\n",
        ] {
            assert!(is_template(template), "{template}");
        }
        for text in [
            "kind: X\nspec:\n  userData: |\n    name: {{ .Values.name }}\n",
            "kind: X\nspec:\n  a: \"{{ .Values.a }}\"\n",
            "data:\n  mapRoles: |\n    - username: system:node:{{EC2PrivateDNSName}}\n",
            "kind: X\nspec: {a: {b: c}, d: [{e: f}]}\n",
            "kind: [unclosed\n# {{ }}\n",
            "{\"a\": {\"b\": \"{{ .x }}\"}}",
            "kind: X\na: ${NAME}\n",
            "kind: X\na: [unclosed\n# ${x}\n",
            "kind: X\na: \"%{http_code}\"\n",
        ] {
            assert!(!is_template(text), "{text}");
        }
    }

    #[test]
    fn the_chart_is_named_where_the_path_tells_it() {
        assert_eq!(
            told("./charts/x/templates/y.yaml", "{{ . }}"),
            "charts/x/templates/y.yaml is a template; render it first: helm template charts/x | nodewhy lint -f -"
        );
        assert!(told("y.yaml", "{{ . }}").contains("helm template CHART |"));
        assert_eq!(
            told("y.yaml", "%{ if x }"),
            "y.yaml is a template; render it first, for example with terraform console"
        );
    }

    #[test]
    fn a_kind_is_named_in_yaml_and_json() {
        for text in [
            "kind: NodePool\n: [",
            "- kind: \"EC2NodeClass\"\n",
            "{\"kind\" : \"NodePool\",}",
            "kind: ConfigMap\nname: aws-auth",
        ] {
            assert!(names_a_kind(text), "{text}");
        }
        for text in ["kind: NodePoolX\n", "kind: ConfigMap\nname: x\n", "{\"a\": 1,}", "a kind of NodePool"] {
            assert!(!names_a_kind(text), "{text}");
        }
    }
}
