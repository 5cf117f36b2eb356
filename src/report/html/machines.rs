//! The machines of an incident: each with its lane in one table, and what happened to them in words.

use super::lane::{self, Axis};
use super::time;
use crate::report::grouping::{self, Diagnosed};
use chrono::{DateTime, Utc};
use engine::case::duration;
use engine::cluster_state::ClusterState;
use engine::diagnose::timeline::{self, Moment};
use maud::{Markup, html};

/// Maximum number of machines described in words. `nodewhy diagnose NAME -o html` describes any other.
const IN_WORDS: usize = 20;
/// If there are more than this, the list is folded.
const AT_A_GLANCE: usize = 12;

#[derive(Debug)]
pub struct Machines<'d> {
    lanes: Vec<(Diagnosed<'d>, Vec<Moment>)>,
    axis: Axis,
}

impl<'d> Machines<'d> {
    pub fn of(group: &[Diagnosed<'d>], cluster: &ClusterState, now: DateTime<Utc>) -> Self {
        let lanes: Vec<_> = group.iter().map(|verdict| (*verdict, timeline::moments(cluster, verdict.0))).collect();
        let axis = Axis::over(lanes.iter().flat_map(|(_, moments)| moments), now);
        Self { lanes, axis }
    }

    pub fn section(&self) -> Markup {
        let Axis { from, to, .. } = self.axis;
        let group: Vec<Diagnosed> = self.lanes.iter().map(|(verdict, _)| *verdict).collect();
        html! {
            section {
                h3 { "Machines" }
                details open[self.lanes.len() <= AT_A_GLANCE] {
                    summary { (grouping::counted(&group)) ", from " (time(from)) " to " (time(to)) }
                    (lane::legend())
                    div.wide tabindex="0" role="group" aria-label="Machines of this incident" {
                        table.machines {
                            thead {
                                tr {
                                    @for name in ["Name", "Node", "Stuck for", "Karpenter deletes it", "Time line"] {
                                        th scope="col" { (name) }
                                    }
                                }
                            }
                            tbody { @for (verdict, moments) in &self.lanes { (self.row(*verdict, moments)) } }
                        }
                    }
                }
                @for (at, ((diagnosis, _), moments)) in self.lanes.iter().enumerate().take(IN_WORDS) {
                    @if !moments.is_empty() {
                        details open[at == 0] {
                            summary { "What happened to " (diagnosis.spec.subject.name) }
                            (in_words(moments))
                        }
                    }
                }
                @if self.lanes.len() > IN_WORDS {
                    p.muted { "For any other machine, run " code { "nodewhy diagnose NAME -o html" } }
                }
            }
        }
    }

    fn row(&self, (diagnosis, status): Diagnosed, moments: &[Moment]) -> Markup {
        let now = self.axis.now;
        let until = status.ended_at.unwrap_or(now);
        html! {
            tr {
                th scope="row" { (diagnosis.spec.subject.name) }
                td { @if let Some(node) = &diagnosis.spec.node { (node.name) } @else { span.muted { "none" } } }
                td { (duration(until - status.first_observed_at)) }
                td {
                    @match (status.outcome, status.ended_at, status.terminates_at) {
                        (Some(outcome), Some(at), _) => { (format!("{outcome:?}")) " " (lane::hour(at)) }
                        (_, _, Some(at)) if at > now => { "in " (duration(at - now)) }
                        (_, _, Some(_)) => "overdue",
                        _ => span.muted { "not by a timeout" }
                    }
                }
                td { (self.axis.lane(moments, status.first_observed_at, until)) }
            }
        }
    }
}

fn in_words(moments: &[Moment]) -> Markup {
    let from = moments.first().map(|moment| moment.at);
    html! {
        ol.moments {
            @for moment in moments {
                li {
                    (lane::mark(moment.turn))
                    time datetime=(super::clock(moment.at)) { (lane::hour(moment.at)) }
                    @let later = from.map_or_else(chrono::TimeDelta::zero, |from| moment.at - from);
                    span.muted { "+" (duration(later)) }
                    span.says { (moment.says) }
                }
            }
        }
    }
}
