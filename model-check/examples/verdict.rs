//! Explores one scenario file within bounds and says in one line of JSON what came of it.
//!
//! Every single interleaving, with no reduction: a reduction that is sound for the rules need not be so for a mutant.

use model_check::{
    Scenario,
    explore::{self, Settings},
    property::mode,
};
use serde_json::json;
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

const HELP: &str =
    "usage: verdict <scenario file> <states, at most> <seconds, at most> [<property that is not asked for>]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, states_max, seconds_max, without @ ..] = &words[..] else { return wrong(HELP) };
    let without = match without {
        [] => None,
        [name] => match mode::all().find(|property| property == name) {
            None => return wrong(&format!("{name}: no such property")),
            found => found,
        },
        _ => return wrong(HELP),
    };
    let (Ok(states_max), Ok(seconds_max)) = (states_max.parse(), seconds_max.parse()) else { return wrong(HELP) };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return wrong(&format!("{file}: not read: {error}")),
    };
    let scenario = match Scenario::parse(file, &text) {
        Ok(scenario) => scenario,
        Err(error) => return wrong(&error.to_string()),
    };
    let (begun, time_max) = (Instant::now(), Duration::from_secs(seconds_max));
    let findings = explore::explore_watched(
        &scenario,
        Settings { states_max, without, covered: false, ..Settings::full() },
        &mut |progress| {
            if begun.elapsed() > time_max {
                println!("{}", json!({ "states": progress.states, "complete": false }));
                std::process::exit(0);
            }
        },
    );
    let mut verdict = json!({ "states": findings.states, "complete": findings.complete });
    if let Some((breach, way)) = findings.breach {
        verdict["property"] = json!(breach.property);
        verdict["detail"] = json!(breach.detail);
        verdict["actions"] = json!(way.len());
        verdict["deliveries"] = json!(way.iter().filter(|action| action.is_message()).count());
    }
    println!("{verdict}");
    ExitCode::SUCCESS
}

fn wrong(what: &str) -> ExitCode {
    eprintln!("{what}");
    ExitCode::from(2)
}
