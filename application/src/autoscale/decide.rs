//! What follows from a measured load.

use super::Autoscale;
use crate::{Application, LoadError};
use std::collections::BTreeMap;

/// What is known when it is decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// The load of the application, if it has a source.
    pub load: Option<u64>,
    /// The loads of single groups.
    pub loads: BTreeMap<String, u64>,
    /// How many components there are of each group.
    pub counts: BTreeMap<String, u32>,
    /// The time, in milliseconds.
    pub now_ms: u64,
    /// When the application was changed last.
    pub changed_ms: u64,
}

/// What should become of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The numbers fit.
    Stay,
    /// Fewer would do, but the application was changed a short while ago.
    Wait {
        /// When it is time.
        until_ms: u64,
        /// The numbers that would do.
        counts: BTreeMap<String, u32>,
        /// What leads to them.
        because: String,
    },
    /// These numbers are needed now.
    Scale {
        /// How many of each group that changes.
        counts: BTreeMap<String, u32>,
        /// Whether no group grows. Then the plan must save enough ([`Autoscale::is_worthwhile`]).
        shrinks_only: bool,
        /// What leads to them.
        because: String,
    },
}

impl Application {
    /// How it follows its load, if it does.
    pub fn autoscale(&self) -> Option<&Autoscale> {
        self.autoscale.as_ref()
    }

    /// Whether the number of components of a group follows a load.
    pub fn follows_load(&self, group: &str) -> bool {
        let has_load = self.components.iter().any(|(name, it)| name.as_str() == group && it.load.is_some());
        self.autoscale
            .as_ref()
            .is_some_and(|it| has_load && !it.dry_run && (it.source.is_some() || it.sources.contains_key(group)))
    }

    /// What the measured load asks for; nothing if the application does not follow its load.
    pub fn wish(&self, measured: &Measured) -> Result<Option<Wish>, LoadError> {
        let Some(autoscale) = &self.autoscale else { return Ok(None) };
        let mut wanted = self.counts_for(measured.load.unwrap_or(0), &measured.loads)?;
        if measured.load.is_none() {
            wanted.retain(|name, _| measured.loads.contains_key(name));
        }
        Ok(Some(autoscale.wish(wanted, measured)))
    }
}

impl Autoscale {
    fn wish(&self, wanted: BTreeMap<String, u32>, measured: &Measured) -> Wish {
        let mut counts = BTreeMap::new();
        let (mut lines, mut grows) = (Vec::new(), false);
        for (name, needed) in wanted {
            let least = self.least.get(&name).copied().unwrap_or(1);
            let count = needed.max(least).min(self.most.get(&name).copied().unwrap_or(u32::MAX));
            let now = measured.counts.get(&name).copied().unwrap_or(0);
            if count == now {
                continue;
            }
            grows |= count > now;
            let limited = if count < needed { format!(" ({needed} needed)") } else { String::new() };
            lines.push(format!("{name} {now} → {count}{limited}"));
            counts.insert(name, count);
        }
        if counts.is_empty() {
            return Wish::Stay;
        }
        let mut loads: Vec<String> = measured.load.map(|load| format!("load {load}")).into_iter().collect();
        loads.extend(measured.loads.iter().map(|(name, load)| format!("load {load} of {name}")));
        let because = format!("{}: {}", loads.join(", "), lines.join(", "));
        let until_ms = measured.changed_ms.saturating_add(self.cool_down_ms);
        if !grows && measured.now_ms < until_ms {
            return Wish::Wait { until_ms, counts, because };
        }
        Wish::Scale { counts, shrinks_only: !grows, because }
    }

    /// Whether a plan that only lowers numbers saves enough to be worth its disruption. Where nothing has a cost, it does.
    pub fn is_worthwhile(&self, cost_before: i64, cost_after: i64) -> bool {
        let (before, after) = (i128::from(cost_before), i128::from(cost_after));
        before <= 0 || (before - after) * 100 >= before * i128::from(self.saves_percent)
    }
}
