//! What exploring costs, next to Stateright on the same worlds in the same run. Prints a table.
//!
//! `cargo run --release -p model-check --example shapes`

#[path = "../tests/rival/mod.rs"]
mod rival;

use model_check::{
    explore::{self, Settings},
    scenario::shapes::{self, Course},
};
use rival::Walk;
use stateright::{Checker, Model};
use std::time::{Duration, Instant};

/// Stateright is stopped after so many states: enough to know how fast it is.
const RIVAL_STATES: usize = 200_000;

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
        "| system | states | edges | ends | messages | seconds | states/s | bytes/state | verdict | Stateright: states | states/s | per state, ours : theirs |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, scenario, settings) in rows {
        let begin = Instant::now();
        let findings = explore::explore_scenario(&scenario, settings);
        let ours = rate(findings.states, begin.elapsed());
        let seconds = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let rival = Walk(scenario.world()).checker().threads(settings.threads).target_state_count(RIVAL_STATES);
        let counted = rival.spawn_bfs().join().unique_state_count();
        let theirs = rate(counted, begin.elapsed());
        let verdict = match (&findings.breach, findings.complete) {
            (Some((breach, _)), _) => breach.property,
            (None, true) => "all hold",
            (None, false) => "all hold so far",
        };
        let messages = findings.messages.map_or("–".into(), |(least, most)| format!("{least}–{most}"));
        println!(
            "| {name} | {} | {} | {} | {messages} | {seconds:.2} | {ours:.0} | {} | {verdict} | {counted} | {theirs:.0} | 1 : {:.1} |",
            findings.states,
            findings.edges,
            findings.ends,
            findings.bytes_per_state,
            ours / theirs,
        );
    }
}

fn rate(states: usize, time: Duration) -> f64 {
    f64::from(u32::try_from(states).unwrap_or(u32::MAX)) / time.as_secs_f64()
}
