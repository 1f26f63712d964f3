//! `holdfast why`: why something is as it is, from machine to machine, and what an operator can do.
//! The manager knows the reasons.

use crate::{
    Ending,
    commands::component::deaths_text,
    failure::Failure,
    input::names,
    operator::{Operator, OperatorOptions},
    rendering::moment,
    rendering::screen,
};
use clap::Args;
use cloud_manager::{
    client::segment,
    document::{Component, ComponentStatus, Vm, Why, reason},
};

/// See why something is not started, not stopped or not gone, and what to do
#[derive(Args)]
#[command(after_help = "\
Example: holdfast why 'shop/web[0]'
         holdfast why shop")]
pub(crate) struct Arguments {
    /// An application, a component or a VM; `web[0]` is enough where only one component can be meant
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    operator: OperatorOptions,
}

pub(crate) fn run(Arguments { name, operator: options }: &Arguments) -> Result<Ending, Failure> {
    let operator = Operator::new(options)?;
    if names::is_application(&operator, name)? {
        return application(&operator, name, options.json);
    }
    let vms: Vec<Vm> = operator.get("/v1/vms")?;
    let name = if vms.iter().any(|it| it.name == *name) { name.clone() } else { names::component(&operator, name)? };
    let answers: Vec<Why> = operator.get(&format!("/v1/why/{}", segment(&name)))?;
    let text = || answers.iter().map(shown).collect::<Vec<_>>().join("\n");
    screen::show(options.json, &answers, || screen::coloured(&text()))?;
    Ok(Ending::Done)
}

/// Why each component of an application is not as it should be.
fn application(operator: &Operator, name: &str, json: bool) -> Result<Ending, Failure> {
    let all: Vec<Component> = operator.get("/v1/components")?;
    let own = all.iter().filter(|it| it.name.starts_with(&format!("{name}/"))).collect::<Vec<_>>();
    let is_well = |it: &Component| it.expected && it.state == ComponentStatus::Started && !it.leaving;
    let mut answers: Vec<Why> = Vec::new();
    let mut troubled: Vec<&str> = own.iter().filter(|it| !is_well(it)).map(|it| it.name.as_str()).collect();
    troubled.dedup();
    for component in troubled {
        answers.extend(operator.get::<Vec<Why>>(&format!("/v1/why/{}", segment(component)))?);
    }
    let all_well = format!("✓ {name}: all {} components are started; nothing is wrong\n", own.len());
    let text = || answers.iter().map(shown).collect::<Vec<_>>().join("\n");
    screen::show(json, &answers, || screen::coloured(&if answers.is_empty() { all_well } else { text() }))?;
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
