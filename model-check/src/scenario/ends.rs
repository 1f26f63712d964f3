//! What a text says of the expected end.

use super::{
    expected::{Changes, ComponentEnd, VmEnd},
    parse::{REQUESTS, Sheet, Spoken},
    problem::{Problem, instead},
    words::Reader,
};
use protocol::Name;
use std::collections::BTreeSet;

impl Sheet {
    /// A row of the expected end.
    pub(super) fn end_row(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
        if reader.take("never") {
            let names = self.stopped_row(reader, "never stopped: app")?;
            self.expected.never_stopped.extend(names);
        } else if reader.take("sometimes") {
            let names = self.stopped_row(reader, "sometimes stopped: app")?;
            self.expected.sometimes_stopped.extend(names);
        } else if reader.take("changes") {
            let said = either(reader, &[("done", false), ("unfinished", true)])?;
            self.expected.changes = match (said.contains(&false), said.contains(&true)) {
                (true, true) => Changes::Either,
                (false, true) => Changes::Unfinished,
                (_, false) => Changes::Done,
            };
        } else if reader.take("vm") {
            let vm = reader.name("the name of a VM", "vm web started")?;
            self.expected.vms.insert(vm.name.clone(), either(reader, &VmEnd::NAMES)?);
            self.spoken_of.push(Spoken::Vm(vm));
        } else {
            self.component_end(reader)?;
        }
        reader.end()
    }

    fn component_end(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
        if let Some(word) = reader.peek().filter(|word| !word.quoted && REQUESTS.contains(&word.text)) {
            let wrong = format!("{:?} is a request, but this is the expected end", word.text);
            return Err(Problem::new(
                word.spot,
                wrong,
                "divide them by a line of dashes: what follows the last is the end",
            ));
        }
        let component = reader.name("the name of a component", "app started")?;
        if reader.take("holds") {
            let held = match reader.take("nothing") {
                true => Vec::new(),
                false => reader.names("the names of providers", "app holds sql")?,
            };
            let names = held.iter().map(|called| called.name.clone()).collect();
            self.expected.holds.insert(component.name.clone(), names);
            self.spoken_of.extend(held.into_iter().map(Spoken::Component));
        } else {
            let ends = either(reader, &ComponentEnd::NAMES)?;
            self.expected.components.insert(component.name.clone(), ends);
        }
        self.spoken_of.push(Spoken::Component(component));
        Ok(())
    }

    fn stopped_row(&mut self, reader: &mut Reader<'_, '_>, example: &str) -> Result<Vec<Name>, Problem> {
        reader.expect("stopped", example)?;
        reader.expect(":", example)?;
        let called = reader.names("the names of components", example)?;
        let names = called.iter().map(|called| called.name.clone()).collect();
        self.spoken_of.extend(called.into_iter().map(Spoken::Component));
        Ok(names)
    }
}

/// One of these words, or several with `or` between them.
fn either<T: Copy + Ord>(reader: &mut Reader<'_, '_>, known: &[(&str, T)]) -> Result<BTreeSet<T>, Problem> {
    let mut said = BTreeSet::new();
    loop {
        let spot = reader.spot();
        let found = reader.word().map_or("", |word| word.text);
        let Some((_, value)) = known.iter().find(|(name, _)| *name == found) else {
            let wrong =
                if found.is_empty() { "the line ends too early".into() } else { format!("{found:?} is no end") };
            return Err(Problem::new(spot, wrong, instead(found, known.iter().map(|(name, _)| *name))));
        };
        said.insert(*value);
        if !reader.take("or") {
            return Ok(said);
        }
    }
}
