//! What one machine shows alone: its state, and each of its steps.
//!
//! A step is checked from the state before, the input, the outputs and the state after. So the explorer checks each
//! different step of a machine once, however many worlds it occurs in.

use super::{Breach, COVERED, MINIMAL, ONCE, PATIENCE, STALE, TRUST, VMS};
use crate::{
    proof::projection,
    sabotage,
    world::{self, Input, Output, Part},
};
use protocol::{
    BindingId, CloudManager, ComponentId, ComponentState, Condition, Fact, HostOutcome, Instruction, Name, Operation,
    Order, OrderNumber, Patience, Report, Values, VmAgent, VmId, Work,
    agent::{self, Alarm, Component, TaskState},
    invariant,
    manager::{self, CloudTask, Health},
};
use std::{collections::BTreeSet, sync::Arc};

/// What one part shows by its state. `may_stop`: the components that may be stopped, where no fault may stop others.
pub fn of_part(part: &Part, may_stop: Option<&BTreeSet<Name>>) -> Option<Breach> {
    match part {
        Part::Agent(agent) => invariant::of_agent(agent).first().map(Breach::from),
        Part::Manager(manager) => invariant::of_manager(manager).as_ref().map(Breach::from),
        Part::Host(host) => {
            let scandal = host.scandal.clone().map(|detail| Breach { property: ONCE, detail });
            let mut stops = host.tasks.values().filter(|task| task.work == Work::Stop);
            let needless = stops.find(|task| may_stop.is_some_and(|names| !names.contains(&task.name)));
            scandal.or_else(|| needless.map(|task| needlessly_stopped(&task.name)))
        }
        Part::Nothing | Part::Operator(_) | Part::Cloud(_) | Part::Halted | Part::Queue(_) => None,
    }
}

/// What a machine does when it is told what it must ignore: [`STALE`] and [`TRUST`]. It steps copies of the machine, so it costs
/// more than [`of_part`].
pub fn probe(part: &Part) -> Option<Breach> {
    match part {
        Part::Agent(agent) => believes_the_past(agent),
        Part::Manager(manager) => believes_a_liar(manager),
        _ => None,
    }
}

/// The breach of [`MINIMAL`] by a stop.
pub(super) fn needlessly_stopped(name: &Name) -> Breach {
    Breach { property: MINIMAL, detail: format!("{name} is stopped") }
}

/// What one step of a machine shows.
pub fn of_step(before: &Part, input: &Input, outputs: &[Output], after: &Part) -> Option<Breach> {
    match (before, input, after) {
        (Part::Agent(before), Input::Agent(input), Part::Agent(after)) => {
            let uncovered = || match sabotage::may_be_uncovered() {
                true => None,
                false => projection::of_step(before, input, outputs, after),
            };
            let breach = |detail| Breach { property: COVERED, detail: format!("{}: {detail}", after.id()) };
            impatience(before, input, outputs, after).or_else(|| uncovered().map(breach))
        }
        (Part::Manager(before), Input::Manager(_), Part::Manager(after)) => strays(before, outputs, after),
        (_, _, _) => None,
    }
}

/// [`STALE`]: an agent changes nothing when it is told what is no longer so.
fn believes_the_past(agent: &VmAgent) -> Option<Breach> {
    agent.components().iter().find_map(|(id, component)| {
        outdated(*id, component).into_iter().find_map(|input| {
            let (mut part, told) = (Part::Agent(agent.clone()), format!("{input:?}"));
            let outputs = world::step(&mut part, Input::Agent(input));
            let noted = |output: &Output| matches!(output, Output::Agent(agent::Output::Note(_)));
            let ignored = outputs.iter().all(noted) && matches!(&part, Part::Agent(after) if after == agent);
            let detail = || format!("{} is told {told}, which is outdated, and acts on it", component.name());
            (!ignored).then(|| Breach { property: STALE, detail: detail() })
        })
    })
}

