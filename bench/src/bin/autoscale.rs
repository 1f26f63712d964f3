//! Simulates the e-mail pipeline under the published load and compares two ways to follow it: all types together by one
//! measured load (global), and each type by its own arrivals (local).
//!
//! `autoscale [SVG]` prints a table as markdown, and draws a plot if a file is named. The pipeline and what its components can
//! take come from `examples/applications/mail-pipeline.yaml`; costs come from the planner. Both ways measure as often, start
//! instances as fast and shrink as late; they differ only in what they look at. A type sees what the types before it let
//! through, so by the local rule it learns of a new load only after those have grown.

use application::{Application, Existing, Inputs};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One step of the simulation, in seconds.
const STEP_S: u64 = 10;
/// Pause between two measurements.
const EVERY_S: u64 = 60;
/// From a decision until the instance takes load: a VM is created and the component starts.
const START_S: u64 = 120;
/// Time without changes of a type before it shrinks.
const COOL_DOWN_S: u64 = 600;
/// A rule that looks at arrivals also wants to work off what waits within this time.
const WORK_OFF_S: f64 = 600.0;
const DAY_S: u64 = 24 * 3_600;

/// Each type: where its messages come from, and how many there are for each message there.
const PIPELINE: [(&str, &str, f64); 11] = [
    ("message-parser", "", 1.0),
    ("header-analyser", "message-parser", 1.0),
    ("link-analyser", "message-parser", 1.0),
    ("text-analyser", "message-parser", 1.0),
    ("sentiment-analyser", "text-analyser", 2.4),
    ("attachments-manager", "message-parser", 2.0),
    ("virus-scanner", "attachments-manager", 1.04),
    ("image-analyser", "attachments-manager", 1.0),
    ("nsfw-detector", "image-analyser", 1.04),
    ("image-recognizer", "image-analyser", 1.04),
    ("message-analyser", "sentiment-analyser", 5.0 / 2.4),
];

/// What one instance of each type can take, as the file says.
const EACH: [f64; 11] = [40e3, 40e3, 40e3, 15e3, 15e3, 30e3, 13e3, 30e3, 13e3, 13e3, 70e3];

