//! The selector term of a node class that selects an image, and whether EC2 launches the image.

use crate::cluster_state::aws::AwsAnswer;
use crate::objects::{Ami, AmiTerm, Image, NodeClass};

/// The selector term that takes the image, and its place; `None` where that cannot be told, as by tags among other
/// terms.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/amifamily/ami.go `DescribeImageQueries`.
pub(crate) fn selected_by(class: &NodeClass, id: &str, name: Option<&str>) -> Option<(usize, String)> {
    let terms = &class.spec.ami_selector_terms;
    let takes = |term: &AmiTerm| match (&term.id, &term.name) {
        (Some(own), _) => own == id,
        (None, Some(pattern)) => name.is_some_and(|name| matches_pattern(pattern, name)),
        (None, None) => false,
    };
    let place = terms.iter().position(takes).or_else(|| (terms.len() == 1).then_some(0))?;
    Some((place, said(terms.get(place)?)))
}

fn said(term: &AmiTerm) -> String {
    let tags = || term.tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ");
    match term {
        AmiTerm { alias: Some(alias), .. } => format!("the alias {alias}"),
        AmiTerm { id: Some(id), .. } => format!("the id {id}"),
        AmiTerm { name: Some(name), .. } => format!("the name {name}"),
        AmiTerm { ssm_parameter: Some(parameter), .. } => format!("the parameter {parameter}"),
        _ => format!("the tags {}", tags()),
    }
}

/// EC2's filters: `*` is any text, `?` any character.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || text.get(t) == Some(c) => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|c| *c == '*')
}

/// The message of `lint` about an image before a machine is launched with it. `None` if it is available, or nodewhy did
/// not ask.
pub(crate) fn preflight(told: AwsAnswer<'_, Image>, class: &NodeClass, ami: &Ami) -> Option<String> {
    let state = match told {
        AwsAnswer::Found(image, _) if image.state != "available" => image.state.as_str(),
        AwsAnswer::Absent(_) => "not known to EC2 in this region and account",
        _ => return None,
    };
    let by = selected_by(class, &ami.id, Some(&ami.name))
        .map_or_else(String::new, |(_, term)| format!(", which {term} selects"));
    Some(format!("The image {} ({}){by}, is {state}: EC2 launches nothing with it.", ami.id, ami.name))
}

#[cfg(test)]
mod tests {
    use super::matches_pattern;

    #[test]
    fn names_are_matched_as_ec2_matches_them() {
        for (pattern, text, fits) in [
            ("shop-*", "shop-golden-2026", true),
            ("*-golden-*", "shop-golden-2026", true),
            ("shop-?olden-*", "shop-golden-2026", true),
            ("shop-golden", "shop-golden-2026", false),
            ("*2025", "shop-golden-2026", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(matches_pattern(pattern, text), fits, "{pattern} {text}");
        }
    }
}
