//! The bytes of every message and of every input that a journal holds, as they must stay for ever.
//!
//! `BLESS=1 cargo test --package protocol --test wire_golden` writes the file anew. A line that was there must not change:
//! journals and older programs speak it. Only new lines may come.

mod golden;

use protocol::letter::{HostQuestion, Question};
use protocol::{
    BindingId, Change, ChangeId, ComponentId, ComponentState, Condition, Edit, Export, Fact, HostOutcome, Import,
    Instruction, Kind, Name, Need, Notice, Operation, Order, OrderNumber, Patience, Report, Strategy, Ticket, Values,
    VmId, VmState, Wire,
    agent::{self, Alarm as AgentAlarm, Input as AgentInput},
    letter::{FailedAttempt, ToAgent, ToManager},
    manager::{self, Alarm as ManagerAlarm, CloudOutcome, Input as ManagerInput, Request},
    wire,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

/// Names every variant of an enum, once for all: a new one does not compile until it is named here, and then the test
/// fails until it has a sample.
macro_rules! variants {
    ($($type:ident { $($variant:ident),* $(,)? })*) => {
        $(impl Variants for $type {
            const ALL: &'static [&'static str] = &[$(stringify!($variant)),*];
            fn variant(&self) -> &'static str {
                match self { $($type::$variant { .. } => stringify!($variant)),* }
            }
        })*
    };
}

trait Variants {
    const ALL: &'static [&'static str];
    fn variant(&self) -> &'static str;
}

variants! {
    Instruction {
        AddComponent, RemoveComponent, RestartComponent, RetryComponent, SkipComponent, SetNeed, AddBinding,
        RemoveBinding, ForgetVm, RollCall,
    }
    Fact {
        ComponentIs, BindingHeld, OperationFailed, ComponentGone, BindingGone, VmIs, Pending, ValueWithdrawn,
    }
    Notice { Bind, Started, UnbindRequired, UnbindConfirmed }
    HostOutcome { Done, Failed, Died }
    AgentAlarm { Retry, Steady }
    AgentInput { FromManager, FromPeer, FromHost, AlarmRang }
    ManagerInput { FromOperator, FromAgent, FromCloud, AlarmRang, SuspicionLimit }
    ManagerAlarm { CreateAgain, Suspicion }
    CloudOutcome { Created, CreateFailed, Destroyed, Silent, Heard, Lost }
    Request { Make, Retry, Skip, DeclareLost, Cancel }
    Edit {
        AddVm, RemoveVm, AddComponent, RemoveComponent, RestartComponent, SetNeed, AddBinding, RemoveBinding,
    }
    Strategy { DownThenUp, UpThenDown, Together }
    Need { Strong, Weak, Value }
    Operation { Prepare, Start, Run, Rebind, Stop, Purge }
    ComponentState { Stopped, Starting, Started, Stopping, Failed }
    VmState { Empty, Started, Stopped }
    ToAgent { Order, Neighbour, Ask, AskHost }
    ToManager { Report, Listening, Answer, AttemptFailed }
}

#[test]
fn the_bytes_of_every_message_are_as_they_were() {
    let mut lines = Lines::default();
    lines.section("manager to agent", instructions(), |instruction| Order { number: OrderNumber(300), instruction });
    lines.section("agent to manager", facts(), |fact| Report { through: OrderNumber(9), facts: vec![fact] });
    lines.section("agent to agent", notices(), |notice| notice);
    lines.section("agent's journal", agent_inputs(), |input| input);
    lines.section("agent's journal, from the host", outcomes(), AgentInput::FromHost);
    lines.section("agent's journal, alarms", agent_alarms(), AgentInput::AlarmRang);
    lines.section("manager's journal", manager_inputs(), |input| input);
    lines.section("manager's journal, requests", requests(), ManagerInput::FromOperator);
    lines.section("manager's journal, edits", edits(), |edit| {
        let change = Change { strategy: Strategy::Together, incomplete: false, edits: vec![edit] };
        ManagerInput::FromOperator(Request::Make(change))
    });
    lines.section("manager's journal, from the cloud", cloud_outcomes(), ManagerInput::FromCloud);
    lines.section("manager's journal, alarms", manager_alarms(), ManagerInput::AlarmRang);
    lines.section("words inside messages", Strategy::NAMES.map(|(name, it)| (name, it)).to_vec(), |it| it);
    lines.section("words inside messages", needs(), |it| it);
    lines.section("words inside messages", operations(), |it| it);
    lines.section("words inside messages", component_states(), |it| it);
    lines.section("words inside messages", vm_states(), |it| it);
    lines.section("letters to an agent", letters_to_agent(), |letter| letter);
    lines.section("letters to the manager", letters_to_manager(), |letter| letter);
    golden::check("messages.txt", &lines.text);
}