/// The published load: 10K, and 20K, 50K and 80K on the way to the peak at noon and back.
fn load(second: u64) -> f64 {
    match second / 1_800 {
        18..=20 | 27..=29 => 20e3,
        21..=22 | 25..=26 => 50e3,
        23..=24 => 80e3,
        _ => 10e3,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Global,
    Local,
}

/// What a day looked like.
#[derive(Default)]
struct Day {
    /// Every minute: hour, instances, cost, messages that wait.
    minutes: Vec<(f64, f64, f64, f64)>,
    /// For each rise of the load, how long until every type could take it.
    reactions_s: Vec<u64>,
    instance_hours: f64,
    cost_hours: f64,
    waiting_most: f64,
    waiting_s: u64,
    changes: usize,
}

fn main() {
    let mut costs = Costs::new();
    let days = [(Rule::Global, "global"), (Rule::Local, "local")].map(|(rule, name)| (name, day(rule, &mut costs)));
    println!(
        "| rule | time to react, of each rise | most messages waiting | time with messages waiting | instance hours | cost, mean | changes |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|");
    for (name, day) in &days {
        let reactions: Vec<String> = day.reactions_s.iter().map(|it| format!("{:.0} min", *it as f64 / 60.0)).collect();
        println!(
            "| {name} | {} | {:.1} million | {:.0} min | {:.0} | {:.0} | {} |",
            reactions.join(", "),
            day.waiting_most / 1e6,
            day.waiting_s as f64 / 60.0,
            day.instance_hours,
            day.cost_hours / 24.0,
            day.changes
        );
    }
    if let Some(path) = std::env::args().nth(1) {
        std::fs::write(&path, drawn(&days)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

/// Simulates a day.
fn day(rule: Rule, costs: &mut Costs) -> Day {
    let types = PIPELINE.len();
    let mut day = Day::default();
    // The day begins with what its first load needs.
    let begin = whole_load(load(0));
    let mut started: Vec<u32> = (0..types).map(|kind| instances(begin[kind], kind)).collect();
    // Decided, and when they take load.
    let mut coming: Vec<(u64, usize, u32)> = Vec::new();
    let mut changed = vec![0_u64; types];
    let mut waiting = vec![0.0_f64; types];
    let mut rising: Option<u64> = None;
    for second in (0..DAY_S / STEP_S).map(|step| step * STEP_S) {
        coming.retain(|(at, kind, number)| {
            let due = *at <= second;
            started[*kind] += if due { *number } else { 0 };
            !due
        });
        let load = load(second);
        // What arrives at each type is what the type before it lets through.
        let (mut arrivals, mut passed) = (vec![0.0; types], vec![0.0; types]);
        for (kind, (_, from, factor)) in PIPELINE.iter().enumerate() {
            let before = PIPELINE.iter().position(|(name, ..)| name == from);
            arrivals[kind] = factor * before.map_or(load, |before| passed[before]);
            let capacity = f64::from(started[kind]) * EACH[kind];
            let offered = arrivals[kind] + waiting[kind] / STEP_S as f64;
            passed[kind] = offered.min(capacity);
            waiting[kind] = (offered - passed[kind]) * STEP_S as f64;
        }
        let needed = whole_load(load);
        let fits = (0..types).all(|kind| f64::from(started[kind]) * EACH[kind] + 1e-6 >= needed[kind]);
        rising = match (rising, fits) {
            (None, false) => Some(second),
            (Some(since), true) => {
                day.reactions_s.push(second - since);
                None
            }
            (since, _) => since,
        };
        if second % EVERY_S == 0 {
            // What waits is to be worked off in time: by the global rule in all types alike.
            let behind = (0..types).map(|kind| waiting[kind] * load / needed[kind] / WORK_OFF_S).fold(0.0, f64::max);
            let together = whole_load(load + behind);
            let before = day.changes;
            for kind in 0..types {
                let seen = match rule {
                    Rule::Global => together[kind],
                    Rule::Local => arrivals[kind] + waiting[kind] / WORK_OFF_S,
                };
                let wanted = instances(seen, kind);
                let due: u32 = coming.iter().filter(|(_, it, _)| *it == kind).map(|it| it.2).sum();
                let decided = started[kind] + due;
                if wanted > decided {
                    coming.push((second + START_S, kind, wanted - decided));
                } else if wanted < decided && due == 0 && second >= changed[kind] + COOL_DOWN_S {
                    started[kind] = wanted;
                } else {
                    continue;
                }
                (changed[kind], day.changes) = (second, day.changes + 1);
            }
            if rule == Rule::Global {
                // All of it is one change.
                day.changes = day.changes.min(before + 1);
            }
            let counts: Vec<u32> = (0..types)
                .map(|kind| started[kind] + coming.iter().filter(|(_, it, _)| *it == kind).map(|it| it.2).sum::<u32>())
                .collect();
            let instances = f64::from(counts.iter().sum::<u32>());
            let cost = costs.of(&counts);
            day.minutes.push((second as f64 / 3_600.0, instances, cost, waiting.iter().sum()));
            day.instance_hours += instances / 60.0;
            day.cost_hours += cost / 60.0;
        }
        let all: f64 = waiting.iter().sum();
        day.waiting_most = day.waiting_most.max(all);
        day.waiting_s += if all > 1.0 { STEP_S } else { 0 };
    }
    day
}

/// How many instances of a type take this load.
#[expect(clippy::cast_possible_truncation, reason = "loads here need a few dozen instances")]
fn instances(load: f64, kind: usize) -> u32 {
    ((load / EACH[kind] - 1e-9).ceil() as u32).max(1)
}

/// The load of each type if nothing holds messages up.
fn whole_load(load: f64) -> Vec<f64> {
    let mut loads: Vec<f64> = Vec::new();
    for (_, from, factor) in PIPELINE {
        let before = PIPELINE.iter().position(|(name, ..)| *name == from);
        loads.push(factor * before.map_or(load, |before| loads[before]));
    }
    loads
}

/// The least cost of each set of numbers, from the planner.
struct Costs {
    text: String,
    known: BTreeMap<Vec<u32>, f64>,
}

impl Costs {
    fn new() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/applications/mail-pipeline.yaml");
        Self { text: std::fs::read_to_string(path).expect("it is in the repository"), known: BTreeMap::new() }
    }

    fn of(&mut self, counts: &[u32]) -> f64 {
        if let Some(known) = self.known.get(counts) {
            return *known;
        }
        let names = PIPELINE.iter().map(|(name, ..)| (*name).to_owned());
        let inputs = Inputs { counts: names.zip(counts.iter().copied()).collect(), ..Inputs::default() };
        let application = Application::read("mail.yaml", &inputs, &mut |_| Ok(self.text.clone()));
        let expansion = application.and_then(|it| it.expand(&Existing { before: None, others: &[] }));
        let expansion = expansion.unwrap_or_else(|problems| panic!("{counts:?}: {problems}"));
        let cost = expansion.choice.expect("the planner places the pipeline").cost as f64;
        self.known.insert(counts.to_vec(), cost);
        cost
    }
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 36.0;
const BETWEEN: f64 = 56.0;
const STYLE: &str = "text{font:12px sans-serif;fill:#222}.ground{fill:#fff}.axis{stroke:#999;fill:none}.grid{stroke:#e4e4e4}\
.curve{fill:none;stroke-width:1.8}.c0{stroke:#1668b8}.c1{stroke:#c4511c}.load{stroke:#999;stroke-dasharray:4 3}\
@media (prefers-color-scheme:dark){text{fill:#ddd}.ground{fill:#181818}.grid{stroke:#333}}";

#[expect(clippy::cast_possible_truncation, reason = "seconds of one day")]
fn load_at(hour: f64) -> f64 {
    load((hour * 3_600.0).round() as u64)
}

/// Three panels over the hours of the day: instances, cost, messages that wait; the load is behind the first.
fn drawn(days: &[(&str, Day); 2]) -> String {
    let (first, last) = (7.0, 18.0);
    let titles = ["instances (dashed: load, in thousands)", "cost per hour", "messages waiting, in millions"];
    let across = |hour: f64| LEFT + (hour - first) / (last - first) * WIDTH;
    let mut text = String::new();
    for (place, title) in titles.iter().enumerate() {
        let top = TOP + place as f64 * (HEIGHT + BETWEEN);
        let value = |it: &(f64, f64, f64, f64)| [it.1, it.2, it.3 / 1e6][place];
        let inside = |it: &&(f64, f64, f64, f64)| (first..=last).contains(&it.0);
        let most = days.iter().flat_map(|(_, day)| day.minutes.iter().filter(inside).map(value)).fold(1.0, f64::max);
        let most = nice(most);
        let up = |value: f64| top + HEIGHT - value / most * HEIGHT;
        let _ = writeln!(text, "<text x=\"{LEFT}\" y=\"{}\">{title}</text>", top - 10.0);
        for part in 0..=4 {
            let at = most * f64::from(part) / 4.0;
            let (y, right) = (up(at), LEFT + WIDTH);
            let _ = writeln!(
                text,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1} H{right}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{at}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        let bottom = top + HEIGHT;
        for hour in 7..=18 {
            let x = across(f64::from(hour));
            let _ =
                writeln!(text, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{hour}:00</text>", bottom + 18.0);
        }
        let _ = writeln!(text, "<path class=\"axis\" d=\"M{LEFT} {top} V{bottom} H{}\"/>", LEFT + WIDTH);
        if place == 0 {
            let points = days[0].1.minutes.iter().filter(inside);
            let points = points.map(|it| (it.0, load_at(it.0) / 1e3));
            let _ = writeln!(text, "<path class=\"curve load\" d=\"{}\"/>", steps(points, &across, &up));
        }
        for (colour, (_, day)) in days.iter().enumerate() {
            let points = day.minutes.iter().filter(inside).map(|it| (it.0, value(it)));
            let _ = writeln!(text, "<path class=\"curve c{colour}\" d=\"{}\"/>", steps(points, &across, &up));
        }
    }
    let below = TOP + 3.0 * (HEIGHT + BETWEEN) + 4.0;
    for (colour, (name, _)) in days.iter().enumerate() {
        let x = LEFT + 200.0 * colour as f64;
        let _ = writeln!(
            text,
            "<path class=\"curve c{colour}\" d=\"M{x} {below} h26\"/><text x=\"{}\" y=\"{}\">{name} scaling</text>",
            x + 32.0,
            below + 4.0
        );
    }
    let (width, height) = (LEFT + WIDTH + 30.0, below + 20.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\">\n<style>{STYLE}</style>\n<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n{text}</svg>\n"
    )
}

/// A curve that changes in steps.
fn steps(points: impl Iterator<Item = (f64, f64)>, across: &impl Fn(f64) -> f64, up: &impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    let mut before: Option<f64> = None;
    for (hour, value) in points {
        match before {
            None => {
                let _ = write!(path, "M{:.1} {:.1}", across(hour), up(value));
            }
            Some(before) if (before - value).abs() > 1e-9 => {
                let _ = write!(path, " H{:.1} V{:.1}", across(hour), up(value));
            }
            Some(_) => {}
        }
        before = Some(value);
    }
    path + &format!(" H{:.1}", across(18.0))
}

/// The next number above that is easy to divide by four.
fn nice(most: f64) -> f64 {
    let power = 10_f64.powf(most.log10().floor());
    let step = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0].into_iter().find(|step| step * power >= most);
    step.unwrap_or(10.0) * power
}
