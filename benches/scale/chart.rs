//! The chart of docs/scale.md: what a look at a cluster costs, by its number of Nodes.

use maud::{Markup, html};

/// What one program took at each size.
pub struct Line {
    pub name: String,
    pub points: Vec<Point>,
}

/// One program at one size, in the order of [`PANELS`].
pub struct Point {
    pub nodes: usize,
    pub costs: [f64; PANELS.len()],
}

/// What is shown, with the least that is: Linux counts processor time in hundredths.
const PANELS: [(&str, f64); 3] =
    [("CPU seconds of the program", 0.01), ("MiB at its peak", 10.0), ("CPU seconds of kube-apiserver", 0.01)];
/// Told apart with red-green blindness too, on light and on dark. Source: Okabe and Ito, Color Universal Design.
const COLORS: [&str; 5] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00"];
const STYLE: &str =
    "text{font:12px sans-serif;fill:#333}line{stroke:#8884}@media(prefers-color-scheme:dark){text{fill:#ddd}}";

const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 50.0;
const TOP: f64 = 70.0;
const STEP: f64 = WIDTH + 60.0;

/// The chart as SVG; both scales of it are logarithmic.
pub fn svg(lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Scale::over(&points().map(|point| of_count(point.nodes)).collect::<Vec<_>>());
    let view = format!("0 0 {} {}", LEFT + STEP * of_count(PANELS.len()), TOP + HEIGHT + 40.0);
    let chart = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(view) role="img" {
            title { "What a look at a cluster costs, by its number of Nodes" }
            style { (STYLE) }
            @for (n, line) in lines.iter().enumerate() {
                rect x=(LEFT + 195.0 * of_count(n)) y="12" width="12" height="12" fill=(COLORS[n % COLORS.len()]) {}
                text x=(LEFT + 195.0 * of_count(n) + 18.0) y="22" { (line.name) }
            }
            @for (panel, (what, least)) in PANELS.iter().enumerate() {
                g transform=(format!("translate({} {TOP})", LEFT + STEP * of_count(panel))) {
                    text x="0" y="-14" font-weight="bold" { (what) }
                    @let costs: Vec<f64> = points().map(|point| point.costs[panel].max(*least)).collect();
                    (drawn(lines, panel, &x, &Scale::over(&costs)))
                }
            }
        }
    };
    chart.into_string() + "\n"
}

/// One panel: its grid, and a line a program.
fn drawn(lines: &[Line], panel: usize, x: &Scale, y: &Scale) -> Markup {
    let up = |cost: f64| HEIGHT - y.at(cost.max(10_f64.powi(y.first))) * HEIGHT;
    html! {
        @for size in x.decades() {
            line x1=(x.at(size) * WIDTH) x2=(x.at(size) * WIDTH) y1="0" y2=(HEIGHT) {}
            text x=(x.at(size) * WIDTH) y=(HEIGHT + 18.0) text-anchor="middle" { (size) }
        }
        @for cost in y.decades() {
            line x1="0" x2=(WIDTH) y1=(up(cost)) y2=(up(cost)) {}
            text x="-6" y=(up(cost) + 4.0) text-anchor="end" { (cost) }
        }
        @for (line, color) in lines.iter().zip(COLORS.iter().cycle()) {
            @let places = line.points.iter().map(|p| (x.at(of_count(p.nodes)) * WIDTH, up(p.costs[panel])));
            @let path: Vec<String> = places.clone().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            polyline points=(path.join(" ")) fill="none" stroke=(color) stroke-width="2" {}
            @for (x, y) in places {
                circle cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r="3" fill=(color) {}
            }
        }
    }
}

/// From one power of ten to another.
struct Scale {
    first: i32,
    last: i32,
}

impl Scale {
    fn over(values: &[f64]) -> Self {
        let powers = || values.iter().map(|value| value.log10());
        #[expect(clippy::cast_possible_truncation, reason = "powers of ten of a measurement are small")]
        let whole = |power: f64| power as i32;
        let first = whole(powers().fold(f64::INFINITY, f64::min).floor());
        Self { first, last: whole(powers().fold(f64::NEG_INFINITY, f64::max).ceil()).max(first + 1) }
    }

    /// Where a value stands, from 0 to 1.
    fn at(&self, value: f64) -> f64 {
        (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first)
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|power| 10_f64.powi(power))
    }
}

fn of_count(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("a small number"))
}