/// The golden file while it is written: one sentence and its bytes on each line.
#[derive(Default)]
struct Lines {
    text: String,
}

impl Lines {
    /// One line for each sample; every variant must have one.
    fn section<V, M>(&mut self, title: &str, samples: Vec<(&str, V)>, envelope: impl Fn(V) -> M)
    where
        V: Variants + Clone,
        M: Serialize + DeserializeOwned + PartialEq + Debug,
    {
        let sampled: BTreeSet<&str> = samples.iter().map(|(_, sample)| sample.variant()).collect();
        let missing: Vec<_> = V::ALL.iter().filter(|variant| !sampled.contains(**variant)).collect();
        assert!(missing.is_empty(), "{title}: no golden bytes for {missing:?}");
        for (sentence, sample) in samples {
            let variant = sample.variant();
            let message = envelope(sample);
            let bytes = wire::encode(&message).expect("a sample can be encoded");
            assert_eq!(wire::decode::<M>(&bytes).expect("what was encoded can be decoded"), message, "{sentence}");
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            self.text.push_str(&format!("{title}: {variant}: {sentence} | {hex}\n"));
        }
    }
}

fn letters_to_agent() -> Vec<(&'static str, ToAgent)> {
    let order = Order { number: OrderNumber(4), instruction: Instruction::RollCall };
    let address = "10.0.0.7:7400".parse().expect("an address");
    let newer = "[fd00::7]:7400".parse().expect("an address");
    vec![
        ("an order", ToAgent::Order(order)),
        ("where a neighbour listens", ToAgent::Neighbour { vm: VmId(2), address }),
        ("where another one listens", ToAgent::Neighbour { vm: VmId(2), address: newer }),
        (
            "what has it written",
            ToAgent::Ask { number: 7, component: ComponentId(5), question: Question::Output { bytes_max: 300 } },
        ),
        ("is it as it was", ToAgent::Ask { number: 7, component: ComponentId(5), question: Question::Drift }),
        ("what is kept", ToAgent::AskHost { number: 7, question: HostQuestion::Data }),
        ("delete", ToAgent::AskHost { number: 7, question: HostQuestion::DeleteData { key: name("db[0]") } }),
    ]
}

fn letters_to_manager() -> Vec<(&'static str, ToManager)> {
    let address = "10.0.0.7:7400".parse().expect("an address");
    let attempt = FailedAttempt {
        operation: Operation::Start,
        failures: 2,
        retries: 3,
        pause_ms: 2_000,
        steady_ms: 0,
        detail: Arc::from("exit code 1"),
    };
    vec![
        ("a report", ToManager::Report(Report { through: OrderNumber(9), facts: vec![] })),
        ("where it listens", ToManager::Listening { address }),
        ("what was written", ToManager::Answer { number: 7, answer: Ok("ready".into()) }),
        ("why it cannot be shown", ToManager::Answer { number: 7, answer: Err("gone".into()) }),
        ("why an attempt failed", ToManager::AttemptFailed { component: ComponentId(5), attempt }),
    ]
}

fn name(text: &str) -> Name {
    Name::new(text).expect("tests use names that are names")
}

fn values() -> Values {
    [(name("host"), Arc::from("10.0.0.7")), (name("port"), Arc::from("5432"))].into()
}

/// A kind that has something of everything.
fn rich_kind() -> Arc<Kind> {
    let import = |export: &str, need| Import { export: name(export), need };
    Arc::new(Kind {
        imports: [
            (name("cache"), import("objects", Need::Weak(0))),
            (name("db"), import("sql", Need::Strong(2))),
            (name("peer"), import("gossip", Need::Value(1))),
        ]
        .into(),
        exports: [(name("http"), Export { values: vec![name("host"), name("port")], capacity: Some(20) })].into(),
        prepares: true,
        rebinds: true,
        renews: true,
        purges: true,
        patience: [(Operation::Start, Patience { retries: 3, pause_ms_first: 500, factor: 2 })].into(),
        recipe: Arc::from(*b"run"),
    })
}

