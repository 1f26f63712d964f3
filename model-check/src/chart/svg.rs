//! A chart as a picture that needs nothing but itself, on light and on dark ground.
//!
//! It is drawn as the text is: tracks beside the lifelines for letters under way, arrows across where they arrive. On the
//! lifeline of a VM each component has a bar whose colour is its state.

use super::{
    Chart, MarkSort, Row, Sort,
    tracks::{Link, Track, Tracks},
};
use protocol::ComponentState;
use std::{collections::BTreeMap, fmt::Write};

const LEFT: usize = 96;
const TOP: usize = 92;
const ARROW: usize = 22;
const MARK: usize = 17;
const GAP: usize = 6;
const BAR: usize = 9;
const TRACK: usize = 7;
/// The width of a character, nearly.
const LETTER: usize = 7;

impl Chart {
    /// The chart as an SVG document.
    pub fn to_svg(&self) -> String {
        let lane = if self.lifelines.len() <= 4 { 250 } else { 190 };
        let mut tops = vec![TOP];
        for row in &self.rows {
            let arrow = if row.arrived.is_some() { ARROW } else { 0 };
            let height = (arrow + row.marks.len() * MARK).max(MARK) + GAP;
            tops.push(tops.last().copied().unwrap_or(TOP) + height);
        }
        let picture = Picture { chart: self, lane, tops, back: String::new(), front: String::new() };
        picture.draw()
    }
}

struct Picture<'c> {
    chart: &'c Chart,
    /// From one lifeline to the next.
    lane: usize,
    /// Where each row begins; one more for the end of the last.
    tops: Vec<usize>,
    /// Lifelines, bars and tracks.
    back: String,
    /// Arrows and words.
    front: String,
}

