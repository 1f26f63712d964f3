//! `holdfast why`: why something is as it is, from machine to machine, and what a person can do.
//!
//! The manager knows the reasons. Only what it has never heard of is looked for here, in what was applied.

use crate::{
    Ending,
    applied::{self, Applied},
    component::told_deaths,
    failure::Failure,
    moment,
    operator::{Operator, OperatorOptions},
    reason, screen,
};
use application::{Key, hint};
use clap::Args;
use cloud_manager::{
    client::{ClientError, segment},
    document::{Reason, Status, Why, quoted},
};
use std::collections::BTreeSet;

/// See why something is not started, not stopped or not gone, and what to do
#[derive(Args)]
#[command(after_help = "Example: holdfast why 'shop/web[0]'")]
pub(crate) struct Arguments {
    /// A component or a VM
    #[arg(value_name = "KEY")]
    name: String,
    #[command(flatten)]
    operator: OperatorOptions,
}

pub(crate) fn run(Arguments { name, operator: options }: &Arguments) -> Result<Ending, Failure> {
    let operator = Operator::new(options)?;
    let answers: Vec<Why> = match operator.get(&format!("/v1/why/{}", segment(name))) {
        Err(Failure::Manager(ClientError::Refused(404, _))) => vec![missing(&operator, name)?],
        answers => answers?,
    };
    let text = || answers.iter().map(shown).collect::<Vec<_>>().join("\n");
    screen::show(options.json, &answers, || screen::coloured(&text()))?;
    Ok(Ending::Done)
}

/// What the manager does not have: perhaps an application asks for it.
fn missing(operator: &Operator, name: &str) -> Result<Why, Failure> {
    let status: Status = operator.get("/v1/status")?;
    // Whoever may only look does not see what was applied.
    let applications = applied::all(operator, &status).unwrap_or_default();
    let asked = name.split_once('/').and_then(|(home, key)| {
        let applied = applications.iter().find(|it| it.name() == home)?;
        let key: Key = key.parse().ok()?;
        let expansion = &applied.record.expansion;
        match (expansion.components.contains_key(&key), expansion.vms.contains_key(&key)) {
            (true, _) => Some(("component", home, quoted(name))),
            (false, true) => Some(("vm", home, home.to_owned())),
            (false, false) => None,
        }
    });
    let Some((what, application, mended)) = asked else {
        return Err(Failure::Usage(unknown(name, &applications, &status)));
    };
    let says = format!("{name} is missing: application {application} asks for it, and it is not there");
    Ok(Why {
        name: name.into(),
        what: what.into(),
        well: false,
        reasons: vec![Reason { about: name.into(), says, ..Reason::default() }],
        remedies: vec![format!("holdfast reconcile {mended} makes it")],
    })
}

fn unknown(name: &str, applications: &[Applied], status: &Status) -> String {
    let mut known: BTreeSet<String> = status.components.iter().map(|it| it.name.clone()).collect();
    known.extend(status.vms.iter().map(|it| it.name.clone()));
    for applied in applications {
        let expansion = &applied.record.expansion;
        let keys = expansion.components.keys().chain(expansion.vms.keys());
        known.extend(keys.map(|key| key.scoped(&expansion.application).to_string()));
    }
    format!("there is no component and no VM {name}{}", hint(name, known.iter().map(String::as_str)))
}

/// A chain of reasons for people.
fn shown(why: &Why) -> String {
    let mut text = String::new();
    for (place, reason) in why.reasons.iter().enumerate() {
        let indent = "  ".repeat(reason.depth);
        let mark = match (place, why.well) {
            (0, true) => "✓ ",
            (0, false) => "✗ ",
            _ => "→ ",
        };
        let since = reason.since_ms.map(|at| format!(" (since {} UTC)", moment::date_and_time(at)));
        let well = if place == 0 && why.well { "; nothing is wrong" } else { "" };
        text += &format!("{indent}{mark}{}{}{well}\n", reason.says, since.unwrap_or_default());
        if let Some(deaths) = &reason.deaths {
            text += &format!("{indent}    {}\n", told_deaths(&reason.about, deaths));
        }
        if let Some(detail) = reason.detail.as_deref() {
            let lines = format!("    {}\n{}", reason::first(None, detail), reason::rest(detail));
            lines.lines().for_each(|line| text += &format!("{indent}{line}\n"));
        }
    }
    if !why.remedies.is_empty() {
        text += "What you can do:\n";
        why.remedies.iter().for_each(|remedy| text += &format!("  {remedy}\n"));
    } else if !why.well {
        text += "It goes on by itself; nobody has to do anything.\n";
    }
    text
}
