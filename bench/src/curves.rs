//! Curves over sizes, both axes logarithmic, as a self-contained picture.

use std::fmt::Write;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 40.0;
const BETWEEN: f64 = 90.0;
const LEGEND: f64 = 22.0;

/// One curve.
pub struct Curve {
    /// Its name; curves with the same name have the same colour.
    pub name: String,
    /// Sizes and measured values, all above zero.
    pub points: Vec<(f64, f64)>,
    /// Whether it is dashed: a second quantity of the same name.
    pub dashed: bool,
}

/// Two panels of curves over the same sizes.
pub struct Curves {
    across: &'static str,
    titles: [&'static str; 2],
    panels: [Vec<Curve>; 2],
}

impl Curves {
    /// Panels without curves.
    pub fn new(across: &'static str, titles: [&'static str; 2]) -> Self {
        Self { across, titles, panels: [Vec::new(), Vec::new()] }
    }

    /// Adds a curve to the left (0) or right (1) panel.
    pub fn add(&mut self, panel: usize, curve: Curve) {
        self.panels[panel.min(1)].push(curve);
    }

    /// The picture as an SVG document.
    pub fn to_svg(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for curve in self.panels.iter().flatten() {
            if !names.contains(&curve.name.as_str()) {
                names.push(&curve.name);
            }
        }
        let mut text = String::new();
        for (place, (panel, title)) in self.panels.iter().zip(self.titles).enumerate() {
            let left = if place == 0 { LEFT } else { LEFT + WIDTH + BETWEEN };
            self.panel(panel, title, left, &names, &mut text);
        }
        let below = TOP + HEIGHT + 62.0;
        for (place, name) in names.iter().enumerate() {
            let x = LEFT + 190.0 * to_float(place);
            let _ = writeln!(
                text,
                "<path class=\"curve c{place}\" d=\"M{x} {below} h26\"/><text x=\"{}\" y=\"{}\">{name}</text>",
                x + 32.0,
                below + 4.0
            );
        }
        let (width, height) = (LEFT + 2.0 * WIDTH + BETWEEN + 30.0, below + LEGEND);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\">\n<style>{STYLE}</style>\n<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n{text}</svg>\n"
        )
    }

    fn panel(&self, curves: &[Curve], title: &str, left: f64, names: &[&str], text: &mut String) {
        let points = || curves.iter().flat_map(|it| &it.points);
        let powers = |values: &mut dyn Iterator<Item = f64>| {
            let (least, most) = values.fold((f64::MAX, f64::MIN), |(low, high), it| (low.min(it), high.max(it)));
            let (least, most) = (least.max(1e-6).log10().floor(), most.max(1e-6).log10().ceil());
            if least < most { (least, most) } else { (0.0, 1.0) }
        };
        let (x_least, x_most) = powers(&mut points().map(|it| it.0));
        let (y_least, y_most) = powers(&mut points().map(|it| it.1));
        let across = |value: f64| left + (value.log10() - x_least) / (x_most - x_least) * WIDTH;
        let up = |value: f64| TOP + HEIGHT - (value.log10() - y_least) / (y_most - y_least) * HEIGHT;
        let _ = writeln!(text, "<text class=\"title\" x=\"{left}\" y=\"{}\">{title}</text>", TOP - 16.0);
        let mut power = x_least;
        while power <= x_most {
            let x = across(10_f64.powf(power));
            let _ = writeln!(
                text,
                "<path class=\"grid\" d=\"M{x:.1} {TOP} v{HEIGHT}\"/><text class=\"tick middle\" x=\"{x:.1}\" y=\"{}\">{}</text>",
                TOP + HEIGHT + 18.0,
                tick(power)
            );
            power += 1.0;
        }
        let mut power = y_least;
        while power <= y_most {
            let y = up(10_f64.powf(power));
            let _ = writeln!(
                text,
                "<path class=\"grid\" d=\"M{left} {y:.1} h{WIDTH}\"/><text class=\"tick end\" x=\"{}\" y=\"{:.1}\">{}</text>",
                left - 8.0,
                y + 4.0,
                tick(power)
            );
            power += 1.0;
        }
        let _ = writeln!(
            text,
            "<text class=\"tick middle\" x=\"{}\" y=\"{}\">{}</text>",
            left + WIDTH / 2.0,
            TOP + HEIGHT + 36.0,
            self.across
        );
        for curve in curves.iter().filter(|it| !it.points.is_empty()) {
            let colour = names.iter().position(|it| *it == curve.name).unwrap_or(0);
            let dashed = if curve.dashed { " dashed" } else { "" };
            let steps: Vec<String> =
                curve.points.iter().map(|(x, y)| format!("{:.1} {:.1}", across(*x), up(y.max(1e-6)))).collect();
            let _ = writeln!(text, "<path class=\"curve c{colour}{dashed}\" d=\"M{}\"/>", steps.join(" L"));
            for (x, y) in &curve.points {
                let _ = writeln!(
                    text,
                    "<circle class=\"dot c{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.6\"><title>{}: {y:.1} at {x}</title></circle>",
                    across(*x),
                    up(y.max(1e-6)),
                    curve.name
                );
            }
        }
    }
}

fn to_float(place: usize) -> f64 {
    u32::try_from(place).map_or(0.0, f64::from)
}

/// A power of ten, for display.
fn tick(power: f64) -> String {
    let value = 10_f64.powf(power);
    match power {
        it if it >= 6.0 => format!("{:.0} M", value / 1e6),
        it if it >= 4.0 => format!("{:.0} k", value / 1e3),
        it if it >= 0.0 => format!("{value:.0}"),
        _ => format!("{value}"),
    }
}

const STYLE: &str = "
text { font: 12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1f2933; } .title { font-weight: 600; font-size: 13px; }
.ground { fill: #ffffff; } .grid { stroke: #e1e6ec; } .tick { fill: #66727f; font-size: 11px; } .middle { text-anchor: middle; } .end { text-anchor: end; }
.curve { fill: none; stroke-width: 2; } .dashed { stroke-dasharray: 5 4; stroke-width: 1.5; }
.c0 { stroke: #3b6fd4; } .c1 { stroke: #1591a5; } .c2 { stroke: #d9822b; } .c3 { stroke: #d64545; }
.dot.c0 { fill: #3b6fd4; } .dot.c1 { fill: #1591a5; } .dot.c2 { fill: #d9822b; } .dot.c3 { fill: #d64545; }
@media (prefers-color-scheme: dark) {
text { fill: #dde4ec; } .ground { fill: #14191f; } .grid { stroke: #2b343e; } .tick { fill: #93a0ad; }
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_stay_inside_of_their_panel() {
        let mut curves = Curves::new("size", ["one", "other"]);
        curves.add(0, Curve { name: "a".into(), points: vec![(1.0, 2.0), (1_000.0, 5e6)], dashed: false });
        curves.add(1, Curve { name: "a".into(), points: vec![], dashed: true });
        let svg = curves.to_svg();
        assert!(svg.contains("1 M</text>") && svg.contains("M64.0 ") && svg.contains("L484.0 "), "{svg}");
        assert_eq!(svg.matches("<path class=\"curve c0\"").count(), 2);
    }
}
