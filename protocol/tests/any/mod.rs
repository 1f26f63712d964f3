//! Any message at all, for property tests. Numbers and names are drawn from few, so that messages speak of the same things.
#![allow(dead_code, reason = "each test binary uses a part")]

use proptest::{collection, option, prelude::*, sample::select, test_runner::RngSeed};
use protocol::{
    BindingId, Change, ChangeId, ComponentId, ComponentState, Condition, Edit, Export, Fact, HostOutcome, Import,
    Instruction, Kind, Name, Need, Notice, Operation, Order, OrderNumber, Patience, Report, Strategy as PhaseStrategy,
    Ticket, Values, VmId, VmState, Wire, agent,
    manager::{self, CloudOutcome, Request},
};
use std::sync::Arc;

/// That many cases, the same ones each time; no files are written beside the tests: a failure prints its smallest case.
/// `PROPTEST_RNG_SEED` and `PROPTEST_CASES` are not looked at; to search further, change the numbers here.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() }
}

/// A small number; sometimes one that needs all its bytes.
pub(crate) fn number() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 1..=12_u64, 1 => any::<u64>()]
}

/// The name of an import or export; mostly the same, so that ports fit.
fn port() -> impl Strategy<Value = Name> {
    prop_oneof![6 => Just("sql"), 1 => Just("http")].prop_map(|text| Name::new(text).expect("it is a name"))
}

pub(crate) fn name() -> impl Strategy<Value = Name> {
    select(vec!["a", "b", "c", "sql", "app[2]", "mysql'"]).prop_map(|text| Name::new(text).expect("it is a name"))
}

fn text() -> impl Strategy<Value = Arc<str>> {
    select(vec!["", "5432", "exit code 1", "größer"]).prop_map(Arc::from)
}

pub(crate) fn values() -> impl Strategy<Value = Values> {
    collection::btree_map(name(), text(), 0..3)
}

fn ticket() -> impl Strategy<Value = Ticket> {
    collection::vec(any::<u8>(), 0..4).prop_map(Ticket)
}

pub(crate) fn need() -> impl Strategy<Value = Need> {
    prop_oneof![(0..4_u32).prop_map(Need::Strong), (0..4_u32).prop_map(Need::Weak), (0..4_u32).prop_map(Need::Value)]
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    select(vec![
        Operation::Prepare,
        Operation::Start,
        Operation::Run,
        Operation::Rebind,
        Operation::Stop,
        Operation::Purge,
    ])
}

pub(crate) fn kind() -> impl Strategy<Value = Arc<Kind>> {
    let import = (port(), need()).prop_map(|(export, need)| Import { export, need });
    let export = (collection::vec(name(), 0..3), option::of(0..3_u32))
        .prop_map(|(values, capacity)| Export { values, capacity });
    let patience = (0..3_u32, 0..1_000_u64, 0..4_u32).prop_map(|(retries, pause_ms_first, factor)| Patience {
        retries,
        pause_ms_first,
        factor,
    });
    (
        collection::btree_map(port(), import, 0..3),
        collection::btree_map(port(), export, 0..3),
        any::<(bool, bool, bool, bool)>(),
        collection::btree_map(operation(), patience, 0..3),
        collection::vec(any::<u8>(), 0..4),
    )
        .prop_map(|(imports, exports, (prepares, rebinds, renews, purges), patience, recipe)| {
            Arc::new(Kind { imports, exports, prepares, rebinds, renews, purges, patience, recipe: recipe.into() })
        })
}

fn component() -> impl Strategy<Value = ComponentId> {
    number().prop_map(ComponentId)
}

fn binding() -> impl Strategy<Value = BindingId> {
    number().prop_map(BindingId)
}

pub(crate) fn vm() -> impl Strategy<Value = VmId> {
    number().prop_map(VmId)
}

pub(crate) fn instruction() -> impl Strategy<Value = Instruction> {
    let added = (component(), port(), component(), vm(), port(), any::<bool>(), ticket()).prop_map(
        |(provider, export, client, client_vm, import, value, ticket)| Instruction::AddBinding {
            provider,
            export,
            client,
            client_vm,
            import,
            value,
            ticket,
        },
    );
    prop_oneof![
        3 => (name(), kind()).prop_map(|(name, kind)| Instruction::AddComponent { name, kind }),
        1 => component().prop_map(|component| Instruction::RemoveComponent { component }),
        1 => component().prop_map(|component| Instruction::RestartComponent { component }),
        1 => component().prop_map(|component| Instruction::RetryComponent { component }),
        1 => component().prop_map(|component| Instruction::SkipComponent { component }),
        1 => (component(), port(), 0..4_u32)
            .prop_map(|(component, import, number)| Instruction::SetNeed { component, import, number }),
        3 => added,
        1 => binding().prop_map(|binding| Instruction::RemoveBinding { binding }),
        1 => vm().prop_map(|vm| Instruction::ForgetVm { vm }),
        1 => Just(Instruction::RollCall),
    ]
}

pub(crate) fn order() -> impl Strategy<Value = Order> {
    (number(), instruction()).prop_map(|(number, instruction)| Order { number: OrderNumber(number), instruction })
}

pub(crate) fn notice() -> impl Strategy<Value = Notice> {
    prop_oneof![
        (binding(), component(), port(), values(), ticket()).prop_map(|(binding, client, import, values, ticket)| {
            Notice::Bind { binding, client, import, values, ticket }
        }),
        binding().prop_map(|binding| Notice::Started { binding }),
        (binding(), any::<bool>()).prop_map(|(binding, last)| Notice::UnbindRequired { binding, last }),
        (binding(), any::<bool>()).prop_map(|(binding, last)| Notice::UnbindConfirmed { binding, last }),
    ]
}

