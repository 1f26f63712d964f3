//! Phases: a change is posted part by part, and each part is done when the reports agree with what was predicted.
//!
//! Agreement alone could be an old report that happens to look right: a client that had to stop and start again was
//! started before and is started after. So when something that others depend on has gone or restarted, a roll call is
//! made among its dependents. They had stopped before it could; links are ordered; so their answers come after the news
//! of that stop, and what the manager then knows is not older than the change.
//!
//! Those who restart only when something has come back, because they could do without it meanwhile, stop others later than
//! that. Where there are such, the roll is called again whenever everything looks settled after something has moved.

use super::{
    ChangeState, News, Note, Output, PhaseKind, Turn, Waiting,
    book::{Book, Entry, Health},
    cancel::{CancelOutlook, Undo},
};
use crate::{
    BindingId, ChangeId, ComponentId, ComponentState, Instruction, Name, Need, Order, OrderNumber, PagedSet, Strategy,
    Ticket, VmId,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
};

/// One checked part of a change, waiting to be posted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum CheckedEdit {
    AddVm(Entry),
    AddComponent(Entry),
    AddBinding(Entry),
    SetNeed(Entry, Name, u32),
    /// Lower the need of a component that is there, before anything is taken from it.
    LowerNeed(Entry, Name, u32),
    RemoveBinding(Entry),
    RemoveComponent(Entry),
    RemoveVm(Entry),
    Restart(Entry),
    Retry(Entry),
    Skip(Entry),
}

impl CheckedEdit {
    fn is_up(&self) -> bool {
        matches!(self, Self::AddVm(_) | Self::AddComponent(_) | Self::AddBinding(_) | Self::SetNeed(..))
    }

    fn is_lower(&self) -> bool {
        matches!(self, Self::LowerNeed(..))
    }

    /// Whether it takes something away.
    pub(super) fn is_removal(&self) -> bool {
        matches!(self, Self::RemoveBinding(_) | Self::RemoveComponent(_) | Self::RemoveVm(_))
    }

    /// Whether it sets a need of a component.
    pub(super) fn sets_need_of(&self, component: Entry) -> bool {
        matches!(self, Self::SetNeed(entry, ..) | Self::LowerNeed(entry, ..) if *entry == component)
    }

    /// Whether it sets this need of a component.
    pub(super) fn sets_need(&self, component: Entry, import: &Name) -> bool {
        matches!(self, Self::SetNeed(entry, name, _) | Self::LowerNeed(entry, name, _) if *entry == component && name == import)
    }
}

/// A change that is not done.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Running {
    /// The phases not yet posted.
    pub(super) ahead: VecDeque<(PhaseKind, Vec<CheckedEdit>)>,
    /// The phase posted and not yet done.
    pub(super) phase: Option<Phase>,
    /// What its unposted edits are about: a later change about the same waits until they are posted.
    pub(super) touches: BTreeSet<Entry>,
    /// Those of them that nobody may overtake, even while this change waits for a person.
    pub(super) in_turn: BTreeSet<Entry>,
    /// What takes it back, if it can be.
    pub(super) undo: Option<Undo>,
    /// What becomes of it, if it was cancelled.
    pub(super) cancelled: Option<CancelOutlook>,
}

/// A phase that was posted and is not yet done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Phase {
    kind: PhaseKind,
    /// The last order to each VM that has not been answered.
    pub(super) unanswered: BTreeMap<Entry, OrderNumber>,
    /// VMs to come or go, components and bindings to go.
    pub(super) outstanding: PagedSet<Entry>,
    /// Those of them that are VMs to come.
    pub(super) coming: BTreeSet<Entry>,
    /// Components to come back from a restart.
    pub(super) restarted: PagedSet<Entry>,
    /// The components whose state may be touched.
    pub(super) watched: PagedSet<Entry>,
    /// Those of them that are not as predicted.
    pub(super) unsettled: PagedSet<Entry>,
    /// The VMs to be called when all that has to go is gone.
    pub(super) roll: BTreeSet<Entry>,
    /// The VMs to be called each time that everything looks settled after something has moved, because there are components
    /// that restart when others have come back.
    pub(super) circuit: BTreeSet<Entry>,
    /// Something has moved since they were called.
    pub(super) moved: bool,
    /// The components whose needs it sets: their agents are told when the components can bear it.
    pub(super) needs: BTreeSet<Entry>,
}

