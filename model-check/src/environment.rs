//! What surrounds the machines: hosts that carry out tasks, links that carry messages, the cloud, the operator.

use crate::action::Action;
use protocol::{
    ComponentId, HeldBinding, HostOutcome, HostTask, Name, Notice, Order, Report, Values, VmId, Work, agent,
    manager::{self, CloudTask, Request},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Letter {
    /// Manager to agent.
    Order(Order),
    /// Agent to manager.
    Report(Report),
    /// Agent to agent.
    Notice(Notice),
}

/// One direction of a link: first in, first out, exactly once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Queue {
    /// What is on its way, each with its number on this link.
    pub letters: VecDeque<(u64, Letter)>,
    /// The number of the last letter that was sent. Counted only where links may break.
    pub sent: u64,
    /// The last letter that arrived, which is sent again after a break. Kept only where links may break; elsewhere its
    /// room would be copied about for nothing.
    pub arrived: Option<Box<(u64, Letter)>>,
}

impl Queue {
    /// Adds a letter at the end.
    pub fn send(&mut self, letter: Letter, numbered: bool) {
        self.sent += u64::from(numbered);
        // Most links have one letter under way, and there are very many links.
        if self.letters.capacity() == 0 {
            self.letters.reserve_exact(1);
        }
        self.letters.push_back((self.sent, letter));
    }

    /// Takes the next letter, or nothing if it is one that has arrived before.
    pub fn receive(&mut self, numbered: bool) -> Option<Letter> {
        let (number, letter) = self.letters.pop_front()?;
        if numbered {
            if self.arrived.as_ref().is_some_and(|last| number <= last.0) {
                return None;
            }
            self.arrived = Some(Box::new((number, letter.clone())));
        }
        Some(letter)
    }

    /// The link broke before the last acknowledgement got through: the last letter comes again.
    pub fn resend(&mut self) {
        if let Some(arrived) = &self.arrived {
            self.letters.push_front((**arrived).clone());
        }
    }

    /// Whether it is as if nothing had ever been sent.
    pub fn is_bare(&self) -> bool {
        self.letters.is_empty() && self.sent == 0 && self.arrived.is_none()
    }
}

/// A host: what it was asked to do, what runs on it, which alarms are set.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Host {
    /// At most one task for each component.
    pub tasks: BTreeMap<ComponentId, HostTask>,
    /// Those of them that are starts and were asked to end early. They may be done first all the same.
    pub aborting: BTreeSet<ComponentId>,
    /// What runs, with the start task that started it.
    pub running: BTreeMap<ComponentId, u64>,
    /// What each of these was last told: all that it may use if it rebinds, and else the values that it started with.
    pub told: BTreeMap<ComponentId, Vec<HeldBinding>>,
    /// What does not run although its agent may take it for running: it died, or its start failed and may count as done.
    pub ended: BTreeSet<ComponentId>,
    /// What ever died, or of which an operation failed.
    pub suffered: BTreeSet<ComponentId>,
    /// The alarms that are set, with their length in milliseconds.
    pub alarms: BTreeMap<agent::Alarm, u64>,
    /// What an agent must never ask for.
    pub scandal: Option<String>,
}

