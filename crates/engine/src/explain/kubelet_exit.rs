//! A setting in userData that makes a kubelet of the machine's version exit, so that no Node appears.

use crate::api::{Blame, Confidence, Evidence};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::facts::kubelet_skew::Minor;
use crate::facts::kubelet_version::{self, KubeletVersion};
use crate::objects::{NodeClaim, NodeClass};
use readers::source_text::{self, Span};
use readers::userdata::UserData;

/// A machine without a Node, its userData, and which kubelet reads them.
pub(crate) struct KubeletStart<'w> {
    pub user_data: &'w UserData,
    pub kubelet: KubeletVersion,
    claim: &'w NodeClaim,
    text: &'w str,
    class: &'w NodeClass,
}

/// The setting that makes the kubelet exit.
pub(crate) struct FatalSetting {
    pub span: Span,
    /// Whether the text certainly passes it to the kubelet.
    pub is_exact: bool,
    /// The first minor version that rejects it; older ones accept it.
    pub since: Minor,
    /// The effect of the line, as a clause after "userData".
    pub does: String,
    /// The kubelet's message.
    pub error: String,
    pub fix: String,
    pub step: &'static str,
}

impl<'w> KubeletStart<'w> {
    pub(crate) fn of(case: &'w Case) -> Option<Self> {
        let (claim, (user_data, text), class) = (case.claim?, case.user_data()?, case.class()?);
        Some(Self { user_data, kubelet: kubelet_version::expected(case)?, claim, text, class })
    }

    /// The verdict, unless a machine joined with the same text and a kubelet that would reject it as well.
    pub(crate) fn ends_over(self, case: &Case, setting: FatalSetting) -> Option<Opinion> {
        let FatalSetting { span, is_exact, since, does, error, fix, step } = setting;
        let (kubelet, class) = (self.kubelet, self.class);
        if let Some(sibling) = kubelet_version::joined_since(case, class, since) {
            return Some(Opinion::ruled_out(
                sibling,
                format!("NodeClaim {} joined with the same userData", sibling.name()),
            ));
        }
        let (name, place) = (class.name(), source_text::position(self.text, span.start));
        Finding::new(
            if is_exact && kubelet.by_image { Confidence::Certain } else { Confidence::Likely },
            format!("userData of {} {name}, line {}, {does} and no Node appears.", class.kind, place.line),
            Evidence::new(
                format!("{}/{name}", class.kind),
                format!("spec.userData:{}:{}", place.line, place.column),
                source_text::quoted(self.text, span),
                error,
            ),
        )
        .with(Evidence::new(case.subject(), "status.imageID", &self.claim.status.image_id, kubelet.why))
        .blaming(Blame::class(class).field("spec.userData").at(self.text, span))
        .fix(fix)
        .change(step, format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase()))
        .into()
    }
}
