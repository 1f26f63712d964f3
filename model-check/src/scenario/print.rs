//! From a scenario to text that reads back as the same scenario.
//!
//! Two things have no words and are left out: the name, which is the file's, and recipes.

use super::{
    Scenario,
    component::{FACTOR, OPERATIONS, PAUSE_MS},
    expected::{Answer, Changes, ComponentEnd, VmEnd, said},
    words::is_reserved,
};
use crate::{Faults, Line};
use protocol::{Change, Edit, Kind, Name, Need, Strategy, Wire, manager::Request};
use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

impl fmt::Display for Scenario {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.story.lines() {
            writeln!(formatter, "{}", format!("# {line}").trim_end())?;
        }
        write_faults(formatter, self.faults)?;
        for (place, line) in self.lines.iter().enumerate() {
            let answer = self.expected.answers.get(place).unwrap_or(&Answer::Accepted);
            match &line.request {
                Request::Make(change) if place == 0 && is_setup(line, change) => {
                    write_setup(formatter, change, answer)?;
                }
                Request::Make(change) => {
                    write_header(formatter, line, change)?;
                    let bound = bound_at_once(change);
                    let inline = bound.values().map(Vec::len).sum::<usize>();
                    for edit in &change.edits[..change.edits.len() - inline] {
                        write_wish(formatter, edit, &bound)?;
                    }
                    write_answer(formatter, "  ", answer)?;
                }
                Request::Retry(name) => write_request(formatter, "retry", name, line, answer)?,
                Request::Skip(name) => write_request(formatter, "skip", name, line, answer)?,
                Request::DeclareLost(name) => write_request(formatter, "lose", name, line, answer)?,
                Request::Cancel(change) => write_row(formatter, &format!("cancel {}", change.0), line, answer)?,
            }
        }
        formatter.write_str("----\n")?;
        self.write_end(formatter)
    }
}

impl Scenario {
    fn write_end(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = &self.expected;
        for (name, ends) in &expected.components {
            writeln!(formatter, "{} {}", word(name), said(ends, &ComponentEnd::NAMES))?;
        }
        for (name, ends) in &expected.vms {
            writeln!(formatter, "vm {} {}", word(name), said(ends, &VmEnd::NAMES))?;
        }
        for (name, held) in &expected.holds {
            let held = if held.is_empty() { " nothing".into() } else { words(held) };
            writeln!(formatter, "{} holds{held}", word(name))?;
        }
        for (how, names) in [("never", &expected.never_stopped), ("sometimes", &expected.sometimes_stopped)] {
            if !names.is_empty() {
                writeln!(formatter, "{how} stopped:{}", words(names))?;
            }
        }
        match expected.changes {
            Changes::Done => Ok(()),
            Changes::Unfinished => formatter.write_str("changes unfinished\n"),
            Changes::Either => formatter.write_str("changes done or unfinished\n"),
        }
    }
}

fn write_faults(formatter: &mut fmt::Formatter<'_>, faults: Faults) -> fmt::Result {
    let Faults { failures, deaths, crashes, breaks, losses } = faults;
    let all = [
        (failures, "failure", "failures"),
        (deaths, "death", "deaths"),
        (crashes, "crash", "crashes"),
        (breaks, "break", "breaks"),
        (losses, "loss", "losses"),
    ];
    let some = all.iter().filter(|(number, ..)| *number > 0);
    let list: Vec<String> =
        some.map(|(number, one, many)| format!("{number} {}", if *number == 1 { one } else { many })).collect();
    if list.is_empty() { Ok(()) } else { writeln!(formatter, "faults: {}", list.join(", ")) }
}

