//! Names on a command line, each of an application or of a component.

use crate::{applied::Applied, failure::Failure};
use application::{Key, hint};
use cloud_manager::document::Status;
use std::collections::BTreeSet;

/// What names on a command line stand for.
#[derive(Default)]
pub(crate) struct Chosen {
    /// Applications in the order in which they were named, and which of their components are meant; nothing: all of them.
    pub(crate) applications: Vec<(String, Option<BTreeSet<Key>>)>,
    /// Components that belong to no application.
    pub(crate) strangers: BTreeSet<String>,
}

impl Chosen {
    /// Finds out what names stand for. A component is known if it is there, and also if it is missing.
    pub(crate) fn read(names: &[String], applications: &[Applied], status: &Status) -> Result<Self, Failure> {
        let mut chosen = Self::default();
        for name in names {
            let application = applications.iter().find(|it| it.name() == home(name));
            let key = name.split_once('/').and_then(|(_, key)| key.parse::<Key>().ok());
            match (application, key) {
                (Some(applied), _) if applied.name() == name => chosen.add(name, None),
                (Some(applied), Some(key)) if applied.knows(&key) => chosen.add(applied.name(), Some(key)),
                _ if status.components.iter().any(|it| it.name == *name) => drop(chosen.strangers.insert(name.clone())),
                _ => return Err(Failure::Usage(unknown(name, applications, status))),
            }
        }
        Ok(chosen)
    }

    /// Whether a component is meant.
    pub(crate) fn contains(&self, component: &str) -> bool {
        let key = component.split_once('/').and_then(|(_, key)| key.parse::<Key>().ok());
        let keys = self.applications.iter().find(|(name, _)| name == home(component)).map(|(_, keys)| keys);
        let of_application =
            keys.is_some_and(|it| it.as_ref().is_none_or(|it| key.is_some_and(|key| it.contains(&key))));
        of_application || self.strangers.contains(component)
    }

    /// One component of an application, or all of it.
    fn add(&mut self, application: &str, key: Option<Key>) {
        let place = self.applications.iter().position(|(name, _)| name == application).unwrap_or_else(|| {
            self.applications.push((application.into(), Some(BTreeSet::new())));
            self.applications.len() - 1
        });
        let keys = &mut self.applications[place].1;
        match (key, keys) {
            (Some(key), Some(keys)) => drop(keys.insert(key)),
            (Some(_), None) => {}
            (None, keys) => *keys = None,
        }
    }
}

fn home(name: &str) -> &str {
    name.split_once('/').map_or(name, |(home, _)| home)
}

fn unknown(name: &str, applications: &[Applied], status: &Status) -> String {
    let mut known: BTreeSet<String> = status.components.iter().map(|it| it.name.clone()).collect();
    for applied in applications {
        let expansion = &applied.record.expansion;
        known.insert(applied.name().into());
        known.extend(expansion.components.keys().map(|key| key.scoped(&expansion.application).to_string()));
    }
    format!("there is no application and no component {name}{}", hint(name, known.iter().map(String::as_str)))
}
