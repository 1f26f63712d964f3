//! How the cost of a step grows with what there is: `cargo run --release -p model-check --example growth -- [MAX]`.
//!
//! One VM with more and more components, and one component with more and more clients, are deployed and then restarted in
//! part. If a step costs what it touches, the time for each component stays about the same. Prints two tables. Given
//! `--plot FILE`, draws them. `growth once vm|clients SIZE` makes one run and prints nothing but its steps, for those who
//! count instructions.

use model_check::{
    Line,
    inspector::Pace,
    shapes::{many_clients, many_on_one_vm},
    simulate::{Settings, simulate},
};
use std::{fmt::Write, sync::Arc, time::Instant};

/// A curve: what it shows, and microseconds for each component by number of components.
type Curve = (&'static str, Vec<(usize, f64)>);

/// Makes a script of a size.
type Shape = fn(usize) -> Vec<Line>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [once, shape, size] = arguments.as_slice()
        && once == "once"
    {
        let shape = if shape == "vm" { many_on_one_vm } else { many_clients };
        let (report, _) = simulate(&shape(size.parse().unwrap_or(10)).into(), &settings());
        return println!("{} steps", report.steps);
    }
    let most = arguments.first().and_then(|argument| argument.parse().ok()).unwrap_or(10_000);
    let shapes: [(&str, Shape); 2] = [
        ("one VM with more and more components", many_on_one_vm),
        ("one component with more and more clients", many_clients),
    ];
    let curves: Vec<Curve> = shapes.into_iter().map(|(title, shape)| (title, measure(title, shape, most))).collect();
    if let Some(place) = arguments.iter().position(|argument| argument == "--plot") {
        let file = arguments.get(place + 1).map_or("docs/charts/scale.svg", String::as_str);
        if let Err(error) = std::fs::write(file, plot(&curves)) {
            eprintln!("{file}: {error}");
        }
    }
}

fn settings() -> Settings {
    Settings { pace: Pace::Named { whole_every: u64::MAX }, ..Settings::seeded(1) }
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

/// Both curves over a logarithmic axis of sizes. A flat line: a component costs the same, however many there are.
fn plot(curves: &[Curve]) -> String {
    let (left, top, width, height) = (60.0, 30.0, 520.0, 260.0);
    let most = curves.iter().flat_map(|(_, curve)| curve.iter().map(|(_, each)| *each)).fold(1.0, f64::max) * 1.1;
    let decades = curves.iter().map(|(_, curve)| curve.len()).max().unwrap_or(1).max(2) - 1;
    let x = |size: usize| left + width * ((size as f64).log10() - 1.0) / decades as f64;
    let y = |each: f64| top + height * (1.0 - each / most);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 620 370\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"620\" height=\"370\" fill=\"white\"/>\n",
    );
    let mut draw = |line: String| writeln!(svg, "{line}").expect("writing to a string does not fail");
    draw(format!("<text x=\"{left}\" y=\"18\">µs for each component, deployed and restarted in part</text>"));
    for tick in 0..=4 {
        let each = most * f64::from(tick) / 4.0;
        let at = y(each);
        draw(format!("<line x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>", left + width));
        draw(format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{each:.0}</text>", left - 6.0, at + 4.0));
    }
    for (index, (title, curve)) in curves.iter().enumerate() {
        let colour = ["#0a6", "#06c"][index % 2];
        let points: Vec<String> = curve.iter().map(|(size, each)| format!("{:.1},{:.1}", x(*size), y(*each))).collect();
        draw(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        ));
        for (size, each) in curve {
            draw(format!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", x(*size), y(*each)));
            if index == 0 {
                let at = top + height + 18.0;
                draw(format!("<text x=\"{:.1}\" y=\"{at}\" text-anchor=\"middle\">{size}</text>", x(*size)));
            }
        }
        let at = top + height + 40.0 + 16.0 * index as f64;
        draw(format!("<text x=\"{left}\" y=\"{at}\" fill=\"{colour}\">{title}</text>"));
    }
    svg.push_str("</svg>\n");
    svg
}
