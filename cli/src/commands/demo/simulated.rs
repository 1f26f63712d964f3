//! `holdfast demo --simulated`: the running example, act by act, and then every other possible order of events.

use crate::{
    Ending,
    commands::explore,
    commands::simulate,
    failure::Failure,
    rendering::screen::{self, Drawing, bold},
    rendering::summary,
};
use model_check::{
    Action, Scenario, World,
    explore::Settings,
    simulate::{Report, Timing},
    world::Event,
};
use serde_json::json;

const SCENARIO: &str = include_str!("../../../../examples/running-example.txt");

const STAGE: &str = "
       vm1                      vm2                       vm3
  ┌───────────┐  needs   ┌──────────────┐  needs   ┌───────────────┐
  │ apache ───┼─────────▶│ tomcat ──────┼─────────▶│ mysql         │
  │   ▲       │          │   ┊          │          │ later: mysql' │
  │   ┊ uses  │          │   ▼ uses     │          │               │
  │ profiler  │          │ object-cache │          │               │
  └───────────┘          └──────────────┘          └───────────────┘
";

/// What each request of the scenario is about.
const ACTS: [(&str, &str); 3] = [
    (
        "Everything starts",
        "The manager says what there is, in any order. The order of starts is not stated: mysql needs nothing, tomcat waits\n\
        until it is lent mysql, apache until it is lent tomcat.",
    ),
    (
        "mysql is removed",
        "A provider stops only when every loan is home. vm3 recalls mysql from vm2; tomcat is still lent to apache, so vm2\n\
        recalls it from vm1 first. They stop in that order, and the agents need no manager for it.",
    ),
    (
        "mysql' is added",
        "It starts at once and is lent to tomcat; tomcat starts and is lent to apache. Profiler and object cache have been\n\
         running all the time.",
    ),
];

const NEXT: [(&str, &str); 4] = [
    ("holdfast explore examples/make-before-break.txt", "a replacement that stops no client"),
    ("holdfast explore examples/make-before-break.txt --crashes 1", "and a crash at any moment"),
    ("holdfast simulate examples/running-example.txt --crashes 2", "a hundred random runs, with crashes"),
    ("holdfast simulate examples/running-example.txt --seed 7", "one of them in detail"),
];

pub(super) fn run(seed: u64, json: bool) -> Result<Ending, Failure> {
    let scenario = Scenario::parse("running-example", SCENARIO)?;
    let (_, report, breach) = simulate::simulated(&scenario, &Timing::default(), seed);
    if json {
        let verdict = explore::search(&scenario, Settings::default());
        let good = breach.is_none() && verdict.is_good();
        let run = summary::json(&report);
        screen::print_json(&json!({ "good": good, "seed": seed, "run": run, "exploration": verdict.json() }))?;
        return Ok(if good { Ending::Done } else { Ending::Refuted });
    }
    screen::print(&format!(
        "{}\n{STAGE}",
        bold("A web shop on three machines. Its database is removed, and another one is added.")
    ))?;
    show_acts(&scenario, &report)?;
    screen::print(&format!("\n{}\n\n{}", bold("The whole run"), summary::timeline(&scenario, &report)))?;
    screen::print(&format!("\n{}", summary::summary(&scenario, &report)))?;
    screen::print(&format!("\n{}\n\n", bold("Every other possible order of events")))?;
    let verdict = explore::search(&scenario, Settings::default());
    screen::print(&verdict.to_string())?;
    let next: String = NEXT.iter().map(|(line, what)| format!("  {line:<60} {what}\n")).collect();
    screen::print(&format!("\n{}\n\n{next}", bold("What to try next")))?;
    Ok(if breach.is_none() && verdict.is_good() { Ending::Done } else { Ending::Refuted })
}

/// A chart for each request: from its submission to the next one.
fn show_acts(scenario: &Scenario, report: &Report) -> Result<(), Failure> {
    let actions = report.trace.iter().flat_map(|trace| trace.actions.iter().copied());
    let mut world = scenario.world();
    let mut acts: Vec<(World, Vec<Event>)> = Vec::new();
    for action in actions {
        if action == Action::Ask || acts.is_empty() {
            acts.push((world.clone(), Vec::new()));
        }
        let event = world.apply(action);
        if let Some((_, events)) = acts.last_mut() {
            events.push(event);
        }
    }
    for (number, ((title, text), (initial, events))) in ACTS.iter().zip(&acts).enumerate() {
        let heading = bold(&format!("Act {}: {title}", number + 1));
        let chart = screen::draw(Drawing::Text, screen::ChartOptions::default(), initial, events);
        screen::print(&format!("\n{heading}\n{text}\n\n{chart}"))?;
    }
    Ok(())
}
