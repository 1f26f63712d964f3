//! Why a component is not in the state that a user, or another component, wants it in.

use super::{Inquiry, Seen};
use crate::{
    api::{now_ms, view::state, waits},
    document::{Retrying, quoted},
};
use protocol::{
    ComponentState, Name, Need, Operation,
    manager::{BindingEntry, ChangeState, ComponentEntry, Health, Waiting},
};
use std::ptr;

/// The state that is wanted of a component.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Desired {
    /// The expected state.
    AsExpected,
    /// Started, because its service is needed.
    Started,
    /// Its values announced, which happens before it starts.
    Announced,
    /// Stopped, because it uses a provider that has to stop.
    Stopped,
}

impl<'a> Inquiry<'a> {
    /// Adds a component, and why it is not in the desired state.
    pub(super) fn component(&mut self, depth: usize, entry: &'a ComponentEntry, desired: Desired) {
        let (name, vm) = (&entry.name, self.book.vm_of(entry));
        if !self.is_news(Seen::Component(name, entry.id), depth, name.as_str()) {
            return;
        }
        let place = format!("{name} on vm {}", vm.name);
        match (vm.health, state(entry)) {
            (Health::Suspected(_), was) => {
                let was = was.map_or("not acknowledged".into(), |it| it.to_string());
                self.wrong(depth, entry, format!("{place} was {was} when its agent last reported"));
                self.vm(depth + 1, vm);
            }
            (Health::Awaited, None) => {
                let goes = if entry.is_leaving() { "is to be removed and never existed" } else { "does not exist yet" };
                self.wrong(depth, entry, format!("{place} {goes}: its VM has not joined"));
                self.vm(depth + 1, vm);
            }
            (_, None) if entry.id.is_none() => {
                self.wrong(depth, entry, format!("{place} is not ordered yet: it waits for a change in progress"));
                self.all_changes(depth + 1);
            }
            (_, None) => {
                self.wrong(depth, entry, format!("{place} is ordered, but its agent has not acknowledged the order"));
                self.unanswered(entry);
            }
            (_, Some(ComponentState::Failed(operation))) => self.failed(depth, entry, operation),
            (_, Some(ComponentState::Starting)) => {
                let until = if desired == Desired::Stopped { "; a start is not interrupted" } else { "" };
                let before = self.retrying(entry).map(|it| format!("; {}", it.in_words(now_ms()))).unwrap_or_default();
                self.wrong(depth, entry, format!("{place} is starting{until}{before}"));
                self.last_failure(entry);
                self.remedy(format!("holdfast component logs {} shows its output so far", quoted(name.as_str())));
            }
            (_, Some(now @ (ComponentState::Started | ComponentState::Stopped)))
                if self.is_going(entry) && self.waits.is_unanswered(entry) =>
            {
                self.wrong(
                    depth,
                    entry,
                    format!("{place} is {now}, but its agent has not acknowledged the order to stop it"),
                );
                self.unanswered(entry);
            }
            (_, Some(ComponentState::Stopping)) => self.stopping(depth, entry, desired, &place),
            (_, Some(ComponentState::Stopped)) => self.stopped(depth, entry, desired, &place),
            (_, Some(ComponentState::Started)) => self.started(depth, entry, desired, &place),
        }
    }

    /// An agent that is up acknowledges at once; one that does not is suspected after a while.
    fn unanswered(&mut self, entry: &ComponentEntry) {
        let vm = &self.book.vm_of(entry).name;
        self.remedy(format!("see to it that the agent of vm {vm} runs, if this stays so"));
    }

    /// An operation failed permanently.
    fn failed(&mut self, depth: usize, entry: &'a ComponentEntry, operation: Operation) {
        let (name, vm) = (&entry.name, &self.book.vm_of(entry).name);
        let detail = entry.id.and_then(|id| self.history.failure(id));
        let says = match operation {
            Operation::Run => format!("{name} on vm {vm} died too often; manual action required"),
            operation => format!("{name} on vm {vm}: {operation} failed; manual action required"),
        };
        self.wrong(depth, entry, says);
        self.why.reasons.last_mut().expect("it was just added").detail = detail;
        let word = quoted(name.as_str());
        self.remedy(format!("holdfast component logs {word} shows all its output"));
        self.remedy(format!("holdfast component retry {word} retries it, once the cause is fixed"));
        self.remedy(format!("holdfast component skip {word} marks it as done"));
        if !entry.is_leaving() && name.as_str().contains('/') {
            self.remedy("holdfast apply FILE with a corrected file continues from there".into());
        }
        self.advise_cancelling(entry);
    }

    /// A change that waits for this component can be taken back.
    fn advise_cancelling(&mut self, entry: &'a ComponentEntry) {
        let waits = |it: &&ChangeState| {
            it.waiting.iter().any(|it| matches!(it, Waiting::Started(name, _) if *name == entry.name))
        };
        if let Some(change) = self.changes.iter().find(waits).map(|it| it.change.0) {
            self.remedy(format!("holdfast cancel {change} takes back change {change}, which waits for it"));
        }
    }