impl Running {
    /// Splits the edits of a change into phases.
    pub(super) fn new(edits: Vec<CheckedEdit>, strategy: Strategy, undo: Option<Undo>, book: &Book) -> Self {
        let (lower, rest): (Vec<_>, Vec<_>) = edits.into_iter().partition(CheckedEdit::is_lower);
        // A need is lowered and the answer awaited before anything is removed.
        let lower = (PhaseKind::Lower, lower);
        let phases = if strategy == Strategy::Together {
            vec![lower, (PhaseKind::Both, rest)]
        } else {
            let (up, down) = rest.into_iter().partition(CheckedEdit::is_up);
            let (up, down) = ((PhaseKind::Up, up), (PhaseKind::Down, down));
            if strategy == Strategy::DownThenUp { vec![lower, down, up] } else { vec![up, lower, down] }
        };
        let ahead = phases.into_iter().filter(|(_, edits)| !edits.is_empty()).collect();
        let mut running = Self { ahead, undo, ..Self::default() };
        running.look_ahead(book);
        running
    }
}

impl Phase {
    /// Whether what looks settled may be old news: someone that follows may have stopped others meanwhile.
    pub(super) fn is_to_go_round(&self) -> bool {
        self.moved && !self.circuit.is_empty()
    }
}

impl Book {
    /// The components that are not as predicted, as far as the manager knows.
    pub fn unsettled(&self) -> impl Iterator<Item = Entry> {
        self.components.keys().copied().filter(|entry| !self.agrees(*entry))
    }

    /// Whether a component is as predicted.
    fn agrees(&self, entry: Entry) -> bool {
        // Whatever becomes of what is on its way out, nobody waits for it to be up.
        let Some(component) = self.components.get(&entry).filter(|component| !component.leaving) else { return true };
        let Some(condition) = component.condition else { return false };
        if component.expected {
            component.needs_are_ordered()
                && condition.state == ComponentState::Started
                && condition.since >= component.renewed
                && component.holds_as_expected()
        } else {
            component.needs_are_ordered() && !condition.state.is_running()
        }
    }
}

