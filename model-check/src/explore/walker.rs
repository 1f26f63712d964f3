//! One thread's way through the interned worlds.
//!
//! A world is a [`Row`]: the number of the part at each slot. The walker composes the same three pure functions as the
//! plain world (`take`, `step`, `put`), but looks up each in a table first. Most edges of an exploration are nothing but
//! a few look-ups.

use super::{
    atlas::{self, Atlas, OPERATOR, Stepped, Taken},
    flatten::{Leaves, flatten},
    intern::fingerprint,
    orbit::Orbits,
};
use crate::{
    action::Action,
    property::{self, Breach},
    world::{self, Input, Item, Part, Place, World},
};
use protocol::{Name, VmId, Work, invariant::View};
use rustc_hash::FxHashMap;
use std::{collections::BTreeSet, ops::Range, sync::Arc};

/// A world as numbers of parts, by slot. What is missing at the end is nothing.
pub(super) type Row = Vec<u32>;

/// What a walker remembers of a part.
struct Known {
    part: Arc<Part>,
    print: u128,
    /// The verdict on the part alone, once asked for.
    breach: Option<Option<Breach>>,
    view: Option<Arc<View>>,
    /// What can happen at the slot where it was first met: these choices of the walker.
    menu: Option<(u32, Range<u32>)>,
    /// Its leaves at the slot where it was first met.
    leaves: Option<(u32, Arc<Leaves>)>,
}

#[derive(Clone, Copy)]
struct Choice {
    action: Action,
    number: u32,
    /// The agent that must be up for it.
    receiver: Option<u32>,
}

/// One thread's caches.
pub(super) struct Walker<'a> {
    atlas: &'a Atlas,
    pub(super) numbered: bool,
    pub(super) may_stop: Option<&'a BTreeSet<Name>>,
    orbits: &'a Orbits,
    places: Vec<Place>,
    slots: FxHashMap<Place, u32>,
    place_prints: Vec<u128>,
    known: Vec<Option<Known>>,
    taken: FxHashMap<(u32, u32), Arc<Taken>>,
    stepped: FxHashMap<(u32, u32), Arc<Stepped>>,
    puts: FxHashMap<(u32, u32), u32>,
    /// What can happen, by slot and part, where a part was met at other slots before.
    menus: FxHashMap<(u32, u32), Range<u32>>,
    choices: Vec<Choice>,
    pairs: FxHashMap<(u32, u32), bool>,
    pub(super) alone: FxHashMap<u32, bool>,
    pub(super) neutral: FxHashMap<(u32, u32), bool>,
    /// The leaves of parts that were met at other slots before.
    leaves: FxHashMap<(u32, u32), Arc<Leaves>>,
    sums: Vec<u128>,
    /// What should be seen at least once, or the properties would hold only because nothing happened.
    pub(super) sights: BTreeSet<&'static str>,
}

impl<'a> Walker<'a> {
    pub(super) fn new(
        atlas: &'a Atlas,
        numbered: bool,
        may_stop: Option<&'a BTreeSet<Name>>,
        orbits: &'a Orbits,
    ) -> Self {
        Self {
            atlas,
            numbered,
            may_stop,
            orbits,
            places: Vec::new(),
            slots: FxHashMap::default(),
            place_prints: Vec::new(),
            known: Vec::new(),
            taken: FxHashMap::default(),
            stepped: FxHashMap::default(),
            puts: FxHashMap::default(),
            menus: FxHashMap::default(),
            choices: Vec::new(),
            pairs: FxHashMap::default(),
            alone: FxHashMap::default(),
            neutral: FxHashMap::default(),
            leaves: FxHashMap::default(),
            sums: Vec::new(),
            sights: BTreeSet::new(),
        }
    }

    /// The row of a plain world.
    pub(super) fn row(&mut self, world: &World) -> Row {
        let mut row = Row::new();
        for (place, part) in world.parts() {
            let (slot, number) = (self.slot(place), self.atlas.parts.number(Part::clone(part)));
            set(&mut row, slot, number);
        }
        row
    }

    /// The plain world of a row.
    pub(super) fn world(&mut self, row: &[u32]) -> World {
        let occupied = row.iter().enumerate().filter(|(_, number)| **number != 0);
        let parts: Vec<_> = occupied.map(|(slot, number)| (self.place(slot), self.part(*number))).collect();
        World::assemble(parts, self.numbered)
    }

    /// The fingerprint of a row: a sum over its parts, so that it can be kept up to date part by part.
    pub(super) fn print(&mut self, row: &[u32]) -> u128 {
        (0..row.len()).fold(0, |sum: u128, slot| sum.wrapping_add(self.contribution(slot, row[slot])))
    }