    /// The operation that failed last, if it is being retried.
    fn retrying(&self, entry: &ComponentEntry) -> Option<Retrying> {
        self.history.retrying(entry.id?, now_ms())
    }

    /// Adds why the last attempt failed to the last reason.
    fn last_failure(&mut self, entry: &ComponentEntry) {
        if let Some(retrying) = self.retrying(entry) {
            self.why.reasons.last_mut().expect("it was just added").detail = Some(retrying.detail);
        }
    }

    /// It is stopping; if it should run, the reason is an import that lacks a provider.
    fn stopping(&mut self, depth: usize, entry: &'a ComponentEntry, desired: Desired, place: &str) {
        let lacks =
            if entry.is_leaving() { Vec::new() } else { self.lacks(entry, |need| !matches!(need, Need::Weak(_))) };
        let because = lacks.first().map(|it| format!(": {}", it.in_words())).unwrap_or_default();
        self.wrong(depth, entry, format!("{place} is stopping{because}"));
        let word = quoted(entry.name.as_str());
        self.remedy(format!("holdfast component logs {word} shows its output so far"));
        // If it should stop, the reason is known one level above.
        if desired != Desired::Stopped {
            self.follow(depth + 1, entry, &lacks);
        }
    }

    fn stopped(&mut self, depth: usize, entry: &'a ComponentEntry, desired: Desired, place: &str) {
        match desired {
            Desired::Stopped => {
                self.wrong(depth, entry, format!("{place} is stopped, but its agent has not returned its loans yet"));
                return;
            }
            Desired::Announced if !entry.is_leaving() => {
                self.wrong(depth, entry, format!("{place} has not announced its values yet: its host is preparing it"));
                return;
            }
            Desired::AsExpected | Desired::Started | Desired::Announced => {}
        }
        if entry.is_leaving() {
            if self.is_going(entry) {
                self.wrong(depth, entry, format!("{place} is stopped, but its host has not purged it yet"));
            } else {
                self.wrong(depth, entry, format!("{place} is stopped, and its removal waits for a change in progress"));
                self.all_changes(depth + 1);
            }
            return;
        }
        let lacks = self.lacks(entry, |need| !matches!(need, Need::Weak(_)));
        if lacks.is_empty() {
            let because = self.retrying(entry).map(|it| it.in_words(now_ms()));
            let because = because.unwrap_or_else(|| "its host is preparing it, or pausing before a retry".into());
            self.wrong(depth, entry, format!("{place} is stopped: {because}"));
            self.last_failure(entry);
            let word = quoted(entry.name.as_str());
            self.remedy(format!("holdfast component logs {word} shows its output so far"));
            return self.advise_cancelling(entry);
        }
        let says = lacks.iter().map(Lack::in_words).collect::<Vec<_>>().join(", ");
        self.wrong(depth, entry, format!("{place} is stopped: {says}"));
        self.follow(depth + 1, entry, &lacks);
    }

    fn started(&mut self, depth: usize, entry: &'a ComponentEntry, desired: Desired, place: &str) {
        if entry.is_leaving() && !self.is_going(entry) && desired != Desired::Stopped {
            self.wrong(depth, entry, format!("{place} is started, and its removal waits for a change in progress"));
            return self.all_changes(depth + 1);
        }
        let goes = entry.is_leaving() || self.is_going(entry) || !entry.expected || desired == Desired::Stopped;
        if goes {
            let lacks = self.lacks(entry, |need| !matches!(need, Need::Weak(_)));
            let because = match lacks.first() {
                _ if entry.is_leaving() => " and is to be removed".to_owned(),
                Some(lack) => format!(" and is to stop: {}", lack.in_words()),
                None => " and is to stop".to_owned(),
            };
            let users = self.users(entry);
            if users.is_empty() {
                return self.wrong(depth, entry, format!("{place} is started{because}; no client uses it any more"));
            }
            let some = if users.len() == 1 {
                "one client has to return its loan".into()
            } else {
                format!("{} clients have to return their loans", users.len())
            };
            self.wrong(depth, entry, format!("{place} is started{because}; {some} first"));
            return self.each(depth + 1, &users, |inquiry, depth, user| {
                inquiry.component(depth, user, Desired::Stopped);
            });
        }
        let lacks = self.lacks(entry, |_| true);
        if let Some(retrying) = self.retrying(entry).filter(|_| lacks.is_empty()) {
            self.wrong(depth, entry, format!("{place} is started, but {}", retrying.in_words(now_ms())));
            self.last_failure(entry);
            let word = quoted(entry.name.as_str());
            return self.remedy(format!("holdfast component logs {word} shows what it wrote so far"));
        }
        if lacks.is_empty() {
            return self.well(depth, entry, place);
        }
        let says = lacks.iter().map(Lack::in_words).collect::<Vec<_>>().join(", ");
        self.wrong(depth, entry, format!("{place} is started, but {says}"));
        self.follow(depth + 1, entry, &lacks);
    }

