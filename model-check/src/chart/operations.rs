//! One bar for each operation that a host carried out, on one scale, with the critical path of a change marked.
//!
//! ```text
//! start    mysql     ██████
//! start    tomcat          ████
//! prepare  profiler  ▒▒▒
//!                    0 s        10 s
//! ```
//!
//! A machine acts on the last of the inputs that it was waiting for. So each event has a cause: the event that sent the
//! message that arrived, asked for the task that ended, or set the alarm that rang. The operations on the way back from the
//! end of the change are the critical path.

use super::timeline::{Scale, line};
use crate::{
    environment::Letter,
    world::{Event, Input, Output, Place},
};
use protocol::{
    ComponentId, HostOutcome, Name, Operation, VmId,
    agent::{self, Alarm},
    manager::{self, News},
};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

/// One operation of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The component.
    pub name: Name,
    /// What the host did.
    pub operation: Operation,
    /// The event in which the host was asked.
    pub from: usize,
    /// The event in which it was done or had failed; nothing if it is still under way.
    pub to: Option<usize>,
    /// Whether it failed.
    pub failed: bool,
    /// Whether the end of the change waited for it.
    pub critical: bool,
}

/// The operations of a run, in the order in which they began.
pub fn operations(events: &[Event]) -> Vec<Bar> {
    let mut tracer = Tracer::default();
    for (number, event) in events.iter().enumerate() {
        tracer.follow(number, event);
    }
    tracer.mark(events);
    tracer.bars
}

/// What explains [`draw`].
pub const LEGEND: &str = "█ operation on the critical path   ▒ other operation   ✗ failed";

/// Draws the operations of a run. `moments` says when each event happened, `columns` how wide the page is.
pub fn draw(events: &[Event], moments: &[Duration], columns: usize) -> String {
    let bars = operations(events);
    let wide = |words: &mut dyn Iterator<Item = String>| words.map(|it| it.chars().count()).max().unwrap_or(0);
    let verbs = wide(&mut bars.iter().map(|bar| bar.operation.to_string()));
    let names = wide(&mut bars.iter().map(|bar| bar.name.to_string()));
    let left = verbs + names + 4;
    let begin = moments.first().copied().unwrap_or_default();
    let since = |event: usize| moments.get(event).map_or(Duration::ZERO, |moment| moment.saturating_sub(begin));
    let end = since(moments.len().saturating_sub(1));
    let scale = Scale::new(end, columns.saturating_sub(left + 1).max(20));
    let mut text = String::new();
    for bar in &bars {
        let (from, to) = (scale.cell(since(bar.from)), scale.cell(bar.to.map_or(end, since)));
        let mut cells = vec![' '; to + 1];
        cells[from..].fill(if bar.critical { '█' } else { '▒' });
        if bar.failed {
            cells[to] = '✗';
        }
        let (verb, name) = (bar.operation.to_string(), bar.name.as_str());
        text += &format!("{verb:verbs$}  {name:names$}  {}\n", line(cells));
    }
    if bars.is_empty() { text } else { text + &format!("{}{}\n", " ".repeat(left), line(scale.ticks())) }
}

/// Finds the cause of each event.
#[derive(Default)]
struct Tracer {
    bars: Vec<Bar>,
    causes: Vec<Option<usize>>,
    /// Messages under way, by link, each with the event that sent it.
    letters: BTreeMap<Place, VecDeque<(Letter, usize)>>,
    /// Tasks under way, each with its bar.
    tasks: BTreeMap<(VmId, ComponentId), usize>,
    alarms: BTreeMap<(VmId, Alarm), usize>,
    /// The bar that each event ended.
    ended: BTreeMap<usize, usize>,
}

impl Tracer {
    fn follow(&mut self, number: usize, event: &Event) {
        let cause = event.input.as_ref().and_then(|(place, input)| self.cause(number, *place, input));
        self.causes.push(cause);
        let Some((place, _)) = &event.input else { return };
        for output in &event.outputs {
            match (place, output) {
                (_, Output::Manager(manager::Output::ToAgent(vm, order))) => {
                    self.send(Place::Orders(*vm), Letter::Order(order.clone()), number);
                }
                (Place::Agent(vm), Output::Agent(agent::Output::ToManager(report))) => {
                    self.send(Place::Reports(*vm), Letter::Report(report.clone()), number);
                }
                (Place::Agent(vm), Output::Agent(agent::Output::ToPeer(to, notice))) => {
                    self.send(Place::Notices(*vm, *to), Letter::Notice(notice.clone()), number);
                }
                (Place::Agent(vm), Output::Agent(agent::Output::ToHost(task))) => {
                    let (name, operation) = (task.name.clone(), task.work.operation());
                    self.tasks.insert((*vm, task.component), self.bars.len());
                    self.bars.push(Bar { name, operation, from: number, to: None, failed: false, critical: false });
                }
                (Place::Agent(vm), Output::Agent(agent::Output::SetAlarm(alarm, _))) => {
                    self.alarms.insert((*vm, *alarm), number);
                }
                (_, _) => {}
            }
        }
    }

