//! `holdfast why`: why something is as it is, from machine to machine, and what an operator can do.
//! The manager knows the reasons.

use crate::{
    Ending,
    commands::component::deaths_text,
    failure::Failure,
    operator::{Operator, OperatorOptions},
    rendering::moment,
    rendering::screen,
};
use clap::Args;
use cloud_manager::{
    client::segment,
    document::{Why, reason},
};

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
    let answers: Vec<Why> = operator.get(&format!("/v1/why/{}", segment(name)))?;
    let text = || answers.iter().map(shown).collect::<Vec<_>>().join("\n");
    screen::show(options.json, &answers, || screen::coloured(&text()))?;
    Ok(Ending::Done)
}

/// Renders a chain of reasons.
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
            text += &format!("{indent}    {}\n", deaths_text(&reason.about, deaths));
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
        text += "It continues by itself; no action is required.\n";
    }
    text
}