impl Picture<'_> {
    fn draw(mut self) -> String {
        let bottom = self.tops.last().copied().unwrap_or(TOP) + 24;
        let (width, height) = (LEFT + self.chart.lifelines.len() * self.lane, bottom + 40);
        self.legend(bottom + 24);
        for place in 0..self.chart.lifelines.len() {
            self.lifeline(place, bottom);
        }
        let mut tracks = Tracks::new(self.chart);
        let mut opened: BTreeMap<Link, usize> = tracks.iter().map(|(link, _)| (link, TOP)).collect();
        for (number, row) in self.chart.rows.iter().enumerate() {
            self.row(number, row, &mut tracks, &mut opened);
        }
        for (link, track) in tracks.iter() {
            self.track(link, track, opened[&link], bottom);
        }
        let (back, front) = (self.back, self.front);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\">\n<style>{STYLE}</style>\n{MARKERS}\n<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n\
             {back}{front}</svg>\n"
        )
    }

    /// What the colours mean.
    fn legend(&mut self, y: usize) {
        let mut x = 16;
        for sort in self.chart.mark_sorts() {
            let (class, meaning) = (class(sort), sort.meaning());
            let _ = writeln!(self.front, "<circle class=\"dot {class}\" cx=\"{x}\" cy=\"{}\" r=\"4\"/>", y - 4);
            let _ = writeln!(self.front, "<text class=\"mark\" x=\"{}\" y=\"{y}\">{meaning}</text>", x + 8);
            x += meaning.len() * LETTER + 24;
        }
    }

    fn x(&self, lifeline: usize) -> usize {
        LEFT + lifeline * self.lane
    }

    /// Half the breadth of a lifeline with its bars.
    fn half(&self, lifeline: usize) -> usize {
        (self.chart.lifelines.get(lifeline).map_or(0, |it| it.components.len()) * BAR).div_ceil(2)
    }

    fn track_x(&self, link: Link, track: Track) -> usize {
        let away = self.half(link.0) + track.distance * TRACK;
        if link.1 > link.0 { self.x(link.0) + away } else { self.x(link.0).saturating_sub(away) }
    }

    fn lifeline(&mut self, place: usize, bottom: usize) {
        let (x, lifeline) = (self.x(place), &self.chart.lifelines[place]);
        let top_of = |row: usize| self.tops.get(row).copied().unwrap_or(bottom);
        let (born, ended) = (lifeline.born.map_or(TOP - 24, top_of), lifeline.ended.map_or(bottom, top_of));
        let _ = writeln!(self.back, "<path class=\"dim\" d=\"M{x} {} V{born}\"/>", TOP - 24);
        let _ = writeln!(self.back, "<path class=\"life\" d=\"M{x} {born} V{ended}\"/>");
        if lifeline.ended.is_some() {
            let (low, high) = (ended.saturating_sub(6), ended + 6);
            let _ = writeln!(
                self.front,
                "<path class=\"end\" d=\"M{} {low} L{} {high} M{} {low} L{} {high}\"/>",
                x - 6,
                x + 6,
                x + 6,
                x - 6
            );
        }
        let left = x - self.half(place);
        for (number, life) in lifeline.components.iter().enumerate() {
            for (turn, (row, state)) in life.states.iter().enumerate() {
                let Some(state) = state else { continue };
                let from = top_of(*row) + GAP;
                let to = life.states.get(turn + 1).map_or(ended, |(row, _)| top_of(*row) + GAP);
                let (class, x) = (class(MarkSort::State(*state)), left + number * BAR);
                let _ = writeln!(
                    self.back,
                    "<rect class=\"bar {class}\" x=\"{}\" y=\"{from}\" width=\"{}\" height=\"{}\" rx=\"2\"><title>{} {state}</title></rect>",
                    x + 1,
                    BAR - 2,
                    to.saturating_sub(from).max(1),
                    escaped(&life.name)
                );
            }
        }
        let names: Vec<&str> = lifeline.components.iter().map(|life| life.name.as_str()).collect();
        let room = (self.lane - 10) / LETTER;
        let (name, names) = (shortened(&lifeline.name, room - 4), shortened(&names.join(" · "), room + 4));
        let breadth = (name.chars().count() * (LETTER + 1) + 28).max(72);
        let _ = writeln!(
            self.front,
            "<rect class=\"head\" x=\"{}\" y=\"14\" width=\"{breadth}\" height=\"30\" rx=\"8\"/>",
            x.saturating_sub(breadth / 2)
        );
        let _ = writeln!(self.front, "<text class=\"name\" x=\"{x}\" y=\"34\">{}</text>", escaped(&name));
        let _ = writeln!(self.front, "<text class=\"names\" x=\"{x}\" y=\"60\">{}</text>", escaped(&names));
    }

    fn row(&mut self, number: usize, row: &Row, tracks: &mut Tracks, opened: &mut BTreeMap<Link, usize>) {
        let top = self.tops[number];
        let _ = writeln!(self.front, "<text class=\"number\" x=\"28\" y=\"{}\">{}</text>", top + 15, number + 1);
        let mut y = top;
        if let Some(arrow) = row.arrived.map(|arrow| &self.chart.arrows[arrow]) {
            let link = (arrow.from, arrow.to);
            if let Some(track) = tracks.arrive(link) {
                self.arrow(link, track, top + 16, arrow.sort, &arrow.label);
                if track.letters == 0 {
                    self.track(link, track, opened.remove(&link).unwrap_or(TOP), top + 12);
                }
            }
            y += ARROW;
        }
        for arrow in row.sent.iter().map(|arrow| &self.chart.arrows[*arrow]) {
            let link = (arrow.from, arrow.to);
            let (track, fresh) = tracks.send(link);
            let (from, to) = (self.x(link.0), self.track_x(link, track));
            let _ = writeln!(self.back, "<path class=\"track\" d=\"M{from} {} H{to}\"/>", y + 8);
            if fresh {
                opened.insert(link, y + 8);
            }
        }
        let x = self.x(row.lifeline) + self.half(row.lifeline) + tracks.breadth(row.lifeline, true) * TRACK + 8;
        let next = self.x(row.lifeline + 1).saturating_sub(self.half(row.lifeline + 1));
        let end = next.saturating_sub(tracks.breadth(row.lifeline + 1, false) * TRACK);
        for mark in &row.marks {
            let text = shortened(&mark.text, end.saturating_sub(x + 14) / LETTER);
            let _ = writeln!(
                self.front,
                "<circle class=\"dot {}\" cx=\"{}\" cy=\"{}\" r=\"4\"/><text class=\"mark\" x=\"{}\" y=\"{}\">{}<title>{}</title></text>",
                class(mark.sort),
                x + 4,
                y + 8,
                x + 13,
                y + 12,
                escaped(&text),
                escaped(&mark.text)
            );
            y += MARK;
        }
    }

    fn track(&mut self, link: Link, track: Track, from: usize, to: usize) {
        let x = self.track_x(link, track);
        let _ = writeln!(self.back, "<path class=\"track\" d=\"M{x} {from} V{to}\"/>");
    }

    fn arrow(&mut self, link: Link, track: Track, y: usize, sort: Sort, label: &str) {
        let start = self.track_x(link, track);
        let rightward = link.1 > link.0;
        let half = self.half(link.1) + 2;
        let target = if rightward { self.x(link.1).saturating_sub(half) } else { self.x(link.1) + half };
        let (bend, name) = (if rightward { start + 4 } else { start.saturating_sub(4) }, letter_class(sort));
        let _ = writeln!(
            self.front,
            "<path class=\"letter {name}\" marker-end=\"url(#{name})\" d=\"M{start} {} Q{start} {y} {bend} {y} H{target}\"/>",
            y - 4
        );
        // The words stand beside the head, between the last two lifelines that the arrow touches.
        let beside = if rightward { link.1 - 1 } else { link.1 + 1 };
        let edge = if beside == link.0 { start } else { self.x(beside) };
        let (low, high) = (edge.min(target), edge.max(target));
        let text = shortened(label, high.saturating_sub(low + 14) / (LETTER - 1));
        let _ = writeln!(
            self.front,
            "<text class=\"label\" x=\"{}\" y=\"{}\">{}<title>{}</title></text>",
            (low + high) / 2,
            y - 4,
            escaped(&text),
            escaped(label)
        );
    }
}