impl Host {
    /// Takes on a task.
    pub fn take_on(&mut self, task: HostTask) {
        if task.work == Work::Abort {
            return self.take_on_abort(&task);
        }
        let running = self.running.contains_key(&task.component);
        let wrong = match task.work {
            _ if self.tasks.contains_key(&task.component) => Some("has another task under way"),
            Work::Start { .. } | Work::Prepare | Work::Purge if running => Some("is running"),
            Work::Stop | Work::Rebind { .. } if !running && !self.ended.contains(&task.component) => {
                Some("is not running")
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            self.scandal = Some(format!("{} is asked to {} but {wrong}", task.name, task.work.operation()));
        }
        self.tasks.insert(task.component, task);
    }

    /// Is asked to end a start early.
    fn take_on_abort(&mut self, abort: &HostTask) {
        let is_meant = |task: &HostTask| task.serial == abort.serial && matches!(task.work, Work::Start { .. });
        if !self.tasks.get(&abort.component).is_some_and(is_meant) || !self.aborting.insert(abort.component) {
            self.scandal = Some(format!("the start of {} is to end early, but it is not under way", abort.name));
        }
    }

    /// Takes a task off the list.
    fn take_off(&mut self, component: ComponentId) -> Option<HostTask> {
        self.aborting.remove(&component);
        self.tasks.remove(&component)
    }

    /// Carries a task out.
    pub fn finish(&mut self, component: ComponentId) -> Option<HostOutcome> {
        let task = self.take_off(component)?;
        let values = match &task.work {
            Work::Start { bindings } => {
                self.running.insert(component, task.serial);
                self.ended.remove(&component);
                self.tell(&task, bindings);
                values_of(&task)
            }
            Work::Stop => {
                self.running.remove(&component);
                self.ended.remove(&component);
                self.told.remove(&component);
                Values::new()
            }
            Work::Rebind { bindings } => {
                self.tell(&task, bindings);
                Values::new()
            }
            Work::Prepare if !task.kind.renews => values_of(&task),
            Work::Prepare | Work::Purge | Work::Abort => Values::new(),
        };
        Some(HostOutcome::Done { component, serial: task.serial, values })
    }

    /// Remembers what a run was told. Without `rebind`, only values matter.
    fn tell(&mut self, task: &HostTask, bindings: &[HeldBinding]) {
        let rebinds = task.kind.rebinds;
        let told: Vec<_> = bindings.iter().filter(|it| rebinds || !it.values.is_empty()).cloned().collect();
        if self.running.contains_key(&task.component) && (rebinds || !told.is_empty()) {
            self.told.insert(task.component, told);
        }
    }

    /// Fails in a task.
    pub fn fail(&mut self, component: ComponentId) -> Option<HostOutcome> {
        let task = self.take_off(component)?;
        self.suffered.insert(component);
        if let Work::Start { .. } = task.work {
            self.ended.insert(component);
        }
        Some(HostOutcome::Failed { component, serial: task.serial, detail: Arc::from("failed") })
    }

    /// Ends a start early.
    pub fn abort(&mut self, component: ComponentId) -> Option<HostOutcome> {
        let task = self.take_off(component)?;
        Some(HostOutcome::Failed { component, serial: task.serial, detail: Arc::from("aborted") })
    }

    /// A running component ends by itself.
    pub fn die(&mut self, component: ComponentId) -> Option<HostOutcome> {
        let serial = self.running.remove(&component)?;
        self.told.remove(&component);
        self.ended.insert(component);
        self.suffered.insert(component);
        Some(HostOutcome::Died { component, serial, detail: Arc::from("died") })
    }
}

/// What a component hands out: another port at each start, as a real host may choose; or one that is its own.
fn values_of(task: &HostTask) -> Values {
    let names: BTreeSet<&Name> = task.kind.exports.values().flat_map(|export| &export.values).collect();
    let text: Arc<str> = match task.kind.renews {
        true => Arc::from(format!("{} {}", task.component, task.serial)),
        false => Arc::from(task.component.to_string()),
    };
    names.into_iter().map(|name| (name.clone(), text.clone())).collect()
}

/// The cloud: what it was asked for, and the manager's alarms.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Cloud {
    /// At most one task for each VM.
    pub tasks: BTreeMap<VmId, CloudTask>,
    /// The alarms that are set, with their length in milliseconds.
    pub alarms: BTreeMap<manager::Alarm, u64>,
}

/// One request of the script.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Line {
    /// What is asked for.
    pub request: Request,
    /// Whether the operator waits until everything asked for before has come to rest.
    pub patient: bool,
}

/// The operator: what is still to be asked for, and what may still go wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Operator {
    /// The requests to come, shared by all states of one exploration.
    #[serde(skip)]
    pub script: Arc<[Line]>,
    /// How many of them were made.
    pub asked: usize,
    /// The VMs that are lost and not declared so.
    pub lost: BTreeSet<VmId>,
    /// What may still go wrong.
    pub faults: Faults,
}

impl Operator {
    /// The next request.
    pub fn next(&self) -> Option<&Line> {
        self.script.get(self.asked)
    }
}

/// How many faults of each sort may happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Faults {
    /// Operations that fail.
    pub failures: u32,
    /// Started components that die.
    pub deaths: u32,
    /// Agents or the manager that crash and come back.
    pub crashes: u32,
    /// Links that break and come back.
    pub breaks: u32,
    /// VMs that are lost.
    pub losses: u32,
}

impl Faults {
    /// Whether anything may go wrong at all.
    pub fn any(self) -> bool {
        self != Self::default()
    }

    /// Takes one fault off the budget.
    pub fn spend(&mut self, fault: Action) {
        match fault {
            Action::Fail(..) => self.failures -= 1,
            Action::Die(..) => self.deaths -= 1,
            Action::Crash(_) | Action::CrashManager => self.crashes -= 1,
            Action::Break(..) => self.breaks -= 1,
            Action::Lose(_) => self.losses -= 1,
            _ => {}
        }
    }

    /// Whether components may stop by themselves, so that the end may depend on when.
    pub fn stop_components(self) -> bool {
        self.deaths > 0 || self.losses > 0 || self.failures > 0
    }

    /// Whether letters may come twice, so that links must number them.
    pub fn repeats(self) -> bool {
        self.crashes > 0 || self.breaks > 0
    }
}
