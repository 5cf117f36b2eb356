//! What the nodes of one side run differently from those of the other, as text and as JSON.

use super::{PERHAPS, Page, masked_as};
use crate::report::text::wrap;
use crate::report::visible::in_a_line;
use engine::effective::difference::{Change, Given, Part, changes};
use readers::source_text;
use readers::userdata::Defect;
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// The nodes of the old and of the new side that are compared.
#[derive(Debug)]
pub struct Pair<'a> {
    pub old: Page<'a>,
    pub new: Page<'a>,
}

/// All nodes of both sides.
#[derive(Debug, Default)]
pub struct Comparison<'a> {
    pub pairs: Vec<Pair<'a>>,
    pub only_old: Vec<Page<'a>>,
    pub only_new: Vec<Page<'a>>,
}

/// The comparison as JSON. `docs/userdata.md` describes the format.
pub fn json(comparison: &Comparison) -> String {
    let list = json!({
        "apiVersion": "nodewhy.dev/v1alpha1",
        "kind": "UserDataDifferenceList",
        "items": comparison.pairs.iter().map(Pair::json).collect::<Vec<_>>(),
        "onlyOld": comparison.only_old.iter().map(Page::machine_json).collect::<Vec<_>>(),
        "onlyNew": comparison.only_new.iter().map(Page::machine_json).collect::<Vec<_>>(),
    });
    // The map has only string keys, so this cannot fail.
    crate::report::json(&list).unwrap_or_default() + "\n"
}

/// The comparison for people. NodePools with the same changes share one section.
pub fn text(comparison: &Comparison, color: bool) -> String {
    let mut sections: Vec<Section> = Vec::new();
    for pair in &comparison.pairs {
        let section = pair.section(color);
        let same = sections.iter_mut().find(|known| {
            (&known.title, &known.versions, &known.body) == (&section.title, &section.versions, &section.body)
        });
        match same {
            Some(known) => known.pools.extend(section.pools),
            None => sections.push(section),
        }
    }
    let mut parts: Vec<String> = sections.iter().map(|section| section.text(color)).collect();
    for (side, pages) in [("old", &comparison.only_old), ("new", &comparison.only_new)] {
        for page in pages {
            let pool = page.pool_name().map_or_else(String::new, |pool| format!(", NodePool {pool}"));
            parts.push(format!("{}{}: only on the {side} side\n", in_a_line(&title(page)), in_a_line(&pool)));
        }
    }
    parts.join("\n")
}

/// One pair in the text.
struct Section {
    title: String,
    pools: Vec<String>,
    versions: String,
    body: String,
}

impl Section {
    fn text(&self, color: bool) -> String {
        let title = if color { format!("\x1b[1m{}\x1b[0m", self.title) } else { self.title.clone() };
        let pools = match &*self.pools {
            [] => String::new(),
            [one] => format!(", NodePool {one}"),
            several => format!(", NodePools {}", several.join(", ")),
        };
        format!("{title}{pools}: {}\n{}", self.versions, self.body)
    }
}