impl Turn<'_> {
    /// Looks again at what was touched, ends what is done, posts what may be posted.
    pub(super) fn settle(&mut self) {
        loop {
            let touched = std::mem::take(&mut self.touched);
            touched.iter().for_each(|entry| self.order_needs(*entry));
            let super::CloudManager { running, book, .. } = &mut *self.manager;
            for phase in running.values_mut().filter_map(|running| running.phase.as_mut()) {
                for entry in touched.iter().filter(|entry| phase.watched.contains(entry)) {
                    let (agrees, agreed) = (book.agrees(*entry), !phase.unsettled.contains(entry));
                    phase.moved |= agrees != agreed && !phase.circuit.is_empty();
                    if agrees {
                        phase.unsettled.remove(entry);
                    } else {
                        phase.unsettled.insert(*entry);
                    }
                }
            }
            let mut progress = false;
            let mut next = self.manager.running.keys().next().copied();
            while let Some(change) = next {
                progress |= self.advance(change);
                let later = (Bound::Excluded(change), Bound::Unbounded);
                next = self.manager.running.range(later).next().map(|(change, _)| *change);
            }
            if !progress && self.touched.is_empty() {
                return;
            }
        }
    }

    /// Moves one change on if it can; says whether it did.
    fn advance(&mut self, change: ChangeId) -> bool {
        let running = &self.manager.running[&change];
        match &running.phase {
            Some(phase) if !phase.outstanding.is_empty() || !phase.unanswered.is_empty() => false,
            // What restarts has stopped once it is up again, and so have its dependents.
            Some(phase) if !phase.roll.is_empty() && self.manager.awaits_restart(running) => false,
            Some(phase) if !phase.roll.is_empty() => {
                self.call_roll(change);
                true
            }
            Some(_) if !self.manager.is_settled(running) || self.manager.overshadower(change).is_some() => false,
            // Below, this is a roll like any other.
            Some(phase) if phase.is_to_go_round() => {
                let phase = self.running(change).phase.as_mut().expect("it was just looked at");
                (phase.roll, phase.moved) = (phase.circuit.clone(), false);
                true
            }
            Some(phase) => {
                let kind = phase.kind;
                self.tell(News::PhaseDone(change, kind));
                self.running(change).phase = None;
                true
            }
            None if running.ahead.is_empty() => {
                let cancelled = running.cancelled.is_some();
                self.manager.running.remove(&change);
                self.tell(if cancelled { News::ChangeCancelled(change) } else { News::ChangeDone(change) });
                true
            }
            None if self.manager.blocker(change).is_some() => false,
            None => {
                let (kind, edits) = self.running(change).ahead.pop_front().expect("it is not empty");
                self.post(change, kind, edits);
                let super::CloudManager { running, book, .. } = &mut *self.manager;
                running.get_mut(&change).expect("it was just posted").look_ahead(book);
                true
            }
        }
    }

    fn running(&mut self, change: ChangeId) -> &mut Running {
        self.manager.running.get_mut(&change).expect("only changes that run are moved on")
    }

    fn call_roll(&mut self, change: ChangeId) {
        let phase = self.running(change).phase.as_mut().expect("only a posted phase calls a roll");
        for vm in std::mem::take(&mut phase.roll) {
            if let Some(number) = self.order(vm, |_| Instruction::RollCall) {
                let phase = self.running(change).phase.as_mut().expect("only a posted phase calls a roll");
                phase.unanswered.insert(vm, number);
            }
        }
    }

    /// Sends one order, if its VM is there to take it.
    fn order(&mut self, vm: Entry, instruction: impl FnOnce(OrderNumber) -> Instruction) -> Option<OrderNumber> {
        let found = self.manager.book.vms.get(&vm).filter(|vm| vm.health != Health::Dead);
        let id = found.and_then(|vm| vm.id)?;
        let number = self.next_number();
        self.outputs.push(Output::ToAgent(id, Order { number, instruction: instruction(number) }));
        Some(number)
    }

    /// Posts the edits of one phase. A phase that is still under way becomes part of it.
    pub(super) fn post(&mut self, change: ChangeId, kind: PhaseKind, edits: Vec<CheckedEdit>) {
        let mut posting = Posting::new(kind);
        posting.take_over(self.running(change).phase.take());
        for edit in edits {
            if self.post_deed(&mut posting, edit).is_none() {
                self.note(Note::DeedDropped(change));
            }
        }
        let phase = self.finish_posting(posting);
        self.running(change).phase = Some(phase);
        self.tell(News::PhasePosted(change, kind));
    }

    /// Predicts anew, and watches whatever the phase may touch.
    fn finish_posting(&mut self, posting: Posting) -> Phase {
        let Posting { mut phase, suspects, mut stopping, added } = posting;
        let book = &mut self.manager.book;
        let (seen, rising) = book.predict(suspects);
        phase.watched.extend(seen);
        // Whoever was told of something else restarts when these have come.
        let followers: BTreeSet<Entry> = rising.into_iter().flat_map(|entry| book.followers(entry)).collect();
        stopping.extend(followers.difference(&added));
        // The dependents of what goes may stop on the way, even if they are up again in the end.
        let (dependents, followed) = book.dependents(stopping.iter().copied());
        let calls = |entry: &&Entry| !book.components[*entry].left && !phase.restarted.contains(*entry);
        let roll: Vec<Entry> = dependents.iter().filter(calls).map(|entry| book.components[entry].vm).collect();
        phase.roll.extend(roll);
        if followed {
            phase.circuit.extend(dependents.iter().map(|entry| book.components[entry].vm));
        }
        phase.watched.extend(dependents);
        self.touched.extend(phase.watched.iter().copied());
        phase
    }

    /// Posts one edit; nothing if what it is about was lost meanwhile.
    fn post_deed(&mut self, posting: &mut Posting, edit: CheckedEdit) -> Option<()> {
        match edit {
            CheckedEdit::AddVm(entry) => {
                let name = self.manager.book.vms.get(&entry)?.name.clone();
                let id = VmId(self.next_number().0);
                self.book().vms.get_mut(&entry)?.id = Some(id);
                self.book().vm_ids.insert(id, entry);
                self.outputs.push(Output::ToCloud(super::CloudTask::Create(id, name)));
                posting.phase.outstanding.insert(entry);
                posting.phase.coming.insert(entry);
            }
            CheckedEdit::AddComponent(entry) => {
                let component = self.manager.book.components.get(&entry)?;
                let (vm, name, kind) = (component.vm, component.name.clone(), component.kind.clone());
                let number = self.order(vm, |_| Instruction::AddComponent { name, kind })?;
                let component = self.book().components.get_mut(&entry)?;
                component.id = Some(ComponentId(number.0));
                component.renewed = number;
                self.book().component_ids.insert(ComponentId(number.0), entry);
                posting.expect_answer(vm, number);
                posting.watch(entry);
                posting.added.insert(entry);
            }
            CheckedEdit::AddBinding(entry) => self.post_binding(posting, entry)?,
            CheckedEdit::SetNeed(entry, import, number) | CheckedEdit::LowerNeed(entry, import, number) => {
                // Its agent is told as soon as the component can bear it.
                let import = self.book().components.get_mut(&entry)?.imports.get_mut(&import)?;
                import.need = import.need.with_number(number);
                posting.phase.needs.insert(entry);
                posting.watch(entry);
            }
            CheckedEdit::RemoveBinding(entry) => {
                let binding = self.manager.book.bindings.get(&entry)?;
                let (client, provider, id) = (binding.client, binding.provider, binding.id?);
                let stops = !matches!(binding.need, Need::Weak(_)) || self.manager.book.follows(binding);
                let vm = self.manager.book.components[&provider].vm;
                let number = self.order(vm, |_| Instruction::RemoveBinding { binding: id })?;
                self.book().bindings.get_mut(&entry)?.left = true;
                posting.suspects.extend(self.book().recount(entry));
                posting.expect_answer(vm, number);
                posting.phase.outstanding.insert(entry);
                posting.watch(client);
                posting.stopping.extend(stops.then_some(client));
            }
            CheckedEdit::RemoveComponent(entry) => {
                let id = self.manager.book.components.get(&entry)?.id?;
                self.order_component(posting, entry, Instruction::RemoveComponent { component: id })?;
                let component = self.book().components.get_mut(&entry)?;
                component.left = true;
                let lends: Vec<Entry> = component.lends.iter().copied().collect();
                for binding in lends {
                    posting.suspects.extend(self.book().recount(binding));
                }
                posting.phase.outstanding.insert(entry);
                posting.stopping.insert(entry);
                posting.watch(entry);
            }
            CheckedEdit::RemoveVm(entry) => {
                let vm = self.manager.book.vms.get(&entry).filter(|vm| vm.health != Health::Dead)?;
                // Whoever never came has nothing to stop and nobody to answer.
                if vm.health == Health::Awaited {
                    self.struck(entry);
                    posting.phase.unanswered.remove(&entry);
                    posting.phase.coming.remove(&entry);
                    for component in self.manager.book.vms[&entry].components.clone() {
                        posting.phase.watched.remove(&component);
                        posting.stopping.remove(&component);
                        posting.suspects.extend(self.strike(component));
                    }
                    // What went with it, bindings too, is not waited for.
                    let book = &self.manager.book;
                    posting.phase.outstanding.retain(|entry| book.has(*entry));
                }
                self.book().vms.get_mut(&entry)?.left = true;
                posting.phase.outstanding.insert(entry);
                self.destroy_if_empty(entry, &mut posting.phase.unanswered);
            }
            CheckedEdit::Restart(entry) => {
                let id = self.manager.book.components.get(&entry)?.id?;
                let number = self.order_component(posting, entry, Instruction::RestartComponent { component: id })?;
                self.book().components.get_mut(&entry)?.renewed = number;
                posting.phase.restarted.insert(entry);
                posting.stopping.insert(entry);
                posting.watch(entry);
            }
            CheckedEdit::Retry(entry) => {
                let id = self.manager.book.components.get(&entry)?.id?;
                self.order_component(posting, entry, Instruction::RetryComponent { component: id })?;
            }
            CheckedEdit::Skip(entry) => {
                let id = self.manager.book.components.get(&entry)?.id?;
                self.order_component(posting, entry, Instruction::SkipComponent { component: id })?;
            }
        }
        Some(())
    }

    fn order_component(
        &mut self,
        posting: &mut Posting,
        entry: Entry,
        instruction: Instruction,
    ) -> Option<OrderNumber> {
        let vm = self.manager.book.components.get(&entry)?.vm;
        let number = self.order(vm, |_| instruction)?;
        posting.expect_answer(vm, number);
        Some(number)
    }

    /// Tells an agent of the needs of a component that it can bear now; the phases that set them await the answer.
    fn order_needs(&mut self, entry: Entry) {
        for (import, number) in self.manager.book.orderable_needs(entry) {
            let component = &self.manager.book.components[&entry];
            let (Some(id), vm) = (component.id, component.vm) else { continue };
            let instruction = Instruction::SetNeed { component: id, import: import.clone(), number };
            let Some(order) = self.order(vm, |_| instruction) else { continue };
            let imports = &mut self.book().components.get_mut(&entry).expect("it was just looked up").imports;
            imports.get_mut(&import).expect("it was just found").ordered = number;
            let phases = self.manager.running.values_mut().filter_map(|running| running.phase.as_mut());
            for phase in phases.filter(|phase| phase.needs.contains(&entry)) {
                phase.unanswered.insert(vm, order);
            }
        }
    }

    /// Only the provider's VM is told of a binding; the client hears of it from there.
    fn post_binding(&mut self, posting: &mut Posting, entry: Entry) -> Option<()> {
        let book = &self.manager.book;
        let binding = book.bindings.get(&entry)?.clone();
        let (client, provider) = (&book.components[&binding.client], &book.components[&binding.provider]);
        // A later change may have overtaken this one and taken an end away.
        if client.left || provider.left {
            return None;
        }
        let (client_home, provider_home) = (client.vm, provider.vm);
        let client_vm = book.vms.get(&client_home)?.id?;
        let (client_id, provider_id) = (client.id?, provider.id?);
        let number = self.order(provider_home, |_| Instruction::AddBinding {
            provider: provider_id,
            export: binding.export,
            client: client_id,
            client_vm,
            import: binding.import,
            value: binding.need.is_value(),
            ticket: Ticket::default(),
        })?;
        self.book().change_binding(entry, |binding| binding.id = Some(BindingId(number.0)));
        self.book().binding_ids.insert(BindingId(number.0), entry);
        if client_home != provider_home {
            self.book().vms.get_mut(&client_home)?.neighbours.insert(provider_home);
            self.book().vms.get_mut(&provider_home)?.neighbours.insert(client_home);
        }
        posting.suspects.extend(self.book().recount(entry));
        posting.expect_answer(provider_home, number);
        // Whoever is told of another provider that is no more restarts with this one.
        let follows = self.manager.book.follows(&self.manager.book.bindings[&entry]);
        posting.stopping.extend((follows && !posting.added.contains(&binding.client)).then_some(binding.client));
        posting.watch(binding.client);
        posting.watch(binding.provider);
        Some(())
    }

    /// A VM that is to go and has no component left is destroyed, and its neighbours forget it.
    fn destroy_if_empty(&mut self, entry: Entry, unanswered: &mut BTreeMap<Entry, OrderNumber>) {
        let Some(vm) = self.manager.book.vms.get(&entry) else { return };
        let (Some(id), true, true) = (vm.id, vm.left, vm.components.is_empty()) else { return };
        self.outputs.push(Output::ToCloud(super::CloudTask::Destroy(id)));
        for neighbour in vm.neighbours.clone() {
            if let Some(number) = self.order(neighbour, |_| Instruction::ForgetVm { vm: id }) {
                unanswered.insert(neighbour, number);
            }
        }
    }

    /// Declares a VM lost: its components are struck out, its neighbours forget it, and what depended on it is watched.
    pub(super) fn lose(&mut self, entry: Entry) -> Running {
        let vm = self.book().vms.get_mut(&entry).expect("only known VMs are lost");
        let awaited = std::mem::replace(&mut vm.health, Health::Dead) == Health::Awaited;
        let (id, components, neighbours) = (vm.id, vm.components.clone(), vm.neighbours.clone());
        let mut posting = Posting::new(PhaseKind::Forget);
        for component in components {
            let book = &self.manager.book;
            let lends = book.components[&component].lends.iter().map(|binding| &book.bindings[binding]);
            let stops = lends.filter(|it| !matches!(it.need, Need::Weak(_)) || book.follows(it));
            posting.stopping.extend(stops.map(|it| it.client));
            posting.suspects.extend(self.strike(component));
        }
        self.struck(entry);
        if let Some(id) = id {
            // What is lost before it came need not come.
            if awaited {
                self.outputs.push(Output::ToCloud(super::CloudTask::Destroy(id)));
            }
            self.tell(News::VmLost(id));
            for neighbour in neighbours {
                if let Some(number) = self.order(neighbour, |_| Instruction::ForgetVm { vm: id }) {
                    posting.expect_answer(neighbour, number);
                }
            }
        }
        let phase = self.finish_posting(posting);
        Running { phase: Some(phase), ..Running::default() }
    }

    /// A component is gone for good, with its bindings; says which components had bindings to it.
    pub(super) fn strike(&mut self, component: Entry) -> BTreeSet<Entry> {
        let (clients, bindings) = self.book().strike_component(component);
        self.struck(component);
        bindings.into_iter().for_each(|binding| self.struck(binding));
        clients
    }

    /// Something is gone for good: no phase waits for it any more.
    pub(super) fn struck(&mut self, entry: Entry) {
        for phase in self.manager.running.values_mut().filter_map(|running| running.phase.as_mut()) {
            phase.outstanding.remove(&entry);
            phase.coming.remove(&entry);
            phase.restarted.remove(&entry);
            phase.watched.remove(&entry);
            phase.unsettled.remove(&entry);
            phase.unanswered.remove(&entry);
            phase.roll.remove(&entry);
            phase.circuit.remove(&entry);
        }
    }

    /// A VM has lost a component; if it was the last of a VM that is to go, the VM goes.
    pub(super) fn vacated(&mut self, vm: Entry) {
        let holds = |phase: &&mut Phase| phase.outstanding.contains(&vm);
        let phases = self.manager.running.values_mut().filter_map(|running| running.phase.as_mut());
        let Some(phase) = phases.into_iter().find(holds) else { return };
        let mut unanswered = std::mem::take(&mut phase.unanswered);
        self.destroy_if_empty(vm, &mut unanswered);
        let phases = self.manager.running.values_mut().filter_map(|running| running.phase.as_mut());
        if let Some(phase) = phases.into_iter().find(holds) {
            phase.unanswered = unanswered;
        }
    }

    /// A VM has answered every order up to a number.
    pub(super) fn answered(&mut self, vm: Entry, through: OrderNumber) {
        for phase in self.manager.running.values_mut().filter_map(|running| running.phase.as_mut()) {
            if phase.unanswered.get(&vm).is_some_and(|number| *number <= through) {
                phase.unanswered.remove(&vm);
            }
        }
    }

    /// A VM has come: whoever waited for that goes on; whoever already waits for it to go again does not.
    pub(super) fn came(&mut self, vm: Entry) {
        for phase in self.manager.running.values_mut().filter_map(|running| running.phase.as_mut()) {
            if phase.coming.remove(&vm) {
                phase.outstanding.remove(&vm);
            }
        }
    }
}

