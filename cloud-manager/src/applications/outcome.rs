//! The end that a change would lead to, if it were submitted now.
//!
//! A copy of the machine takes the request; what it refuses is refused here. If it accepts, the copy's book holds
//! everything that will exist once all accepted changes are done: what exists and is not being removed. Among those, a
//! component will be started when every strong import has enough providers that will be started, and every value import
//! enough that will exist.

use super::present::is_started;
use crate::document::{ComponentDifference, Forecast, Standing};
use protocol::{
    Change, CloudManager, Edit, Name, Need, Refusal, Strategy,
    manager::{BindingEntry, Book, ComponentEntry, Input, News, Output, Request},
};
use std::collections::{BTreeMap, BTreeSet};

/// Submits the change to a copy of the machine; returns the end, or why it would be refused.
pub(super) fn outcome(mut copy: CloudManager, change: Change) -> Result<Forecast, Vec<Refusal>> {
    let before = standing(copy.book());
    let strategy = change.strategy;
    let restarted = change.edits.iter().filter_map(|edit| match edit {
        Edit::RestartComponent { component } => Some(component.clone()),
        _ => None,
    });
    let restarted: BTreeSet<Name> = restarted.collect();
    let needs: Needs = change
        .edits
        .iter()
        .filter_map(|edit| match edit {
            Edit::SetNeed { component, import, number } => Some(((component.clone(), import.clone()), *number)),
            _ => None,
        })
        .collect();
    let outputs = copy.step(Input::FromOperator(Request::Make(change)));
    if let Some(Output::ToOperator(News::Refused(refusals))) = outputs.into_iter().next() {
        return Err(refusals);
    }
    let book = copy.book();
    let started = end(book, &needs);
    let may_stop = may_stop(book, strategy, restarted, &started);
    let mut forecast = Forecast { may_stop, started: started.len(), ..Forecast::default() };
    let staying: BTreeMap<&Name, &ComponentEntry> =
        book.components().filter(|it| !it.is_leaving()).map(|it| (&it.name, it)).collect();
    forecast.not_started = staying.len() - started.len();
    let names: BTreeSet<&Name> = before.keys().chain(staying.keys().copied()).collect();
    for name in names {
        let now = before.get(name);
        let then = staying.get(name).map(|it| (started.contains(name), book.vm_of(it).name.clone()));
        if now == then.as_ref() {
            continue;
        }
        let vm = then.as_ref().or(now).map(|(_, vm)| vm.to_string()).unwrap_or_default();
        let lacks = staying.get(name).filter(|_| !started.contains(name));
        forecast.differences.push(ComponentDifference {
            component: name.to_string(),
            vm,
            now: stands(now),
            then: stands(then.as_ref()),
            because: lacks.map(|entry| lacking(book, entry, &started, &needs)).unwrap_or_default(),
        });
    }
    Ok(forecast)
}

fn stands(standing: Option<&(bool, Name)>) -> Standing {
    match standing {
        None => Standing::Absent,
        Some((true, _)) => Standing::Started,
        Some((false, _)) => Standing::NotStarted,
    }
}

/// Every component that is not being removed: whether it is started, and its VM.
fn standing(book: &Book) -> BTreeMap<Name, (bool, Name)> {
    let standing = |it: &ComponentEntry| (is_started(it), book.vm_of(it).name.clone());
    book.components().filter(|it| !it.is_leaving()).map(|it| (it.name.clone(), standing(it))).collect()
}

/// The numbers of providers that imports will need, where the change sets them.
type Needs = BTreeMap<(Name, Name), u32>;

/// The components that will be started in the end.
fn end(book: &Book, needs: &Needs) -> BTreeSet<Name> {
    spread(book, BTreeSet::new(), |entry, started| lacking(book, entry, started, needs).is_empty())
}

/// What a component will lack to be started, if these components are.
fn lacking(book: &Book, entry: &ComponentEntry, started: &BTreeSet<Name>, needs: &Needs) -> Vec<String> {
    let mut lacking = Vec::new();
    for (name, import) in entry.imports().iter().filter(|(_, import)| !matches!(import.need, Need::Weak(_))) {
        let number = needs.get(&(entry.name.clone(), name.clone())).copied().unwrap_or(import.wanted());
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let own = book.borrowed(entry).filter(|it| !it.is_leaving() && book.wire(it).import == *name);
        let providers: Vec<&Name> = own.map(|it| &book.provider_of(it).name).collect();
        let absent: Vec<&&Name> =
            providers.iter().filter(|it| !import.need.is_value() && !started.contains(**it)).collect();
        if providers.len() - absent.len() >= number {
            continue;
        }
        if providers.len() < number {
            lacking.push(format!("{name} to be bound ({} of {number} bound)", providers.len()));
        }
        lacking.extend(absent.iter().map(|provider| format!("{provider} to be started, for {name}")));
    }
    lacking
}

/// The components that run now, stay, and may stop on the way: those that restart, and those that may temporarily have too
/// few providers that stay up. With make-before-break, new providers count as well, because they start before anything
/// stops.
fn may_stop(book: &Book, strategy: Strategy, restarted: BTreeSet<Name>, started: &BTreeSet<Name>) -> Vec<String> {
    let stopping = spread(book, restarted, |entry, stopping| {
        let is_steady = |it: &&BindingEntry| {
            let provider = book.provider_of(it);
            let goes = provider.is_leaving() || (!it.need().is_value() && stopping.contains(&provider.name));
            let comes_first = strategy == Strategy::UpThenDown && started.contains(&provider.name);
            !it.is_leaving() && !goes && (it.is_held() || comes_first)
        };
        is_started(entry)
            && entry.imports().iter().any(|(name, import)| {
                let steady = book.borrowed(entry).filter(|it| book.wire(it).import == *name).filter(is_steady).count();
                let weak = matches!(import.need, Need::Weak(_));
                !weak && steady < usize::try_from(import.need.number()).unwrap_or(usize::MAX)
            })
    });
    let stays = |name: &&Name| book.component(name).is_some_and(is_started);
    stopping.iter().filter(stays).map(Name::to_string).collect()
}

/// The smallest set that contains these components and every staying one that belongs to it because of its providers in
/// the set. When one is added, its clients are examined again.
fn spread(
    book: &Book,
    mut set: BTreeSet<Name>,
    belongs: impl Fn(&ComponentEntry, &BTreeSet<Name>) -> bool,
) -> BTreeSet<Name> {
    let mut open: Vec<&ComponentEntry> = book.components().filter(|it| !it.is_leaving()).collect();
    while let Some(entry) = open.pop() {
        if !set.contains(&entry.name) && belongs(entry, &set) {
            set.insert(entry.name.clone());
            open.extend(book.lent(entry).filter_map(|it| book.component(&book.wire(it).client)));
        }
    }
    set
}