    fn contribution(&mut self, slot: usize, number: u32) -> u128 {
        if number == 0 {
            return 0;
        }
        self.place(slot);
        let mixed =
            (self.know(number).print ^ self.place_prints[slot]).wrapping_mul(0x2d35_8dcc_aa6c_78a5_8bb8_4b93_962e_acc9);
        (mixed ^ (mixed >> 61)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }

    /// The fingerprint of a row up to an exchange of replicas.
    pub(super) fn print_of_orbit(&mut self, row: &[u32]) -> u128 {
        let occupied = || (0_u32..).zip(row).filter(|(_, number)| **number != 0);
        for (slot, number) in occupied() {
            let met = self.know(*number).leaves.as_ref().map(|(at, _)| *at);
            if met == Some(slot) || met.is_some() && self.leaves.contains_key(&(slot, *number)) {
                continue;
            }
            let leaves = self.leaves_of(slot, *number);
            match met {
                None => self.know(*number).leaves = Some((slot, leaves)),
                Some(_) => drop(self.leaves.insert((slot, *number), leaves)),
            }
        }
        let found = |(slot, number): (u32, &u32)| match self.known[*number as usize].as_ref().map(|it| &it.leaves) {
            Some(Some((at, leaves))) if *at == slot => &**leaves,
            _ => &*self.leaves[&(slot, *number)],
        };
        self.orbits.print(occupied().map(found), &mut self.sums)
    }

    /// The leaves of a part at a slot, as this or another walker found them.
    fn leaves_of(&mut self, slot: u32, number: u32) -> Arc<Leaves> {
        let shared = &self.atlas.leaves;
        let known = shared.read().expect("no thread panics while it holds the leaves").get(&(slot, number)).cloned();
        known.unwrap_or_else(|| {
            let (place, part) = (self.place(slot as usize), self.part(number));
            let leaves = Arc::new(flatten(place, &part, self.orbits));
            let mut shared = shared.write().expect("no thread panics while it holds the leaves");
            shared.insert((slot, number), leaves.clone());
            leaves
        })
    }

    /// Everything that can happen next, as numbers of actions.
    pub(super) fn actions(&mut self, row: &[u32]) -> Vec<(Action, u32)> {
        let mut found = Vec::new();
        for slot in 0..row.len() {
            if row[slot] == 0 {
                continue;
            }
            for choice in self.menu(slot, row[slot]) {
                let choice = self.choices[choice as usize];
                let up = choice.receiver.is_none_or(|agent| self.is_agent(row, agent));
                if up {
                    found.push((choice.action, choice.number));
                }
            }
        }
        let operator = self.part(row[OPERATOR]);
        let Part::Operator(operator) = &*operator else { unreachable!("the first slot is the operator's") };
        found.retain(|(action, _)| world::is_within(operator.faults, *action));
        let patient = operator.next().is_some_and(|line| line.patient);
        if patient && found.iter().all(|(action, _)| action.is_fault()) {
            found.push((Action::Ask, self.atlas.actions.number(Action::Ask)));
        }
        if operator.faults.any() {
            let mut around = Vec::new();
            let agents = self.agents(row);
            let places: Vec<Place> =
                (0..row.len()).filter(|slot| row[*slot] != 0).map(|slot| self.place(slot)).collect();
            world::faults_around(operator.faults, agents.iter().copied(), places.into_iter(), &mut around);
            found.extend(around.into_iter().map(|action| (action, self.atlas.actions.number(action))));
        }
        // Slots are numbered as threads come upon places; which action is looked at first must not depend on that.
        found.sort_unstable();
        found
    }

    /// Lets an action happen: changes the row and its fingerprint, and lists the slots that changed. Returns the step that
    /// a machine took.
    pub(super) fn apply(
        &mut self,
        row: &mut Row,
        print: &mut u128,
        action: (Action, u32),
        changed: &mut Vec<usize>,
    ) -> Option<Arc<Stepped>> {
        changed.clear();
        let (action, number) = action;
        let around = self.effects_around(row, action);
        let source = self.slot(world::source(action)) as usize;
        let taken = self.take(row.get(source).copied().unwrap_or(0), action, number);
        self.replace(row, print, source, taken.part, changed);
        let mut effects: Option<Arc<Stepped>> = None;
        if let Some((slot, input)) = taken.input {
            let slot = slot as usize;
            let stepped = self.step(slot, row.get(slot).copied().unwrap_or(0), input);
            self.replace(row, print, slot, stepped.part, changed);
            effects = Some(stepped);
        }
        let said = effects.iter().flat_map(|stepped| stepped.effects.iter());
        for (slot, item) in taken.effects.iter().chain(&around).chain(said).copied() {
            let slot = slot as usize;
            let part = self.put(row.get(slot).copied().unwrap_or(0), item);
            self.replace(row, print, slot, part, changed);
        }
        effects
    }

    fn replace(&mut self, row: &mut Row, print: &mut u128, slot: usize, part: u32, changed: &mut Vec<usize>) {
        if row.len() <= slot {
            row.resize(slot + 1, 0);
        }
        let before = std::mem::replace(&mut row[slot], part);
        if before != part {
            let (out, into) = (self.contribution(slot, before), self.contribution(slot, part));
            *print = print.wrapping_sub(out).wrapping_add(into);
            if !changed.contains(&slot) {
                changed.push(slot);
            }
        }
    }

    /// The first property broken by a row, given that all held before these slots changed.
    pub(super) fn breach(&mut self, row: &[u32], changed: &[usize]) -> Option<Breach> {
        for slot in changed {
            if let Some(breach) = self.breach_of(row[*slot]) {
                return Some(breach);
            }
        }
        for slot in changed {
            if self.view(row[*slot]).is_none() {
                continue;
            }
            for other in 0..row.len() {
                if row[other] != 0 && matches!(self.places[other], Place::Agent(_)) {
                    let broken = self.broken(row[*slot], row[other]).or_else(|| self.broken(row[other], row[*slot]));
                    if broken.is_some() {
                        return broken;
                    }
                }
            }
        }
        None
    }

    /// A2 between two agents, remembered.
    fn broken(&mut self, client: u32, provider: u32) -> Option<Breach> {
        if self.pairs.get(&(client, provider)) == Some(&true) {
            return None;
        }
        let (Some(one), Some(other)) = (self.view(client), self.view(provider)) else { return None };
        let breach = property::between(&one, &other);
        self.pairs.insert((client, provider), breach.is_none());
        breach
    }

    pub(super) fn breach_of(&mut self, number: u32) -> Option<Breach> {
        let may_stop = self.may_stop;
        let known = self.know(number);
        let part = known.part.clone();
        let verdict = || property::of_part(&part, may_stop).or_else(|| property::probe(&part));
        known.breach.get_or_insert_with(verdict).clone()
    }

    fn view(&mut self, number: u32) -> Option<Arc<View>> {
        let known = self.know(number);
        if known.view.is_none() {
            known.view = property::view(&known.part).map(Arc::new);
        }
        known.view.clone()
    }

    /// Whether the manager has no change under way.
    pub(super) fn is_idle(&mut self, row: &[u32]) -> bool {
        let slot = self.slot(Place::Manager) as usize;
        matches!(&*self.know(row[slot]).part, Part::Manager(manager) if manager.is_idle())
    }

    /// The components that are asked to stop in these slots.
    pub(super) fn stopping(&mut self, row: &[u32], changed: &[usize]) -> Vec<Name> {
        let mut names = Vec::new();
        for slot in changed {
            if let Part::Host(host) = &*self.know(row[*slot]).part {
                let stops = host.tasks.values().filter(|task| task.work == Work::Stop);
                names.extend(stops.map(|task| task.name.clone()));
            }
        }
        names
    }

    fn agents(&mut self, row: &[u32]) -> Vec<VmId> {
        let slots: Vec<usize> = (0..row.len()).filter(|slot| row[*slot] != 0).collect();
        let mut agents = Vec::new();
        for slot in slots {
            if let (Place::Agent(vm), Part::Agent(_)) = (self.place(slot), &*self.part(row[slot])) {
                agents.push(vm);
            }
        }
        agents.sort_unstable();
        agents
    }

    fn is_agent(&mut self, row: &[u32], slot: u32) -> bool {
        let number = row.get(slot as usize).copied().unwrap_or(0);
        matches!(&*self.know(number).part, Part::Agent(_))
    }

    fn menu(&mut self, slot: usize, number: u32) -> Range<u32> {
        let key = (u32::try_from(slot).expect("few places"), number);
        let first = match &self.know(number).menu {
            Some((at, menu)) if *at == key.0 => return menu.clone(),
            known => known.is_none(),
        };
        if let Some(menu) = self.menus.get(&key) {
            return menu.clone();
        }
        let mut actions = Vec::new();
        let (place, part) = (self.place(slot), self.part(number));
        world::possible(place, &part, |_| true, &mut actions);
        let size = |walker: &Self| u32::try_from(walker.choices.len()).expect("few choices");
        let from = size(self);
        for action in actions {
            let receiver = match action {
                Action::Order(vm) | Action::Notice(_, vm) => Some(self.slot(Place::Agent(vm))),
                _ => None,
            };
            self.choices.push(Choice { action, number: self.atlas.actions.number(action), receiver });
        }
        let menu = from..size(self);
        if first {
            self.know(number).menu = Some((key.0, menu.clone()));
        } else {
            self.menus.insert(key, menu.clone());
        }
        menu
    }

    pub(super) fn take(&mut self, part: u32, action: Action, number: u32) -> Arc<Taken> {
        if let Some(taken) = self.taken.get(&(part, number)) {
            return taken.clone();
        }
        let mut changed = Part::clone(&self.part(part));
        let taken = world::take(&mut changed, action, self.numbered);
        let taken = Arc::new(Taken {
            part: self.atlas.parts.number(changed),
            input: taken.input.map(|(place, input)| (self.slot(place), self.atlas.inputs.number(input))),
            effects: taken.effects.into_iter().map(|effect| self.effect(effect)).collect(),
        });
        self.taken.insert((part, number), taken.clone());
        taken
    }

    pub(super) fn step(&mut self, slot: usize, part: u32, input: u32) -> Arc<Stepped> {
        if let Some(stepped) = self.stepped.get(&(part, input)) {
            return stepped.clone();
        }
        let shared =
            self.atlas.stepped.read().expect("no thread panics while it holds the steps").get(&(part, input)).cloned();
        if let Some(stepped) = shared {
            self.stepped.insert((part, input), stepped.clone());
            return stepped;
        }
        let before = self.part(part);
        let mut changed = Part::clone(&before);
        let place = self.place(slot);
        let told = self.atlas.inputs.value(input).0;
        let outputs = world::step(&mut changed, Input::clone(&told));
        let effects = outputs.iter().filter_map(|output| world::follow(place, output, self.numbered));
        let effects: Vec<_> = effects.collect();
        let stepped = Arc::new(Stepped {
            unsettled: atlas::is_unsettled(&before, &changed),
            breach: property::of_step(&before, &told, &outputs, &changed),
            part: self.atlas.parts.number(changed),
            effects: effects.into_iter().map(|effect| self.effect(effect)).collect(),
            look: property::calls_for_a_look(&outputs).then_some(outputs),
        });
        self.stepped.insert((part, input), stepped.clone());
        let mut shared = self.atlas.stepped.write().expect("no thread panics while it holds the steps");
        shared.insert((part, input), stepped.clone());
        stepped
    }

    fn put(&mut self, part: u32, item: u32) -> u32 {
        if let Some(put) = self.puts.get(&(part, item)) {
            return *put;
        }
        let mut changed = Part::clone(&self.part(part));
        world::put(&mut changed, Item::clone(&self.atlas.items.value(item).0));
        let put = self.atlas.parts.number(changed);
        self.puts.insert((part, item), put);
        put
    }

    fn effects_around(&mut self, row: &[u32], action: Action) -> Vec<(u32, u32)> {
        if !matches!(action, Action::Crash(_) | Action::CrashManager | Action::Break(..)) {
            return Vec::new();
        }
        let places: Vec<Place> = (0..row.len()).filter(|slot| row[*slot] != 0).map(|slot| self.place(slot)).collect();
        let effects = world::effects_around(action, places.into_iter());
        effects.into_iter().map(|effect| self.effect(effect)).collect()
    }

    fn effect(&mut self, (place, item): (Place, Item)) -> (u32, u32) {
        (self.slot(place), self.atlas.items.number(item))
    }

    pub(super) fn input(&self, number: u32) -> Arc<Input> {
        self.atlas.inputs.value(number).0
    }

    pub(super) fn part(&mut self, number: u32) -> Arc<Part> {
        self.know(number).part.clone()
    }

    fn know(&mut self, number: u32) -> &mut Known {
        let index = number as usize;
        if self.known.len() <= index {
            self.known.resize_with(index + 1, || None);
        }
        self.known[index].get_or_insert_with(|| {
            let (part, print) = self.atlas.parts.value(number);
            self.sights.extend(property::sights(&part));
            Known { part, print, breach: None, view: None, menu: None, leaves: None }
        })
    }

    pub(super) fn place(&mut self, slot: usize) -> Place {
        while self.places.len() <= slot {
            let places = self.atlas.places.read().expect("no thread panics while it holds the places");
            let place = places.places[self.places.len()];
            self.places.push(place);
            self.place_prints.push(fingerprint(&place));
        }
        self.places[slot]
    }

    pub(super) fn slot(&mut self, place: Place) -> u32 {
        let atlas = self.atlas;
        *self.slots.entry(place).or_insert_with(|| atlas.slot(place))
    }
}

fn set(row: &mut Row, slot: u32, number: u32) {
    let slot = slot as usize;
    if row.len() <= slot {
        row.resize(slot + 1, 0);
    }
    row[slot] = number;
}
