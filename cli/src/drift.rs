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
    screen,
};
use application::{Difference, How, Key};
use clap::Args;
use cloud_manager::{
    client::segment,
    document::{Component, Status},
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// See whether what runs is what was asked for: on the manager's books and on the machines
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
    /// Components that could not be asked, and why.
    pub(crate) unknown: BTreeMap<String, String>,
    /// How many components were asked.
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
    Ok(if drift.is_nothing() { Ending::Done } else { Ending::Refuted })
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

impl Drift {
    /// Asks the agents of components that are started.
    pub(crate) fn ask<'a>(
        &mut self,
        operator: &Operator,
        components: impl Iterator<Item = &'a Component>,
    ) -> Result<(), Failure> {
        let started: Vec<&Component> = components.filter(|it| it.state == "started" && !it.leaving).collect();
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
        self.applications.is_empty() && self.components.is_empty()
    }

    fn told(&self) -> String {
        let mut text = String::new();
        for (name, lines) in self.applications.iter().chain(&self.components) {
            lines.iter().for_each(|line| text += &format!("✗ {name}: {line}\n"));
        }
        for (name, why) in &self.unknown {
            text += &format!("? {name}: {why}\n");
        }
        if self.is_nothing() {
            text += &format!("✓ Everything is as it was asked for ({} components looked at).\n", self.asked);
        }
        text
    }
}
