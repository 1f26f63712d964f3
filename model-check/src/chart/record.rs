//! From a run to a chart: the run is repeated event by event, and what is to be seen is written down.

use super::{Arrow, Chart, Life, Lifeline, Mark, MarkSort, Row, Sort, tracks::Link, wording::Names};
use crate::{
    Action, World,
    environment::Letter,
    world::{Event, Input, Output, Part, Place},
};
use protocol::{
    BindingId, ComponentId, ComponentState, VmId,
    agent::{self, LoanState},
    manager::{self, CloudTask, News},
};
use std::collections::{BTreeMap, VecDeque};

impl Chart {
    /// The chart of a run that began in this world.
    pub fn new(initial: &World, events: &[Event]) -> Self {
        let mut recorder = Recorder::new(initial);
        for event in events {
            recorder.record(event);
        }
        recorder.chart
    }
}

struct Recorder {
    chart: Chart,
    world: World,
    names: Names,
    lifelines: BTreeMap<VmId, usize>,
    /// Where each component's life is written down.
    lives: BTreeMap<ComponentId, (usize, usize)>,
    /// The letters on their way, in their order.
    under_way: BTreeMap<Link, VecDeque<usize>>,
}

impl Recorder {
    fn new(initial: &World) -> Self {
        let manager = Lifeline { name: "manager".into(), born: None, ended: None, components: Vec::new() };
        let mut recorder = Self {
            chart: Chart { lifelines: vec![manager], ..Chart::default() },
            world: initial.clone(),
            names: Names::of(initial),
            lifelines: BTreeMap::new(),
            lives: BTreeMap::new(),
            under_way: BTreeMap::new(),
        };
        for agent in initial.agents() {
            let lifeline = recorder.lifeline(agent.id());
            for (id, component) in agent.components() {
                recorder.live(lifeline, *id, 0, Some(component.state()));
            }
        }
        for (place, part) in initial.parts() {
            let Part::Queue(queue) = &**part else { continue };
            for (_, letter) in &queue.letters {
                recorder.send(place, letter, None);
            }
        }
        recorder
    }

    fn lifeline(&mut self, vm: VmId) -> usize {
        if let Some(lifeline) = self.lifelines.get(&vm) {
            return *lifeline;
        }
        let name = self.names.vm(vm);
        self.chart.lifelines.push(Lifeline { name, born: None, ended: None, components: Vec::new() });
        self.lifelines.insert(vm, self.chart.lifelines.len() - 1);
        self.chart.lifelines.len() - 1
    }

    fn record(&mut self, event: &Event) {
        let row = self.chart.rows.len();
        let lifeline = self.stage(event);
        let arrived = self.arrival(event, row);
        let before = self.looks(event);
        match event.input.clone() {
            // What the machine was told is what counts: in a recorded run hosts answer with values of their own.
            Some((place, input)) => drop(self.world.relive(place, input)),
            None => drop(self.world.apply(event.action)),
        }
        let mut marks = self.happening(event, row);
        for output in &event.outputs {
            if let Output::Manager(manager::Output::ToCloud(task)) = output {
                self.names.learn_vm(task);
                let (CloudTask::Create(vm, _) | CloudTask::Destroy(vm)) = task;
                self.lifeline(*vm);
            }
            if let Output::Manager(manager::Output::ToOperator(news)) = output
                && let Some(text) = self.names.news(news)
            {
                let sort = if let News::Refused(_) = news { MarkSort::Fault } else { MarkSort::News };
                marks.push(Mark { sort, text });
            }
        }
        let first = self.chart.arrows.len();
        for output in &event.outputs {
            self.send_output(event, output, row);
        }
        marks.extend(self.differences(event, &before, lifeline, row));
        let sent = (first..self.chart.arrows.len()).collect();
        self.chart.rows.push(Row { number: row + 1, lifeline, arrived, sent, marks });
    }

    /// The lifeline on which an event happens.
    fn stage(&mut self, event: &Event) -> usize {
        match event.action {
            Action::Ask
            | Action::Declare(_)
            | Action::Cloud(_)
            | Action::Report(_)
            | Action::RingManager(_)
            | Action::CrashManager => 0,
            Action::Order(vm)
            | Action::Notice(_, vm)
            | Action::Finish(vm, _)
            | Action::Fail(vm, _)
            | Action::Abort(vm, _)
            | Action::Die(vm, _)
            | Action::Ring(vm, _)
            | Action::Crash(vm)
            | Action::Break(vm, _)
            | Action::Lose(vm) => self.lifeline(vm),
        }
    }

    /// The letter that arrives. One that comes again is dropped by the link, and is no arrow.
    fn arrival(&mut self, event: &Event, row: usize) -> Option<usize> {
        let link = match event.action {
            Action::Order(vm) => (0, self.lifeline(vm)),
            Action::Report(vm) => (self.lifeline(vm), 0),
            Action::Notice(from, to) => (self.lifeline(from), self.lifeline(to)),
            _ => return None,
        };
        event.input.as_ref()?;
        let arrow = self.under_way.get_mut(&link)?.pop_front()?;
        self.chart.arrows[arrow].arrived = Some(row);
        Some(arrow)
    }

    fn send_output(&mut self, event: &Event, output: &Output, row: usize) {
        let place = event.input.as_ref().map(|(place, _)| *place);
        match (place, output) {
            (_, Output::Manager(manager::Output::ToAgent(vm, order))) => {
                self.names.learn(order);
                self.send(Place::Orders(*vm), &Letter::Order(order.clone()), Some(row));
            }
            (Some(Place::Agent(vm)), Output::Agent(agent::Output::ToManager(report))) => {
                self.send(Place::Reports(vm), &Letter::Report(report.clone()), Some(row));
            }
            (Some(Place::Agent(vm)), Output::Agent(agent::Output::ToPeer(to, notice))) => {
                self.send(Place::Notices(vm, *to), &Letter::Notice(notice.clone()), Some(row));
            }
            (_, _) => {}
        }
    }

