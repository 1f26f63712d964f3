//! `holdfast simulate`: random orders of events of a scenario or an application, in virtual time.

use crate::{
    Ending,
    failure::Failure,
    input::faults::{self, FaultOptions},
    input::files,
    input::story::StoryOptions,
    rendering::progress::ProgressLine,
    rendering::screen::{self, Drawing, bold, coloured, counted, dim, lasting},
    rendering::summary,
};
use clap::Args;
use model_check::{
    Scenario, World,
    property::Breach,
    simulate::{self, Report, Settings, Stretch, Timing},
    trace,
    world::Event,
};
use protocol::Name;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    path::PathBuf,
    time::{Duration, Instant},
};

/// Run random orders of events of a scenario or an application, in virtual time
#[derive(Args)]
#[command(after_help = "\
Example: holdfast simulate examples/running-example.txt --seeds 1000 --crashes 2
         holdfast simulate examples/running-example.txt --seed 7 --chart text")]
pub(crate) struct Arguments {
    #[command(flatten)]
    story: StoryOptions,
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 100)]
    seeds: u64,
    /// One run with this seed, in detail
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Draw the run, or the failed one: text, mermaid or svg
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    chart: Option<Drawing>,
    #[command(flatten)]
    drawn: screen::ChartOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the run, or the failed one, to this file
    #[arg(long, value_name = "TRACE")]
    save: Option<PathBuf>,
    #[command(flatten)]
    faults: FaultOptions,
}

/// One run, and what was wrong with it.
struct Outcome {
    settings: Settings,
    report: Report,
    breach: Option<Breach>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let (scenario, timing) = arguments.story.read(arguments.faults)?;
    match arguments.seed {
        Some(seed) => one(arguments, &scenario, &timing, seed),
        None => many(arguments, &scenario, &timing),
    }
}

/// Runs a scenario once, recorded, and compares the run with what is expected.
pub(crate) fn simulated(scenario: &Scenario, timing: &Timing, seed: u64) -> (Settings, Report, Option<Breach>) {
    let journal = scenario.faults.crashes > 0;
    let (faults, timing) = (scenario.faults, timing.clone());
    let settings = Settings { faults, timing, journal, record: true, ..Settings::seeded(seed) };
    let (report, _) = simulate::simulate(&scenario.lines, &settings);
    let expected = |world: &World, event: &Event| scenario.expected.breach(world, event);
    let violation = report.violation.as_ref().map(|violation| violation.breach.clone());
    let breach = violation.or_else(|| {
        let replay = trace::replay_with(report.trace.as_ref()?, &expected).ok()?;
        replay.breach.map(|(_, breach)| breach)
    });
    (settings, report, breach)
}

fn outcome(scenario: &Scenario, timing: &Timing, seed: u64) -> Outcome {
    let (settings, report, breach) = simulated(scenario, timing, seed);
    Outcome { settings, report, breach }
}

fn one(arguments: &Arguments, scenario: &Scenario, timing: &Timing, seed: u64) -> Result<Ending, Failure> {
    let outcome = outcome(scenario, timing, seed);
    save(arguments, &outcome)?;
    let beside = arguments.chart.unwrap_or(Drawing::Text);
    if arguments.json {
        let mut value = summary::json(&outcome.report);
        value["seed"] = json!(seed);
        value["good"] = json!(outcome.breach.is_none());
        value["breach"] = breach_json(arguments, &outcome);
        screen::print_json(&value)?;
    } else {
        let headline = match &outcome.breach {
            Some(breach) => format!("✗ {breach}"),
            None => "✓ everything held".into(),
        };
        screen::print_beside(beside, &format!("{} with seed {seed}: {}\n", bold(&scenario.name), coloured(&headline)))?;
        draw(arguments.chart, arguments.drawn, scenario, &outcome)?;
        screen::print_beside(beside, &summary::timeline(scenario, &outcome.report))?;
        screen::print_beside(beside, &format!("\n{}", summary::summary(scenario, &outcome.report)))?;
    }
    Ok(ending(&outcome))
}

fn ending(outcome: &Outcome) -> Ending {
    if outcome.breach.is_none() { Ending::Done } else { Ending::Refuted }
}

fn many(arguments: &Arguments, scenario: &Scenario, timing: &Timing) -> Result<Ending, Failure> {
    let begun = Instant::now();
    let mut line = ProgressLine::new();
    let mut crowd = Crowd::default();
    for seed in 0..arguments.seeds {
        line.show(|| format!("{} of {} runs", counted(seed), counted(arguments.seeds)));
        let outcome = outcome(scenario, timing, seed);
        crowd.add(seed, &outcome.report);
        if outcome.breach.is_some() {
            line.done();
            return refuted(arguments, scenario, &outcome, &crowd);
        }
    }
    line.done();
    if arguments.json {
        screen::print_json(&crowd.json(true, &Value::Null))?;
    } else {
        let headline = coloured(&format!("✓ {} runs, everything held in each", counted(crowd.runs)));
        let took = begun.elapsed();
        screen::print(&format!("{}: {headline}{}", bold(&scenario.name), crowd.text(scenario, took)))?;
    }
    Ok(Ending::Done)
}

