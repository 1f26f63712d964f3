//! From text to a sheet: what each row says, before anyone asks whether the names fit.

use super::{
    component::{Described, described},
    expected::{Answer, Expected},
    problem::{Problem, Spot, instead},
    words::{Called, Reader, Row, rows},
};
use crate::Faults;
use protocol::{Name, Strategy};
use std::{collections::BTreeSet, str::FromStr};

/// What a text says.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    pub(super) story: String,
    pub(super) faults: Faults,
    pub(super) asked: Vec<Asked>,
    pub(super) expected: Expected,
    /// The components and VMs that the expected end speaks of.
    pub(super) spoken_of: Vec<Spoken>,
    /// Components that are there but whose description could not be read: nobody need be told twice.
    pub(super) unreadable: BTreeSet<Name>,
}

/// What a name stands for.
#[derive(Debug)]
pub(super) enum Spoken {
    Component(Called),
    Vm(Called),
}

/// One request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) what: What,
    pub(super) patient: bool,
    pub(super) answer: Answer,
    pub(super) edits: Vec<Stated>,
}

/// What is asked for.
#[derive(Debug)]
pub(super) enum What {
    Change { strategy: Strategy, incomplete: bool },
    Retry(Called),
    Skip(Called),
    Lose(Called),
    Cancel(u32),
}

/// One edit as it is written.
#[derive(Debug)]
pub(super) enum Stated {
    AddVm(Called),
    RemoveVm(Called),
    Add(Called, Described),
    Remove(Called),
    Restart(Called),
    Replace { old: Called, new: Called },
    Need { component: Called, import: Called, number: u32 },
    Bind(Wired),
    Unbind(Wired),
}

/// A binding as it is written. Without an export, it is the one that the import takes.
#[derive(Debug)]
pub(super) struct Wired {
    pub(super) client: Called,
    pub(super) import: Called,
    pub(super) provider: Called,
    pub(super) export: Option<Name>,
}

const WISHES: [&str; 8] = ["add", "remove", "restart", "replace", "bind", "unbind", "need", "refused"];
pub(super) const REQUESTS: [&str; 7] = ["vm", "faults", "change", "retry", "skip", "lose", "cancel"];

/// Reads a text, as far as it can be read, and says all that is wrong with it.
pub(super) fn read(text: &str) -> (Sheet, Vec<Problem>) {
    let (rows, story) = rows(text);
    let mut sheet = Sheet { story, ..Sheet::default() };
    let mut problems = Vec::new();
    let last_divider = rows.iter().rposition(is_divider).unwrap_or(rows.len());
    let mut vm = None;
    for row in rows[..last_divider].iter().filter(|row| !is_divider(row)) {
        if let Err(problem) = sheet.request_row(row, &mut vm) {
            problems.push(problem);
        }
    }
    for row in rows.iter().skip(last_divider + 1) {
        if let Err(problem) = sheet.end_row(&mut Reader::new(row)) {
            problems.push(problem);
        }
    }
    (sheet, problems)
}

fn is_divider(row: &Row<'_>) -> bool {
    let dashes = |text: &str| text.len() >= 4 && text.bytes().all(|byte| byte == b'-');
    !row.indented && row.words.len() == 1 && !row.words[0].quoted && dashes(row.words[0].text)
}