/// Whether a change can be written without saying that it is one: VMs, each with its components, and all bindings beside
/// the imports.
fn is_setup(line: &Line, change: &Change) -> bool {
    let mut vm = None;
    let in_place = change.edits.iter().all(|edit| match edit {
        Edit::AddVm { vm: name } => {
            vm = Some(name);
            true
        }
        Edit::AddComponent { vm: home, .. } => vm == Some(home),
        Edit::AddBinding(_) => true,
        _ => false,
    });
    let bindings = change.edits.iter().filter(|edit| matches!(edit, Edit::AddBinding(_))).count();
    let inline = bound_at_once(change).values().map(Vec::len).sum::<usize>();
    let plain = line.patient && !change.incomplete && change.strategy == Strategy::default();
    plain && in_place && bindings == inline && !change.edits.is_empty()
}

type Bound<'c> = BTreeMap<(&'c Name, &'c Name), Vec<&'c Name>>;

/// The bindings at the end of a change that can be written beside the imports of the components it adds, because they
/// stand in just that order; or none.
fn bound_at_once(change: &Change) -> Bound<'_> {
    let rest =
        change.edits.iter().rev().map_while(|edit| if let Edit::AddBinding(it) = edit { Some(it) } else { None });
    let mut wires: Vec<&Wire> = rest.collect();
    wires.reverse();
    let mut bound = Bound::new();
    for wire in &wires {
        bound.entry((&wire.client, &wire.import)).or_default().push(&wire.provider);
    }
    let mut inline = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for edit in &change.edits {
        let Edit::AddComponent { component, kind, .. } = edit else { continue };
        if !seen.insert(component) {
            return Bound::new();
        }
        for (import, it) in &kind.imports {
            let providers = bound.get(&(component, import)).into_iter().flatten();
            inline.extend(providers.map(|provider| (component, import, *provider, &it.export)));
        }
    }
    let written = wires.iter().map(|wire| (&wire.client, &wire.import, &wire.provider, &wire.export));
    if written.eq(inline) { bound } else { Bound::new() }
}

fn write_setup(formatter: &mut fmt::Formatter<'_>, change: &Change, answer: &Answer) -> fmt::Result {
    let bound = bound_at_once(change);
    let mut edits = change.edits.iter().peekable();
    while let Some(edit) = edits.next() {
        match edit {
            Edit::AddVm { vm } => {
                write!(formatter, "vm {}", word(vm))?;
                // The first component stands beside its VM, the others below.
                if let Some(Edit::AddComponent { component, kind, .. }) = edits.peek() {
                    write!(formatter, " : {}", described(component, kind, &bound))?;
                    edits.next();
                }
                formatter.write_str("\n")?;
            }
            Edit::AddComponent { component, kind, .. } => {
                writeln!(formatter, "  {}", described(component, kind, &bound))?;
            }
            _ => {}
        }
    }
    write_answer(formatter, "", answer)
}

fn write_header(formatter: &mut fmt::Formatter<'_>, line: &Line, change: &Change) -> fmt::Result {
    formatter.write_str("change")?;
    if change.strategy != Strategy::default() {
        write!(formatter, " {}", change.strategy)?;
    }
    if change.incomplete {
        formatter.write_str(" incomplete")?;
    }
    formatter.write_str(if line.patient { "\n" } else { " at any time\n" })
}

fn write_request(
    formatter: &mut fmt::Formatter<'_>,
    verb: &str,
    name: &Name,
    line: &Line,
    answer: &Answer,
) -> fmt::Result {
    write_row(formatter, &format!("{verb} {}", word(name)), line, answer)
}

fn write_row(formatter: &mut fmt::Formatter<'_>, row: &str, line: &Line, answer: &Answer) -> fmt::Result {
    let when = if line.patient { "" } else { " at any time" };
    writeln!(formatter, "{row}{when}")?;
    write_answer(formatter, "  ", answer)
}

fn write_answer(formatter: &mut fmt::Formatter<'_>, indent: &str, answer: &Answer) -> fmt::Result {
    match answer {
        Answer::Accepted => Ok(()),
        Answer::Refused(texts) => texts.iter().try_for_each(|text| writeln!(formatter, "{indent}refused: {text}")),
        Answer::Either => writeln!(formatter, "{indent}maybe refused"),
    }
}