/// Outcomes and alarms of tasks and runs that are over, or never were.
fn outdated(id: ComponentId, component: &Component) -> Vec<agent::Input> {
    let (serial, run) = component.serials();
    let busy = matches!(component.task_state(), TaskState::UnderWay(_) | TaskState::Aborting);
    let pausing = matches!(component.task_state(), TaskState::Pausing(_));
    let mut inputs = Vec::new();
    let mut ended = |serial: u64| {
        inputs.push(agent::Input::FromHost(HostOutcome::Done { component: id, serial, values: Values::new() }));
        inputs.push(agent::Input::FromHost(HostOutcome::Failed { component: id, serial, detail: Arc::from("old") }));
    };
    // The task before the latest one; and the latest one once more.
    if serial > 0 {
        ended(serial - 1);
    }
    if !busy {
        ended(serial);
    }
    // An earlier run.
    let earlier = run.and_then(|run| run.checked_sub(1));
    inputs.extend(
        earlier.map(|serial| {
            agent::Input::FromHost(HostOutcome::Died { component: id, serial, detail: Arc::from("old") })
        }),
    );
    inputs.extend(earlier.map(|serial| agent::Input::AlarmRang(Alarm::Steady { component: id, serial })));
    let retries = serial.checked_sub(1).into_iter().chain((!pausing).then_some(serial));
    inputs.extend(retries.map(|serial| agent::Input::AlarmRang(Alarm::Retry { component: id, serial })));
    inputs
}

/// [`TRUST`]: a manager changes nothing when an agent speaks about components and bindings of other VMs. In each state one VM
/// lies, another one in the next state.
fn believes_a_liar(manager: &CloudManager) -> Option<Breach> {
    let book = manager.book();
    let vms: Vec<(VmId, OrderNumber)> = book.vms().filter_map(|vm| Some((vm.id?, vm.answered()))).collect();
    let count = u64::try_from(vms.len()).ok().filter(|count| *count > 1)?;
    let place = usize::try_from(manager.last_order().0 % count).ok()?;
    let (liar, through) = vms[place];
    let dead = book.vm_by_id(liar).is_some_and(|vm| vm.health == Health::Dead);
    let mut facts = Vec::new();
    for entry in book.components() {
        let (Some(component), vm) = (entry.id, book.vm_of(entry).id) else { continue };
        if vm != Some(liar) {
            let (since, told) = (OrderNumber(component.0), entry.condition.map(|it| it.state));
            let state = match told {
                Some(ComponentState::Started) => ComponentState::Failed(Operation::Start),
                _ => ComponentState::Started,
            };
            facts.push(Fact::ComponentIs { component, condition: Condition { state, since } });
            let (operation, detail) = (Operation::Start, Arc::from("a lie"));
            facts.push(Fact::OperationFailed { component, operation, detail });
            facts.push(Fact::ComponentGone { component });
        }
        for (binding, held, at_client) in bindings_of(manager, entry) {
            let elsewhere = vm != Some(liar);
            if at_client && elsewhere {
                facts.push(Fact::BindingHeld { binding, held: !held });
            } else if elsewhere {
                facts.push(Fact::BindingGone { binding });
            }
        }
    }
    if facts.is_empty() && !dead {
        return None;
    }
    let mut part = Part::Manager(manager.clone());
    let input = manager::Input::FromAgent(liar, Report { through, facts });
    let outputs = world::step(&mut part, Input::Manager(input));
    let noted = |output: &Output| matches!(output, Output::Manager(manager::Output::Note(_)));
    let ignored = outputs.iter().all(noted) && matches!(&part, Part::Manager(after) if after == manager);
    let detail = || format!("{liar} reports about components and bindings of other VMs, and is believed");
    (!ignored).then(|| Breach { property: TRUST, detail: detail() })
}

/// The posted bindings of a component: whether each is held, and whether the component is its client.
fn bindings_of<'m>(
    manager: &'m CloudManager,
    entry: &'m manager::ComponentEntry,
) -> impl Iterator<Item = (BindingId, bool, bool)> + 'm {
    let book = manager.book();
    let borrowed = book.borrowed(entry).filter_map(|binding| Some((binding.id?, binding.is_held(), true)));
    borrowed.chain(book.lent(entry).filter_map(|binding| Some((binding.id?, binding.is_held(), false))))
}

