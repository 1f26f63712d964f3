//! Applications as the manager has them: what was applied last, and what of it is found.

use crate::{application_file::Record, definition, failure::Failure, operator::Operator};
use application::{Expansion, Found, Key, hint};
use cloud_manager::document::{ApplicationRecord, Component, Status, change::read_binding};
use protocol::{Name, Operation};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// One application.
pub(crate) struct Applied {
    /// What was applied last.
    pub(crate) record: Record,
    /// Which record that is.
    pub(crate) version: Option<u64>,
    /// What of it there is: somebody may have changed something by hand, or a VM was lost.
    pub(crate) found: Expansion,
}

impl Applied {
    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        self.record.expansion.application.as_str()
    }

    /// Whether it has a component, or should have it.
    pub(crate) fn knows(&self, key: &Key) -> bool {
        self.found.components.contains_key(key) || self.record.expansion.components.contains_key(key)
    }
}

/// What there is around an application.
#[derive(Default)]
pub(crate) struct Around {
    /// All other applications.
    pub(crate) others: Vec<Expansion>,
    /// How long operations of components took when they were last done.
    pub(crate) learned: Learned,
    /// The clouds that the manager can ask for VMs; nothing where nobody was asked.
    pub(crate) clouds: Vec<String>,
    /// Components of the application that are not started.
    pub(crate) out: BTreeSet<Key>,
}

impl Around {
    /// An application of that name is not among what there is.
    pub(crate) fn no_application(&self, name: &str) -> Failure {
        let hint = hint(name, self.others.iter().map(|it| it.application.as_str()));
        Failure::NoApplication { name: name.into(), hint }
    }
}

/// How long operations of components took.
pub(crate) type Learned = BTreeMap<(Name, Operation), Duration>;

/// Every application, in order of names.
pub(crate) fn all(operator: &Operator, status: &Status) -> Result<Vec<Applied>, Failure> {
    let kept: Vec<ApplicationRecord> = operator.get("/v1/applications")?;
    let mut records: Vec<(Record, Option<u64>)> = Vec::new();
    for ApplicationRecord { name, record, version, .. } in kept {
        let record = serde_json::from_value(record).map_err(|error| Failure::Record(name, error))?;
        records.push((record, version));
    }
    let expansions = records.iter().map(|(record, _)| &record.expansion);
    let found = Found { kinds: definition::doubtful(operator, status, expansions), ..found(status) };
    let applied = |(record, version): (Record, Option<u64>)| {
        let found = record.expansion.as_found(&found);
        Applied { record, version, found }
    };
    Ok(records.into_iter().map(applied).collect())
}

/// One application, and what there is around it.
pub(crate) fn one(operator: &Operator, name: &str) -> Result<(Option<Applied>, Around), Failure> {
    let status: Status = operator.get("/v1/status")?;
    let (mut own, mut others) = (None, Vec::new());
    for applied in all(operator, &status)? {
        if applied.name() == name {
            own = Some(applied);
        } else {
            others.push(applied.found);
        }
    }
    let is_out = |it: &&Component| it.state != "started" && !it.leaving;
    let out = status.components.iter().filter(is_out).filter_map(|it| it.name.split_once('/'));
    let out = out.filter(|(application, _)| *application == name).filter_map(|(_, key)| key.parse().ok()).collect();
    Ok((own, Around { others, learned: learned(&status), clouds: status.clouds, out }))
}

fn learned(status: &Status) -> Learned {
    let mut learned = Learned::new();
    for component in &status.components {
        let Ok(name) = Name::new(&component.name) else { continue };
        let lengths = [
            (Operation::Prepare, component.prepare_ms),
            (Operation::Start, component.start_ms),
            (Operation::Stop, component.stop_ms),
        ];
        let known = lengths.into_iter().filter_map(|(it, ms)| Some(((name.clone(), it), Duration::from_millis(ms?))));
        learned.extend(known);
    }
    learned
}

/// What there is, without what is on its way out.
pub(crate) fn found(status: &Status) -> Found {
    let name = |text: &str| Name::new(text).ok();
    let vms = status.vms.iter().filter(|it| !it.leaving && it.health != "lost");
    let components = status.components.iter().filter(|it| !it.leaving);
    let bindings = status.bindings.iter().filter(|it| !it.leaving);
    Found {
        vms: vms.filter_map(|it| name(&it.name)).collect(),
        components: components.filter_map(|it| Some((name(&it.name)?, name(&it.vm)?))).collect(),
        bindings: bindings.filter_map(|it| read_binding(&it.binding).ok()).collect(),
        kinds: BTreeMap::new(),
    }
}
