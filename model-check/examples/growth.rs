//! How the cost of a step grows with what there is: `cargo run --release -p model-check --example growth -- [MAX]`.
//!
//! One VM with more and more components, and one component with more and more clients, are deployed and then restarted in
//! part; one component gets more and more providers and loses them all; more and more changes are open side by side. If a
//! step costs what it touches, the time for each component stays about the same. (With many changes it does not.) Prints
//! four tables. Given `--plot FILE`,
//! draws them. `growth once vm|clients|providers|changes SIZE` makes one run and prints nothing but its steps, for those
//! who count instructions.

mod curves;

use curves::Curve;
use model_check::{
    Line,
    inspector::Pace,
    shapes::{many_changes, many_clients, many_on_one_vm, many_providers},
    simulate::{Settings, Timing, always, simulate},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// So many changes side by side are looked at, and no more.
const CHANGES_MAX: usize = 1_000;

/// Makes a script of a size.
type Shape = fn(usize) -> Vec<Line>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [once, shape, size] = arguments.as_slice()
        && once == "once"
    {
        let shape = match shape.as_str() {
            "vm" => many_on_one_vm,
            "clients" => many_clients,
            "providers" => many_providers,
            _ => many_changes,
        };
        let (report, _) = simulate(&shape(size.parse().unwrap_or(10)).into(), &settings());
        return println!("{} steps", report.steps);
    }
    let most = arguments.first().and_then(|argument| argument.parse().ok()).unwrap_or(10_000);
    let shapes: [(&str, Shape, usize); 4] = [
        ("one VM with more and more components", many_on_one_vm, most),
        ("one component with more and more clients", many_clients, most),
        ("one component with more and more providers", many_providers, most),
        // In each step every change that is under way is looked at: ten times as many would take a hundred times as long.
        ("more and more changes side by side", many_changes, most.min(CHANGES_MAX)),
    ];
    let measured = shapes.into_iter().map(|(title, shape, most)| (title, measure(title, shape, most)));
    let curves: Vec<Curve> = measured.collect();
    if let Some(place) = arguments.iter().position(|argument| argument == "--plot") {
        let file = arguments.get(place + 1).map_or("docs/charts/scale.svg", String::as_str);
        if let Err(error) =
            std::fs::write(file, curves::plot("µs for each component, deployed and restarted in part", &curves))
        {
            eprintln!("{file}: {error}");
        }
    }
}

fn settings() -> Settings {
    // Nobody hesitates, so that changes which do not wait for each other are all open at once.
    let timing = Timing { request: always(Duration::ZERO), ..Timing::default() };
    Settings { pace: Pace::Named { whole_every: u64::MAX }, timing, ..Settings::seeded(1) }
}

fn measure(title: &str, shape: fn(usize) -> Vec<Line>, most: usize) -> Vec<(usize, f64)> {
    println!("\n| {title} | steps | time | µs per component | µs per step |\n|---:|---:|---:|---:|---:|");
    let sizes = std::iter::successors(Some(10), |size| Some(size * 10)).take_while(|size| *size <= most);
    let mut curve = Vec::new();
    for size in sizes {
        let script: Arc<[Line]> = shape(size).into();
        let settings = settings();
        // Small ones are repeated, so that there is something to measure; the best of them is the least disturbed.
        let runs = (10_000 / size).clamp(3, 100);
        let mut best = f64::MAX;
        let mut steps = 0;
        for _ in 0..runs {
            let began = Instant::now();
            let (report, _) = simulate(&script, &settings);
            best = best.min(began.elapsed().as_secs_f64() * 1e6);
            assert_eq!((report.violation, report.refused), (None, Vec::new()));
            steps = report.steps;
        }
        let each = best / size as f64;
        println!("| {size} | {steps} | {:.2} ms | {each:.1} | {:.2} |", best / 1e3, best / steps as f64);
        curve.push((size, each));
    }
    curve
}