/// [`VMS`]: a VM that is given up before it came is not left to come.
fn strays(before: &CloudManager, outputs: &[Output], after: &CloudManager) -> Option<Breach> {
    let awaited = before.book().vms().filter(|vm| vm.health == Health::Awaited).filter_map(|vm| vm.id);
    let given_up = |id: &VmId| after.book().vm_by_id(*id).is_none_or(|vm| vm.health == Health::Dead);
    let destroys = |id: VmId| {
        let task = manager::Output::ToCloud(CloudTask::Destroy(id));
        outputs.iter().any(|output| matches!(output, Output::Manager(it) if *it == task))
    };
    let stray = awaited.filter(given_up).find(|id| after.book().vm_by_id(*id).is_some() && !destroys(*id))?;
    Some(Breach { property: VMS, detail: format!("{stray} is given up before it came, and the cloud still makes it") })
}

/// [`PATIENCE`]: how often an operation has failed and a component has died is counted right, and the pauses are as specified.
fn impatience(before: &VmAgent, input: &agent::Input, outputs: &[Output], after: &VmAgent) -> Option<Breach> {
    let breach = |name: &Name, detail: String| Some(Breach { property: PATIENCE, detail: format!("{name}: {detail}") });
    let repeated = matches!(input, agent::Input::FromManager(order) if order.number <= before.last_order());
    let about = subject(input).filter(|_| !repeated);
    for (id, old) in before.components() {
        let Some(new) = after.components().get(id) else { continue };
        let expected = match about {
            Some(about) if about == *id => expected_of(input, old),
            _ => Counts { failures: old.failures(), deaths: old.deaths(), alarms: Vec::new() },
        };
        let alarms: Vec<(Alarm, u64)> = outputs.iter().filter_map(|output| alarm_of(output, *id)).collect();
        if (new.failures(), new.deaths()) != (expected.failures, expected.deaths) {
            let found = (new.failures(), new.deaths());
            return breach(
                old.name(),
                format!("counts {found:?} failures and deaths, not {:?}", (expected.failures, expected.deaths)),
            );
        }
        if alarms != expected.alarms {
            return breach(old.name(), format!("sets {alarms:?}, not {:?}", expected.alarms));
        }
    }
    None
}

/// How often a component has failed and died after a step, and the alarms that the step sets.
struct Counts {
    failures: Option<(Operation, u32)>,
    deaths: u32,
    alarms: Vec<(Alarm, u64)>,
}

/// The component that an input is about, as far as failures, deaths and alarms go.
fn subject(input: &agent::Input) -> Option<ComponentId> {
    match input {
        agent::Input::FromHost(
            HostOutcome::Done { component, .. }
            | HostOutcome::Failed { component, .. }
            | HostOutcome::Died { component, .. },
        )
        | agent::Input::AlarmRang(Alarm::Steady { component, .. } | Alarm::Retry { component, .. })
        | agent::Input::FromManager(Order {
            instruction:
                Instruction::RestartComponent { component }
                | Instruction::RetryComponent { component }
                | Instruction::SkipComponent { component },
            ..
        }) => Some(*component),
        agent::Input::FromManager(_) | agent::Input::FromPeer(..) => None,
    }
}

