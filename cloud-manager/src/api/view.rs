//! From the manager's book to the documents that describe the present state.

use super::{
    applications,
    history::History,
    now_ms,
    waits::{self, Waits},
};
use crate::document::{
    Binding, Component, ComponentDetail, ComponentStatus, ImportState, NeedText, Retrying, RunningChange, Status,
    Summary, Vm, VmHealth, quoted, reason,
};
use crate::executor::LOCAL;
use crate::handle::Clouds;
use crate::machine::View;
use protocol::{
    CloudManager, ComponentState, Name, Operation,
    manager::{BindingEntry, Book, ChangeState, ComponentEntry, Health, ImportEntry, PhaseKind, VmEntry},
};
use std::collections::{BTreeMap, BTreeSet};

/// Number of things a change waits for that are listed; the rest are only counted.
const WAITS_MAX: usize = 100;

/// Everything at a glance.
pub(super) fn status(manager: View<'_>, history: &History) -> Status {
    let book = manager.book();
    let (vms, components, bindings) = (vms(manager), components(book, history), bindings(book));
    let changes: Vec<RunningChange> = changes(manager.machine, manager.clouds, history);
    let applications =
        manager.applications.iter().map(|(name, it)| applications::document(manager, name, it)).collect();
    let count = |state: ComponentStatus| components.iter().filter(|it| it.state == state).count();
    let summary = Summary {
        vms: vms.len(),
        vms_well: vms.iter().filter(|vm| vm.health == VmHealth::Well).count(),
        components: components.len(),
        components_started: count(ComponentStatus::Started),
        components_failed: count(ComponentStatus::Failed),
        components_crash_looping: components.iter().filter(|it| is_crash_looping(it)).count(),
        bindings: bindings.len(),
        bindings_held: bindings.iter().filter(|binding| binding.held).count(),
        changes: changes.len(),
    };
    let attention = attention(&vms, &components);
    let clouds = vec![LOCAL.to_owned()];
    let newest_event = history.newest();
    Status { summary, attention, clouds, applications, vms, components, bindings, changes, newest_event, at_ms: 0 }
}

/// What an operator should look at, most urgent first.
fn attention(vms: &[Vm], components: &[Component]) -> Vec<String> {
    let of = |health: VmHealth, says: fn(&str) -> String| -> Vec<String> {
        vms.iter().filter(|vm| vm.health == health && !vm.past).map(|vm| says(&vm.name)).collect()
    };
    let failed = components.iter().filter(|it| it.state == ComponentStatus::Failed).map(|it| {
        let operation = it.failed_operation.as_deref().unwrap_or("run");
        let name = quoted(&it.name);
        format!("{}: {operation} failed (holdfast component logs {name}, then retry {name} or skip {name})", it.name)
    });
    let lost = |name: &str| match name.split_once('/') {
        Some((application, _)) => format!("vm {name} is lost (holdfast reconcile {application})"),
        None => {
            format!("vm {name} is lost (place its components elsewhere; it is listed until another VM has its name)")
        }
    };
    // Crash loops come first.
    let mut retried: Vec<&Component> = components.iter().filter(|it| it.retrying.is_some()).collect();
    retried.sort_by_key(|it| !is_crash_looping(it));
    let retried = retried.into_iter().filter_map(|it| Some(retried_in_words(&it.name, it.retrying.as_ref()?)));
    of(VmHealth::Lost, lost)
        .into_iter()
        .chain(failed)
        .chain(retried)
        .chain(of(VmHealth::Suspected, |name| format!("vm {name} has not answered for a while")))
        .collect()
}

fn is_crash_looping(component: &Component) -> bool {
    component.retrying.as_ref().is_some_and(|it| it.crash_looping)
}

/// What failed last, when it is retried, and why it failed.
fn retried_in_words(name: &str, retrying: &Retrying) -> String {
    let operation = retrying.operation.as_str();
    let colon = if operation == Operation::Run.word() { "" } else { ":" };
    let why = reason::first(Some(operation), &retrying.detail);
    format!("{name}{colon} {}: {why} (holdfast component logs {})", retrying.in_words(now_ms()), quoted(name))
}

/// Every VM.
pub(super) fn vms(manager: View<'_>) -> Vec<Vm> {
    let book = manager.book();
    // Two VMs may have the same name while the first is being removed; their numbers differ.
    let mut living: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for component in book.components() {
        let vm = book.vm_of(component);
        let (all, started) = living.entry((&vm.name, vm.id)).or_default();
        *all += 1;
        *started += usize::from(state(component) == Some(ComponentState::Started));
    }
    let states = manager.applications.iter();
    let drained =
        states.clone().flat_map(|(name, it)| it.version().files.inputs.drained.iter().map(|it| it.scoped(name)));
    let drained: BTreeSet<Name> = drained.collect();
    let asked_for: BTreeSet<Name> =
        states.flat_map(|(name, it)| it.expansion.vms.keys().map(|it| it.scoped(name))).collect();
    // The manager remembers a lost VM until another takes its name. For one that belongs to no application, nothing says
    // whether it is still needed.
    let is_forgetting = manager.machine.changes().any(|it| it.phase == Some(PhaseKind::Forget));
    let is_past = |vm: &VmEntry| {
        vm.health == Health::Dead && vm.name.as_str().contains('/') && !is_forgetting && !asked_for.contains(&vm.name)
    };
    // A lost VM is listed until another takes its name.
    let is_shown = |vm: &&VmEntry| vm.health != Health::Dead || book.vm(&vm.name).is_some_and(|it| it.id == vm.id);
    book.vms()
        .filter(is_shown)
        .map(|vm| {
            let (components, started) = living.get(&(&vm.name, vm.id)).copied().unwrap_or_default();
            Vm {
                name: vm.name.to_string(),
                id: vm.id.map(|id| id.0),
                health: health(vm),
                components,
                started,
                leaving: vm.is_leaving(),
                drained: drained.contains(&vm.name),
                past: is_past(vm),
            }
        })
        .collect()
}

