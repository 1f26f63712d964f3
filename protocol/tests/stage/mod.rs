//! A small stage for the two machines: one manager, its agents, ordered links, hosts that do as they are asked.
//!
//! A test chooses what happens next, move by move, or lets everything run until it is quiet.
#![allow(dead_code, reason = "each test binary uses a part")]

use protocol::{
    Change, CloudManager, ComponentId, ComponentState, Edit, Export, HostOutcome, HostTask, Import, Kind, Name, Need,
    Notice, Order, Report, Strategy, Values, VmAgent, VmId, Wire, Work, agent,
    manager::{self, CloudOutcome, CloudTask, News, Output, Request},
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("tests use names that are names")
}

/// A kind with these imports (name, export, need) and exports.
pub(crate) fn kind(imports: &[(&str, &str, Need)], exports: &[&str]) -> Kind {
    let import = |(it, export, need): &(&str, &str, Need)| (name(it), Import { export: name(export), need: *need });
    Kind {
        imports: imports.iter().map(import).collect(),
        exports: exports.iter().map(|it| (name(it), Export::default())).collect(),
        ..Kind::default()
    }
}

pub(crate) fn add_vm(vm: &str) -> Edit {
    Edit::AddVm { vm: name(vm) }
}

pub(crate) fn remove_vm(vm: &str) -> Edit {
    Edit::RemoveVm { vm: name(vm) }
}

pub(crate) fn add(component: &str, vm: &str, kind: Kind) -> Edit {
    Edit::AddComponent { component: name(component), vm: name(vm), kind: Arc::new(kind) }
}

pub(crate) fn remove(component: &str) -> Edit {
    Edit::RemoveComponent { component: name(component) }
}

pub(crate) fn restart(component: &str) -> Edit {
    Edit::RestartComponent { component: name(component) }
}

pub(crate) fn set_need(component: &str, import: &str, number: u32) -> Edit {
    Edit::SetNeed { component: name(component), import: name(import), number }
}

/// `"web.db → mysql.sql"`
pub(crate) fn wire(text: &str) -> Wire {
    let port = |text: &str| text.split_once('.').map(|(component, port)| (name(component), name(port)));
    let ends = text.split_once(" → ").and_then(|(client, provider)| port(client).zip(port(provider)));
    let ((client, import), (provider, export)) = ends.expect("a binding is written client.import → provider.export");
    Wire { client, import, provider, export }
}

pub(crate) fn bind(text: &str) -> Edit {
    Edit::AddBinding(wire(text))
}

pub(crate) fn unbind(text: &str) -> Edit {
    Edit::RemoveBinding(wire(text))
}

pub(crate) fn change(strategy: Strategy, edits: impl IntoIterator<Item = Edit>) -> Request {
    Request::Make(Change { strategy, incomplete: false, edits: edits.into_iter().collect() })
}

pub(crate) fn incomplete(edits: impl IntoIterator<Item = Edit>) -> Request {
    let edits = edits.into_iter().collect();
    Request::Make(Change { strategy: Strategy::Together, incomplete: true, edits })
}

/// One thing that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Move {
    Cloud(VmId),
    Order(VmId),
    Report(VmId),
    Notice(VmId, VmId),
    Finish(VmId, ComponentId),
}

