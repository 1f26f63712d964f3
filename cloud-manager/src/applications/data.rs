//! What a plan does to data: what goes on with it, what is left behind, what is deleted, and what needs an explicit yes.
//!
//! It is read off the edits, so that it is the same for applications and for single changes. Deletion needs `--delete-data`
//! or a type with `on-remove: delete`; a component that would start without data that exists elsewhere needs `--start-empty`.

use super::present::{KeptData, Present, key_of};
use crate::document::{DataEffect, DataFate};
use crate::machine::DataPlace;
use protocol::{Change, Edit, Kind, Name, Strategy};
use recipe::{Data, OnRemove, Recipe};
use std::collections::{BTreeMap, BTreeSet};

/// What the operator has said of data.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// Delete what is removed.
    pub delete: bool,
    /// Components that may start without their data: full names, or keys.
    pub start_empty: &'a [String],
    /// The applications that are removed: their data that was left behind before goes too, if data is deleted.
    pub removed: &'a [&'a Name],
}

/// What a plan does to data.
#[derive(Clone, Debug, Default)]
pub struct DataPlan {
    /// What becomes of what is kept.
    pub effects: Vec<DataEffect>,
    /// Why it is refused.
    pub refused: Vec<String>,
    /// What is deleted once nothing uses it. What goes with its VM is not listed.
    pub delete: BTreeSet<DataPlace>,
}

/// What these changes, one after the other, do to data.
pub fn data_plan(present: &Present, changes: &[Change], said: Said<'_>) -> DataPlan {
    if present.data.is_empty() && !changes.iter().any(adds_data) {
        return DataPlan::default();
    }
    let moves = Moves::of(present, changes);
    let mut plan = DataPlan::default();
    for kept in &present.data {
        plan.decide(kept, &moves, present, said);
    }
    plan.look_for_lost(&moves, present);
    plan.effects.sort_by(|one, other| (one.fate, &one.component).cmp(&(other.fate, &other.component)));
    plan
}

/// Whether a change adds a component with data.
fn adds_data(change: &Change) -> bool {
    change.edits.iter().any(|edit| matches!(edit, Edit::AddComponent { kind, .. } if data_of(kind).is_some()))
}

/// What a kind says of data, if it has any.
fn data_of(kind: &Kind) -> Option<Data> {
    const FIELD: &[u8] = b"\"data\":";
    // Most have none, and then reading the recipe can be saved.
    kind.recipe.windows(FIELD.len()).any(|it| it == FIELD).then_some(())?;
    Recipe::decode(&kind.recipe).ok().map(|it| it.data).filter(|it| !it.is_empty())
}

/// Which components and VMs come and go.
#[derive(Debug, Default)]
struct Moves {
    /// VMs that go.
    vms: BTreeSet<Name>,
    /// Components that go.
    removed: BTreeSet<Name>,
    /// Components that come: the VM, what they say of data, and the strategy of the change.
    added: BTreeMap<Name, (Name, Data, Strategy)>,
}

impl Moves {
    fn of(present: &Present, changes: &[Change]) -> Self {
        let mut moves = Self::default();
        for change in changes {
            for edit in &change.edits {
                match edit {
                    Edit::RemoveVm { vm } => drop(moves.vms.insert(vm.clone())),
                    Edit::RemoveComponent { component } => {
                        moves.removed.insert(component.clone());
                        moves.added.remove(component);
                    }
                    Edit::AddComponent { component, vm, kind } => {
                        let data = data_of(kind).unwrap_or_default();
                        moves.added.insert(component.clone(), (vm.clone(), data, change.strategy));
                    }
                    _ => {}
                }
            }
        }
        let book = present.book();
        let go = book.components().filter(|it| moves.vms.contains(&book.vm_of(it).name));
        moves.removed.extend(go.map(|it| it.name.clone()));
        moves
    }
}

