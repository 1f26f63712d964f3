//! How tasks ended, recorded as facts; and trying again.

use super::{Alarm, ComponentState, Note, Output, TaskState, Turn};
use crate::{ComponentId, Fact, HostOutcome, HostTask, Operation, Values, Work};
use std::sync::Arc;

/// A component that died must stay up for this many pauses to be steady again.
pub const STEADY_PAUSES: u64 = 10;

/// The pause before a rebind that failed for good is asked for once more, while the component cannot stop.
const REBIND_AGAIN_MS: u64 = 10_000;

impl Turn<'_> {
    /// Records how a task ended, or that a component died; what nobody waits for is left alone.
    pub(super) fn record(&mut self, outcome: HostOutcome) {
        let (id, serial) = match &outcome {
            HostOutcome::Done { component, serial, .. }
            | HostOutcome::Failed { component, serial, .. }
            | HostOutcome::Died { component, serial, .. } => (*component, *serial),
        };
        let Some(component) = self.agent.components.get(&id) else { return self.note(Note::OutcomeTooLate(id)) };
        let (state, awaited) = (component.state, component.is_busy() && component.serial == serial);
        match outcome {
            HostOutcome::Done { values, .. } if awaited => self.done(id, values),
            HostOutcome::Failed { detail, .. } if awaited => self.failed(id, detail),
            HostOutcome::Died { detail, .. } if component.run == Some(serial) => match state {
                ComponentState::Started => self.died(id, detail),
                ComponentState::Stopped
                | ComponentState::Starting
                | ComponentState::Stopping
                | ComponentState::Failed(_) => self.ended(id),
            },
            HostOutcome::Done { .. } | HostOutcome::Failed { .. } | HostOutcome::Died { .. } => {
                self.note(Note::OutcomeTooLate(id));
            }
        }
    }

    /// The operation under way has succeeded.
    pub(super) fn done(&mut self, id: ComponentId, values: Values) {
        self.touched.insert(id);
        let component = self.component(id);
        let Some(operation) = std::mem::replace(&mut component.task_state, TaskState::None).under_way() else { return };
        component.failures = None;
        match operation {
            Operation::Prepare => self.announce(id, values),
            Operation::Start | Operation::Run => {
                component.run = Some(component.serial);
                let (serial, deaths, patience) =
                    (component.serial, component.deaths, component.kind.patience(Operation::Run));
                self.put(id, ComponentState::Started);
                self.renew(id, values);
                if let Some(pause) = patience.pause_ms(deaths).filter(|_| deaths > 0) {
                    let alarm = Alarm::Steady { component: id, serial };
                    self.outputs.push(Output::SetAlarm(alarm, pause.saturating_mul(STEADY_PAUSES)));
                }
            }
            Operation::Rebind if component.died => self.mourn(id, Arc::from("died while it was to rebind")),
            Operation::Rebind => {
                component.holdings.rebound(true);
                component.uses_lost &= component.changed;
                for binding in std::mem::take(&mut component.let_go) {
                    self.give_back(id, binding);
                }
            }
            Operation::Stop => {
                component.restarting = false;
                component.run = None;
                self.put(id, ComponentState::Stopped);
            }
            Operation::Purge => component.purged = true,
        }
    }

    /// The operation under way has failed: try again after a pause, or ask a person.
    fn failed(&mut self, id: ComponentId, detail: Arc<str>) {
        self.touched.insert(id);
        let component = self.component(id);
        let Some(operation) = component.task_state.under_way() else { return };
        component.let_go = Default::default();
        component.holdings.rebound(false);
        // It was not told: the next attempt tells it the set as it then is.
        component.changed |= operation == Operation::Rebind;
        if operation == Operation::Rebind && component.died {
            return self.mourn(id, detail);
        }
        if operation == Operation::Start && component.leaving {
            // It was not to start any more, whether it was ended early or failed by itself: no retry, and nothing to report.
            component.task_state = TaskState::None;
            return self.put(id, ComponentState::Stopped);
        }
        // There is nothing left to stop.
        if operation == Operation::Stop && component.run.is_none() {
            return self.done(id, Values::new());
        }
        let before = component.failures.filter(|(failed, _)| *failed == operation).map_or(0, |(_, times)| times);
        component.failures = Some((operation, before + 1));
        let pause = component.kind.patience(operation).pause_ms(before + 1);
        if operation == Operation::Start {
            // A start that failed has left nothing running: recalled loans can go home during the pause, and there is
            // nothing left to stop for a restart.
            component.restarting = false;
            self.put(id, ComponentState::Stopped);
        }
        self.pause_or_give_up(id, operation, pause, detail);
    }

    /// A started component has ended by itself: the host has nothing to stop, and loans are recalled at once.
    fn died(&mut self, id: ComponentId, detail: Arc<str>) {
        let component = self.component(id);
        component.restarting = false;
        component.died = true;
        component.run = None;
        component.let_go = Default::default();
        component.deaths += 1;
        self.put(id, ComponentState::Stopped);
        self.recall(id);
        // A rebind under way has lost its meaning, but the host must be done with it first.
        if !self.component(id).is_busy() {
            self.mourn(id, detail);
        }
    }

    /// A component has ended by itself that was to stop anyway. A stop under way ends as it will; one that failed, or was
    /// skipped, is now done.
    fn ended(&mut self, id: ComponentId) {
        let component = self.component(id);
        (component.run, component.unconfirmed) = (None, false);
        let failed = matches!(component.state, ComponentState::Failed(Operation::Stop))
            || component.task_state == TaskState::Pausing(Operation::Stop);
        if failed {
            (component.task_state, component.failures, component.restarting) = (TaskState::None, None, false);
            self.put(id, ComponentState::Stopped);
        }
        self.touched.insert(id);
    }

    /// After a death: start again after a pause, or ask a person.
    fn mourn(&mut self, id: ComponentId, detail: Arc<str>) {
        let component = self.component(id);
        let pause = component.kind.patience(Operation::Run).pause_ms(component.deaths);
        self.pause_or_give_up(id, Operation::Run, pause, detail);
    }

    fn pause_or_give_up(&mut self, id: ComponentId, operation: Operation, pause: Option<u64>, detail: Arc<str>) {
        let component = self.component(id);
        component.task_state = TaskState::None;
        match pause {
            Some(pause) => {
                component.task_state = TaskState::Pausing(operation);
                let alarm = Alarm::Retry { component: id, serial: component.serial };
                self.note(Note::WillRetry(id, operation));
                self.outputs.push(Output::SetAlarm(alarm, pause));
            }
            None => {
                match operation {
                    // What cannot rebind cannot let go while it runs: it stops, and then gives back. Whoever it lends to
                    // may be waiting for the very loan that it cannot give back: so it is asked again now and then.
                    Operation::Rebind => {
                        component.restarting = true;
                        component.task_state = TaskState::Pausing(operation);
                        let alarm = Alarm::Retry { component: id, serial: component.serial };
                        self.outputs.push(Output::SetAlarm(alarm, REBIND_AGAIN_MS));
                    }
                    Operation::Prepare | Operation::Start | Operation::Run | Operation::Stop | Operation::Purge => {
                        self.put(id, ComponentState::Failed(operation));
                    }
                }
                self.facts.push(Fact::OperationFailed { component: id, operation, detail });
            }
        }
    }

    /// An alarm rang; if its reason still stands, go on.
    pub(super) fn wake(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Retry { component: id, serial } => {
                if let Some(component) = self.agent.components.get_mut(&id)
                    && component.serial == serial
                    && let TaskState::Pausing(operation) = component.task_state
                {
                    component.task_state = TaskState::None;
                    self.touched.insert(id);
                    if operation == Operation::Stop {
                        self.stop(id);
                    }
                    return;
                }
            }
            Alarm::Steady { component: id, serial } => {
                if let Some(component) = self.agent.components.get_mut(&id)
                    && component.run == Some(serial)
                    && component.state == ComponentState::Started
                {
                    component.deaths = 0;
                    self.touched.insert(id);
                    return;
                }
            }
        }
        self.note(Note::AlarmTooLate(alarm));
    }

    /// Takes note of what `prepare` handed out; whoever waits to know it is told.
    fn announce(&mut self, id: ComponentId, values: Values) {
        let component = self.component(id);
        component.values = values.clone();
        component.announced = Some(values);
        let loans: Vec<_> = component.loans.iter().map(|(binding, _)| binding).collect();
        for binding in loans {
            self.bind(id, binding);
        }
    }

    /// Takes note of what a start handed out; clients that know older values are told again before they get the loan.
    fn renew(&mut self, id: ComponentId, values: Values) {
        let component = self.component(id);
        let mut all = component.announced.clone().unwrap_or_default();
        all.extend(values);
        if all != component.values {
            component.values = all;
            component.edition += 1;
        }
    }

    /// Asks the host for something; a component has at most one task under way.
    pub(super) fn ask(&mut self, id: ComponentId, work: Work) {
        let component = self.component(id);
        component.serial += 1;
        component.task_state = TaskState::UnderWay(work.operation());
        let task = HostTask {
            component: id,
            serial: component.serial,
            name: component.name.clone(),
            kind: component.kind.clone(),
            work,
        };
        self.outputs.push(Output::ToHost(task));
    }

    /// Asks the host to end a start early, once. The answer is the outcome of that start, whichever it is.
    pub(super) fn abort(&mut self, id: ComponentId) {
        let component = self.component(id);
        component.task_state = TaskState::Aborting;
        let (serial, name, kind) = (component.serial, component.name.clone(), component.kind.clone());
        self.outputs.push(Output::ToHost(HostTask { component: id, serial, name, kind, work: Work::Abort }));
    }

    /// Asks the host to stop it; the rules have seen that every loan is home.
    pub(super) fn stop(&mut self, id: ComponentId) {
        self.ask(id, Work::Stop);
    }
}