fn instructions() -> Vec<(&'static str, Instruction)> {
    let component = ComponentId(5);
    let binding = |value| Instruction::AddBinding {
        provider: component,
        export: name("sql"),
        client: ComponentId(70_000),
        client_vm: VmId(2),
        import: name("db"),
        value,
        ticket: Ticket(vec![1, 2, 3]),
    };
    vec![
        ("a plain component", Instruction::AddComponent { name: name("a"), kind: Arc::default() }),
        (
            "a component with something of everything",
            Instruction::AddComponent { name: name("app[2]"), kind: rich_kind() },
        ),
        ("it goes", Instruction::RemoveComponent { component }),
        ("it restarts", Instruction::RestartComponent { component }),
        ("a person asks to try again", Instruction::RetryComponent { component }),
        ("a person lets it count as done", Instruction::SkipComponent { component }),
        ("its import needs three", Instruction::SetNeed { component, import: name("db"), number: 3 }),
        ("lend to a client", binding(false)),
        ("hand out values to a client", binding(true)),
        ("take it back for good", Instruction::RemoveBinding { binding: BindingId(8) }),
        ("that VM is no more", Instruction::ForgetVm { vm: VmId(3) }),
        ("answer, and nothing else", Instruction::RollCall),
    ]
}

fn facts() -> Vec<(&'static str, Fact)> {
    let component = ComponentId(5);
    let condition = Condition { state: ComponentState::Started, since: OrderNumber(5) };
    vec![
        ("it is started", Fact::ComponentIs { component, condition }),
        ("the binding is held", Fact::BindingHeld { binding: BindingId(8), held: true }),
        (
            "its start failed for good",
            Fact::OperationFailed { component, operation: Operation::Start, detail: Arc::from("exit code 1") },
        ),
        ("it is gone", Fact::ComponentGone { component }),
        ("the binding is gone", Fact::BindingGone { binding: BindingId(8) }),
        ("the VM is started", Fact::VmIs { state: VmState::Started }),
        ("it waits for its loans", Fact::Pending { component, pending: true }),
        ("the value is not used any more", Fact::ValueWithdrawn { binding: BindingId(8) }),
    ]
}

fn notices() -> Vec<(&'static str, Notice)> {
    let binding = BindingId(8);
    let bind = |values| Notice::Bind {
        binding,
        client: ComponentId(5),
        import: name("db"),
        values,
        ticket: Ticket(vec![1, 2, 3]),
    };
    vec![
        ("an export without values", bind(Values::new())),
        ("an export and how to reach it", bind(values())),
        ("the loan", Notice::Started { binding }),
        ("give it back", Notice::UnbindRequired { binding, last: false }),
        ("give it back for good", Notice::UnbindRequired { binding, last: true }),
        ("it is back", Notice::UnbindConfirmed { binding, last: false }),
        ("it is back and forgotten", Notice::UnbindConfirmed { binding, last: true }),
    ]
}

fn outcomes() -> Vec<(&'static str, HostOutcome)> {
    let (component, serial) = (ComponentId(5), 2);
    vec![
        ("done, with values", HostOutcome::Done { component, serial, values: values() }),
        ("failed", HostOutcome::Failed { component, serial, detail: Arc::from("no space left") }),
        ("died", HostOutcome::Died { component, serial, detail: Arc::from("killed by signal 9") }),
    ]
}

fn agent_alarms() -> Vec<(&'static str, AgentAlarm)> {
    let (component, serial) = (ComponentId(5), 2);
    vec![
        ("time to try again", AgentAlarm::Retry { component, serial }),
        ("up for long enough", AgentAlarm::Steady { component, serial }),
    ]
}

fn agent_inputs() -> Vec<(&'static str, agent::Input)> {
    let order = Order { number: OrderNumber(4), instruction: Instruction::RollCall };
    let outcome = HostOutcome::Done { component: ComponentId(5), serial: 1, values: Values::new() };
    vec![
        ("an order", AgentInput::FromManager(order)),
        ("a notice", AgentInput::FromPeer(VmId(2), Notice::Started { binding: BindingId(8) })),
        ("an outcome", AgentInput::FromHost(outcome)),
        ("an alarm", AgentInput::AlarmRang(AgentAlarm::Retry { component: ComponentId(5), serial: 1 })),
    ]
}