impl Pair<'_> {
    fn changes(&self) -> Vec<Change> {
        changes((&self.old.machine, &self.old.effective), (&self.new.machine, &self.new.effective))
    }

    /// The defects of the new text that the old one does not have.
    fn introduced(&self) -> Vec<&Defect> {
        let excerpt =
            |page: &Page, defect: &Defect| source_text::excerpt(page.user_data(), defect.span).shown.trim().to_owned();
        let known: Vec<_> =
            self.old.effective.defects.iter().map(|defect| (defect.kind, excerpt(&self.old, defect))).collect();
        let defects = self.new.effective.defects.iter();
        defects.filter(|defect| !known.contains(&(defect.kind, excerpt(&self.new, defect)))).collect()
    }

    fn json(&self) -> Json {
        let given = |page: &Page, change: &Change, given: &Given| {
            json!({
                "value": masked_in(change, given),
                "literal": given.literal,
                "exact": given.exact,
                "origin": page.origin(&given.origin),
            })
        };
        let change = |change: &Change| {
            let of = |page: &Page, side: &[Given]| -> Vec<Json> {
                side.iter().map(|one| given(page, change, one)).collect()
            };
            json!({
                "part": format!("{:?}", change.part),
                "name": source_text::mask(change.name()),
                "old": of(&self.old, &change.old),
                "new": of(&self.new, &change.new),
                "because": change.dropped.as_ref().and_then(|outcome| self.new.fate(outcome)),
            })
        };
        json!({
            "old": self.old.machine_json(),
            "new": self.new.machine_json(),
            "changes": self.changes().iter().map(change).collect::<Vec<_>>(),
            "newDefects": self.introduced().into_iter().map(|defect| self.new.defect_json(defect)).collect::<Vec<_>>(),
        })
    }

    fn section(&self, color: bool) -> Section {
        let (old, new) = (&self.old, &self.new);
        let pools = match (old.pool_name(), new.pool_name()) {
            (Some(old), Some(new)) => vec![in_a_line(&arrow(old, new))],
            (Some(one), None) | (None, Some(one)) => vec![in_a_line(one)],
            (None, None) => Vec::new(),
        };
        let mut versions = arrow(&old.machine.family.to_string(), &new.machine.family.to_string());
        let shown = |version: Option<String>| version.unwrap_or_else(|| "of unknown version".to_owned());
        let karpenter = [old, new].map(|page| page.machine.karpenter.map(|version| version.to_string()));
        let kubernetes = [old, new].map(|page| page.machine.kubernetes.map(|minor| format!("1.{minor}")));
        for (program, [old, new]) in [("Karpenter", karpenter), ("Kubernetes", kubernetes)] {
            if old.is_some() || new.is_some() {
                let _ = write!(versions, ", {program} {}", arrow(&shown(old), &shown(new)));
            }
        }
        Section {
            title: in_a_line(&arrow(&title(old), &title(new))),
            pools,
            versions: in_a_line(&versions),
            body: self.body(color),
        }
    }

    fn body(&self, color: bool) -> String {
        let mut out = String::new();
        for (side, page) in [("old", &self.old), ("new", &self.new)] {
            for said in [page.stops(), page.not_followed()].into_iter().flatten() {
                paragraph(&mut out, 2, &format!("{side}: {said}"));
            }
        }
        let (changes, introduced) = (self.changes(), self.introduced());
        for (part, heading) in PARTS {
            let mut of_part = changes.iter().filter(|change| change.part == part).peekable();
            if of_part.peek().is_some() {
                let _ = writeln!(out, "  {heading}");
            }
            for change in of_part {
                self.change(&mut out, change, color);
            }
        }
        if changes.is_empty() && introduced.is_empty() {
            out.push_str(if self.old.user_data() == self.new.user_data() {
                "  No change.\n"
            } else {
                "  The user data differs, but nodewhy finds no change in what nodes run.\n"
            });
        }
        for defect in introduced {
            self.new.defect(&mut out, defect, color);
        }
        out
    }

    fn change(&self, out: &mut String, change: &Change, color: bool) {
        for (sign, code, page, side) in [('-', "31", &self.old, &change.old), ('+', "32", &self.new, &change.new)] {
            for given in side {
                let line = in_a_line(&format!("{sign} {}", written(page, change, given)));
                let line = if color { format!("\x1b[{code}m{line}\x1b[0m") } else { line };
                let _ = writeln!(out, "    {line}");
            }
        }
        if let Some(fate) = change.dropped.as_ref().and_then(|outcome| self.new.fate(outcome)) {
            paragraph(out, 6, &format!("= {fate}"));
        }
    }
}

const PARTS: [(Part, &str); 6] = [
    (Part::Image, "image"),
    (Part::Taint, "taints"),
    (Part::Label, "labels"),
    (Part::Kubelet, "kubelet"),
    (Part::Nodeadm, "nodeadm"),
    (Part::Cluster, "cluster"),
];

/// The value as it may be shown. Images, taints and labels bring their own names.
fn masked_in(change: &Change, given: &Given) -> String {
    match change.part {
        Part::Image | Part::Taint | Part::Label => source_text::mask(&given.value),
        Part::Kubelet | Part::Nodeadm | Part::Cluster => masked_as(&given.name, &given.value),
    }
}

/// A value with its origin, which an image does not need.
fn written(page: &Page, change: &Change, given: &Given) -> String {
    let value = masked_in(change, given);
    let value = if given.literal { value } else { format!("({value})") };
    let value = match change.part {
        Part::Taint | Part::Label => value,
        Part::Image | Part::Kubelet | Part::Nodeadm | Part::Cluster => {
            format!("{} {value}", source_text::mask(&given.name))
        }
    };
    if change.part == Part::Image {
        return value;
    }
    let perhaps = if given.exact { String::new() } else { format!(", {PERHAPS}") };
    format!("{value}  ({}{perhaps})", page.said(&given.origin))
}

/// The node class, or the file where there is none.
fn title(page: &Page) -> String {
    let class = page.machine.class;
    page.class_name().map_or_else(|| page.source.clone(), |name| format!("{}/{name}", class.kind))
}

fn arrow(old: &str, new: &str) -> String {
    if old == new { old.to_owned() } else { format!("{old} -> {new}") }
}

fn paragraph(out: &mut String, indent: usize, text: &str) {
    for (at, part) in wrap(text, 110).into_iter().enumerate() {
        let _ = writeln!(out, "{:width$}{part}", "", width = indent + if at > 0 { 2 } else { 0 });
    }
}
