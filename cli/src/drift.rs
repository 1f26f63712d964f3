//! `holdfast check`: whether what runs is what was asked for.
//!
//! Two sorts of drift: what the manager has may differ from what was applied (something was added or removed by hand, a VM
//! was lost), and what is on a machine may differ from what its agent put there (a file was changed).

use crate::{
    Ending,
    applied::{self, Applied},
    chosen::Chosen,
    failure::Failure,
    operator::{Operator, OperatorOptions},
    reason, screen,
};
use application::{Difference, How, Key};
use clap::Args;
use cloud_manager::{
    client::segment,
    document::{Component, Status, quoted},
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// See whether what runs is what was asked for, on the books and on the machines
#[derive(Args)]
#[command(after_help = "\
Exit code 1 if something is not as it was asked for; holdfast reconcile mends it.

Example: holdfast check
         holdfast check shop
         holdfast check 'shop/web[0]'")]
pub(crate) struct Arguments {
    /// Applications or components [default: all]
    names: Vec<String>,
    #[command(flatten)]
    operator: OperatorOptions,
}

/// What is not as it was asked for.
#[derive(Default, Serialize)]
pub(crate) struct Drift {
    /// What of each application is not there, or is there and was not asked for.
    pub(crate) applications: BTreeMap<String, Vec<String>>,
    /// In what each component is not as its agent made it.
    pub(crate) components: BTreeMap<String, Vec<String>>,
    /// Components that should be started and are not, and why.
    pub(crate) not_started: BTreeMap<String, String>,
    /// Components that could not be asked, and why.
    pub(crate) unknown: BTreeMap<String, String>,
    /// How many components were looked at.
    asked: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let operator = Operator::new(&arguments.operator)?;
    let status: Status = operator.get("/v1/status")?;
    let applications = applied::all(&operator, &status)?;
    let chosen = Chosen::read(&arguments.names, &applications, &status)?;
    let all = arguments.names.is_empty();
    let mut drift = Drift::default();
    for applied in &applications {
        let named = chosen.applications.iter().find(|(name, _)| name == applied.name()).map(|(_, keys)| keys);
        let Some(keys) = named.map(Option::as_ref).or(all.then_some(None)) else { continue };
        let lines = on_the_books(applied, keys);
        if !lines.is_empty() {
            drift.applications.insert(applied.name().into(), lines);
        }
    }
    drift.ask(&operator, status.components.iter().filter(|it| all || chosen.contains(&it.name)))?;
    screen::show(arguments.operator.json, &drift, || screen::coloured(&drift.told()))?;
    // Whoever does not answer may be in any state.
    Ok(if drift.is_nothing() && drift.unknown.is_empty() { Ending::Done } else { Ending::Refuted })
}

/// What of an application, or of some of its components, is not there, or is there and was not asked for.
pub(crate) fn on_the_books(applied: &Applied, keys: Option<&BTreeSet<Key>>) -> Vec<String> {
    let mut difference = Difference::between(&applied.found, &applied.record.expansion);
    if let Some(keys) = keys {
        difference = difference.about(keys);
    }
    let line = |what: &str, key: &Key, how: &How| match how {
        How::Added => format!("{what}{key} is missing"),
        How::Removed => format!("{what}{key} was not asked for"),
        How::Replaced(why) | How::Adjusted(why) => format!("{what}{key} is not as it should be: {}", why.join(", ")),
    };
    let vms = difference.vms.iter().map(|(key, how)| line("vm ", key, how));
    let components = difference.components.iter().map(|(key, how)| line("", key, how));
    let bound = difference.bound.iter().map(|it| format!("{it} is missing"));
    let unbound = difference.unbound.iter().map(|it| format!("{it} was not asked for"));
    vms.chain(components).chain(bound).chain(unbound).collect()
}

/// Why a component is not started, although it should be, and what to do.
pub(crate) fn not_started(component: &Component) -> Option<String> {
    let Component { name, state, failed_operation, failure, expected, leaving, waits_for, .. } = component;
    if *leaving || state == "started" {
        return None;
    }
    if let Some(operation) = failed_operation {
        let because = reason::first(Some(operation), failure.as_deref().unwrap_or_default());
        let because = if because.is_empty() { because } else { format!(": {because}") };
        return Some(format!("{operation} failed{because} (holdfast component retry {})", quoted(name)));
    }
    let waits = if waits_for.is_empty() { String::new() } else { format!("; it waits for {}", waits_for.join(", ")) };
    expected.then(|| format!("is {state}, not started{waits}"))
}

impl Drift {
    /// Asks the agents of components that are started; of the others, the manager knows why not.
    pub(crate) fn ask<'a>(
        &mut self,
        operator: &Operator,
        components: impl Iterator<Item = &'a Component>,
    ) -> Result<(), Failure> {
        let (started, others): (Vec<&Component>, Vec<&Component>) =
            components.filter(|it| !it.leaving).partition(|it| it.state == "started");
        self.asked += others.len();
        self.not_started.extend(others.iter().filter_map(|it| Some((it.name.clone(), not_started(it)?))));
        let paths = started.iter().map(|it| format!("/v1/components/{}/drift", segment(&it.name))).collect();
        self.asked += started.len();
        for (component, answer) in started.iter().zip(operator.texts(paths)) {
            match answer {
                Ok(text) if text.is_empty() => {}
                Ok(text) => {
                    self.components.insert(component.name.clone(), text.lines().map(Into::into).collect());
                }
                Err(error) => drop(self.unknown.insert(component.name.clone(), error.to_string())),
            }
        }
        Ok(())
    }

    fn is_nothing(&self) -> bool {
        self.applications.is_empty() && self.components.is_empty() && self.not_started.is_empty()
    }

    fn told(&self) -> String {
        let mut text = String::new();
        for (name, lines) in self.applications.iter().chain(&self.components) {
            lines.iter().for_each(|line| text += &format!("✗ {name}: {line}\n"));
        }
        for (name, line) in &self.not_started {
            text += &format!("✗ {name}: {line}\n");
        }
        for (name, why) in &self.unknown {
            text += &format!("? {name}: {why}\n");
        }
        let (asked, unknown) = (self.asked, self.unknown.len());
        text += &match (self.is_nothing(), unknown) {
            (true, 0) => format!("✓ Everything is as it was asked for ({asked} components looked at).\n"),
            (true, _) => format!("? {unknown} of {asked} components could not be asked; nothing else is wrong.\n"),
            (false, _) => String::new(),
        };
        text
    }
}
