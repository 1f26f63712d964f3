//! The long runs: thousands of random applications explored to the last state, reductions against no reduction at all,
//! and every story of the catalogue with room for all its worlds.
//!
//! `cargo run --release -p model-check --example soak [FIRST] [LAST]` explores the random applications of these seeds;
//! `soak 0 0` explores the stories alone.

use model_check::{
    Scenario,
    explore::{self, Findings, Settings},
    random::Random,
    scenario::arbitrary::{self, Size},
};
use std::{env, fs, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let seed =
        |place: usize, default: u64| env::args().nth(place).and_then(|text| text.parse().ok()).unwrap_or(default);
    // A few are too large to be explored to the last state; 3,000 are not.
    let (first, last) = (seed(1, 0), seed(2, 3_200));
    let sound = random_applications(first, last) & reductions(first, last) & symmetry(first, last) & stories();
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every interleaving of random scripts: all properties, one end, the predicted one.
fn random_applications(first: u64, last: u64) -> bool {
    let (mut explored, mut states, mut too_large, mut broken) = (0, 0, 0, 0);
    for seed in first..last {
        let scenario = random(seed, Size::Small);
        let settings = Settings { states_max: 300_000, ..Settings::default() };
        let findings = explore::explore(&scenario.lines, scenario.faults, settings);
        states += findings.states;
        explored += usize::from(findings.complete);
        too_large += usize::from(!findings.complete);
        broken += usize::from(complains(&scenario, &findings));
    }
    println!(
        "random applications: {explored} explored to the last state, {too_large} too large, {states} states, {broken} broken"
    );
    broken == 0
}

/// With and without reductions: the same verdict, the same ends.
fn reductions(first: u64, last: u64) -> bool {
    let (mut compared, mut differ) = (0, 0);
    for seed in first..last {
        let scenario = random(seed, Size::Tiny);
        let full =
            explore::explore(&scenario.lines, scenario.faults, Settings { states_max: 60_000, ..Settings::full() });
        if full.complete {
            let reduced = explore::explore(&scenario.lines, scenario.faults, Settings::default());
            let verdict = |findings: &Findings| findings.breach.as_ref().map(|(breach, _)| breach.property);
            let same = verdict(&full) == verdict(&reduced) && full.outcomes == reduced.outcomes;
            compared += 1;
            differ += usize::from(!same);
            if !same {
                println!("{} comes out differently with reductions:\n{scenario}", scenario.name);
            }
        }
    }
    println!("reductions: {compared} compared, {differ} differ");
    differ == 0
}

/// With and without symmetry: the same verdict, the same ends, the same lengths.
fn symmetry(first: u64, last: u64) -> bool {
    let (mut compared, mut differ) = (0, 0);
    for seed in first..last {
        let mut random = Random::new(seed);
        let scenario = arbitrary::tier(format!("tier-{seed}"), |n| random.below(n));
        let apart = Settings { symmetry: false, states_max: 60_000, ..Settings::default() };
        let apart = explore::explore(&scenario.lines, scenario.faults, apart);
        if apart.complete {
            let alike = explore::explore(&scenario.lines, scenario.faults, Settings::default());
            let verdict = |findings: &Findings| findings.breach.as_ref().map(|(breach, _)| breach.property);
            let same = verdict(&apart) == verdict(&alike)
                && apart.outcomes == alike.outcomes
                && apart.messages == alike.messages;
            compared += 1;
            differ += usize::from(!same);
            if !same {
                println!("{} comes out differently with symmetry:\n{scenario}", scenario.name);
            }
        }
    }
    println!("symmetry: {compared} compared, {differ} differ");
    differ == 0
}

/// Every story of the catalogue.
fn stories() -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut paths: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let (mut complete, mut broken, mut states) = (0, 0, 0);
    for path in &paths {
        let text = fs::read_to_string(path).unwrap_or_default();
        let scenario = match Scenario::parse(&path.to_string_lossy(), &text) {
            Ok(scenario) => scenario,
            Err(error) => {
                println!("{error}");
                broken += 1;
                continue;
            }
        };
        let findings = explore::explore_scenario(&scenario, Settings { states_max: 5_000_000, ..Settings::default() });
        if !findings.complete {
            println!("{}: more than {} states, no breach among them", scenario.name, findings.states);
        }
        complete += usize::from(findings.complete);
        states += findings.states;
        broken += usize::from(complains(&scenario, &findings));
    }
    println!("stories: {complete} of {} explored to the last state, {states} states, {broken} broken", paths.len());
    broken == 0
}

fn random(seed: u64, size: Size) -> Scenario {
    let mut random = Random::new(seed);
    arbitrary::scenario(format!("random-{seed}"), size, |n| random.below(n))
}

fn complains(scenario: &Scenario, findings: &Findings) -> bool {
    let Some((breach, way)) = &findings.breach else { return false };
    println!("{}: {breach}, after {} actions\n{scenario}", scenario.name, way.len());
    true
}