impl DataPlan {
    /// Decides what becomes of the data of one name on one VM.
    fn decide(&mut self, kept: &KeptData, moves: &Moves, present: &Present, said: Said<'_>) {
        let KeptData { vm, key, cloud, .. } = kept;
        let book = present.book();
        let user = book.component(key).filter(|it| book.vm_of(it).name == *vm);
        let goes = user.is_some() && moves.removed.contains(key);
        let comes = moves.added.get(key);
        let may_start_empty = said.start_empty.iter().any(|it| is_meant(it, key));
        if moves.vms.contains(vm) {
            let fate = if cloud.is_some() { DataFate::Deleted } else { DataFate::LeftBehind };
            let why = match cloud {
                Some(_) => format!("vm {vm} is removed, and its disk with it"),
                None => format!("vm {vm} is removed; the data stays on the disk of that machine"),
            };
            if fate == DataFate::Deleted && !said.delete {
                self.refused.push(format!(
                    "the data of {key} would be deleted, because vm {vm} is removed (pass --delete-data to delete it)"
                ));
            }
            self.add(kept, fate, why);
            if let Some((to, data, _)) = comes
                && !data.is_empty()
                && !may_start_empty
            {
                self.refuse_move(kept, to);
            }
            return;
        }
        match comes {
            Some((to, data, strategy)) if to == vm => {
                let gone: Vec<&str> =
                    kept.directories.iter().filter(|it| !data.directories.contains(*it)).map(Name::as_str).collect();
                if data.is_empty() {
                    self.add(kept, DataFate::LeftBehind, "its definition no longer declares data".into());
                } else if !gone.is_empty() {
                    let why = format!("its definition no longer declares {}", gone.join(" and "));
                    self.add(kept, DataFate::LeftBehind, why);
                } else if goes {
                    self.add(kept, DataFate::Kept, "it is replaced on the same VM".into());
                } else {
                    self.add(kept, DataFate::Adopted, "it was left behind on that VM".into());
                }
                if goes && !data.is_empty() && *strategy != Strategy::DownThenUp {
                    self.refused.push(format!(
                        "{key} has data, so its replacement cannot start before it has stopped (use the strategy \
                         down-then-up, or none)"
                    ));
                }
            }
            Some((to, data, _)) if !data.is_empty() => {
                if !may_start_empty {
                    self.refuse_move(kept, to);
                }
                self.add(kept, DataFate::NotUsed, format!("it starts without data on vm {to}"));
            }
            _ if goes => {
                let on_remove = on_remove(present, key);
                if said.delete || on_remove == OnRemove::Delete {
                    let why = if said.delete {
                        "it is removed"
                    } else {
                        "it is removed, and its type says on-remove: delete"
                    };
                    self.delete(kept, why);
                } else {
                    self.add(kept, DataFate::LeftBehind, "it is removed; --delete-data would delete its data".into());
                }
            }
            _ => {
                let is_of_removed = said.removed.iter().any(|it| key_of(it, key).is_some());
                if user.is_none() && said.delete && is_of_removed {
                    self.delete(kept, "its application is removed");
                }
            }
        }
    }

    fn refuse_move(&mut self, kept: &KeptData, to: &Name) {
        let KeptData { vm, key, .. } = kept;
        self.refused.push(format!(
            "{key} would start without data on vm {to}: its data is on vm {vm}, and data does not move (keep it on {vm}, or \
             pass --start-empty '{key}')"
        ));
    }

    fn add(&mut self, kept: &KeptData, fate: DataFate, why: String) {
        let (component, vm) = (kept.key.to_string(), kept.vm.to_string());
        self.effects.push(DataEffect { component, vm, fate, why });
    }

    fn delete(&mut self, kept: &KeptData, why: &str) {
        self.delete.insert(DataPlace { vm: kept.id, key: kept.key.clone() });
        self.add(kept, DataFate::Deleted, why.into());
    }

    /// Components that were applied with data and come back without it: it was lost with its VM.
    fn look_for_lost(&mut self, moves: &Moves, present: &Present) {
        for (name, (vm, _, _)) in moves.added.iter().filter(|(_, (_, data, _))| !data.is_empty()) {
            let was_applied = present.applications.iter().any(|(application, state)| {
                key_of(application, name).is_some_and(|key| state.expansion.components.contains_key(&key))
            });
            let is_there = present.book().component(name).is_some();
            if was_applied && !is_there && !present.data.iter().any(|it| it.key == *name) {
                self.effects.push(DataEffect {
                    component: name.to_string(),
                    vm: vm.to_string(),
                    fate: DataFate::NotUsed,
                    why: "it starts without data, because no VM has any of it".into(),
                });
            }
        }
    }
}

/// What becomes of the data of a component that is removed: as the application's files say now, or as it was added.
fn on_remove(present: &Present, name: &Name) -> OnRemove {
    let applied = present.applications.iter().find_map(|(application, state)| {
        let key = key_of(application, name)?;
        Some(state.expansion.definition_of(&key)?.recipe.data.on_remove)
    });
    applied.unwrap_or_else(|| {
        let kind = present.book().component(name).map(|it| &it.kind);
        kind.and_then(|kind| data_of(kind)).unwrap_or_default().on_remove
    })
}

