//! `holdfast check`: whether what runs is what was requested, in the manager's records and on the machines.

use crate::{
    Ending,
    failure::Failure,
    operator::{Operator, OperatorOptions},
    rendering::screen,
};
use clap::Args;
use cloud_manager::document::{CheckRequest, Drift};

/// Compare what runs with what was requested, also on the machines
#[derive(Args)]
#[command(after_help = "\
Exit code 1 if something differs from what was requested; holdfast reconcile restores it.

Example: holdfast check
         holdfast check shop
         holdfast check 'shop/web[0]'")]
pub(crate) struct Arguments {
    /// Applications or components [default: all]
    names: Vec<String>,
    #[command(flatten)]
    operator: OperatorOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.operator)?;
    let drift: Drift = operator.post("/v1/check", &CheckRequest { names: arguments.names.clone() })?;
    screen::show(arguments.operator.json, &drift, || screen::coloured(&shown(&drift)))?;
    // A component that does not answer may be in any state.
    Ok(if drift.is_empty() && drift.unknown.is_empty() { Ending::Done } else { Ending::Refuted })
}

fn shown(drift: &Drift) -> String {
    let mut text = String::new();
    for (name, lines) in drift.applications.iter().chain(&drift.components) {
        lines.iter().for_each(|line| text += &format!("✗ {name}: {line}\n"));
    }
    for (name, line) in &drift.not_started {
        text += &format!("✗ {name}: {line}\n");
    }
    for (name, why) in &drift.unknown {
        text += &format!("? {name}: {why}\n");
    }
    let (examined, unknown) = (drift.examined, drift.unknown.len());
    text += &match (drift.is_empty(), unknown) {
        (true, 0) => format!("✓ Everything is as requested ({examined} components examined).\n"),
        (true, _) => format!("? {unknown} of {examined} components could not be examined; nothing else is wrong.\n"),
        (false, _) => String::new(),
    };
    text
}
