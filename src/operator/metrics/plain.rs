//! OpenMetrics as the older text format, which `curl`, promtool and old scrapers read.
//!
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>: the comments name the
//! series, suffix included; there are no infos, no units, and no end.

/// The same series with the older comments.
pub(super) fn from_openmetrics(text: &str) -> String {
    let suffixes: std::collections::HashMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .filter_map(|(name, kind)| Some((name, suffix(kind)?)))
        .collect();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let comment = line
            .strip_prefix("# ")
            .and_then(|rest| rest.split_once(' '))
            .map(|(keyword, rest)| (keyword, rest.split_once(' ')));
        match comment {
            Some((keyword @ ("HELP" | "TYPE"), Some((name, rest)))) => {
                let suffix = suffixes.get(name).copied().unwrap_or_default();
                let rest = if keyword == "TYPE" && rest == "info" { "gauge" } else { rest };
                out.extend(["# ", keyword, " ", name, suffix, " ", rest, "\n"]);
            }
            _ if line.starts_with('#') => {}
            _ => out.extend([line, "\n"]),
        }
    }
    out
}

/// The suffix of sample names of a type.
fn suffix(kind: &str) -> Option<&'static str> {
    match kind {
        "counter" => Some("_total"),
        "info" => Some("_info"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_name_the_series() {
        let openmetrics = "# HELP w Writes.\n# TYPE w counter\nw_total{result=\"ok\"} 1\n# HELP t_seconds T.\n# TYPE t_seconds histogram\n# UNIT t_seconds seconds\n\
            t_seconds_sum 0.0\n# HELP b B.\n# TYPE b info\nb_info{version=\"1\"} 1\n# EOF\n";
        let text = "# HELP w_total Writes.\n# TYPE w_total counter\nw_total{result=\"ok\"} 1\n# HELP t_seconds T.\n# TYPE t_seconds histogram\n\
            t_seconds_sum 0.0\n# HELP b_info B.\n# TYPE b_info gauge\nb_info{version=\"1\"} 1\n";
        assert_eq!(from_openmetrics(openmetrics), text);
    }
}
