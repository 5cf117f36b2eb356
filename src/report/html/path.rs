//! The way of a machine as a picture: how many are stuck at which gate, and how many wait there as machines do.

use super::Section;
use engine::api::Stage;
use maud::{Markup, html};

/// The way to a machine that works; Terminate is drawn where something hangs there.
const WAY: [Stage; 5] = [Stage::Launch, Stage::Join, Stage::Register, Stage::Initialize, Stage::Ready];

/// What a gate lets through.
const fn passes(stage: Stage) -> &'static str {
    match stage {
        Stage::Launch => "an instance starts",
        Stage::Join => "its Node appears",
        Stage::Register => "Karpenter accepts the Node",
        Stage::Initialize => "taints go, devices come",
        Stage::Ready => "it takes pods",
        Stage::Terminate => "it goes away",
    }
}

pub fn picture(parts: &[Section]) -> Markup {
    let diagnoses = parts.iter().flat_map(|part| &part.survey.diagnoses);
    let stages = diagnoses.filter_map(|d| d.status.as_ref()).filter(|s| s.outcome.is_none()).map(|s| s.stage);
    let all_waiting = parts.iter().flat_map(|part| &part.survey.judged.waiting);
    let stuck = |stage: Stage| stages.clone().filter(|other| *other == stage).count();
    let waiting = |stage: Stage| all_waiting.clone().filter(|machine| machine.stage == stage).count();
    let terminate = Some(Stage::Terminate).filter(|stage| stuck(*stage) + waiting(*stage) > 0);
    html! {
        section.card aria-labelledby="way" {
            h2 #way { "Where they wait" }
            ol.way {
                @for stage in WAY.into_iter().chain(terminate) {
                    @let (stuck, waiting) = (stuck(stage), waiting(stage));
                    li .stuck[stuck > 0] .waiting[stuck == 0 && waiting > 0] {
                        span.gate aria-hidden="true" {
                            @if stuck > 0 { (stuck) } @else if waiting > 0 { (waiting) } @else { "·" }
                        }
                        span.stage { (format!("{stage:?}")) }
                        span.counts {
                            @if stuck > 0 { strong { (stuck) " stuck" } }
                            @if waiting > 0 { span { (waiting) " waiting" } }
                            @if stuck + waiting == 0 { span.muted { "none" } }
                        }
                        span.passes { (passes(stage)) }
                    }
                }
            }
        }
    }
}
