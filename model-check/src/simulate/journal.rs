//! Journals: what each machine heard and said, so that a machine that crashes can be made anew from it.

use crate::{
    property::Breach,
    world::{self, Event, Input, Output, Part, Place, World},
};
use protocol::{CloudManager, VmAgent};
use std::collections::BTreeMap;

/// A machine is nothing but its inputs.
pub const COMES_BACK: &str = "a machine comes back from its journal as it was";

/// What each machine heard and said.
#[derive(Debug, Default)]
pub(super) struct Journals {
    all: BTreeMap<Place, Vec<(Input, Vec<Output>)>>,
}

impl Journals {
    /// Writes a step down.
    pub(super) fn write(&mut self, event: &Event) {
        if let Some((place, input)) = &event.input {
            self.all.entry(*place).or_default().push((input.clone(), event.outputs.clone()));
        }
    }

    /// Makes a machine anew from its journal: it must say the same again, and be as it was.
    pub(super) fn check(&self, world: &World, place: Place) -> Option<Breach> {
        let breach = |detail| Some(Breach { property: COMES_BACK, detail });
        let mut machine = match place {
            Place::Manager => Part::Manager(CloudManager::new(None)),
            Place::Agent(vm) => Part::Agent(VmAgent::new(vm)),
            Place::Operator
            | Place::Cloud
            | Place::Host(_)
            | Place::Orders(_)
            | Place::Reports(_)
            | Place::Notices(..) => return None,
        };
        for (step, (input, said)) in self.all.get(&place).into_iter().flatten().enumerate() {
            let outputs = world::step(&mut machine, input.clone());
            if outputs != *said {
                return breach(format!("{place:?} says something else in step {} of its journal", step + 1));
            }
        }
        if machine == *world.part(place) { None } else { breach(format!("{place:?} is not as it was")) }
    }
}