pub(super) fn health(vm: &VmEntry) -> VmHealth {
    match vm.health {
        Health::Awaited => VmHealth::Awaited,
        Health::Well => VmHealth::Well,
        Health::Suspected(_) => VmHealth::Suspected,
        Health::Dead => VmHealth::Lost,
    }
}

/// Every component.
pub(super) fn components(book: &Book, history: &History) -> Vec<Component> {
    book.components().map(|entry| component(book, entry, history)).collect()
}

/// Which operation of a component has failed, if one has, and the known reason.
pub(super) fn failure(entry: &ComponentEntry, history: &History) -> Option<(String, String)> {
    Some((failed_operation(entry)?, entry.id.and_then(|id| history.failure(id))?))
}

fn failed_operation(entry: &ComponentEntry) -> Option<String> {
    match state(entry) {
        Some(ComponentState::Failed(operation)) => Some(operation.to_string()),
        _ => None,
    }
}

fn component(book: &Book, entry: &ComponentEntry, history: &History) -> Component {
    let failed_operation = failed_operation(entry);
    let failure = failure(entry, history).map(|(_, detail)| detail);
    let lengths = history.lengths(entry.name.as_str());
    Component {
        name: entry.name.to_string(),
        id: entry.id.map(|id| id.0),
        vm: book.vm_of(entry).name.to_string(),
        state: state(entry).map_or(ComponentStatus::Awaited, Into::into),
        since_ms: entry.id.and_then(|id| history.since(id)),
        prepare_ms: lengths.prepare_ms,
        start_ms: lengths.start_ms,
        stop_ms: lengths.stop_ms,
        failed_operation,
        failure,
        deaths: entry.id.and_then(|id| history.deaths(id)),
        retrying: entry.id.and_then(|id| history.retrying(id, now_ms())),
        expected: entry.expected,
        leaving: entry.is_leaving(),
        waits_for: waits::of_component(book, entry),
    }
}

/// The last reported state of a component.
pub(super) fn state(entry: &ComponentEntry) -> Option<ComponentState> {
    entry.condition.map(|condition| condition.state)
}

/// One component with its imports, exports and bindings.
pub(super) fn component_detail(book: &Book, entry: &ComponentEntry, history: &History) -> ComponentDetail {
    let import = |(name, import): (&Name, &ImportEntry)| {
        let own: Vec<&BindingEntry> = book.borrowed(entry).filter(|it| book.wire(it).import == *name).collect();
        ImportState {
            name: name.to_string(),
            export: entry.kind.imports.get(name).map(|it| it.export.to_string()).unwrap_or_default(),
            need: NeedText(import.need),
            bound: own.iter().filter(|it| !it.is_leaving()).count(),
            held: own.iter().filter(|it| it.is_held()).count(),
        }
    };
    ComponentDetail {
        component: component(book, entry, history),
        imports: entry.imports().iter().map(import).collect(),
        exports: entry.kind.exports.keys().map(Name::to_string).collect(),
        borrows: book.borrowed(entry).map(|it| binding(book, Some(entry), it)).collect(),
        lends: book.lent(entry).map(|it| binding(book, client_of(book, it), it)).collect(),
    }
}

/// Every binding.
pub(super) fn bindings(book: &Book) -> Vec<Binding> {
    let own = |client| book.borrowed(client).map(move |it| binding(book, Some(client), it));
    book.components().flat_map(own).collect()
}

/// The client, unless it is being removed: another component may have taken its name.
fn client_of<'a>(book: &'a Book, entry: &BindingEntry) -> Option<&'a ComponentEntry> {
    book.component(&book.wire(entry).client).filter(|_| !entry.is_leaving())
}

fn binding(book: &Book, client: Option<&ComponentEntry>, entry: &BindingEntry) -> Binding {
    let wire = book.wire(entry);
    // The binding itself only has what its import needed when it was added.
    let need = client.and_then(|it| it.imports().get(&wire.import)).map_or(entry.need(), |it| it.need);
    Binding {
        binding: wire.to_string(),
        id: entry.id.map(|id| id.0),
        client: wire.client.into(),
        import: wire.import.into(),
        provider: wire.provider.into(),
        export: wire.export.into(),
        need: NeedText(need),
        held: entry.is_held(),
        leaving: entry.is_leaving(),
    }
}

/// Every change that is not done.
pub(super) fn changes(machine: &CloudManager, clouds: &Clouds, history: &History) -> Vec<RunningChange> {
    let states: Vec<ChangeState> = machine.changes().collect();
    let waits = Waits::new(machine.book(), clouds, &states);
    let running = |state: &ChangeState| {
        let record = history.change(state.change);
        let done = record.iter().flat_map(|record| &record.phases).filter(|phase| phase.done_at_ms.is_some());
        RunningChange {
            change: state.change.0,
            asked: record.and_then(|record| record.asked.clone()),
            accepted_at_ms: record.and_then(|record| record.accepted_at_ms),
            phase: state.phase.map(Into::into),
            phases_done: done.map(|phase| phase.phase).collect(),
            waiting: state.waiting.len(),
            waits_for: state.waiting.iter().take(WAITS_MAX).map(|it| waits.in_words(it)).collect(),
            stuck_on: waits.stuck_on(state),
        }
    };
    states.iter().map(running).collect()
}
