//! Who asked for each change, and whether it was rolled back later: what the history says beyond the protocol.

use crate::document::Intent;
use protocol::{ChangeId, Name};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many changes are kept, the newest.
const CHANGES_MAX: usize = 10_000;

/// Where a change comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The name of the token that asked for it.
    pub by: String,
    /// The versions of applications that it made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<Name, u64>,
    /// The change that went back to an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back_by: Option<u64>,
}

/// The origins of changes, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Arc<BTreeMap<u64, Origin>>);

impl Serialize for Origins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Origins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Arc::new(Deserialize::deserialize(deserializer)?)))
    }
}

impl Origins {
    /// Where this change comes from, if it is known.
    pub fn of(&self, change: u64) -> Option<&Origin> {
        self.0.get(&change)
    }

    /// Notes who asked for a change.
    pub(super) fn note(&mut self, change: ChangeId, by: &str) {
        let all = Arc::make_mut(&mut self.0);
        all.insert(change.0, Origin { by: by.to_owned(), ..Origin::default() });
        while all.len() > CHANGES_MAX {
            all.pop_first();
        }
    }

    /// Notes that a change is another step of a rollout.
    pub(super) fn note_step(&mut self, change: ChangeId, first: u64) {
        let origin = self.of(first).cloned().unwrap_or_default();
        self.note(change, &origin.by);
        self.note_versions(change, &origin.versions);
    }

    /// Notes which versions of applications a change made.
    pub(super) fn note_versions(&mut self, change: ChangeId, versions: &BTreeMap<Name, u64>) {
        if let Some(origin) = Arc::make_mut(&mut self.0).get_mut(&change.0) {
            origin.versions.clone_from(versions);
        }
    }

    /// Notes that a change went back to an earlier version of an application: those after it, up to the one before the
    /// change, are rolled back.
    pub(super) fn note_rollback(&mut self, change: ChangeId, application: &Name, after: u64, up_to: u64) {
        for (number, origin) in Arc::make_mut(&mut self.0) {
            let version = origin.versions.get(application);
            if *number != change.0 && version.is_some_and(|it| *it > after && *it <= up_to) {
                origin.rolled_back_by = Some(change.0);
            }
        }
    }

    /// Whether an intent goes back to an earlier version.
    pub(super) fn goes_back(intent: Intent) -> bool {
        intent == Intent::Rollback
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_marks_the_changes_after_the_version_it_goes_to() {
        let shop = Name::new("shop").unwrap();
        let mut origins = Origins::default();
        for version in 1..=4 {
            origins.note(ChangeId(version), "ci");
            origins.note_versions(ChangeId(version), &BTreeMap::from([(shop.clone(), version)]));
        }
        origins.note_rollback(ChangeId(4), &shop, 1, 3);
        let marked = |change| origins.of(change).unwrap().rolled_back_by;
        assert_eq!([marked(1), marked(2), marked(3), marked(4)], [None, Some(4), Some(4), None]);
    }
}
