//! What a machine will run, as text and as JSON. Every value and message is masked: user data holds secrets.

pub mod difference;

use super::WIDTH;
use super::snippet;
use super::text::wrap;
use super::visible::in_a_line;
use engine::api::Blame;
use engine::effective::{Effective, Kind, Machine, MergeOutcome, Origin, Value};
use engine::objects::NodePool;
use readers::source_text::{self, Span};
use readers::userdata::{Consequence, Defect, LARGEST};
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// Said of a value that may not be applied.
const PERHAPS: &str = "perhaps: nodewhy is not certain of this value";

/// One machine and what it will run.
#[derive(Debug)]
pub struct Page<'a> {
    pub machine: Machine<'a>,
    pub effective: Effective,
    /// The source of the text: `EC2NodeClass/default spec.userData`, or a file.
    pub source: String,
}

/// The pages as JSON. `docs/userdata.md` describes the format.
pub fn json(pages: &[Page]) -> String {
    let items: Vec<Json> = pages.iter().map(Page::json).collect();
    let list = json!({"apiVersion": "nodewhy.dev/v1alpha1", "kind": "EffectiveUserDataList", "items": items});
    // The map has only string keys, so this cannot fail.
    super::json(&list).unwrap_or_default() + "\n"
}

/// The pages for people.
pub fn text(pages: &[Page], color: bool) -> String {
    pages.iter().map(|page| page.text(color)).collect::<Vec<_>>().join("\n")
}

