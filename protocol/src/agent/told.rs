//! What a run knows that can be told values only when it starts.
//!
//! A component without a `rebind` operation is told the values of what it holds when it starts, and at no other time. Its
//! agent remembers them, import by import. A value is *outdated* if the run has held it and no binding has it any more; it is
//! *fresh* if it is held and was not told at the start. An arrival alone is no reason to stop a component that ran without
//! it, and neither is a departure. But if an outdated value was told, or is older than a fresh one, a provider has come back
//! with other values: the component *misses* them, and restarts. Components that can rebind are left to `rebinding`.
//!
//! Values are compared as text: a provider that takes the place of another with the same values makes no difference.

use crate::{BindingId, Name, ShortMap, Values};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the present run knows, and how that stands to what there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Told {
    imports: ShortMap<Name, Knowledge>,
}

/// What the run knows of one import.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Knowledge {
    all: BTreeMap<Values, Standing>,
    /// How many were held and are no more.
    outdated: u32,
    /// How many are held and were not told.
    fresh: u32,
}

/// How certain values stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Standing {
    /// Of how many bindings with them the run was told when it started.
    told: u32,
    /// How many it has held at most at the same time.
    met: u32,
    /// How many bindings have them.
    bindings: u32,
    /// How many of these are held.
    held: u32,
    /// The latest binding that was held with them.
    latest: Option<BindingId>,
}

impl Standing {
    fn outdated(&self) -> u32 {
        self.met.saturating_sub(self.bindings)
    }

    fn fresh(&self) -> u32 {
        self.held.saturating_sub(self.told)
    }

    fn is_forgotten(&self) -> bool {
        self.met == 0 && self.bindings == 0
    }
}

impl Knowledge {
    /// Whether something fresh stands in for something outdated that was told, or that is older.
    fn misses(&self) -> bool {
        if self.outdated == 0 || self.fresh == 0 {
            return false;
        }
        let age = |it: &Standing| if it.told > it.bindings { None } else { it.latest };
        let outdated = self.all.values().filter(|it| it.outdated() > 0).map(age).min();
        let fresh = self.all.values().filter(|it| it.fresh() > 0).map(|it| it.latest).max();
        outdated <= fresh
    }
}

impl Told {
    /// A binding has these values, or has them no longer. Returns whether other bindings of the import now count otherwise.
    pub(super) fn bind(&mut self, import: &Name, values: &Values, joins: bool) -> bool {
        self.change(import, values, |standing| count(&mut standing.bindings, joins))
    }

    /// A binding with these values is held, or is held no longer; `running`: by a run. Returns the same.
    pub(super) fn hold(
        &mut self,
        binding: BindingId,
        import: &Name,
        values: &Values,
        joins: bool,
        running: bool,
    ) -> bool {
        self.change(import, values, |standing| {
            count(&mut standing.held, joins);
            standing.met = if running { standing.met.max(standing.held) } else { 0 };
            standing.latest = standing.latest.max(Some(binding));
        })
    }

    /// A run begins: it is told all that is held.
    pub(super) fn begin(&mut self) {
        self.tell(|standing| standing.held);
    }

    /// The run has ended, and with it what it knew.
    pub(super) fn end(&mut self) {
        self.tell(|_| 0);
    }

    /// The imports with something that only a restart can take into use.
    pub(super) fn misses(&self) -> impl Iterator<Item = &Name> {
        self.imports.iter().filter(|(_, it)| it.misses()).map(|(import, _)| import)
    }

    /// Whether the run was told fewer bindings of an import with these values than are held.
    pub(super) fn is_fresh(&self, import: &Name, values: &Values) -> bool {
        let standing = self.imports.get(import).and_then(|it| it.all.get(values));
        standing.is_some_and(|standing| standing.fresh() > 0)
    }

    fn change(&mut self, import: &Name, values: &Values, change: impl FnOnce(&mut Standing)) -> bool {
        // Where there is nothing to tell, nothing becomes outdated.
        if values.is_empty() {
            return false;
        }
        let knowledge = self.imports.or_default(import);
        let missed = knowledge.misses();
        let standing = knowledge.all.entry(values.clone()).or_default();
        let fresh = standing.fresh() > 0;
        knowledge.outdated -= standing.outdated();
        knowledge.fresh -= standing.fresh();
        change(standing);
        knowledge.outdated += standing.outdated();
        knowledge.fresh += standing.fresh();
        // A binding that is alone with its values is looked at anyway.
        let others = fresh != (standing.fresh() > 0) && standing.bindings > 1;
        if standing.is_forgotten() {
            knowledge.all.remove(values);
        }
        let misses = knowledge.misses();
        if knowledge.all.is_empty() {
            self.imports.remove(import);
        }
        missed != misses || misses && others
    }

    fn tell(&mut self, told: impl Fn(&Standing) -> u32) {
        let imports = std::mem::take(&mut self.imports);
        let told = imports.into_iter().filter_map(|(import, mut knowledge)| {
            for standing in knowledge.all.values_mut() {
                standing.told = told(standing);
                standing.met = standing.told;
            }
            knowledge.all.retain(|_, standing| !standing.is_forgotten());
            knowledge.outdated = 0;
            knowledge.fresh = knowledge.all.values().map(Standing::fresh).sum();
            (!knowledge.all.is_empty()).then_some((import, knowledge))
        });
        self.imports = told.collect();
    }
}

fn count(number: &mut u32, joins: bool) {
    *number = if joins { *number + 1 } else { *number - 1 };
}
