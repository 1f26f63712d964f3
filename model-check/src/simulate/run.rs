//! One simulated run: takes what is due next, lets it happen, looks at the world, and writes down what follows.

use super::{
    Report, Settings,
    agenda::{Agenda, Scheduled},
    critical_path::{Activity, Cause, Stretch, Stretches},
    journal::Journals,
    mishaps,
    report::{ChangeTimes, Violation},
};
use crate::{
    action::Action,
    environment::Line,
    inspector::Inspector,
    property::{self, Breach, RESTS},
    random::Random,
    trace::Trace,
    world::{Event, Output, Part, Place, World},
};
use protocol::{
    ChangeId, HostTask, Operation, VmId, Work, agent,
    manager::{self, CloudTask, News},
};
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

/// After how many steps a machine is told what it must ignore.
const PROBE_STEPS: u64 = 16;

/// A machine answers every input.
pub const NO_PANIC: &str = "no machine panics";

/// One simulated run.
pub(super) struct Run<'a> {
    script: &'a Arc<[Line]>,
    settings: &'a Settings,
    world: World,
    random: Random,
    agenda: Agenda,
    inspector: Inspector,
    stretches: Stretches,
    journals: Option<Journals>,
    actions: Option<Vec<Action>>,
    now: Duration,
    /// The VMs that are up.
    vms: Vec<VmId>,
    /// Operations that may still fail.
    failures_left: u32,
    /// Whether the operator's next request is on the agenda.
    request_planned: bool,
    /// The place in the report of each change that is not done.
    open_changes: BTreeMap<ChangeId, usize>,
    report: Report,
}

impl<'a> Run<'a> {
    pub(super) fn new(script: &'a Arc<[Line]>, settings: &'a Settings) -> Self {
        Self {
            script,
            settings,
            world: World::new(script.clone(), settings.faults),
            random: Random::new(settings.seed),
            agenda: Agenda::default(),
            inspector: Inspector::new(script, settings.faults, settings.pace).probing_every(PROBE_STEPS),
            stretches: Stretches::default(),
            journals: settings.journal.then(Journals::default),
            actions: settings.record.then(Vec::new),
            now: Duration::ZERO,
            vms: Vec::new(),
            failures_left: settings.faults.failures,
            request_planned: false,
            open_changes: BTreeMap::new(),
            report: Report::default(),
        }
    }

    pub(super) fn finished(mut self) -> (Report, World) {
        self.plan_mishap();
        loop {
            self.plan_request();
            let Some(planned) = self.agenda.next() else { break };
            self.now = self.now.max(planned.at);
            match planned.scheduled {
                Scheduled::Request => self.request(),
                Scheduled::Mishap => self.mishap(),
                Scheduled::Action(action, task) => self.arrive(action, task, planned.cause),
            }
            if self.report.steps >= self.settings.steps_max && self.report.violation.is_none() {
                let detail = format!("nothing has come to rest after {} steps", self.report.steps);
                self.violate(Breach { property: RESTS, detail }, None);
            }
            if self.report.violation.is_some() {
                break;
            }
        }
        self.conclude()
    }

    fn conclude(mut self) -> (Report, World) {
        if self.report.violation.is_none() {
            let found = self.inspector.whole(&self.world).or_else(|| property::at_end(&self.world));
            if let Some(breach) = found {
                self.violate(breach, None);
            }
        }
        self.report.took = self.now;
        let (script, faults) = (self.script.clone(), self.settings.faults);
        self.report.trace = self.actions.map(|actions| Trace::new(&script, faults, actions));
        (self.report, self.world)
    }

    fn violate(&mut self, breach: Breach, action: Option<Action>) {
        let (seed, step, at) = (self.settings.seed, self.report.steps, self.now);
        self.report.violation = Some(Violation { breach, seed, step, at, action });
    }

    /// Plans the next request, if the operator would make it now.
    fn plan_request(&mut self) {
        let operator = self.world.operator();
        let (line, index) = (operator.next(), operator.asked);
        let Some(line) = line.filter(|line| !self.request_planned && (!line.patient || self.agenda.is_at_rest()))
        else {
            return;
        };
        // The first request opens the run.
        let hesitates = index > 0 || !line.patient;
        let pause = if hesitates { self.random.duration(&self.settings.timing.request) } else { Duration::ZERO };
        let given = self.settings.timing.not_before.get(&index).copied().unwrap_or_default();
        self.agenda.plan((self.now + pause).max(given), Scheduled::Request, None);
        self.request_planned = true;
    }

    fn request(&mut self) {
        self.request_planned = false;
        let patient = self.world.operator().next().is_some_and(|line| line.patient);
        // A mishap may have come between rest and request; then the operator waits again.
        if !patient || self.agenda.is_at_rest() {
            self.happen(Action::Ask, None);
        }
    }

    fn plan_mishap(&mut self) {
        let faults = self.world.operator().faults;
        if mishaps::are_left(faults) {
            let at = self.now + self.random.duration(&self.settings.timing.mishap);
            self.agenda.plan(at, Scheduled::Mishap, None);
        }
    }