/// Shows the failed run.
fn refuted(arguments: &Arguments, scenario: &Scenario, bad: &Outcome, crowd: &Crowd) -> Result<Ending, Failure> {
    save(arguments, bad)?;
    if arguments.json {
        screen::print_json(&crowd.json(false, &breach_json(arguments, bad)))?;
        return Ok(Ending::Refuted);
    }
    let drawing = arguments.chart.unwrap_or(Drawing::Text);
    let breach = bad.breach.as_ref().map(ToString::to_string).unwrap_or_default();
    let headline = coloured(&format!("✗ {breach}"));
    screen::print_beside(
        drawing,
        &format!("{}, run {} with seed {}: {headline}\n", bold(&scenario.name), crowd.runs, bad.settings.seed),
    )?;
    draw(Some(drawing), arguments.drawn, scenario, bad)?;
    screen::print_beside(drawing, &format!("To replay it:\n  {}\n", bad.settings.command(&arguments.story.pasted())))?;
    Ok(Ending::Refuted)
}

fn save(arguments: &Arguments, outcome: &Outcome) -> Result<(), Failure> {
    match (&arguments.save, &outcome.report.trace) {
        (Some(path), Some(trace)) => files::write(path, &trace.write()),
        _ => Ok(()),
    }
}

fn draw(
    drawing: Option<Drawing>,
    drawn: screen::ChartOptions,
    scenario: &Scenario,
    outcome: &Outcome,
) -> Result<(), Failure> {
    let (Some(drawing), Some(trace)) = (drawing, &outcome.report.trace) else { return Ok(()) };
    let (_, events) = model_check::explore::retrace(&scenario.lines, trace.faults, &trace.actions);
    screen::print(&format!("{}\n", screen::draw(drawing, drawn, &scenario.world(), &events)))
}

fn breach_json(arguments: &Arguments, outcome: &Outcome) -> Value {
    outcome.breach.as_ref().map_or(Value::Null, |breach| {
        let replay = outcome.settings.command(&arguments.story.pasted());
        json!({ "property": breach.property, "detail": breach.detail, "seed": outcome.settings.seed, "replay": replay })
    })
}

/// Statistics of many runs.
#[derive(Default)]
struct Crowd {
    runs: u64,
    steps: u64,
    faults: u64,
    /// How long each change took, by its place; one entry for each run in which it was done.
    changes: Vec<Vec<Duration>>,
    /// For the run in which each change took longest: the duration, the seed, and the critical path.
    longest: Vec<(Duration, u64, Vec<Stretch>)>,
    messages: Vec<u64>,
    stopped: BTreeSet<Name>,
}

impl Crowd {
    fn add(&mut self, seed: u64, report: &Report) {
        self.runs += 1;
        self.steps += report.steps;
        self.faults += report.faults;
        for (place, change) in report.changes.iter().enumerate() {
            if self.changes.len() == place {
                self.changes.push(Vec::new());
                self.longest.push((Duration::ZERO, seed, Vec::new()));
            }
            let took = change.took();
            self.changes[place].extend(took);
            if took > Some(self.longest[place].0) {
                self.longest[place] = (took.unwrap_or_default(), seed, change.critical_path.clone());
            }
        }
        self.messages.push(report.messages.total());
        self.stopped.extend(report.stopped.iter().cloned());
    }

    fn text(&self, scenario: &Scenario, took: Duration) -> String {
        let mut rows: Vec<(String, String)> = Vec::new();
        for (place, times) in self.changes.iter().enumerate() {
            let [least, median, most] = spread(times).map(lasting);
            rows.push((format!("change {}", place + 1), format!("done after {least} to {most}, median {median}")));
            let (_, seed, path) = &self.longest[place];
            let path = summary::path(path).map(|path| (String::new(), format!("longest with seed {seed}, {path}")));
            rows.extend(path);
        }
        let [least, _, most] = spread(&self.messages).map(counted);
        rows.push(("messages".into(), format!("{least} to {most}")));
        let (stopped, never) = summary::stopped(scenario, &self.stopped);
        rows.extend([("stopped".into(), stopped), ("never".into(), never)]);
        let allowed = faults::in_words(scenario.faults)
            .map_or("none allowed".into(), |words| format!("up to {words} in each run"));
        rows.push(("faults".into(), format!("{} ({allowed})", counted(self.faults))));
        rows.push(("took".into(), format!("{} · {} steps", lasting(took), counted(self.steps))));
        rows.iter().map(|(label, text)| format!("  {} {text}\n", dim(&format!("{label:<10}")))).collect()
    }

    fn json(&self, good: bool, breach: &Value) -> Value {
        let changes: Vec<Value> = self
            .changes
            .iter()
            .zip(&self.longest)
            .map(|(times, (_, seed, path))| {
                let [least, median, most] = spread(times).map(|time| time.as_secs_f64());
                let path = summary::path(path);
                json!({ "seconds_min": least, "seconds_median": median, "seconds_max": most, "slowest_seed": seed, "critical_path": path })
            })
            .collect();
        let [least, _, most] = spread(&self.messages);
        json!({
            "good": good,
            "runs": self.runs,
            "steps": self.steps,
            "faults": self.faults,
            "changes": changes,
            "messages_min": least,
            "messages_max": most,
            "stopped": self.stopped,
            "breach": breach,
        })
    }
}

/// The minimum, the median and the maximum; zeros if there are none.
fn spread<T: Copy + Ord + Default>(all: &[T]) -> [T; 3] {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    let at = |place: usize| sorted.get(place).copied().unwrap_or_default();
    [at(0), at(sorted.len() / 2), at(sorted.len().saturating_sub(1))]
}