pub(crate) fn outcome() -> impl Strategy<Value = HostOutcome> {
    let serial = 0..6_u64;
    prop_oneof![
        3 => (component(), serial.clone(), values())
            .prop_map(|(component, serial, values)| HostOutcome::Done { component, serial, values }),
        1 => (component(), serial.clone(), text())
            .prop_map(|(component, serial, detail)| HostOutcome::Failed { component, serial, detail }),
        1 => (component(), serial, text())
            .prop_map(|(component, serial, detail)| HostOutcome::Died { component, serial, detail }),
    ]
}

pub(crate) fn agent_input() -> impl Strategy<Value = agent::Input> {
    let alarm = (any::<bool>(), component(), 0..6_u64).prop_map(|(retry, component, serial)| match retry {
        true => agent::Alarm::Retry { component, serial },
        false => agent::Alarm::Steady { component, serial },
    });
    prop_oneof![
        3 => order().prop_map(agent::Input::FromManager),
        3 => (vm(), notice()).prop_map(|(vm, notice)| agent::Input::FromPeer(vm, notice)),
        3 => outcome().prop_map(agent::Input::FromHost),
        1 => alarm.prop_map(agent::Input::AlarmRang),
    ]
}

fn state() -> impl Strategy<Value = ComponentState> {
    prop_oneof![
        Just(ComponentState::Stopped),
        Just(ComponentState::Starting),
        Just(ComponentState::Started),
        Just(ComponentState::Stopping),
        operation().prop_map(ComponentState::Failed),
    ]
}

pub(crate) fn fact() -> impl Strategy<Value = Fact> {
    let condition = (state(), number()).prop_map(|(state, since)| Condition { state, since: OrderNumber(since) });
    prop_oneof![
        (component(), condition).prop_map(|(component, condition)| Fact::ComponentIs { component, condition }),
        (component(), operation(), text()).prop_map(|(component, operation, detail)| Fact::OperationFailed {
            component,
            operation,
            detail
        }),
        (binding(), any::<bool>()).prop_map(|(binding, held)| Fact::BindingHeld { binding, held }),
        component().prop_map(|component| Fact::ComponentGone { component }),
        binding().prop_map(|binding| Fact::BindingGone { binding }),
        select(vec![VmState::Empty, VmState::Started, VmState::Stopped]).prop_map(|state| Fact::VmIs { state }),
        (component(), any::<bool>()).prop_map(|(component, pending)| Fact::Pending { component, pending }),
        binding().prop_map(|binding| Fact::ValueWithdrawn { binding }),
    ]
}

pub(crate) fn report() -> impl Strategy<Value = Report> {
    (number(), collection::vec(fact(), 0..4))
        .prop_map(|(through, facts)| Report { through: OrderNumber(through), facts })
}

fn wire() -> impl Strategy<Value = Wire> {
    (name(), port(), name(), port()).prop_map(|(client, import, provider, export)| Wire {
        client,
        import,
        provider,
        export,
    })
}

pub(crate) fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        name().prop_map(|vm| Edit::AddVm { vm }),
        name().prop_map(|vm| Edit::RemoveVm { vm }),
        (name(), name(), kind()).prop_map(|(component, vm, kind)| Edit::AddComponent { component, vm, kind }),
        name().prop_map(|component| Edit::RemoveComponent { component }),
        name().prop_map(|component| Edit::RestartComponent { component }),
        (name(), port(), 0..4_u32).prop_map(|(component, import, number)| Edit::SetNeed { component, import, number }),
        wire().prop_map(Edit::AddBinding),
        wire().prop_map(Edit::RemoveBinding),
    ]
}

pub(crate) fn strategy() -> impl Strategy<Value = PhaseStrategy> {
    select(PhaseStrategy::NAMES.map(|(_, strategy)| strategy).to_vec())
}

pub(crate) fn request() -> impl Strategy<Value = Request> {
    let change = (strategy(), any::<bool>(), collection::vec(edit(), 0..6))
        .prop_map(|(strategy, incomplete, edits)| Change { strategy, incomplete, edits });
    prop_oneof![
        6 => change.prop_map(Request::Make),
        1 => name().prop_map(Request::Retry),
        1 => name().prop_map(Request::Skip),
        1 => name().prop_map(Request::DeclareLost),
        2 => (0..9u64).prop_map(|change| Request::Cancel(ChangeId(change))),
    ]
}

pub(crate) fn manager_input() -> impl Strategy<Value = manager::Input> {
    let cloud = prop_oneof![
        4 => vm().prop_map(CloudOutcome::Created),
        1 => (vm(), text()).prop_map(|(vm, detail)| CloudOutcome::CreateFailed(vm, detail)),
        1 => vm().prop_map(CloudOutcome::Destroyed),
        1 => vm().prop_map(CloudOutcome::Silent),
        1 => vm().prop_map(CloudOutcome::Heard),
        1 => vm().prop_map(CloudOutcome::Lost),
    ];
    let alarm = prop_oneof![
        vm().prop_map(manager::Alarm::CreateAgain),
        (vm(), 0..3_u32).prop_map(|(vm, time)| manager::Alarm::Suspicion(vm, time)),
    ];
    prop_oneof![
        4 => request().prop_map(manager::Input::FromOperator),
        4 => (vm(), report()).prop_map(|(vm, report)| manager::Input::FromAgent(vm, report)),
        3 => cloud.prop_map(manager::Input::FromCloud),
        1 => alarm.prop_map(manager::Input::AlarmRang),
    ]
}