fn class(sort: MarkSort) -> &'static str {
    match sort {
        MarkSort::State(ComponentState::Stopped) | MarkSort::Gone => "stopped",
        MarkSort::State(ComponentState::Starting) => "starting",
        MarkSort::State(ComponentState::Started) => "started",
        MarkSort::State(ComponentState::Stopping) => "stopping",
        MarkSort::State(ComponentState::Failed(_)) | MarkSort::Fault => "failed",
        MarkSort::Loan => "loan",
        MarkSort::Asked | MarkSort::News => "news",
    }
}

fn letter_class(sort: Sort) -> &'static str {
    match sort {
        Sort::Order => "order",
        Sort::Report | Sort::Acknowledgement => "report",
        Sort::Bind => "bind",
        Sort::Lend => "lend",
        Sort::Recall => "recall",
        Sort::Home => "home",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn shortened(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.into();
    }
    text.chars().take(length.saturating_sub(1)).collect::<String>().trim_end().to_string() + "…"
}

const STYLE: &str = "
text { font: 12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1f2933; }
.ground { fill: #ffffff; } .head { fill: #eef2f7; stroke: #9aa5b1; } .name { font-weight: 600; font-size: 14px; text-anchor: middle; }
.names { font-size: 10.5px; fill: #66727f; text-anchor: middle; } .number { font-size: 10px; fill: #a3aeb9; text-anchor: end; }
.life { stroke: #9aa5b1; stroke-width: 1.5; } .dim { stroke: #c8d0d9; stroke-dasharray: 2 4; } .end { stroke: #d64545; stroke-width: 2.5; }
.track { stroke: #b3bec9; stroke-dasharray: 3 2; fill: none; } .letter { fill: none; stroke-width: 1.5; }
.label { font-size: 11px; text-anchor: middle; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
.mark { font-size: 11.5px; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round; }
.order { stroke: #3b6fd4; } .report { stroke: #8793a0; } .bind { stroke: #7a5fd0; } .lend { stroke: #2f9e5b; } .recall { stroke: #d9822b; } .home { stroke: #1591a5; }
marker .order { fill: #3b6fd4; } marker .report { fill: #8793a0; } marker .bind { fill: #7a5fd0; } marker .lend { fill: #2f9e5b; } marker .recall { fill: #d9822b; } marker .home { fill: #1591a5; }
.bar, .dot { stroke-width: 1; } .stopped { fill: #ffffff; stroke: #9aa5b1; } .starting { fill: #f2c94c; stroke: #c79a16; } .started { fill: #3fb56f; stroke: #2b8a52; }
.stopping { fill: #f0994a; stroke: #c46f1f; } .failed { fill: #d64545; stroke: #a52f2f; } .loan { fill: #1591a5; stroke: #0f6f7f; } .news { fill: #3b6fd4; stroke: #2b55a8; }
@media (prefers-color-scheme: dark) {
text { fill: #dde4ec; } .ground { fill: #14191f; } .head { fill: #232b35; stroke: #566270; } .names { fill: #93a0ad; } .number { fill: #5f6b78; }
.life { stroke: #6b7785; } .dim { stroke: #3a444f; } .track { stroke: #5b6875; } .label, .mark { stroke: #14191f; } .stopped { fill: #14191f; }
}
";

const MARKERS: &str = concat!(
    "<defs>",
    "<marker id=\"order\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path class=\"order\" d=\"M0 0 L8 4 L0 8 z\"/></marker>",
    "<marker id=\"report\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path class=\"report\" d=\"M0 0 L8 4 L0 8 z\"/></marker>",
    "<marker id=\"bind\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path class=\"bind\" d=\"M0 0 L8 4 L0 8 z\"/></marker>",
    "<marker id=\"lend\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path class=\"lend\" d=\"M0 0 L8 4 L0 8 z\"/></marker>",
    "<marker id=\"recall\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path class=\"recall\" d=\"M0 0 L8 4 L0 8 z\"/></marker>",
    "<marker id=\"home\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path class=\"home\" d=\"M0 0 L8 4 L0 8 z\"/></marker>",
    "</defs>"
);
