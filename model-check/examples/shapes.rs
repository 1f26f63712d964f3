//! What exploring costs, next to Stateright on the same worlds in the same run. Prints a table.
//!
//! `cargo run --release -p model-check --example shapes`
//!
//! Rates are per second of processor time, which says more than wall time on a machine that has other things to do.

#[path = "../tests/rival/mod.rs"]
mod rival;

use model_check::{
    explore::{self, Settings},
    scenario::shapes::{self, Course},
};
use rival::Walk;
use stateright::{Checker, Model};
use std::time::Instant;

/// Stateright is stopped after so many states: enough to know how fast it is.
const RIVAL_STATES: usize = 200_000;
/// Our own rate is taken over at least so many seconds of processor time.
const WORKED_MIN: f64 = 0.5;

fn main() {
    // `shapes star 7` looks at one shape of one size.
    if let (Some(shape), Some(size)) = (std::env::args().nth(1), std::env::args().nth(2).and_then(|it| it.parse().ok()))
    {
        let scenario = match shape.as_str() {
            "chain" => shapes::chain(size, Course::Up),
            "star" => shapes::star(size, Course::Up),
            "fan" => shapes::fan(size, Course::Up),
            _ => shapes::diamond(size, Course::Up),
        };
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