    fn mishap(&mut self) {
        let faults = self.world.operator().faults;
        let mut chosen = mishaps::choose(&self.world, &self.vms, faults, &mut self.random);
        // At the end nothing new comes up: look around a few times, then let it be.
        let over = self.agenda.is_at_rest() && self.world.operator().next().is_none();
        for _ in 0..if over { 50 } else { 0 } {
            chosen = chosen.or_else(|| mishaps::choose(&self.world, &self.vms, faults, &mut self.random));
        }
        if let Some(fault) = chosen {
            self.happen(fault, None);
        }
        if chosen.is_some() || !over {
            self.plan_mishap();
        }
    }

    /// Something on the agenda is due; it happens if it still can.
    fn arrive(&mut self, action: Action, task: u64, cause: Cause) {
        match action {
            // A VM that is no more hears nothing.
            Action::Order(vm) | Action::Notice(_, vm) if self.world.agent(vm).is_none() => {
                return self.agenda.arrived(crate::world::source(action));
            }
            Action::Finish(vm, component) | Action::Fail(vm, component) | Action::Abort(vm, component) => {
                let Part::Host(host) = self.world.part(Place::Host(vm)) else { return };
                let fails = matches!(action, Action::Fail(..));
                if host.tasks.get(&component).is_none_or(|found| found.serial != task) {
                    self.failures_left += u32::from(fails);
                    return;
                }
            }
            // A VM that is destroyed before it came is not made any more.
            Action::Cloud(vm) => {
                let Part::Cloud(cloud) = self.world.part(Place::Cloud) else { return };
                if !cloud.tasks.contains_key(&vm) {
                    return;
                }
            }
            Action::Ring(vm, alarm) => {
                let Part::Host(host) = self.world.part(Place::Host(vm)) else { return };
                if !host.alarms.contains_key(&alarm) {
                    return;
                }
            }
            _ => {}
        }
        if action.is_message() {
            self.agenda.arrived(crate::world::source(action));
        }
        self.happen(action, cause);
    }

    /// Lets an action happen, looks at the world, and plans what follows.
    fn happen(&mut self, action: Action, cause: Cause) {
        self.report.steps += 1;
        self.report.faults += u64::from(action.is_fault());
        if let Some(actions) = &mut self.actions {
            actions.push(action);
            self.report.moments.push(self.now);
        }
        let world = &mut self.world;
        // A panic is a violation like any other, and its seed must not be lost. The world is not looked at again.
        let Ok(event) = catch_unwind(AssertUnwindSafe(|| world.apply(action))) else {
            return self.violate(Breach { property: NO_PANIC, detail: action.to_string() }, Some(action));
        };
        let mut found = self.inspector.look(&self.world, &event);
        if let Some(journals) = &mut self.journals {
            journals.write(&event);
            let crashed = match action {
                Action::Crash(vm) => Some(Place::Agent(vm)),
                Action::CrashManager => Some(Place::Manager),
                _ => None,
            };
            found = found.or_else(|| crashed.and_then(|place| journals.check(&self.world, place)));
        }
        if let Some(breach) = found {
            self.violate(breach, Some(action));
        }
        self.follow_action(action, cause);
        self.follow_outputs(&event, cause);
    }

    /// What follows from the action itself.
    fn follow_action(&mut self, action: Action, cause: Cause) {
        match action {
            Action::Cloud(vm) if self.world.agent(vm).is_some() => {
                self.vms.push(vm);
                self.agenda.wake(vm, self.now, cause);
            }
            Action::Cloud(vm) => self.vms.retain(|it| *it != vm),
            Action::Lose(vm) => {
                self.vms.retain(|it| *it != vm);
                let Some(name) = self.world.manager().book().vm_by_id(vm).map(|vm| vm.name.clone()) else { return };
                let at = self.now + self.random.duration(&self.settings.timing.declare);
                let stretch = Stretch { name, activity: Activity::Declare, from: self.now, to: at };
                let cause = self.stretches.add(stretch, cause);
                self.agenda.plan(at, Scheduled::Action(Action::Declare(vm), 0), cause);
            }
            Action::Crash(_) | Action::CrashManager | Action::Break(..) => self.plan_repeats(),
            _ => {}
        }
    }

    /// After a crash or a broken link some letters come again.
    fn plan_repeats(&mut self) {
        let mut repeats = Vec::new();
        for (place, part) in self.world.parts() {
            if let Part::Queue(queue) = &**part {
                let missing = queue.letters.len().saturating_sub(self.agenda.under_way(place));
                repeats.extend(std::iter::repeat_n(place, missing));
            }
        }
        repeats.into_iter().for_each(|place| self.send(place, None));
    }

    fn send(&mut self, place: Place, cause: Cause) {
        let arrival = self.now + self.random.duration(&self.settings.timing.message);
        self.agenda.send(place, arrival, cause);
    }

