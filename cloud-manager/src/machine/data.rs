//! What the manager knows of data: which VM keeps what for which component, and what is to be deleted.
//!
//! The protocol's machine knows nothing of it. An order that adds a component with data to a VM makes an entry here; the
//! entry goes when the VM goes, or when its agent has deleted the data. Data that is to be deleted is asked for once no
//! component of its name is on the VM any more; a cancelled change deletes nothing.

use super::{Manager, Outputs, send};
use protocol::letter::{HostQuestion, ToAgent};
use protocol::{Instruction, Name, VmId};
use recipe::Recipe;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Questions of the manager itself have numbers above this; those of operators begin with the time.
const OWN_QUESTIONS: u64 = 1 << 63;

/// The data that VMs keep, as the manager knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataBook {
    vms: BTreeMap<VmId, BTreeMap<Name, Kept>>,
    /// What is to be deleted when nothing uses it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    doomed: BTreeSet<DataPlace>,
    /// What agents were asked to delete, by the number of the question.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    asked: BTreeMap<u64, DataPlace>,
    /// The number of the last question.
    #[serde(default)]
    last_question: u64,
}

/// What is kept for one name on one VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    directories: BTreeSet<Name>,
}

/// The data of one name on one VM.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DataPlace {
    /// The VM.
    pub vm: VmId,
    /// The name of the component that it is kept for.
    pub key: Name,
}

impl DataBook {
    /// All that is kept: the VM, the name, and the names of the directories.
    pub fn kept(&self) -> impl Iterator<Item = (VmId, &Name, &BTreeSet<Name>)> {
        self.vms.iter().flat_map(|(vm, all)| all.iter().map(|(key, it)| (*vm, key, &it.directories)))
    }

    /// Takes note of an order to an agent.
    pub(super) fn learn(&mut self, vm: VmId, instruction: &Instruction) {
        let Instruction::AddComponent { name, kind } = instruction else { return };
        // Most components have none, and then reading the recipe can be saved.
        if !kind.recipe.windows(DATA_FIELD.len()).any(|it| it == DATA_FIELD) {
            return;
        }
        let Ok(recipe) = Recipe::decode(&kind.recipe) else { return };
        if !recipe.data.is_empty() {
            let kept = self.vms.entry(vm).or_default().entry(name.clone()).or_default();
            kept.directories.extend(recipe.data.directories);
            self.doomed.remove(&DataPlace { vm, key: name.clone() });
        }
    }

    /// The VM is gone, and its data with it.
    pub(super) fn forget_vm(&mut self, vm: VmId) {
        self.vms.remove(&vm);
        self.doomed.retain(|it| it.vm != vm);
        self.asked.retain(|_, it| it.vm != vm);
    }

    fn forget(&mut self, place: &DataPlace) {
        if let Some(all) = self.vms.get_mut(&place.vm) {
            all.remove(&place.key);
            if all.is_empty() {
                self.vms.remove(&place.vm);
            }
        }
    }

    /// Takes note of an answer; says whether it answers one of the manager's own questions.
    pub(super) fn answered(&mut self, number: u64, answer: &Result<String, String>) -> bool {
        let Some(place) = self.asked.remove(&number) else { return false };
        if answer.is_ok() {
            self.forget(&place);
        }
        true
    }

    /// An agent is connected again. What it was asked to delete may have been forgotten with its last life, so it is asked
    /// again; to delete what is gone is no mistake.
    pub(super) fn ask_again(&mut self, vm: VmId) {
        let asked = std::mem::take(&mut self.asked);
        for (number, place) in asked {
            if number > OWN_QUESTIONS && place.vm == vm {
                self.doomed.insert(place);
            } else {
                self.asked.insert(number, place);
            }
        }
    }

    /// A change was cancelled: what is to be deleted and was not asked for yet is kept, whichever change it belongs to.
    pub(super) fn spare(&mut self) {
        self.doomed.clear();
    }
}

/// How a field of that name begins in a recipe.
const DATA_FIELD: &[u8] = b"\"data\":";

impl Manager {
    /// Marks data to be deleted when no component uses it any more.
    pub(super) fn doom(&mut self, places: BTreeSet<DataPlace>) {
        self.beside.data.doomed.extend(places);
    }

    /// Asks agents to delete what is to be deleted and is not used any more.
    pub(super) fn advance_data(&mut self, outputs: &mut Outputs) {
        if self.beside.data.doomed.is_empty() {
            return;
        }
        let book = self.books.manager.book();
        let is_used = |it: &DataPlace| {
            book.components().any(|component| component.name == it.key && book.vm_of(component).id == Some(it.vm))
        };
        let ready: Vec<DataPlace> = self.beside.data.doomed.iter().filter(|it| !is_used(it)).cloned().collect();
        for place in ready {
            let data = &mut self.beside.data;
            data.doomed.remove(&place);
            data.last_question += 1;
            let number = OWN_QUESTIONS + data.last_question;
            let question = HostQuestion::DeleteData { key: place.key.clone() };
            outputs.push(send(place.vm, &ToAgent::AskHost { number, question }));
            data.asked.insert(number, place);
        }
    }

    /// Passes an operator's question on to a VM.
    pub(super) fn ask_host(&mut self, number: u64, vm: VmId, question: HostQuestion) -> Outputs {
        if let HostQuestion::DeleteData { key } = &question {
            self.beside.data.asked.insert(number, DataPlace { vm, key: key.clone() });
        }
        vec![send(vm, &ToAgent::AskHost { number, question })]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn adds(component: &str, recipe: &Recipe) -> Instruction {
        let (imports, exports, patience) = Default::default();
        let kind = recipe.kind(imports, exports, patience);
        Instruction::AddComponent { name: name(component), kind: Arc::new(kind) }
    }

    #[test]
    fn data_is_known_from_orders_until_it_is_deleted_or_its_vm_is_gone() {
        let mut recipe = Recipe::default();
        let mut book = DataBook::default();
        book.learn(VmId(1), &adds("app", &recipe));
        assert_eq!(book.kept().count(), 0);
        recipe.data.directories = [name("files")].into();
        book.learn(VmId(1), &adds("db", &recipe));
        book.learn(VmId(2), &adds("db", &recipe));
        assert_eq!(book.kept().map(|(vm, key, _)| (vm.0, key.as_str())).collect::<Vec<_>>(), [(1, "db"), (2, "db")]);
        // It is written and read as it is.
        let text = serde_json::to_string(&book).unwrap();
        assert_eq!(serde_json::from_str::<DataBook>(&text).unwrap(), book);

        let place = DataPlace { vm: VmId(1), key: name("db") };
        book.asked.insert(OWN_QUESTIONS + 1, place.clone());
        // The agent was restarted before it answered.
        book.ask_again(VmId(2));
        assert!(book.doomed.is_empty());
        book.ask_again(VmId(1));
        assert_eq!(book.doomed.iter().collect::<Vec<_>>(), [&place]);
        book.asked.insert(OWN_QUESTIONS + 2, place);
        assert!(!book.answered(OWN_QUESTIONS + 1, &Ok(String::new())), "an answer to a question of before");
        assert!(book.answered(OWN_QUESTIONS + 2, &Ok(String::new())));
        assert_eq!(book.kept().count(), 1);
        book.forget_vm(VmId(2));
        assert_eq!(book.kept().count(), 0);
    }
}