fn write_wish(formatter: &mut fmt::Formatter<'_>, edit: &Edit, bound: &Bound<'_>) -> fmt::Result {
    formatter.write_str("  ")?;
    match edit {
        Edit::AddVm { vm } => writeln!(formatter, "add vm {}", word(vm)),
        Edit::RemoveVm { vm } => writeln!(formatter, "remove vm {}", word(vm)),
        Edit::AddComponent { component, vm, kind } => {
            let described = described(component, kind, bound);
            let clauses = &described[word(component).len()..];
            writeln!(formatter, "add {} on {}{clauses}", word(component), word(vm))
        }
        Edit::RemoveComponent { component } => writeln!(formatter, "remove {}", word(component)),
        Edit::RestartComponent { component } => writeln!(formatter, "restart {}", word(component)),
        Edit::SetNeed { component, import, number } => writeln!(formatter, "need {component}.{import} {number}"),
        Edit::AddBinding(wire) => write_wire(formatter, "bind", "to", wire),
        Edit::RemoveBinding(wire) => write_wire(formatter, "unbind", "from", wire),
    }
}

/// The export is always said: which one the import takes, only the client's kind knows.
fn write_wire(formatter: &mut fmt::Formatter<'_>, verb: &str, joint: &str, wire: &Wire) -> fmt::Result {
    let Wire { client, import, provider, export } = wire;
    writeln!(formatter, "{verb} {client}.{import} {joint} {} at {}", word(provider), word(export))
}

/// A component's name and all its clauses.
fn described(component: &Name, kind: &Kind, bound: &Bound<'_>) -> String {
    let mut clauses = Vec::new();
    for (name, export) in &kind.exports {
        let mut clause = format!("exports {}", word(name));
        if !export.values.is_empty() {
            clause += &format!(" values{}", words(&export.values));
        }
        if let Some(capacity) = export.capacity {
            clause += &format!(" capacity {capacity}");
        }
        clauses.push(clause);
    }
    for (name, import) in &kind.imports {
        let mut clause = format!("imports {}", word(&import.export));
        if *name != import.export {
            clause += &format!(" as {}", word(name));
        }
        clause += &match import.need {
            Need::Weak(0) => " optional".into(),
            Need::Strong(1) => " strong".into(),
            Need::Value(1) => " value".into(),
            need => format!(" {need}"),
        };
        if let Some(providers) = bound.get(&(component, name)) {
            clause += &format!(" from{}", words(providers.iter().copied()));
        }
        clauses.push(clause);
    }
    let traits =
        [(kind.prepares, "prepares"), (kind.rebinds, "rebinds"), (kind.renews, "renews"), (kind.purges, "purges")];
    clauses.extend(traits.into_iter().filter(|(has, _)| *has).map(|(_, name)| name.into()));
    for operation in OPERATIONS {
        let Some(patience) = kind.patience.get(&operation) else { continue };
        let mut clause = format!("retry {operation} {}", patience.retries);
        if patience.pause_ms_first != PAUSE_MS {
            clause += &format!(" pause {}", patience.pause_ms_first);
        }
        if patience.factor != FACTOR {
            clause += &format!(" factor {}", patience.factor);
        }
        clauses.push(clause);
    }
    let space = if clauses.is_empty() { "" } else { " " };
    format!("{}{space}{}", word(component), clauses.join(", "))
}

/// A name, in quotes if it would be taken for a word of the language.
fn word(name: &Name) -> String {
    if is_reserved(name.as_str()) { format!("\"{name}\"") } else { name.to_string() }
}

fn words<'n>(names: impl IntoIterator<Item = &'n Name>) -> String {
    names.into_iter().fold(String::new(), |mut all, name| {
        let _ = write!(all, " {}", word(name));
        all
    })
}