    /// What follows from what a machine said.
    fn follow_outputs(&mut self, event: &Event, cause: Cause) {
        let Some((place, _)) = &event.input else { return };
        for output in &event.outputs {
            match (place, output) {
                (_, Output::Manager(output)) => self.follow_manager(output, event.action, cause),
                (Place::Agent(vm), Output::Agent(output)) => self.follow_agent(*vm, output, cause),
                (_, Output::Agent(_)) => {}
            }
        }
    }

    fn follow_manager(&mut self, output: &manager::Output, action: Action, cause: Cause) {
        match output {
            manager::Output::ToAgent(vm, _) => {
                self.report.messages.orders += 1;
                self.send(Place::Orders(*vm), cause);
            }
            manager::Output::ToCloud(task) => self.follow_cloud_task(task, cause),
            manager::Output::SetAlarm(alarm, pause) => {
                let at = self.now + Duration::from_millis(*pause);
                self.agenda.plan(at, Scheduled::Action(Action::RingManager(*alarm), 0), cause);
            }
            manager::Output::ToOperator(News::Accepted(change)) => {
                self.open_changes.insert(*change, self.report.changes.len());
                let (change, accepted) = (*change, self.now);
                self.report.changes.push(ChangeTimes { change, accepted, done: None, critical_path: Vec::new() });
            }
            manager::Output::ToOperator(News::ChangeDone(change) | News::ChangeCancelled(change)) => {
                if let Some(index) = self.open_changes.remove(change) {
                    let times = &mut self.report.changes[index];
                    times.done = Some(self.now);
                    times.critical_path = self.stretches.path(cause, times.accepted);
                }
            }
            manager::Output::ToOperator(News::Refused(reasons)) if action == Action::Ask => {
                let line = self.world.operator().asked - 1;
                self.report.refused.push((line, reasons.clone()));
            }
            manager::Output::ToOperator(_) | manager::Output::Note(_) => {}
        }
    }

    fn follow_cloud_task(&mut self, task: &CloudTask, cause: Cause) {
        let timing = &self.settings.timing;
        let (vm, name, activity, length) = match task {
            CloudTask::Create(vm, name) => {
                self.agenda.await_vm(*vm);
                (*vm, Some(name.clone()), Activity::Create, &timing.create)
            }
            CloudTask::Destroy(vm) => {
                let name = self.world.manager().book().vm_by_id(*vm).map(|entry| entry.name.clone());
                (*vm, name, Activity::Destroy, &timing.destroy)
            }
        };
        let to = self.now + self.random.duration(length);
        let cause = match name {
            Some(name) => self.stretches.add(Stretch { name, activity, from: self.now, to }, cause),
            None => cause,
        };
        self.agenda.plan(to, Scheduled::Action(Action::Cloud(vm), 0), cause);
    }

    fn follow_agent(&mut self, vm: VmId, output: &agent::Output, cause: Cause) {
        match output {
            agent::Output::ToManager(_) => {
                self.report.messages.reports += 1;
                self.send(Place::Reports(vm), cause);
            }
            agent::Output::ToPeer(to, notice) => {
                self.report.messages.count(notice);
                self.send(Place::Notices(vm, *to), cause);
            }
            agent::Output::ToHost(task) => self.follow_task(vm, task, cause),
            agent::Output::SetAlarm(alarm, pause) => {
                let (agent::Alarm::Retry { component, .. } | agent::Alarm::Steady { component, .. }) = alarm;
                let (from, to) = (self.now, self.now + Duration::from_millis(*pause));
                let name = self.world.agent(vm).and_then(|agent| agent.components().get(component));
                let cause = match name.map(|component| component.name().clone()) {
                    Some(name) => self.stretches.add(Stretch { name, activity: Activity::Pause, from, to }, cause),
                    None => cause,
                };
                self.agenda.plan(to, Scheduled::Action(Action::Ring(vm, *alarm), 0), cause);
            }
            agent::Output::Note(_) => {}
        }
    }

    /// A host begins a task; whether it will fail is decided now.
    fn follow_task(&mut self, vm: VmId, task: &HostTask, cause: Cause) {
        if task.work == Work::Abort {
            let end = Scheduled::Action(Action::Abort(vm, task.component), task.serial);
            return self.agenda.plan(self.now, end, cause);
        }
        let operation = task.work.operation();
        match operation {
            Operation::Start => self.report.starts += 1,
            Operation::Stop => {
                self.report.stops += 1;
                self.report.stopped.insert(task.name.clone());
            }
            Operation::Prepare | Operation::Run | Operation::Rebind | Operation::Purge => {}
        }
        let to = self.now + self.settings.timing.operation(&mut self.random, &task.name, operation);
        let fails = self.failures_left > 0 && self.random.chance(self.settings.failures_per_mille);
        self.failures_left -= u32::from(fails);
        let end = if fails { Action::Fail } else { Action::Finish };
        let stretch = Stretch { name: task.name.clone(), activity: Activity::Operation(operation), from: self.now, to };
        let cause = self.stretches.add(stretch, cause);
        self.agenda.plan(to, Scheduled::Action(end(vm, task.component), task.serial), cause);
    }
}
