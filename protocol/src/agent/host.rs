//! Records how tasks ended, and retries what failed.

use super::{Alarm, ComponentState, Note, Output, TaskState, Turn, component::Run};
use crate::{ComponentId, Fact, HostOutcome, HostTask, Operation, Values, Work};
use std::sync::Arc;

/// A component that died must stay up for this many pauses to be steady again.
pub const STEADY_PAUSES: u64 = 10;

/// The pause before a rebind that failed for good is asked for once more, while the component cannot stop.
const REBIND_AGAIN_MS: u64 = 10_000;

impl Turn<'_> {
    /// Records how a task ended, or that a component died; an outcome that is not awaited is noted and ignored.
    pub(super) fn record(&mut self, outcome: HostOutcome) {
        let (id, serial) = match &outcome {
            HostOutcome::Done { component, serial, .. }
            | HostOutcome::Failed { component, serial, .. }
            | HostOutcome::Died { component, serial, .. } => (*component, *serial),
        };
        let Some(component) = self.agent.components.get(&id) else { return self.note(Note::OutcomeTooLate(id)) };
        let (state, awaited) = (component.state, component.is_busy() && component.tasks.serial == serial);
        match outcome {
            HostOutcome::Done { values, .. } if awaited => self.done(id, values),
            HostOutcome::Failed { detail, .. } if awaited => self.failed(id, detail),
            HostOutcome::Died { detail, .. } if component.run.serial() == Some(serial) => match state {
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
        let Some(operation) = std::mem::take(&mut component.tasks.state).under_way() else { return };
        component.tasks.failures = None;
        match operation {
            Operation::Prepare => self.announce(id, values),
            Operation::Start | Operation::Run => {
                let (serial, deaths) = (component.tasks.serial, component.tasks.deaths);
                component.run = Run::Of(serial);
                let patience = component.kind.patience(Operation::Run);
                component.offer.renew(values);
                self.put(id, ComponentState::Started);
                if let Some(pause) = patience.pause_ms(deaths).filter(|_| deaths > 0) {
                    let alarm = Alarm::Steady { component: id, serial };
                    self.outputs.push(Output::SetAlarm(alarm, pause.saturating_mul(STEADY_PAUSES)));
                }
            }
            Operation::Rebind if component.has_died() => self.mourn(id, Arc::from("died while it was to rebind")),
            Operation::Rebind => {
                for binding in component.holdings.rebound() {
                    self.give_back(id, binding);
                }
            }
            Operation::Stop => {
                component.orders.stopped();
                component.run = Run::None;
                self.put(id, ComponentState::Stopped);
            }
            Operation::Purge => component.tasks.purged = true,
        }
    }

    /// The operation under way has failed: it is retried after a pause, or manual action is required.
    fn failed(&mut self, id: ComponentId, detail: Arc<str>) {
        self.touched.insert(id);
        let component = self.component(id);
        let Some(operation) = component.tasks.state.under_way() else { return };
        if operation == Operation::Rebind {
            component.holdings.not_rebound();
            if component.has_died() {
                return self.mourn(id, detail);
            }
        }
        if operation == Operation::Start && component.is_leaving() {
            // It was not to start any more, whether it was ended early or failed by itself: no retry, and nothing to report.
            component.tasks.state = TaskState::None;
            return self.put(id, ComponentState::Stopped);
        }
        // There is nothing left to stop.
        if operation == Operation::Stop && component.run.serial().is_none() {
            return self.done(id, Values::new());
        }
        let times = component.tasks.count_failure(operation);
        let pause = component.kind.patience(operation).pause_ms(times);
        if operation == Operation::Start {
            // A start that failed has left nothing running: recalled loans can go home during the pause, and there is
            // nothing left to stop for a restart.
            component.orders.stopped();
            self.put(id, ComponentState::Stopped);
        }
        self.pause_or_give_up(id, operation, pause, detail);
    }

    /// A started component has ended by itself: the host has nothing to stop, and loans are recalled at once.
    fn died(&mut self, id: ComponentId, detail: Arc<str>) {
        let component = self.component(id);
        component.orders.stopped();
        component.run = Run::Died;
        component.tasks.deaths += 1;
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
        component.run = Run::None;
        let failed = matches!(component.state, ComponentState::Failed(Operation::Stop))
            || component.tasks.state == TaskState::Pausing(Operation::Stop);
        if failed {
            (component.tasks.state, component.tasks.failures) = (TaskState::None, None);
            component.orders.stopped();
            self.put(id, ComponentState::Stopped);
        }
        self.touched.insert(id);
    }

    /// After a death: the component is started again after a pause, or manual action is required.
    fn mourn(&mut self, id: ComponentId, detail: Arc<str>) {
        let component = self.component(id);
        let pause = component.kind.patience(Operation::Run).pause_ms(component.tasks.deaths);
        self.pause_or_give_up(id, Operation::Run, pause, detail);
    }

    fn pause_or_give_up(&mut self, id: ComponentId, operation: Operation, pause: Option<u64>, detail: Arc<str>) {
        let component = self.component(id);
        component.tasks.state = TaskState::None;
        match pause {
            Some(pause) => {
                component.tasks.state = TaskState::Pausing(operation);
                let alarm = Alarm::Retry { component: id, serial: component.tasks.serial };
                self.note(Note::WillRetry(id, operation));
                self.outputs.push(Output::SetAlarm(alarm, pause));
            }
            None => {
                match operation {
                    // A component that cannot rebind cannot return a loan while it runs: it stops first. Its own clients
                    // may be waiting for the very loan that it cannot give back: so it is asked again now and then.
                    Operation::Rebind => {
                        component.orders.restart();
                        component.tasks.state = TaskState::Pausing(operation);
                        let alarm = Alarm::Retry { component: id, serial: component.tasks.serial };
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
                    && component.tasks.serial == serial
                    && let TaskState::Pausing(operation) = component.tasks.state
                {
                    component.tasks.state = TaskState::None;
                    self.touched.insert(id);
                    if operation == Operation::Stop {
                        self.stop(id);
                    }
                    return;
                }
            }
            Alarm::Steady { component: id, serial } => {
                if let Some(component) = self.agent.components.get_mut(&id)
                    && component.run == Run::Of(serial)
                    && component.state == ComponentState::Started
                {
                    component.tasks.deaths = 0;
                    self.touched.insert(id);
                    return;
                }
            }
        }
        self.note(Note::AlarmTooLate(alarm));
    }

    /// Takes note of what `prepare` announced, and tells every client.
    fn announce(&mut self, id: ComponentId, values: Values) {
        let component = self.component(id);
        component.offer.announce(values);
        let loans: Vec<_> = component.loans.iter().map(|(binding, _)| binding).collect();
        for binding in loans {
            self.bind(id, binding);
        }
    }

    /// Asks the host for something; a component has at most one task under way.
    pub(super) fn ask(&mut self, id: ComponentId, work: Work) {
        let component = self.component(id);
        component.tasks.serial += 1;
        component.tasks.state = TaskState::UnderWay(work.operation());
        let task = HostTask {
            component: id,
            serial: component.tasks.serial,
            name: component.name.clone(),
            kind: component.kind.clone(),
            work,
        };
        self.outputs.push(Output::ToHost(task));
    }

    /// Asks the host to end a start early, once. The answer is the outcome of that start, whichever it is.
    pub(super) fn abort(&mut self, id: ComponentId) {
        let component = self.component(id);
        component.tasks.state = TaskState::Aborting;
        let (serial, name, kind) = (component.tasks.serial, component.name.clone(), component.kind.clone());
        self.outputs.push(Output::ToHost(HostTask { component: id, serial, name, kind, work: Work::Abort }));
    }

    /// Asks the host to stop it; the rules have seen that every loan is home.
    pub(super) fn stop(&mut self, id: ComponentId) {
        self.ask(id, Work::Stop);
    }
}