/// Whether a text names this component: its full name, or its key.
fn is_meant(text: &str, name: &Name) -> bool {
    text == name.as_str() || name.as_str().split_once('/').is_some_and(|(_, key)| key == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use application::{Application, Existing, Inputs};
    use protocol::VmId;

    const FILE: &str = "holdfast: 1\napplication: shop\ntypes:\n  Database:\n    data: files\n    operations: { start: { process: db } }\nvms: { v: { count: 2 } }\ncomponents: { database: { type: Database, on: \"v[0]\" } }\n";

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn kept(cloud: Option<&str>) -> KeptData {
        KeptData {
            id: VmId(1),
            vm: name("shop/v[0]"),
            cloud: cloud.map(Into::into),
            key: name("shop/database[0]"),
            directories: [name("files")].into(),
        }
    }

    /// The change from one file to another, with data on the first VM, and what it does to that.
    fn plan(from: &str, to: &str, cloud: Option<&str>, strategy: Strategy, said: Said<'_>) -> DataPlan {
        let expansion = |text: &str| {
            let mut open = |_: &str| Ok(text.to_owned());
            let application = Application::read("shop.yaml", &Inputs::default(), &mut open).unwrap();
            application.expand(&Existing::default()).unwrap()
        };
        let (before, after) = (expansion(from), expansion(to));
        let mut present = Present::offline(Some((application::ApplicationFiles::default(), before.clone())));
        present.data = vec![kept(cloud)];
        let difference = application::Difference::between(&before, &after);
        let change = difference.planned(&before, &after, &[], strategy, &application::SecretTexts::new()).change;
        data_plan(&present, &[change], said)
    }

    fn check(to: &str, cloud: Option<&str>, said: Said<'_>) -> (Vec<DataFate>, usize, usize) {
        let plan = plan(FILE, to, cloud, Strategy::DownThenUp, said);
        (plan.effects.iter().map(|it| it.fate).collect(), plan.refused.len(), plan.delete.len())
    }

    const NOTHING: Said<'_> = Said { delete: false, start_empty: &[], removed: &[] };
    const DELETE: Said<'_> = Said { delete: true, start_empty: &[], removed: &[] };

    #[test]
    fn data_ends_only_when_someone_says_so() {
        let without = FILE.replace("components: { database: { type: Database, on: \"v[0]\" } }", "");
        let without = without.as_str();
        assert_eq!(check(FILE, None, NOTHING), (vec![], 0, 0));
        assert_eq!(check(&FILE.replace("process: db", "process: db2"), None, NOTHING), (vec![DataFate::Kept], 0, 0));
        assert_eq!(check(without, None, NOTHING), (vec![DataFate::LeftBehind], 0, 0));
        assert_eq!(check(without, None, DELETE), (vec![DataFate::Deleted], 0, 1));
        let gone = without.replace("vms: { v: { count: 2 } }", "vms: {}");
        // A VM of a cloud takes its data with it; the disk of another machine stays.
        assert_eq!(check(&gone, Some("local"), NOTHING), (vec![DataFate::Deleted], 1, 0));
        assert_eq!(check(&gone, Some("local"), DELETE), (vec![DataFate::Deleted], 0, 0));
        assert_eq!(check(&gone, None, NOTHING), (vec![DataFate::LeftBehind], 0, 0));
        // The type says so, in the file that was applied last.
        let deletes = FILE.replace("data: files", "data: { directories: files, on-remove: delete }");
        let plan = plan(&deletes, without, None, Strategy::DownThenUp, NOTHING);
        assert_eq!((plan.effects[0].fate, plan.delete.len()), (DataFate::Deleted, 1));
    }

    #[test]
    fn data_does_not_move_and_is_not_used_twice() {
        let moved = FILE.replace("v[0]", "v[1]");
        assert_eq!(check(&moved, None, NOTHING), (vec![DataFate::NotUsed], 1, 0));
        for key in ["database[0]", "shop/database[0]"] {
            let start_empty = [key.to_owned()];
            let said = Said { start_empty: &start_empty, ..NOTHING };
            assert_eq!(check(&moved, None, said), (vec![DataFate::NotUsed], 0, 0));
        }
        let other = FILE.replace("process: db", "process: db2");
        for strategy in [Strategy::UpThenDown, Strategy::Together] {
            assert_eq!(plan(FILE, &other, None, strategy, NOTHING).refused.len(), 1);
        }
        let without = FILE.replace("    data: files\n", "");
        assert_eq!(check(&without, None, NOTHING), (vec![DataFate::LeftBehind], 0, 0));
    }

    #[test]
    fn what_was_left_behind_goes_with_its_application_only_on_demand() {
        let mut present = Present::offline(None);
        present.data = vec![kept(None)];
        let shop = name("shop");
        let removed = [&shop];
        let plan = |delete| data_plan(&present, &[], Said { delete, start_empty: &[], removed: &removed });
        assert_eq!((plan(false).effects.len(), plan(false).delete.len()), (0, 0));
        assert_eq!((plan(true).effects[0].fate, plan(true).delete.len()), (DataFate::Deleted, 1));
    }
}