    fn send(&mut self, link: Place, letter: Letter, number: usize) {
        self.letters.entry(link).or_default().push_back((letter, number));
    }

    /// The event that led to an input; nothing if that was before the first one.
    fn cause(&mut self, number: usize, place: Place, input: &Input) -> Option<usize> {
        let (link, letter) = match (place, input) {
            (_, Input::Manager(manager::Input::FromAgent(vm, report))) => {
                (Place::Reports(*vm), Letter::Report(report.clone()))
            }
            (Place::Agent(vm), Input::Agent(agent::Input::FromManager(order))) => {
                (Place::Orders(vm), Letter::Order(order.clone()))
            }
            (Place::Agent(vm), Input::Agent(agent::Input::FromPeer(from, notice))) => {
                (Place::Notices(*from, vm), Letter::Notice(notice.clone()))
            }
            (Place::Agent(vm), Input::Agent(agent::Input::AlarmRang(alarm))) => {
                return self.alarms.remove(&(vm, *alarm));
            }
            (Place::Agent(vm), Input::Agent(agent::Input::FromHost(outcome))) => {
                let (component, failed) = match outcome {
                    HostOutcome::Done { component, .. } => (component, false),
                    HostOutcome::Failed { component, .. } => (component, true),
                    HostOutcome::Died { .. } => return None,
                };
                let place = self.tasks.remove(&(vm, *component))?;
                let bar = &mut self.bars[place];
                (bar.to, bar.failed) = (Some(number), failed);
                self.ended.insert(number, place);
                return Some(bar.from);
            }
            (_, _) => return None,
        };
        // What was sent before the first event is not known here.
        let waiting = self.letters.get_mut(&link)?;
        let found = waiting.iter().position(|(sent, _)| *sent == letter)?;
        waiting.drain(..=found).next_back().map(|(_, number)| number)
    }

    /// Marks the operations on the way back from the last change that is done.
    fn mark(&mut self, events: &[Event]) {
        let done = |event: &Event| {
            let news =
                |output: &Output| matches!(output, Output::Manager(manager::Output::ToOperator(News::ChangeDone(_))));
            event.outputs.iter().any(news)
        };
        let mut event = events.iter().rposition(done);
        while let Some(number) = event {
            if let Some(bar) = self.ended.get(&number) {
                self.bars[*bar].critical = true;
            }
            event = self.causes[number];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::shapes::{self, Course};

    #[test]
    fn the_operations_of_a_chain_are_its_critical_path_one_after_the_other() {
        let mut world = shapes::chain(3, Course::Up).world();
        let events = crate::run::run_in_turn(&mut world);
        let bars = operations(&events);
        assert_eq!(bars.len(), 3);
        assert!(bars.iter().all(|bar| bar.critical && bar.to.is_some() && !bar.failed), "{bars:?}");
        assert!(bars.windows(2).all(|pair| pair[0].to <= Some(pair[1].from)), "{bars:?}");
        let moments: Vec<Duration> = (0..events.len()).map(|it| Duration::from_secs(it as u64)).collect();
        let drawn = draw(&events, &moments, 80);
        assert_eq!(drawn.lines().count(), 4, "{drawn}");
        assert!(drawn.lines().take(3).all(|line| line.starts_with("start") && line.contains('█')), "{drawn}");
    }

    #[test]
    fn an_operation_that_nothing_waits_for_is_not_critical() {
        let text = "vm one : a\nvm two : b\n----\na started\n";
        let scenario = crate::Scenario::parse("pair", text).expect("it is well written");
        let events = crate::run::run_in_turn(&mut scenario.world());
        let critical = operations(&events).iter().filter(|bar| bar.critical).count();
        assert_eq!(critical, 1);
    }
}
