//! How a component is described: what it exports and imports, and which operations it has.

use super::{
    problem::{Problem, instead},
    words::{Called, Reader},
};
use protocol::{Export, Import, Kind, Name, Need, Operation, Patience};

/// The pause before the first retry, if not said.
pub(super) const PAUSE_MS: u64 = 1_000;
/// By how much each further pause is longer, if not said.
pub(super) const FACTOR: u32 = 2;

/// Every operation with the word for it.
pub(super) const OPERATIONS: [Operation; 6] =
    [Operation::Prepare, Operation::Start, Operation::Run, Operation::Rebind, Operation::Stop, Operation::Purge];

const CLAUSES: [&str; 7] = ["exports", "imports", "prepares", "rebinds", "renews", "purges", "retry"];
const IMPORT: &str = "imports mysql as db strong 1 from sql";
const RETRY: &str = "retry start 2 pause 1000 factor 2";

/// A component as it is described, and to whom its imports are bound at once.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) component: Called,
    pub(super) kind: Kind,
    /// The import, and its providers.
    pub(super) sources: Vec<(Name, Vec<Called>)>,
}

/// Reads the clauses that follow a component's name, up to the end of the row.
pub(super) fn described(component: Called, reader: &mut Reader<'_, '_>) -> Result<Described, Problem> {
    let mut described = Described { component, kind: Kind::default(), sources: Vec::new() };
    while let Some(word) = reader.word() {
        let kind = &mut described.kind;
        match word.text {
            _ if word.quoted => return Err(no_clause(&word)),
            "," => {}
            "exports" => exports(kind, reader)?,
            "imports" => imports(&mut described, reader)?,
            "prepares" => kind.prepares = true,
            "rebinds" => kind.rebinds = true,
            "renews" => kind.renews = true,
            "purges" => kind.purges = true,
            "retry" => patience(kind, reader)?,
            _ => return Err(no_clause(&word)),
        }
    }
    Ok(described)
}

fn no_clause(word: &super::words::Word<'_>) -> Problem {
    Problem::new(word.spot, format!("{:?} does not describe a component", word.text), instead(word.text, CLAUSES))
}

fn exports(kind: &mut Kind, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
    const EXAMPLE: &str = "exports mysql values host port capacity 20";
    let called = reader.name("the name of an export", EXAMPLE)?;
    let mut export = Export::default();
    loop {
        if reader.take("values") {
            let values = reader.names("the names of values", EXAMPLE)?;
            export.values.extend(values.into_iter().map(|value| value.name));
        } else if reader.take("capacity") {
            export.capacity = Some(reader.expect_number("a number of clients", EXAMPLE)?);
        } else {
            break;
        }
    }
    match kind.exports.insert(called.name.clone(), export) {
        None => Ok(()),
        Some(_) => Err(twice(&called, "export")),
    }
}

fn imports(described: &mut Described, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
    let export = reader.name("the name of an export", IMPORT)?;
    let called = if reader.take("as") { reader.name("a name for the import", IMPORT)? } else { export.clone() };
    if called.name.as_str().contains('.') {
        let wrong = format!("import {:?} has a dot in its name", called.name.as_str());
        return Err(Problem::new(called.spot, wrong, "give it another name: imports EXPORT as NAME"));
    }
    let need = need(reader, &called)?;
    if reader.take("from") {
        described.sources.push((called.name.clone(), reader.names("the providers", IMPORT)?));
    }
    match described.kind.imports.insert(called.name.clone(), Import { export: export.name, need }) {
        None => Ok(()),
        Some(_) => Err(twice(&called, "import")),
    }
}

fn twice(called: &Called, what: &str) -> Problem {
    let wrong = format!("{what} {:?} is described twice", called.name.as_str());
    Problem::new(called.spot, wrong, format!("describe each {what} once"))
}

fn need(reader: &mut Reader<'_, '_>, called: &Called) -> Result<Need, Problem> {
    let spot = reader.spot();
    let need = if reader.take("strong") {
        Need::Strong(reader.number().unwrap_or(1))
    } else if reader.take("weak") {
        Need::Weak(reader.number().unwrap_or(1))
    } else if reader.take("optional") {
        Need::Weak(0)
    } else if reader.take("value") {
        Need::Value(reader.number().unwrap_or(1))
    } else if let Some(word) = reader.peek().filter(|word| !word.quoted && !ends_an_import(word.text)) {
        let known = ["strong", "weak", "optional", "value", "from", "as"].into_iter().chain(CLAUSES);
        let wrong = format!("{:?} does not describe an import", word.text);
        return Err(Problem::new(spot, wrong, instead(word.text, known)));
    } else {
        Need::Strong(1)
    };
    if matches!(need, Need::Strong(0) | Need::Value(0)) {
        let wrong = format!("import {:?} needs 0 providers", called.name.as_str());
        return Err(Problem::new(spot, wrong, "use at least 1, or say optional"));
    }
    Ok(need)
}

fn ends_an_import(word: &str) -> bool {
    word == "," || word == "from" || CLAUSES.contains(&word)
}

fn patience(kind: &mut Kind, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
    let spot = reader.spot();
    let Some(word) = reader.word() else { return Err(reader.missing("an operation", RETRY)) };
    let known = OPERATIONS.map(|operation| operation.to_string());
    let Some(place) = known.iter().position(|name| *name == word.text) else {
        let right = instead(word.text, known.iter().map(String::as_str));
        return Err(Problem::new(spot, format!("{:?} is no operation", word.text), right));
    };
    let retries = reader.expect_number("how many times it is tried again", RETRY)?;
    let mut patience = Patience { retries, pause_ms_first: PAUSE_MS, factor: FACTOR };
    loop {
        if reader.take("pause") {
            patience.pause_ms_first = reader.expect_number("a pause in milliseconds", RETRY)?.into();
        } else if reader.take("factor") {
            patience.factor = reader.expect_number("a factor", RETRY)?;
        } else {
            break;
        }
    }
    kind.patience.insert(OPERATIONS[place], patience);
    Ok(())
}