impl Sheet {
    /// A row of the setup or of a request. `vm` is the VM whose components the indented rows of the setup are.
    fn request_row(&mut self, row: &Row<'_>, vm: &mut Option<Called>) -> Result<(), Problem> {
        let mut reader = Reader::new(row);
        if row.indented {
            return match vm {
                Some(vm) => {
                    let vm = vm.clone();
                    let component = reader.name("the name of a component", "app imports mysql strong from sql")?;
                    self.describe(vm, component, &mut reader)
                }
                None => self.wish_row(&mut reader),
            };
        }
        let spot = reader.spot();
        let in_setup = self.asked.is_empty() || vm.is_some();
        if reader.take("vm") && in_setup {
            let called = reader.name("the name of a VM", "vm web : app imports mysql strong from sql")?;
            *vm = Some(called.clone());
            self.setup().edits.push(Stated::AddVm(called.clone()));
            return self.component_after_colon(called, &mut reader);
        } else if reader.take("faults") {
            return self.faults_row(&mut reader);
        } else if reader.take("refused") && in_setup {
            return refused(&mut self.setup().answer, &mut reader);
        }
        // Whatever is wrong with a request, the edits below it are its own.
        *vm = None;
        let mut reader = Reader::new(row);
        let what = if reader.take("retry") {
            What::Retry(reader.name("the name of a component", "retry app")?)
        } else if reader.take("skip") {
            What::Skip(reader.name("the name of a component", "skip app")?)
        } else if reader.take("lose") {
            What::Lose(reader.name("the name of a VM", "lose web")?)
        } else if reader.take("cancel") {
            What::Cancel(reader.expect_number("the number of a change", "cancel 2")?)
        } else {
            let change = What::Change { strategy: Strategy::default(), incomplete: false };
            self.asked.push(Asked { what: change, patient: true, answer: Answer::Accepted, edits: Vec::new() });
            if !reader.take("change") {
                return Err(no_request(&reader, spot));
            }
            return self.header(&mut reader);
        };
        self.asked.push(Asked { what, patient: true, answer: Answer::Accepted, edits: Vec::new() });
        self.header(&mut reader)
    }

    /// The change that the setup is; made when something is first said of it.
    fn setup(&mut self) -> &mut Asked {
        if self.asked.is_empty() {
            let what = What::Change { strategy: Strategy::default(), incomplete: false };
            self.asked.push(Asked { what, patient: true, answer: Answer::Accepted, edits: Vec::new() });
        }
        &mut self.asked[0]
    }

    fn latest(&mut self) -> &mut Asked {
        self.asked.last_mut().expect("a request is made before anything is said of it")
    }

    fn component_after_colon(&mut self, vm: Called, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
        if reader.take(":") {
            let component = reader.name("the name of a component", "vm web : app imports mysql strong from sql")?;
            self.describe(vm, component, reader)?;
        }
        reader.end()
    }

    fn faults_row(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
        const EXAMPLE: &str = "faults: 1 failure, 1 death, 1 crash, 1 break, 1 loss";
        reader.expect(":", EXAMPLE)?;
        loop {
            let number = reader.expect_number("a number of faults", EXAMPLE)?;
            let Some(word) = reader.word() else { return Err(reader.missing("a sort of fault", EXAMPLE)) };
            let place = match word.text {
                "failure" | "failures" => &mut self.faults.failures,
                "death" | "deaths" => &mut self.faults.deaths,
                "crash" | "crashes" => &mut self.faults.crashes,
                "break" | "breaks" => &mut self.faults.breaks,
                "loss" | "losses" => &mut self.faults.losses,
                other => {
                    let right = instead(other, ["failure", "death", "crash", "break", "loss"]);
                    return Err(Problem::new(word.spot, format!("{other:?} is no fault"), right));
                }
            };
            *place = number;
            if !reader.take(",") {
                return reader.end();
            }
        }
    }

    /// What follows the opening of a request: strategy, completeness, patience.
    fn header(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
        let asked = self.latest();
        while let Some(word) = reader.word() {
            match (word.text, &mut asked.what) {
                (",", _) => {}
                ("at", _) => {
                    reader.expect("any", "change at any time")?;
                    reader.expect("time", "change at any time")?;
                    asked.patient = false;
                }
                ("after", _) => {
                    reader.expect("that", "change after that")?;
                    asked.patient = true;
                }
                ("incomplete", What::Change { incomplete, .. }) => *incomplete = true,
                (text, What::Change { strategy, .. }) if Strategy::from_str(text).is_ok() => {
                    *strategy = Strategy::from_str(text).unwrap_or_default();
                }
                (text, what) => {
                    let mut known = vec!["at", "after"];
                    if let What::Change { .. } = what {
                        known.extend(Strategy::NAMES.iter().map(|(name, _)| *name).chain(["incomplete"]));
                    }
                    let wrong = format!("{text:?} says nothing about how this is to be done");
                    return Err(Problem::new(word.spot, wrong, instead(text, known)));
                }
            }
        }
        Ok(())
    }

