//! Recovers a machine from its journal: the snapshot, then every record after it, stepped again.

use std::path::Path;

use super::link_states::LinkStates;
use super::{Entry, Machine, Moment, Output};
use crate::error::Error;
use crate::journal::{self, Record, RecordNumber, Recovery};

/// A machine and its links at the end of a journal.
#[derive(Debug)]
pub struct Past<M> {
    /// The machine.
    pub machine: M,
    pub(super) link_states: LinkStates,
}

/// One step of a machine's history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step<E> {
    /// Its position in the journal.
    pub record: RecordNumber,
    /// The input.
    pub entry: Entry,
    /// The outputs.
    pub outputs: Vec<Output<E>>,
}

/// Recovers from the contents of a journal. `machine` is the machine before its first input; `directory` is for error
/// messages.
pub fn recover<M: Machine>(machine: M, found: &Recovery, directory: &Path) -> Result<Past<M>, Error> {
    let unreadable = |record: RecordNumber| Error::UnreadableRecord { directory: directory.to_owned(), record };
    let mut past = Past { machine, link_states: LinkStates::default() };
    if let Some(snapshot) = &found.snapshot {
        let mut bytes = snapshot.state.as_slice();
        past.link_states = LinkStates::read(&mut bytes).ok_or_else(|| unreadable(snapshot.number))?;
        past.machine = past.machine.restore(bytes).ok_or_else(|| unreadable(snapshot.number))?;
    }
    for record in &found.records {
        past.step(record).ok_or_else(|| unreadable(record.number))?;
    }
    Ok(past)
}

/// Replays the whole history of a machine, step by step, from the first record of its journal, without changing the
/// journal. A journal whose beginning was removed after a snapshot is refused.
pub fn retell<M: Machine>(machine: M, directory: &Path) -> Result<Vec<Step<M::Effect>>, Error> {
    let unreadable = |record: RecordNumber| Error::UnreadableRecord { directory: directory.to_owned(), record };
    let mut past = Past { machine, link_states: LinkStates::default() };
    let mut steps = Vec::new();
    for record in journal::history(directory)? {
        if steps.is_empty() && record.number != RecordNumber(1) {
            return Err(Error::PastLetGo { directory: directory.to_owned(), record: record.number });
        }
        let (entry, outputs) = past.step(&record).ok_or_else(|| unreadable(record.number))?;
        steps.push(Step { record: record.number, entry, outputs });
    }
    Ok(steps)
}

/// Everything that [`recover`] needs to continue from here.
pub(super) fn save<M: Machine>(machine: &M, link_states: &LinkStates) -> Result<Vec<u8>, Error> {
    let mut bytes = link_states.write();
    bytes.extend(machine.save()?);
    Ok(bytes)
}

impl<M: Machine> Past<M> {
    fn step(&mut self, record: &Record) -> Option<(Entry, Vec<Output<M::Effect>>)> {
        let entry = Entry::decode(&record.bytes)?;
        let outputs = match &entry {
            Entry::Received { at, from, number, payload } => {
                self.link_states.received(*from, *number);
                self.machine.receive(*at, *from, payload)
            }
            Entry::Happened { at, what } => self.witness(*at, what)?,
            Entry::Acknowledged { by, through } => {
                self.link_states.acknowledged(*by, *through);
                Vec::new()
            }
            Entry::Met { peer, incarnation } => {
                self.link_states.met(*peer, *incarnation);
                Vec::new()
            }
        };
        for output in &outputs {
            self.link_states.record(output);
        }
        Some((entry, outputs))
    }

    fn witness(&mut self, at: Moment, what: &[u8]) -> Option<Vec<Output<M::Effect>>> {
        Some(self.machine.witness(at, M::read(what)?))
    }
}
