//! What exploring costs, next to Stateright on the same worlds in the same run. Prints a table.
//!
//! `cargo run --release -p model-check --example shapes`
//!
//! Rates are per second of processor time, which says more than wall time on a machine that has other things to do.

#[path = "../tests/rival/mod.rs"]
mod rival;

use model_check::{
    Faults, Line, Scenario,
    explore::{self, Settings},
    scenario::{
        Answer, Changes, Expected,
        shapes::{self, Course},
    },
};
use rival::Walk;
use stateright::{Checker, Model};
use std::time::Instant;

/// Stateright is stopped after so many states: enough to know how fast it is.
const RIVAL_STATES: usize = 200_000;
/// Our own rate is taken over at least so many seconds of processor time.
const WORKED_MIN: f64 = 0.5;

fn main() {
    // `shapes star 7` looks at one shape of one size, `shapes star 4 removed` at what comes of a removal at any time.
    if let (Some(shape), Some(size)) = (std::env::args().nth(1), std::env::args().nth(2).and_then(|it| it.parse().ok()))
    {
        let removed = std::env::args().nth(3).is_some_and(|word| word == "removed");
        let course = if removed { Course::UpDown } else { Course::Up };
        let scenario = match shape.as_str() {
            "chain" => shapes::chain(size, course),
            "star" => shapes::star(size, course),
            "fan" => shapes::fan(size, course),
            _ => shapes::diamond(size, course),
        };
        let scenario = if removed { hasty(scenario) } else { scenario };
        let begin = Instant::now();
        let findings = explore::explore_scenario(&scenario, Settings::default());
        println!(
            "{shape} of {size}: {} states, {} edges, {:.2} s",
            findings.states,
            findings.edges,
            begin.elapsed().as_secs_f64()
        );
        return;
    }
    let reduced = Settings { states_max: 40_000_000, ..Settings::default() };
    let full = Settings { states_max: 1_000_000, ..Settings::full() };
    let rows = [
        ("chain of 10, up", shapes::chain(10, Course::Up), reduced),
        ("chain of 10, up and down", shapes::chain(10, Course::UpDown), reduced),
        ("star of 10, up, symmetry", shapes::star(10, Course::Up), reduced),
        ("diamond of 6, up", shapes::diamond(6, Course::Up), reduced),
        ("running example, up, down, up", shapes::running_example(Course::UpDownUp), reduced),
        ("star of 4, removal at any time", hasty(shapes::star(4, Course::UpDown)), reduced),
        ("chain of 4, removal at any time", hasty(shapes::chain(4, Course::UpDown)), reduced),
        (
            "chain of 3, removal at any time, a crash and a death",
            mishap(hasty(shapes::chain(3, Course::UpDown))),
            reduced,
        ),
        ("chain of 4, up, no reduction", shapes::chain(4, Course::Up), full),
        ("running example, up, no reduction", shapes::running_example(Course::Up), full),
    ];
    println!(
        "| system | states | edges | messages | wall time | processor time | states per processor second | bytes per state | verdict | Stateright: states | states per processor second | ratio |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|");
    for (name, scenario, settings) in rows {
        // What is done in a moment is done several times: the kernel counts in hundredths of a second.
        let (begin, before) = (Instant::now(), processor_seconds());
        let mut findings = explore::explore_scenario(&scenario, settings);
        let mut turns = 1.0;
        while processor_seconds() - before < WORKED_MIN {
            findings = explore::explore_scenario(&scenario, settings);
            turns += 1.0;
        }
        let (seconds, worked) = (begin.elapsed().as_secs_f64() / turns, (processor_seconds() - before) / turns);
        let ours = rate(findings.states, worked);
        let begin = processor_seconds();
        let rival = Walk(scenario.world()).checker().threads(settings.threads).target_state_count(RIVAL_STATES);
        let counted = rival.spawn_bfs().join().unique_state_count();
        let theirs = rate(counted, processor_seconds() - begin);
        let verdict = match (&findings.breach, findings.complete) {
            (Some((breach, _)), _) => breach.property,
            (None, true) => "all hold",
            (None, false) => "all hold so far",
        };
        let messages = findings.messages.map_or("–".into(), |(least, most)| format!("{least}–{most}"));
        println!(
            "| {name} | {} | {} | {messages} | {seconds:.2} s | {worked:.2} s | {ours:.0} | {} | {verdict} | {counted} | {theirs:.0} | {:.1} |",
            findings.states,
            findings.edges,
            findings.bytes_per_state,
            ours / theirs,
        );
    }
}

/// The same story, in which no request waits for another.
fn hasty(scenario: Scenario) -> Scenario {
    let at_any_time = scenario.lines.iter().map(|line| Line { patient: false, ..line.clone() });
    Scenario { lines: at_any_time.collect(), ..scenario }
}

/// The same requests, with a crash and a death at any time; what comes of that is not expected to be one end.
fn mishap(scenario: Scenario) -> Scenario {
    let faults = Faults { crashes: 1, deaths: 1, ..Faults::default() };
    let answers = vec![Answer::Either; scenario.lines.len()];
    let expected = Expected { answers, changes: Changes::Either, ..Expected::default() };
    Scenario { faults, expected, ..scenario }
}

fn rate(states: usize, seconds: f64) -> f64 {
    f64::from(u32::try_from(states).unwrap_or(u32::MAX)) / seconds
}

/// How long this process has kept processors busy, as the kernel tells it, in hundredths of a second.
fn processor_seconds() -> f64 {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = status.rsplit(')').next().unwrap_or_default();
    let ticks = |place: usize| after_name.split_whitespace().nth(place).and_then(|text| text.parse().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}