#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) manager: CloudManager,
    pub(crate) agents: BTreeMap<VmId, VmAgent>,
    pub(crate) orders: BTreeMap<VmId, VecDeque<Order>>,
    pub(crate) reports: BTreeMap<VmId, VecDeque<Report>>,
    pub(crate) notices: BTreeMap<(VmId, VmId), VecDeque<Notice>>,
    pub(crate) tasks: BTreeMap<(VmId, ComponentId), HostTask>,
    pub(crate) cloud: BTreeMap<VmId, VecDeque<CloudTask>>,
    /// Everything the operator was told.
    pub(crate) news: Vec<News>,
    /// What the manager said in its latest step.
    pub(crate) said: Vec<Output>,
    /// What an agent said in the latest step of any.
    pub(crate) agent_said: Vec<agent::Output>,
    /// Alarms that agents have set, in order.
    pub(crate) alarms: Vec<(VmId, agent::Alarm, u64)>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self {
            manager: CloudManager::new(None),
            agents: BTreeMap::new(),
            orders: BTreeMap::new(),
            reports: BTreeMap::new(),
            notices: BTreeMap::new(),
            tasks: BTreeMap::new(),
            cloud: BTreeMap::new(),
            news: Vec::new(),
            said: Vec::new(),
            agent_said: Vec::new(),
            alarms: Vec::new(),
        }
    }

    /// A stage on which this change has come to rest.
    pub(crate) fn with(edits: impl IntoIterator<Item = Edit>) -> Self {
        let mut stage = Self::new();
        stage.ask(change(Strategy::Together, edits));
        stage.run();
        assert_eq!(stage.manager.changes().count(), 0, "the first change is not done: {:#?}", stage.waiting());
        stage.news.clear();
        stage
    }

    /// The operator asks; returns what the manager answers.
    pub(crate) fn ask(&mut self, request: Request) -> News {
        self.tell_manager(manager::Input::FromOperator(request));
        let Some(Output::ToOperator(news)) = self.said.first() else { panic!("no answer: {:?}", self.said) };
        news.clone()
    }

    pub(crate) fn tell_manager(&mut self, input: manager::Input) {
        self.said = self.manager.step(input);
        for output in self.said.clone() {
            match output {
                Output::ToOperator(news) => self.news.push(news),
                Output::ToAgent(vm, order) => self.orders.entry(vm).or_default().push_back(order),
                Output::ToCloud(task) => {
                    let (CloudTask::Create(vm, _) | CloudTask::Destroy(vm)) = &task;
                    self.cloud.entry(*vm).or_default().push_back(task);
                }
                Output::SetAlarm(..) | Output::Note(_) => {}
            }
        }
    }

    pub(crate) fn tell_agent(&mut self, vm: VmId, input: agent::Input) {
        let Some(agent) = self.agents.get_mut(&vm) else { return };
        self.agent_said = agent.step(input);
        for output in self.agent_said.clone() {
            match output {
                agent::Output::ToManager(report) => self.reports.entry(vm).or_default().push_back(report),
                agent::Output::ToPeer(to, notice) => self.notices.entry((vm, to)).or_default().push_back(notice),
                // The host ends the start: the next outcome of that task is a failure.
                agent::Output::ToHost(task) if task.work == Work::Abort => {
                    let start = self.tasks.get_mut(&(vm, task.component)).expect("only a start under way is aborted");
                    assert_eq!(start.serial, task.serial);
                    start.work = Work::Abort;
                }
                agent::Output::ToHost(task) => {
                    let before = self.tasks.insert((vm, task.component), task);
                    assert_eq!(before, None, "two tasks of one component at a time");
                }
                agent::Output::SetAlarm(alarm, pause) => self.alarms.push((vm, alarm, pause)),
                agent::Output::Note(_) => {}
            }
        }
    }

    /// All that can happen next, sorted.
    pub(crate) fn moves(&self) -> Vec<Move> {
        let mut moves: Vec<Move> =
            self.cloud.iter().filter(|it| !it.1.is_empty()).map(|it| Move::Cloud(*it.0)).collect();
        let is_up = |vm: &VmId| self.agents.contains_key(vm);
        moves.extend(self.orders.iter().filter(|it| is_up(it.0) && !it.1.is_empty()).map(|it| Move::Order(*it.0)));
        moves.extend(self.reports.iter().filter(|it| !it.1.is_empty()).map(|it| Move::Report(*it.0)));
        let notices = self.notices.iter().filter(|it| is_up(&it.0.1) && !it.1.is_empty());
        moves.extend(notices.map(|((from, to), _)| Move::Notice(*from, *to)));
        moves.extend(self.tasks.keys().map(|(vm, component)| Move::Finish(*vm, *component)));
        moves
    }

    /// Lets a move happen.
    pub(crate) fn make(&mut self, next: Move) {
        match next {
            Move::Cloud(vm) => match self.cloud.get_mut(&vm).and_then(VecDeque::pop_front) {
                Some(CloudTask::Create(..)) => {
                    self.agents.insert(vm, VmAgent::new(vm));
                    self.tell_manager(manager::Input::FromCloud(CloudOutcome::Created(vm)));
                }
                Some(CloudTask::Destroy(_)) => {
                    self.lose(vm);
                    self.tell_manager(manager::Input::FromCloud(CloudOutcome::Destroyed(vm)));
                }
                None => {}
            },
            Move::Order(vm) => {
                let order = self.orders.get_mut(&vm).and_then(VecDeque::pop_front).expect("an order is on its way");
                self.tell_agent(vm, agent::Input::FromManager(order));
            }
            Move::Report(vm) => {
                let report = self.reports.get_mut(&vm).and_then(VecDeque::pop_front).expect("a report is on its way");
                self.tell_manager(manager::Input::FromAgent(vm, report));
            }
            Move::Notice(from, to) => {
                let queue = self.notices.get_mut(&(from, to));
                let notice = queue.and_then(VecDeque::pop_front).expect("a notice is on its way");
                self.tell_agent(to, agent::Input::FromPeer(from, notice));
            }
            Move::Finish(vm, component) => {
                let task = self.tasks.remove(&(vm, component)).expect("a task is under way");
                let serial = task.serial;
                let outcome = match task.work {
                    Work::Abort => HostOutcome::Failed { component, serial, detail: Arc::from("aborted") },
                    _ => HostOutcome::Done { component, serial, values: Values::new() },
                };
                self.tell_agent(vm, agent::Input::FromHost(outcome));
            }
        }
    }

    /// The VM is no more: nothing is heard of it.
    pub(crate) fn lose(&mut self, vm: VmId) {
        self.agents.remove(&vm);
        self.tasks.retain(|(at, _), _| *at != vm);
    }

    /// Lets everything happen until it is quiet.
    pub(crate) fn run(&mut self) {
        self.run_but(|_| false);
    }

    /// Lets everything happen but what is held back, until it is quiet.
    pub(crate) fn run_but(&mut self, held_back: impl Fn(Move) -> bool) {
        while let Some(next) = self.moves().into_iter().find(|it| !held_back(*it)) {
            self.make(next);
        }
    }

    /// The task of a component fails.
    pub(crate) fn fail(&mut self, component: &str) {
        let (vm, id) = self.place(component);
        let task = self.tasks.remove(&(vm, id)).expect("a task is under way");
        let outcome = HostOutcome::Failed { component: id, serial: task.serial, detail: Arc::from("failed") };
        self.tell_agent(vm, agent::Input::FromHost(outcome));
    }

    pub(crate) fn vm(&self, vm: &str) -> VmId {
        self.manager.book().vm(&name(vm)).and_then(|vm| vm.id).expect("the VM is posted")
    }

    /// Where a component lives, and who it is.
    pub(crate) fn place(&self, component: &str) -> (VmId, ComponentId) {
        let book = self.manager.book();
        let entry = book.component(&name(component)).expect("the component is in the book");
        (book.vm_of(entry).id.expect("its VM is posted"), entry.id.expect("the component is posted"))
    }

    /// The state of a component in its agent's own book.
    pub(crate) fn state(&self, component: &str) -> ComponentState {
        let (vm, id) = self.place(component);
        self.agents[&vm].components()[&id].state()
    }

    /// What the changes that are not done wait for.
    pub(crate) fn waiting(&self) -> Vec<manager::ChangeState> {
        self.manager.changes().collect()
    }

    /// How many changes were done so far.
    pub(crate) fn done(&self) -> usize {
        self.news.iter().filter(|news| matches!(news, News::ChangeDone(_))).count()
    }
}
