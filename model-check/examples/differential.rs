//! The differential run: random scenarios in which things go wrong, explored with each reduction and with none. Breaches and
//! ends must be the same. In the smaller ones, every claim of independence is checked as well.
//!
//! `cargo run --release -p model-check --example differential [FIRST] [LAST]` takes the scenarios of these seeds.

#[path = "../tests/differential/mod.rs"]
mod differential;

use model_check::{Faults, explore::independence};
use std::{env, process::ExitCode};

/// A scenario with more worlds than this is left out.
const STATES_MAX: usize = 30_000;
/// Claims of independence are checked in scenarios with at most so many worlds.
const STATES_CHECKED_MAX: usize = 3_000;

fn main() -> ExitCode {
    let seed =
        |place: usize, default: u64| env::args().nth(place).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (first, last) = (seed(1, 0), seed(2, 8_000));
    let (mut compared, mut too_large, mut broken, mut states) = (0, 0, 0, 0);
    let (mut breached, mut faulty) = (0, [0_usize; 5]);
    let (mut checked, mut claims, mut pairs) = (0, 0, 0);
    for seed in first..last {
        let scenario = differential::scenario(seed);
        match differential::compare(&scenario, STATES_MAX) {
            None => too_large += 1,
            Some(Err(difference)) => {
                broken += 1;
                println!("{difference}");
            }
            Some(Ok(findings)) => {
                compared += 1;
                states += findings.states;
                breached += usize::from(findings.breach.is_some());
                let Faults { failures, deaths, crashes, breaks, losses } = scenario.faults;
                for (sum, budget) in faulty.iter_mut().zip([failures, deaths, crashes, breaks, losses]) {
                    *sum += usize::from(budget > 0);
                }
            }
        }
        match independence::check(&scenario, STATES_CHECKED_MAX) {
            None => {}
            Some(Err(wrong)) => {
                broken += 1;
                println!("{}: {wrong}\n{scenario}", scenario.name);
            }
            Some(Ok(found)) => {
                checked += 1;
                claims += found.claims;
                pairs += found.pairs;
            }
        }
    }
    let [failures, deaths, crashes, breaks, losses] = faulty;
    println!("compared {compared} scenarios, {states} states without reductions; {too_large} too large");
    println!("  with failures {failures}, deaths {deaths}, crashes {crashes}, breaks {breaks}, losses {losses}");
    println!("  {breached} with a breach, the same with each reduction");
    println!("independence: {claims} claims in {checked} scenarios, {pairs} pairs of actions in both orders");
    println!("{broken} differences");
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
