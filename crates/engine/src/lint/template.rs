//! Files that are templates: they are YAML only once something has filled them in.

use serde_saphyr::granit_parser::{self, Event, Parser};

/// Nobody's template is larger. Of what is, only a part is here, which may end anywhere.
const LARGEST: usize = 256 * 1024;

/// Whether this becomes YAML only when Helm has rendered it. What stands in a block of text, such as user data, is that
/// text's own.
pub fn is_template(text: &str) -> bool {
    if text.len() > LARGEST || !text.contains("{{") || (text.starts_with(['{', '[']) && !text.starts_with("{{")) {
        return false;
    }
    let mut key_may_begin = false;
    for event in Parser::new_from_str_with_options(text, granit_parser::options! { emit_comments: false }) {
        let Ok((event, span)) = event else { return text.lines().any(begins_an_action) };
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

/// Whether an action is all that this line has, or its value.
fn begins_an_action(line: &str) -> bool {
    let value = line.split_once(": ").map_or(line, |(_, value)| value).trim_start();
    value.strip_prefix("- ").unwrap_or(value).trim_start().starts_with("{{")
}

/// What to do about the template in `file`.
pub fn told(file: &str) -> String {
    let file = file.strip_prefix("./").unwrap_or(file);
    let chart = file.rsplit_once("/templates/").map(|(chart, _)| chart);
    let chart = chart.filter(|chart| !chart.contains(char::is_whitespace)).unwrap_or("CHART");
    format!("{file} is a template; render it first: helm template {chart} | nodewhy lint -f -")
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
        ] {
            assert!(!is_template(text), "{text}");
        }
    }

    #[test]
    fn the_chart_is_named_where_the_path_tells_it() {
        assert_eq!(
            told("./charts/x/templates/y.yaml"),
            "charts/x/templates/y.yaml is a template; render it first: helm template charts/x | nodewhy lint -f -"
        );
        assert!(told("y.yaml").contains("helm template CHART |"));
    }
}