/// A phase while it is being posted.
struct Posting {
    phase: Phase,
    /// Components whose prediction must be looked at again.
    suspects: BTreeSet<Entry>,
    /// Components that will, or may, stop because of this phase.
    stopping: BTreeSet<Entry>,
    /// Components that it adds.
    added: BTreeSet<Entry>,
}

impl Posting {
    fn new(kind: PhaseKind) -> Self {
        let phase = Phase {
            kind,
            unanswered: BTreeMap::new(),
            outstanding: PagedSet::default(),
            coming: BTreeSet::new(),
            restarted: PagedSet::default(),
            watched: PagedSet::default(),
            unsettled: PagedSet::default(),
            roll: BTreeSet::new(),
            circuit: BTreeSet::new(),
            moved: false,
            needs: BTreeSet::new(),
        };
        Self { phase, suspects: BTreeSet::new(), stopping: BTreeSet::new(), added: BTreeSet::new() }
    }

    /// A phase that is under way goes on as a part of this one.
    fn take_over(&mut self, before: Option<Phase>) {
        let kind = self.phase.kind;
        if let Some(before) = before {
            self.phase = Phase { kind, unsettled: PagedSet::default(), ..before };
        }
    }

    fn expect_answer(&mut self, vm: Entry, number: OrderNumber) {
        self.phase.unanswered.insert(vm, number);
    }

    fn watch(&mut self, component: Entry) {
        self.suspects.insert(component);
        self.phase.watched.insert(component);
    }
}

impl Running {
    pub(super) fn state(&self, change: ChangeId, book: &Book) -> ChangeState {
        let mut waiting = Vec::new();
        if let Some(phase) = &self.phase {
            for entry in phase.outstanding.iter() {
                waiting.extend(book.vms.get(entry).map(|vm| Waiting::Vm(vm.name.clone())));
                waiting.extend(book.components.get(entry).map(|component| Waiting::Component(component.name.clone())));
                waiting.extend(book.bindings.get(entry).map(|it| Waiting::Binding(book.wire(it).to_string())));
            }
            let unanswered = phase.unanswered.keys().filter_map(|entry| book.vms.get(entry));
            waiting.extend(unanswered.map(|vm| Waiting::Answer(vm.name.clone())));
            let unsettled = phase.unsettled.iter().filter_map(|entry| book.components.get(entry));
            waiting.extend(unsettled.map(|component| Waiting::Started(component.name.clone(), component.expected)));
        }
        let phase = self.phase.as_ref().map(|phase| phase.kind);
        ChangeState { change, phase, waiting, cancelled: self.cancelled.is_some() }
    }
}