impl Page<'_> {
    fn user_data(&self) -> &str {
        self.machine.class.spec.user_data.as_deref().unwrap_or_default()
    }

    fn class_name(&self) -> Option<&str> {
        Some(self.machine.class.name()).filter(|name| !name.is_empty())
    }

    fn pool_name(&self) -> Option<&str> {
        self.machine.pool.map(NodePool::name)
    }

    fn place(&self, span: Span) -> source_text::Position {
        source_text::position(self.user_data(), span.start)
    }

    /// Which machine it is, and whether its kubelet starts.
    fn machine_json(&self) -> Json {
        json!({
            "nodeClass": self.class_name(),
            "nodePool": self.pool_name(),
            "source": self.source,
            "family": self.machine.family.to_string(),
            "karpenter": self.machine.karpenter.map(|version| version.to_string()),
            "kubernetes": self.machine.kubernetes.map(|minor| format!("1.{minor}")),
            "starts": self.effective.stop(self.machine.family).is_none(),
            "notAnalysedFrom": self.effective.not_followed.map(|span| self.place_json(span)),
        })
    }

    fn json(&self) -> Json {
        let mut page = self.machine_json();
        page["values"] = self.effective.values.iter().map(|value| self.value(value)).collect();
        page["defects"] = self.effective.defects.iter().map(|defect| self.defect_json(defect)).collect();
        page["bytes"] =
            json!({"userData": self.user_data().len(), "renderedAtLeast": self.effective.rendered, "limit": LARGEST});
        page["notes"] = json!(self.effective.notes);
        page
    }

    fn place_json(&self, span: Span) -> Json {
        let at = self.place(span);
        json!({"line": at.line, "column": at.column})
    }

    fn defect_json(&self, defect: &Defect) -> Json {
        let at = self.place(defect.span);
        json!({
            "kind": format!("{:?}", defect.kind),
            "consequence": format!("{:?}", defect.consequence(self.machine.family)),
            "line": at.line,
            "column": at.column,
            "message": source_text::mask(&defect.message),
            "excerpt": source_text::excerpt(self.user_data(), defect.span).shown,
        })
    }

    fn value(&self, value: &Value) -> Json {
        let (outcome, by, because) = match &value.outcome {
            MergeOutcome::Effective => ("Effective", None, None),
            MergeOutcome::Overridden { by, because } => {
                ("Overridden", Some(self.origin(by)), Some((*because).to_owned()))
            }
            MergeOutcome::Lost(because) => ("Lost", None, Some(because.clone())),
        };
        json!({
            "kind": kind(value.kind),
            "name": source_text::mask(&value.name),
            "value": masked(value),
            "literal": value.literal,
            "exact": value.exact,
            "origin": self.origin(&value.origin),
            "outcome": outcome,
            "overriddenBy": by,
            "because": because,
        })
    }

    fn origin(&self, origin: &Origin) -> Json {
        match origin {
            Origin::UserData(span) => {
                let at = self.place(*span);
                json!({"from": "UserData", "line": at.line, "column": at.column})
            }
            Origin::NodeClass(field) => json!({"from": "NodeClass", "field": field}),
            Origin::NodePool(field) => json!({"from": "NodePool", "field": field}),
            Origin::Karpenter => json!({"from": "Karpenter"}),
            Origin::Image => json!({"from": "Image"}),
        }
    }

    fn said(&self, origin: &Origin) -> String {
        match origin {
            Origin::UserData(span) => {
                let at = self.place(*span);
                format!("userData:{}:{}", at.line, at.column)
            }
            Origin::NodeClass(field) => format!("node class {field}"),
            Origin::NodePool(field) => format!("NodePool {field}"),
            Origin::Karpenter => "Karpenter".to_owned(),
            Origin::Image => "image".to_owned(),
        }
    }

    fn text(&self, color: bool) -> String {
        let bold = |text: &str| if color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
        let red = |text: &str| if color { format!("\x1b[1;31m{text}\x1b[0m") } else { text.to_owned() };
        let machine = &self.machine;
        let pool = machine.pool.map_or_else(String::new, |pool| format!(", NodePool {}", pool.name()));
        let version = |name: &str, version: Option<String>| {
            version.map_or_else(String::new, |version| format!(", {name} {version}"))
        };
        let karpenter = version("Karpenter", machine.karpenter.map(|v| v.to_string()));
        let kubernetes = version("Kubernetes", machine.kubernetes.map(|minor| format!("1.{minor}")));
        let pool = in_a_line(&pool);
        let mut out = format!(
            "{}{pool}: {}{karpenter}{kubernetes}\n",
            bold(&in_a_line(&self.source)),
            in_a_line(&machine.family.to_string())
        );
        if let Some(said) = self.stops() {
            let _ = writeln!(out, "  {}", red(&said));
        }
        let mut line = |indent: usize, text: &str| {
            for (at, part) in wrap(text, 110).into_iter().enumerate() {
                let _ = writeln!(out, "{:width$}{part}", "", width = indent + if at > 0 { 2 } else { 0 });
            }
        };
        if let Some(said) = self.not_followed() {
            line(2, &said);
        }
        for note in &self.effective.notes {
            line(2, &format!("{note}."));
        }
        let (gets, rest): (Vec<&Value>, Vec<&Value>) =
            self.effective.values.iter().partition(|v| v.outcome == MergeOutcome::Effective);
        self.table(&mut out, &bold("the kubelet gets"), &gets);
        self.table(&mut out, &bold("the kubelet does not get"), &rest);
        for defect in &self.effective.defects {
            self.defect(&mut out, defect, color);
        }
        let bytes = self.user_data().len();
        if machine.class.spec.user_data.is_some() {
            let _ = writeln!(
                out,
                "\n  {bytes} bytes of user data, at least {} once rendered; EC2 takes {LARGEST}",
                self.effective.rendered
            );
        }
        out
    }

    /// A sentence about the defect over which no Node appears.
    fn stops(&self) -> Option<String> {
        let stop = self.effective.stop(self.machine.family)?;
        let what = match stop.consequence(self.machine.family) {
            Consequence::NoLaunch => "No instance is launched",
            _ => "No Node appears",
        };
        Some(format!("{what}, and nothing below takes effect: see line {}.", self.place(stop.span).line))
    }

    /// A sentence about the place from which on nodewhy does not follow the text.
    fn not_followed(&self) -> Option<String> {
        let at = self.place(self.effective.not_followed?);
        Some(format!("Not analysed from userData:{}:{} on: the text there may change the kubelet.", at.line, at.column))
    }

    fn table(&self, out: &mut String, heading: &str, values: &[&Value]) {
        const WIDEST: usize = 64;
        if values.is_empty() {
            return;
        }
        let _ = writeln!(out, "\n  {heading}");
        let rows: Vec<[String; 4]> = values.iter().map(|value| self.row(value)).collect();
        let width = |column: usize| {
            let widths = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            widths.filter(|&width| width <= WIDEST).max().unwrap_or_default()
        };
        let widths = [width(0), width(1)];
        for (at, [name, value, from, fate]) in rows.iter().enumerate() {
            let _ = writeln!(
                out,
                "    {}",
                format!("{name:<a$}  {value:<b$}  {from}", a = widths[0], b = widths[1]).trim_end()
            );
            // One reason often holds for several values.
            let shared = rows.get(at + 1).is_some_and(|next| next[3] == *fate);
            for (at, part) in wrap(fate, 102).into_iter().enumerate().filter(|(_, part)| !shared && !part.is_empty()) {
                let _ = writeln!(out, "      {}{part}", if at == 0 { "= " } else { "  " });
            }
        }
    }

    /// Why a value does not reach the kubelet.
    fn fate(&self, outcome: &MergeOutcome) -> Option<String> {
        match outcome {
            MergeOutcome::Effective => None,
            MergeOutcome::Overridden { by, because } => Some(format!("overridden by {}: {because}", self.said(by))),
            MergeOutcome::Lost(because) => Some(format!("lost: {because}")),
        }
    }

    fn row(&self, value: &Value) -> [String; 4] {
        let name = match value.kind {
            Kind::Flag => format!("--{}", value.name),
            Kind::Cluster => format!("cluster {}", value.name),
            Kind::Config | Kind::Setting | Kind::NodeConfig => value.name.clone(),
        };
        let shown = masked(value);
        let shown = if value.literal { shown } else { format!("({shown})") };
        let perhaps = if value.exact { "" } else { PERHAPS };
        let fate = self.fate(&value.outcome).unwrap_or_else(|| perhaps.to_owned());
        [in_a_line(&source_text::mask(&name)), in_a_line(&shown), in_a_line(&self.said(&value.origin)), fate]
    }

    fn defect(&self, out: &mut String, defect: &Defect, color: bool) {
        let level = match defect.consequence(self.machine.family) {
            Consequence::NoLaunch | Consequence::NoJoin => "error",
            Consequence::Lost => "warning",
            Consequence::Unknown => "note",
        };
        let shown_level = if color { format!("\x1b[1m{level}\x1b[0m") } else { level.to_owned() };
        let message = source_text::mask(&defect.message);
        for (at, part) in wrap(&format!("{level}: {message}"), 110).into_iter().enumerate() {
            let part = if at == 0 { part.replacen(level, &shown_level, 1) } else { part };
            let _ = writeln!(out, "{}{part}", if at == 0 { "\n  " } else { "    " });
        }
        let class = self.machine.class;
        let blame = Blame::object(&class.api_version, &class.kind, class.name()).at(self.user_data(), defect.span);
        let (Some(line), Some(column), Some(excerpt)) = (blame.line, blame.column, &blame.excerpt) else { return };
        let _ = writeln!(out, "  --> {}:{line}:{column}", in_a_line(&self.source));
        out.push_str(&snippet::render(&blame, excerpt, line as usize, color, WIDTH));
    }
}

const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Cluster => "Cluster",
        Kind::Config => "Config",
        Kind::Flag => "Flag",
        Kind::Setting => "Setting",
        Kind::NodeConfig => "NodeConfig",
    }
}

/// The value as it may be shown.
fn masked(value: &Value) -> String {
    masked_as(&value.name, &value.value)
}

/// The text as it may be shown: its own name may be what makes it a secret.
fn masked_as(name: &str, text: &str) -> String {
    let prefix = format!("{name}=");
    let shown = source_text::mask(&format!("{prefix}{text}"));
    shown.strip_prefix(&source_text::mask(&prefix)).map_or_else(|| "***".to_owned(), str::to_owned)
}
