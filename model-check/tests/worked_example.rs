//! The worked example of docs/PROTOCOL.md, section 9, is what the machines really do: the page has a record of it, which is made
//! again here. `BLESS=1 cargo test -p model-check --test worked_example` writes it.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use model_check::{
    Scenario,
    world::{Input, Output, Place, World},
};
use protocol::{
    Fact, HostOutcome, Instruction, Notice, Report, VmId, Work, agent,
    manager::{self, News, Request},
};
use std::{fmt::Write as _, fs, path::Path};

const STORY: &str = "vm data : old exports sql\nvm web : app imports sql from old\n----\nchange down-then-up\n  add new on data \
                     exports sql\n  bind app.sql to new\n  remove old\n----\napp started\napp holds new\nold gone\n";
const BEGIN: &str = "<!-- recorded: worked example -->\n```text\n";
const END: &str = "```\n";

#[test]
fn the_page_tells_what_the_machines_do() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/PROTOCOL.md");
    let text = fs::read_to_string(&page).unwrap();
    let from = text.find(BEGIN).unwrap() + BEGIN.len();
    let to = from + text[from..].find(END).unwrap();
    let recorded = record();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&page, format!("{}{recorded}{}", &text[..from], &text[to..])).unwrap();
        return;
    }
    assert_eq!(&text[from..to], recorded, "BLESS=1 writes it; then read the table above it again");
}

/// Every message, task and outcome of the replacement, one step of a machine to a line.
fn record() -> String {
    let scenario = Scenario::parse("worked example", STORY).unwrap();
    let mut world = scenario.world();
    let mut text = String::new();
    // The actions are sorted, so that the same one is first each time.
    while let Some(action) = world.actions().first().copied() {
        let told = world.operator().asked > 1;
        let event = world.apply(action);
        let Some((place, input)) = &event.input else { continue };
        let asked = matches!(input, Input::Manager(manager::Input::FromOperator(_)));
        if (told || asked && world.operator().asked > 1)
            && let Some(heard) = hears(&world, input)
        {
            let said: Vec<String> = event.outputs.iter().filter_map(|output| says(&world, output)).collect();
            let said = if said.is_empty() { "–".into() } else { said.join("; ") };
            writeln!(text, "{:<7} {heard} → {said}", name(&world, *place)).unwrap();
        }
    }
    text
}

fn vm(world: &World, id: VmId) -> String {
    world.manager().book().vm_by_id(id).map_or_else(|| id.to_string(), |vm| vm.name.to_string())
}

fn name(world: &World, place: Place) -> String {
    match place {
        Place::Agent(id) => vm(world, id),
        _ => "manager".into(),
    }
}

fn hears(world: &World, input: &Input) -> Option<String> {
    Some(match input {
        Input::Manager(manager::Input::FromOperator(Request::Make(_))) => "the operator's change".into(),
        Input::Manager(manager::Input::FromAgent(from, it)) => {
            report(it).replacen("report", &format!("report of {}", vm(world, *from)), 1)
        }
        Input::Agent(agent::Input::FromManager(order)) => format!("order {}", order.number.0),
        Input::Agent(agent::Input::FromPeer(_, it)) => notice(it),
        Input::Agent(agent::Input::FromHost(HostOutcome::Done { .. })) => "host: Done".into(),
        _ => return None,
    })
}

fn says(world: &World, output: &Output) -> Option<String> {
    Some(match output {
        Output::Manager(manager::Output::ToAgent(to, order)) => {
            let what = match &order.instruction {
                Instruction::AddComponent { name, .. } => format!("AddComponent {name}"),
                Instruction::RemoveComponent { component } => format!("RemoveComponent {}", component.0),
                Instruction::AddBinding { provider, client, .. } => {
                    format!("AddBinding {} to {}", provider.0, client.0)
                }
                Instruction::RollCall => "RollCall".into(),
                other => format!("{other:?}"),
            };
            format!("order {} to {}: {what}", order.number.0, vm(world, *to))
        }
        Output::Manager(manager::Output::ToOperator(News::Accepted(_))) => "Accepted".into(),
        Output::Manager(manager::Output::ToOperator(News::PhaseDone(_, phase))) => format!("{phase:?} done"),
        Output::Manager(manager::Output::ToOperator(News::ChangeDone(_))) => "ChangeDone".into(),
        Output::Agent(agent::Output::ToManager(it)) => report(it),
        Output::Agent(agent::Output::ToPeer(to, it)) => format!("{} to {}", notice(it), vm(world, *to)),
        Output::Agent(agent::Output::ToHost(task)) => match &task.work {
            Work::Start { bindings } if bindings.is_empty() => format!("Start {}", task.name),
            Work::Start { bindings } => {
                let numbers: Vec<String> = bindings.iter().map(|it| it.binding.0.to_string()).collect();
                format!("Start {} with {}", task.name, numbers.join(", "))
            }
            work => format!("{work:?} {}", task.name),
        },
        _ => return None,
    })
}

fn notice(notice: &Notice) -> String {
    match notice {
        Notice::Bind { binding, .. } => format!("Bind {}", binding.0),
        Notice::Started { binding } => format!("Started {}", binding.0),
        Notice::UnbindRequired { binding, last } => format!("UnbindRequired {}{}", binding.0, for_good(*last)),
        Notice::UnbindConfirmed { binding, last } => format!("UnbindConfirmed {}{}", binding.0, for_good(*last)),
    }
}

fn for_good(last: bool) -> &'static str {
    if last { " last" } else { "" }
}

fn report(report: &Report) -> String {
    let facts = report.facts.iter().map(|fact| match fact {
        Fact::ComponentIs { component, condition } => format!("{} is {}", component.0, condition.state),
        Fact::BindingHeld { binding, held } => format!("{} is {}held", binding.0, if *held { "" } else { "not " }),
        Fact::ComponentGone { component } => format!("{} is gone", component.0),
        Fact::VmIs { state } => format!("the VM is {state:?}"),
        other => format!("{other:?}"),
    });
    let facts: Vec<String> = facts.collect();
    format!("report through {}{}{}", report.through.0, if facts.is_empty() { "" } else { ": " }, facts.join(", "))
}