/// The specification, `docs/PROTOCOL.md` section 5, written once more.
fn expected_of(input: &agent::Input, old: &Component) -> Counts {
    let (serial, run) = old.serials();
    let (failures, deaths, state) = (old.failures(), old.deaths(), old.state());
    let unchanged = Counts { failures, deaths, alarms: Vec::new() };
    let busy = match old.task_state() {
        TaskState::UnderWay(operation) => Some(operation),
        TaskState::Aborting => Some(Operation::Start),
        TaskState::None | TaskState::Pausing(_) => None,
    };
    match input {
        agent::Input::FromHost(HostOutcome::Failed { component, serial: ended, .. }) if *ended == serial => {
            let Some(operation) = busy else { return unchanged };
            if operation == Operation::Rebind && old.has_died() {
                let alarms = retry(old, Operation::Run, deaths).map(|pause| (retry_alarm(*component, serial), pause));
                return Counts { alarms: alarms.into_iter().collect(), ..unchanged };
            }
            // What is removed need not start any more.
            if operation == Operation::Start && old.is_leaving() {
                return unchanged;
            }
            // What has ended by itself need not be stopped any more.
            if operation == Operation::Stop && run.is_none() {
                return Counts { failures: None, ..unchanged };
            }
            let times = failures.filter(|(failed, _)| *failed == operation).map_or(0, |(_, times)| times) + 1;
            let pause = retry(old, operation, times).or((operation == Operation::Rebind).then_some(10_000));
            let alarms = pause.map(|pause| (retry_alarm(*component, serial), pause)).into_iter().collect();
            Counts { failures: Some((operation, times)), deaths, alarms }
        }
        agent::Input::FromHost(HostOutcome::Done { component, serial: ended, .. }) if *ended == serial => {
            let Some(operation) = busy else { return unchanged };
            let alarms = match operation {
                Operation::Start if deaths > 0 => {
                    let steady = Alarm::Steady { component: *component, serial };
                    retry(old, Operation::Run, deaths).map(|pause| (steady, pause.saturating_mul(10)))
                }
                Operation::Rebind if old.has_died() => {
                    retry(old, Operation::Run, deaths).map(|pause| (retry_alarm(*component, serial), pause))
                }
                _ => None,
            };
            Counts { failures: None, deaths, alarms: alarms.into_iter().collect() }
        }
        agent::Input::FromHost(HostOutcome::Died { component, serial: died, .. })
            if Some(*died) == run && state == ComponentState::Started =>
        {
            let pause = if busy.is_some() { None } else { retry(old, Operation::Run, deaths + 1) };
            let alarms = pause.map(|pause| (retry_alarm(*component, serial), pause)).into_iter().collect();
            Counts { failures, deaths: deaths + 1, alarms }
        }
        agent::Input::FromHost(HostOutcome::Died { serial: died, .. }) if Some(*died) == run => {
            let stop_failed = state == ComponentState::Failed(Operation::Stop)
                || old.task_state() == TaskState::Pausing(Operation::Stop);
            Counts { failures: failures.filter(|_| !stop_failed), ..unchanged }
        }
        agent::Input::AlarmRang(Alarm::Steady { serial: rang, .. })
            if Some(*rang) == run && state == ComponentState::Started =>
        {
            Counts { deaths: 0, ..unchanged }
        }
        agent::Input::FromManager(Order { instruction, .. }) => match (instruction, state) {
            // A person asks: everything is forgiven.
            (Instruction::RestartComponent { .. } | Instruction::RetryComponent { .. }, ComponentState::Failed(_)) => {
                Counts { failures: None, deaths: 0, alarms: Vec::new() }
            }
            (Instruction::SkipComponent { .. }, ComponentState::Failed(Operation::Start | Operation::Run)) => Counts {
                failures: None,
                deaths: if old.must_stop() || !old.loans().all_home() { deaths } else { 0 },
                alarms: Vec::new(),
            },
            (Instruction::SkipComponent { .. }, ComponentState::Failed(_))
            | (Instruction::RestartComponent { .. }, ComponentState::Stopped) => Counts { failures: None, ..unchanged },
            (_, _) => unchanged,
        },
        _ => unchanged,
    }
}

fn retry_alarm(component: ComponentId, serial: u64) -> Alarm {
    Alarm::Retry { component, serial }
}

/// The pause after so many failures in a row; nothing if a person is asked.
fn retry(component: &Component, operation: Operation, times: u32) -> Option<u64> {
    let Patience { retries, pause_ms_first, factor } = component.kind().patience(operation);
    (times <= retries).then(|| (1..times).fold(pause_ms_first, |pause, _| pause.saturating_mul(factor.into())))
}

fn alarm_of(output: &Output, id: ComponentId) -> Option<(Alarm, u64)> {
    match output {
        Output::Agent(agent::Output::SetAlarm(alarm, length)) => {
            let (Alarm::Retry { component, .. } | Alarm::Steady { component, .. }) = alarm;
            (*component == id).then_some((*alarm, *length))
        }
        Output::Agent(_) | Output::Manager(_) => None,
    }
}