    fn send(&mut self, place: Place, letter: &Letter, sent: Option<usize>) {
        let (from, to) = match place {
            Place::Orders(vm) => (0, self.lifeline(vm)),
            Place::Reports(vm) => (self.lifeline(vm), 0),
            Place::Notices(from, to) => (self.lifeline(from), self.lifeline(to)),
            _ => return,
        };
        let (sort, label) = match letter {
            Letter::Order(order) => (Sort::Order, self.names.order(order)),
            Letter::Report(report) => self.names.report(report),
            Letter::Notice(notice) => self.names.notice(notice),
        };
        self.under_way.entry((from, to)).or_default().push_back(self.chart.arrows.len());
        self.chart.arrows.push(Arrow { from, to, sort, label, sent, arrived: None });
    }

    /// What happens that no machine says: requests, faults, VMs that come and go.
    fn happening(&mut self, event: &Event, row: usize) -> Vec<Mark> {
        let fault = |text: String| vec![Mark { sort: MarkSort::Fault, text }];
        match (event.action, &event.input) {
            (Action::Ask | Action::Declare(_), Some((_, Input::Manager(manager::Input::FromOperator(request))))) => {
                vec![Mark { sort: MarkSort::Asked, text: self.names.request(request) }]
            }
            (Action::Cloud(vm), _) => {
                let lifeline = self.lifeline(vm);
                let lifeline = &mut self.chart.lifelines[lifeline];
                if self.world.agent(vm).is_some() {
                    lifeline.born = Some(row);
                } else {
                    lifeline.ended.get_or_insert(row);
                }
                Vec::new()
            }
            (Action::Lose(vm), _) => {
                let lifeline = self.lifeline(vm);
                self.chart.lifelines[lifeline].ended = Some(row);
                for life in &mut self.chart.lifelines[lifeline].components {
                    life.states.push((row, None));
                }
                fault(format!("{} is lost", self.names.vm(vm)))
            }
            (Action::Fail(_, component), _) => fault(format!("{}: a task fails", self.names.component(component))),
            (Action::Die(_, component), _) => fault(format!("{} dies", self.names.component(component))),
            (Action::Crash(_), _) => fault("the agent crashes and is back".into()),
            (Action::CrashManager, _) => fault("the manager crashes and is back".into()),
            (Action::Break(one, other), _) => {
                fault(format!("the link {} – {} breaks", self.names.vm(one), self.names.vm(other)))
            }
            (Action::Order(_) | Action::Report(_) | Action::Notice(..), None) => {
                vec![Mark { sort: MarkSort::News, text: "came before, dropped".into() }]
            }
            (_, _) => Vec::new(),
        }
    }

    /// What an agent's books show of its components and of the loans within its VM.
    fn looks(&self, event: &Event) -> Looks {
        let Some((Place::Agent(vm), _)) = event.input else { return Looks::default() };
        let Some(agent) = self.world.agent(vm) else { return Looks::default() };
        let states = agent.components().iter().map(|(id, component)| (*id, component.state()));
        let loans = agent.components().values().flat_map(|component| component.loans().iter());
        let local = loans.filter(|(_, loan)| loan.client_vm() == vm).map(|(binding, loan)| (binding, loan.state()));
        Looks { states: states.collect(), loans: local.collect() }
    }

    fn differences(&mut self, event: &Event, before: &Looks, lifeline: usize, row: usize) -> Vec<Mark> {
        let after = self.looks(event);
        let mut marks = Vec::new();
        for (binding, state) in &after.loans {
            let (client, provider) = self.names.ends(*binding);
            let text = match (before.loans.get(binding).unwrap_or(&LoanState::Home), state) {
                (one, other) if one == other => continue,
                (_, LoanState::Lent) => format!("lend {provider} to {client}"),
                (_, LoanState::Recalled { .. }) => format!("recall {provider}"),
                (_, LoanState::Home) => format!("{provider} returned"),
                (_, LoanState::Reference) => continue,
            };
            marks.push(Mark { sort: MarkSort::Loan, text });
        }
        for (id, state) in &after.states {
            if before.states.get(id) != Some(state) {
                let waits = *state == ComponentState::Stopped && !before.states.contains_key(id);
                let state_now = if waits { "waits".into() } else { state.to_string() };
                let text = format!("{} {state_now}", self.names.component(*id));
                marks.push(Mark { sort: MarkSort::State(*state), text });
                self.live(lifeline, *id, row, Some(*state));
            }
        }
        for id in before.states.keys().filter(|id| !after.states.contains_key(id)) {
            marks.push(Mark { sort: MarkSort::Gone, text: format!("{} gone", self.names.component(*id)) });
            self.live(lifeline, *id, row, None);
        }
        marks
    }

    fn live(&mut self, lifeline: usize, id: ComponentId, row: usize, state: Option<ComponentState>) {
        let name = self.names.component(id);
        let lives = &mut self.chart.lifelines[lifeline].components;
        let (_, place) = *self.lives.entry(id).or_insert_with(|| {
            lives.push(Life { name, states: Vec::new() });
            (lifeline, lives.len() - 1)
        });
        lives[place].states.push((row, state));
    }
}

#[derive(Default)]
struct Looks {
    states: BTreeMap<ComponentId, ComponentState>,
    loans: BTreeMap<BindingId, LoanState>,
}
