//! One agent by itself: the test is its manager, its neighbours and its host, and reads its answers as short sentences.
#![allow(dead_code, reason = "each test binary uses a part")]

use protocol::{
    BindingId, ComponentId, ComponentState, Fact, HostOutcome, Instruction, Kind, Name, Notice, Order, OrderNumber,
    Ticket, Values, VmAgent, VmId, Work,
    agent::{Alarm, Input, Output},
};
use std::sync::Arc;

/// The VM under test.
pub(crate) const HERE: VmId = VmId(1);
/// Its neighbour.
pub(crate) const THERE: VmId = VmId(2);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("tests use names that are names")
}

pub(crate) fn values(port: &str) -> Values {
    [(name("port"), Arc::from(port))].into()
}

pub(crate) fn bind(binding: u64, client: u64, port: &str) -> Notice {
    let (binding, client) = (BindingId(binding), ComponentId(client));
    Notice::Bind { binding, client, import: name("in"), values: values(port), ticket: Ticket::default() }
}

pub(crate) fn started(binding: u64) -> Notice {
    Notice::Started { binding: BindingId(binding) }
}

pub(crate) fn recall(binding: u64, last: bool) -> Notice {
    Notice::UnbindRequired { binding: BindingId(binding), last }
}

pub(crate) fn confirm(binding: u64, last: bool) -> Notice {
    Notice::UnbindConfirmed { binding: BindingId(binding), last }
}

/// An agent, with the number of its next order.
#[derive(Clone)]
pub(crate) struct Lone {
    pub(crate) agent: VmAgent,
    next: u64,
}

impl Lone {
    pub(crate) fn new() -> Self {
        Self { agent: VmAgent::new(HERE), next: 10 }
    }

    /// Skips to an order number, as if the orders between had gone to other VMs.
    pub(crate) fn number_next(&mut self, number: u64) {
        self.next = number;
    }

    pub(crate) fn step(&mut self, input: Input) -> String {
        self.agent.step(input).iter().map(say).collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn order(&mut self, instruction: Instruction) -> String {
        let number = OrderNumber(self.next);
        self.next += 1;
        self.step(Input::FromManager(Order { number, instruction }))
    }

    /// A new component, named by the order's number.
    pub(crate) fn add(&mut self, kind: Kind) -> (ComponentId, String) {
        let id = ComponentId(self.next);
        (id, self.order(Instruction::AddComponent { name: name("it"), kind: Arc::new(kind) }))
    }

    /// A new binding from a provider here to a client on the neighbour; named by the order's number.
    pub(crate) fn lend(&mut self, provider: ComponentId, value: bool) -> (u64, String) {
        let instruction = Instruction::AddBinding {
            provider,
            export: name("out"),
            client: ComponentId(900),
            client_vm: THERE,
            import: name("in"),
            value,
            ticket: Ticket::default(),
        };
        (self.next, self.order(instruction))
    }

    pub(crate) fn hear(&mut self, notice: Notice) -> String {
        self.hear_from(THERE, notice)
    }

    pub(crate) fn hear_from(&mut self, vm: VmId, notice: Notice) -> String {
        self.step(Input::FromPeer(vm, notice))
    }

    pub(crate) fn done(&mut self, component: ComponentId, serial: u64) -> String {
        self.done_with(component, serial, Values::new())
    }

    pub(crate) fn done_with(&mut self, component: ComponentId, serial: u64, values: Values) -> String {
        self.step(Input::FromHost(HostOutcome::Done { component, serial, values }))
    }

    pub(crate) fn failed(&mut self, component: ComponentId, serial: u64) -> String {
        self.step(Input::FromHost(HostOutcome::Failed { component, serial, detail: Arc::from("no") }))
    }

    pub(crate) fn died(&mut self, component: ComponentId, serial: u64) -> String {
        self.step(Input::FromHost(HostOutcome::Died { component, serial, detail: Arc::from("no") }))
    }

    pub(crate) fn rings(&mut self, component: ComponentId, serial: u64) -> String {
        self.step(Input::AlarmRang(Alarm::Retry { component, serial }))
    }

    pub(crate) fn state(&self, component: ComponentId) -> Option<ComponentState> {
        self.agent.components().get(&component).map(|component| component.state())
    }
}

/// An output in a few words.
pub(crate) fn say(output: &Output) -> String {
    match output {
        Output::ToManager(report) => {
            let facts: Vec<String> = report.facts.iter().map(say_fact).collect();
            format!(
                "report through {}{}{}",
                report.through.0,
                if facts.is_empty() { "" } else { ": " },
                facts.join(", ")
            )
        }
        Output::ToPeer(vm, notice) => format!("to {vm}: {}", say_notice(notice)),
        Output::ToHost(task) => {
            let bindings = match &task.work {
                Work::Start { bindings } | Work::Rebind { bindings } => {
                    let held: Vec<String> = bindings.iter().map(|held| held.binding.to_string()).collect();
                    format!(" with [{}]", held.join(", "))
                }
                Work::Prepare | Work::Stop | Work::Purge => String::new(),
                Work::Abort => return format!("host: abort (task {})", task.serial),
            };
            format!("host: {} (task {}){bindings}", task.work.operation(), task.serial)
        }
        Output::SetAlarm(Alarm::Retry { serial, .. }, pause) => format!("retry task {serial} in {pause} ms"),
        Output::SetAlarm(Alarm::Steady { serial, .. }, pause) => format!("steady after run {serial} in {pause} ms"),
        Output::Note(note) => format!("note {note:?}"),
    }
}

fn say_fact(fact: &Fact) -> String {
    match fact {
        Fact::ComponentIs { condition, .. } => {
            format!("{} since {}", condition.state, condition.since.0)
        }
        Fact::BindingHeld { binding, held } => format!("{binding} {}held", if *held { "" } else { "not " }),
        Fact::OperationFailed { operation, .. } => format!("{operation} failed for good"),
        Fact::ComponentGone { .. } => "gone".into(),
        Fact::BindingGone { binding } => format!("{binding} gone"),
        Fact::VmIs { state } => format!("vm {state:?}").to_lowercase(),
        Fact::Pending { pending: true, .. } => "pending".into(),
        Fact::Pending { pending: false, .. } => "at rest".into(),
        Fact::ValueWithdrawn { binding } => format!("{binding} no longer used"),
    }
}

fn say_notice(notice: &Notice) -> String {
    let last = |last: &bool| if *last { " for good" } else { "" };
    match notice {
        Notice::Bind { binding, values, .. } => {
            let values: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("bind {binding} [{}]", values.join(" "))
        }
        Notice::Started { binding } => format!("started {binding}"),
        Notice::UnbindRequired { binding, last: it } => format!("unbind {binding} required{}", last(it)),
        Notice::UnbindConfirmed { binding, last: it } => format!("unbind {binding} confirmed{}", last(it)),
    }
}