    /// It is started as expected; but it may use a provider whose state is unknown, because its VM does not answer.
    fn well(&mut self, depth: usize, entry: &'a ComponentEntry, place: &str) {
        let silent = |it: &&ComponentEntry| !waits::is_answering(self.book, it);
        let held = self.book.borrowed(entry).filter(|it| it.is_held() && !it.need().is_value());
        let silent: Vec<&ComponentEntry> = held.map(|it| self.book.provider_of(it)).filter(silent).collect();
        if silent.is_empty() {
            return self.tell(depth, entry, format!("{place} is started"));
        }
        self.wrong(depth, entry, format!("{place} is started, but uses a provider whose VM does not answer"));
        self.each(depth + 1, &silent, |inquiry, depth, it| inquiry.component(depth, it, Desired::AsExpected));
    }

    /// Explains why imports lack what they need.
    fn follow(&mut self, depth: usize, client: &'a ComponentEntry, lacks: &[Lack<'a>]) {
        for Lack { import, need, bound, awaited, .. } in lacks {
            let number = usize::try_from(need.number()).unwrap_or(usize::MAX);
            if *bound < number {
                let says = format!("import {import} of {} is bound to {bound} and needs {number}", client.name);
                self.push(depth, client.name.to_string(), says);
                self.remedy(unbound(client, import));
            }
            let desired = if need.is_value() { Desired::Announced } else { Desired::Started };
            self.each(depth, awaited, |inquiry, depth, binding| {
                let provider = inquiry.book.provider_of(binding);
                let is_there =
                    state(provider) == Some(ComponentState::Started) && waits::is_answering(inquiry.book, provider);
                let stays = provider.expected && !provider.is_leaving() && !inquiry.is_going(provider);
                if is_there && stays {
                    let says = match waits::is_answering(inquiry.book, client) {
                        true => format!(
                            "{} is started, but the agents have not agreed yet on {}",
                            provider.name,
                            inquiry.book.wire(binding)
                        ),
                        false => format!("{} is started", provider.name),
                    };
                    inquiry.push(depth, provider.name.to_string(), says);
                } else {
                    inquiry.component(depth, provider, desired);
                }
            });
        }
    }

    /// Imports that hold less than they need, among those that `of` selects.
    fn lacks(&self, entry: &'a ComponentEntry, of: impl Fn(Need) -> bool) -> Vec<Lack<'a>> {
        let mut lacks = Vec::new();
        for (name, import) in entry.imports() {
            let own = || self.book.borrowed(entry).filter(|it| self.book.wire(it).import == *name);
            let held = own().filter(|it| it.is_held()).count();
            if !of(import.need) || held >= usize::try_from(import.need.number()).unwrap_or(usize::MAX) {
                continue;
            }
            let awaited = own().filter(|it| !it.is_held() && !it.is_leaving()).collect();
            let awaited = waits::worst_first(self.book, awaited);
            let bound = own().filter(|it| !it.is_leaving()).count();
            lacks.push(Lack { import: name, need: import.need, held, bound, awaited });
        }
        lacks
    }

    /// Whether a posted change waits for it to be gone or restarted.
    fn is_going(&self, entry: &ComponentEntry) -> bool {
        let is_it = |it: &Waiting| match it {
            Waiting::Component(name) => *name == entry.name,
            Waiting::Started(name, true) => *name == entry.name && waits::is_to_restart(self.book, entry),
            _ => false,
        };
        // Of two components with the same name, it is the one that is being removed.
        let is_the_one =
            entry.is_leaving() || !self.book.components().any(|it| it.name == entry.name && it.is_leaving());
        is_the_one && self.changes.iter().flat_map(|change| &change.waiting).any(is_it)
    }

    /// The clients that have to return their loans before a component can stop.
    fn users(&self, entry: &'a ComponentEntry) -> Vec<&'a ComponentEntry> {
        let mut users: Vec<&ComponentEntry> = Vec::new();
        for binding in self.book.lent(entry).filter(|it| waits::is_in_use(self.book, it)) {
            let client = self.book.client_of(binding);
            if !users.iter().any(|it| ptr::eq(*it, client)) {
                users.push(client);
            }
        }
        users
    }
}

/// An import that needs more than it holds.
struct Lack<'a> {
    import: &'a Name,
    need: Need,
    held: usize,
    /// Number of providers it is bound to.
    bound: usize,
    /// Those of them that it does not hold.
    awaited: Vec<&'a BindingEntry>,
}

impl Lack<'_> {
    fn in_words(&self) -> String {
        let Self { import, need, held, .. } = self;
        let wants = match need {
            Need::Strong(_) | Need::Value(_) => "needs",
            Need::Weak(_) => "would use",
        };
        format!("its import {import} {wants} {} and holds {held}", need.number())
    }
}

/// The remedy for an import that is bound to too few providers.
fn unbound(client: &ComponentEntry, import: &Name) -> String {
    let name = client.name.as_str();
    match name.split_once('/') {
        Some((application, _)) => format!("holdfast reconcile {application} recreates what is missing"),
        None => {
            let binding = quoted(&format!("{name}.{import} -> PROVIDER.EXPORT"));
            format!("holdfast binding add {binding} binds it to another provider")
        }
    }
}