    fn wish_row(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
        let Some(asked) = self.asked.last_mut() else {
            return Err(Problem::new(
                reader.spot(),
                "nothing above this line to belong to",
                "begin it at the left edge",
            ));
        };
        let spot = reader.spot();
        if reader.take("refused") {
            return refused(&mut asked.answer, reader);
        }
        if reader.take("maybe") {
            reader.expect("refused", "maybe refused")?;
            asked.answer = Answer::Either;
            return reader.end();
        }
        if !matches!(asked.what, What::Change { .. }) {
            let wrong = "only a change has edits";
            return Err(Problem::new(spot, wrong, "begin a change above this line, or say \"refused: TEXT\" here"));
        }
        let edit = if reader.take("add") {
            return self.add_row(reader);
        } else if reader.take("remove") {
            match reader.take("vm") {
                true => Stated::RemoveVm(reader.name("the name of a VM", "remove vm web")?),
                false => Stated::Remove(reader.name("the name of a component", "remove sql")?),
            }
        } else if reader.take("restart") {
            Stated::Restart(reader.name("the name of a component", "restart sql")?)
        } else if reader.take("replace") {
            let old = reader.name("the name of a component", "replace sql with sql2")?;
            reader.expect("with", "replace sql with sql2")?;
            Stated::Replace { old, new: reader.name("the name of a component", "replace sql with sql2")? }
        } else if reader.take("need") {
            let (component, import) = reader.port("need app.mysql 2")?;
            Stated::Need {
                component,
                import,
                number: reader.expect_number("a number of providers", "need app.mysql 2")?,
            }
        } else if reader.take("bind") {
            Stated::Bind(wired(reader, "to", "bind app.mysql to sql")?)
        } else if reader.take("unbind") {
            Stated::Unbind(wired(reader, "from", "unbind app.mysql from sql")?)
        } else {
            let found = reader.peek().map_or("", |word| word.text);
            return Err(Problem::new(spot, format!("{found:?} is no edit"), instead(found, WISHES)));
        };
        self.latest().edits.push(edit);
        reader.end()
    }

    fn add_row(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
        if reader.take("vm") {
            let called = reader.name("the name of a VM", "add vm web")?;
            self.latest().edits.push(Stated::AddVm(called.clone()));
            return self.component_after_colon(called, reader);
        }
        const EXAMPLE: &str = "add app on web imports mysql strong from sql";
        let component = reader.name("the name of a component", EXAMPLE)?;
        reader.expect("on", EXAMPLE)?;
        let vm = reader.name("the name of a VM", EXAMPLE)?;
        self.describe(vm, component, reader)
    }

    /// The rest of a row describes a component that is added.
    fn describe(&mut self, vm: Called, component: Called, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
        let name = component.name.clone();
        match described(component, reader) {
            Ok(described) => self.latest().edits.push(Stated::Add(vm, described)),
            Err(problem) => {
                self.unreadable.insert(name);
                return Err(problem);
            }
        }
        Ok(())
    }
}

/// A row that could be neither a VM nor a request.
fn no_request(reader: &Reader<'_, '_>, spot: Spot) -> Problem {
    let found = reader.peek().map_or("", |word| word.text);
    if found == "vm" {
        return Problem::new(spot, "the setup is over, so this VM comes too late", "say \"add vm\" within a change");
    }
    if WISHES.contains(&found) {
        return Problem::new(
            spot,
            format!("{found:?} stands at the left edge"),
            "indent it below the request it belongs to",
        );
    }
    Problem::new(spot, format!("{found:?} opens neither a VM nor a request"), instead(found, REQUESTS))
}

fn refused(answer: &mut Answer, reader: &mut Reader<'_, '_>) -> Result<(), Problem> {
    reader.expect(":", "refused: strong imports form a cycle")?;
    let spot = reader.spot();
    let text = reader.rest();
    if text.is_empty() {
        let right = "for example: refused: strong imports form a cycle";
        return Err(Problem::new(spot, "expected a part of the reason, but the line ends", right));
    }
    match answer {
        Answer::Refused(texts) => texts.push(text.into()),
        Answer::Accepted | Answer::Either => *answer = Answer::Refused(vec![text.into()]),
    }
    Ok(())
}

fn wired(reader: &mut Reader<'_, '_>, joint: &str, example: &str) -> Result<Wired, Problem> {
    let (client, import) = reader.port(example)?;
    reader.expect(joint, example)?;
    let provider = reader.name("the name of a component", example)?;
    let export = if reader.take("at") { Some(reader.name("the name of an export", example)?.name) } else { None };
    Ok(Wired { client, import, provider, export })
}