fn manager_inputs() -> Vec<(&'static str, manager::Input)> {
    let report = Report { through: OrderNumber(4), facts: vec![Fact::ComponentGone { component: ComponentId(5) }] };
    vec![
        ("a request", ManagerInput::FromOperator(Request::Retry(name("web")))),
        ("a report", ManagerInput::FromAgent(VmId(2), report)),
        ("an outcome", ManagerInput::FromCloud(CloudOutcome::Created(VmId(2)))),
        ("an alarm", ManagerInput::AlarmRang(ManagerAlarm::CreateAgain(VmId(2)))),
        ("the limit of suspicion", ManagerInput::SuspicionLimit(Some(60_000))),
    ]
}

fn requests() -> Vec<(&'static str, Request)> {
    let make = |strategy| Request::Make(Change { strategy, incomplete: true, edits: Vec::new() });
    vec![
        ("an empty change, down then up", make(Strategy::DownThenUp)),
        ("an empty change, up then down", make(Strategy::UpThenDown)),
        ("an empty change, together", make(Strategy::Together)),
        ("try again", Request::Retry(name("web"))),
        ("let it count as done", Request::Skip(name("web"))),
        ("that VM is lost", Request::DeclareLost(name("vm1"))),
        ("cancel that change", Request::Cancel(ChangeId(7))),
    ]
}

fn edits() -> Vec<(&'static str, Edit)> {
    let (vm, component) = (name("vm1"), name("web"));
    let wire = Wire { client: name("web"), import: name("db"), provider: name("mysql'"), export: name("sql") };
    vec![
        ("a VM", Edit::AddVm { vm: vm.clone() }),
        ("a VM goes", Edit::RemoveVm { vm: vm.clone() }),
        ("a component", Edit::AddComponent { component: component.clone(), vm, kind: rich_kind() }),
        ("a component goes", Edit::RemoveComponent { component: component.clone() }),
        ("a component restarts", Edit::RestartComponent { component: component.clone() }),
        ("an import needs three", Edit::SetNeed { component, import: name("db"), number: 3 }),
        ("a binding", Edit::AddBinding(wire.clone())),
        ("a binding goes", Edit::RemoveBinding(wire)),
    ]
}

fn cloud_outcomes() -> Vec<(&'static str, CloudOutcome)> {
    let vm = VmId(2);
    vec![
        ("it is there", CloudOutcome::Created(vm)),
        ("it could not be made", CloudOutcome::CreateFailed(vm, Arc::from("quota"))),
        ("it is no more", CloudOutcome::Destroyed(vm)),
        ("it is silent", CloudOutcome::Silent(vm)),
        ("it is heard again", CloudOutcome::Heard(vm)),
        ("it is lost for certain", CloudOutcome::Lost(vm)),
    ]
}

fn manager_alarms() -> Vec<(&'static str, ManagerAlarm)> {
    vec![
        ("ask the cloud again", ManagerAlarm::CreateAgain(VmId(2))),
        ("suspected for long enough", ManagerAlarm::Suspicion(VmId(2), 1)),
    ]
}

fn needs() -> Vec<(&'static str, Need)> {
    vec![("strong 2", Need::Strong(2)), ("weak 0", Need::Weak(0)), ("value 1", Need::Value(1))]
}

fn operations() -> Vec<(&'static str, Operation)> {
    vec![
        ("prepare", Operation::Prepare),
        ("start", Operation::Start),
        ("run", Operation::Run),
        ("rebind", Operation::Rebind),
        ("stop", Operation::Stop),
        ("purge", Operation::Purge),
    ]
}

fn component_states() -> Vec<(&'static str, ComponentState)> {
    vec![
        ("stopped", ComponentState::Stopped),
        ("starting", ComponentState::Starting),
        ("started", ComponentState::Started),
        ("stopping", ComponentState::Stopping),
        ("failed to run", ComponentState::Failed(Operation::Run)),
    ]
}

fn vm_states() -> Vec<(&'static str, VmState)> {
    vec![("empty", VmState::Empty), ("all started", VmState::Started), ("not all started", VmState::Stopped)]
}
