//! The life of a component and of a binding as tables: every state meets every happening, and what the agent then says
//! stands in a golden file, one line for each pair.

mod golden;
mod lone;

use lone::{Lone, THERE, bind, confirm, name, recall, started};
use protocol::{
    BindingId, ComponentId, Export, Import, Instruction, Kind, Need, Operation, Patience, VmId,
    agent::{Alarm, Input, LoanState},
};

type Build<'a> = &'a dyn Fn() -> Lone;
type Happen<'a> = &'a dyn Fn(&mut Lone) -> String;

/// Writes the table of every state and every happening, each as `state + happening → state after: what is said`.
fn check(file: &str, states: &[(&str, Build)], happenings: &[(&str, Happen)], after: impl Fn(&Lone) -> String) {
    let mut table = String::new();
    for (state, build) in states {
        for (happening, happen) in happenings {
            let mut lone = build();
            let said = happen(&mut lone);
            let said = if said.is_empty() { "nothing" } else { &said };
            table.push_str(&format!("{state} + {happening} → {}: {said}\n", after(&lone)));
            assert_eq!(protocol::invariant::of_agent(&lone.agent), [], "{state} + {happening}");
        }
    }
    golden::check(file, &table);
}

/// The component of the tables below: one import, one export; every operation is tried once again but for `patience`.
fn kind(need: Need, patience: &[Operation]) -> Kind {
    let once = Patience { retries: 1, pause_ms_first: 100, factor: 2 };
    Kind {
        imports: [(name("in"), Import { export: name("x"), need })].into(),
        exports: [(name("out"), Export { values: vec![name("port")], capacity: None })].into(),
        prepares: true,
        purges: true,
        patience: patience.iter().map(|operation| (*operation, once)).collect(),
        ..Kind::default()
    }
}

const IT: ComponentId = ComponentId(10);
const LENT: u64 = 5;

#[test]
fn the_life_of_a_component() {
    let none: &[Operation] = &[];
    let preparing = |patience: &[Operation]| {
        let mut lone = Lone::new();
        lone.add(kind(Need::Strong(1), patience));
        lone
    };
    let stopped = |patience| {
        let mut lone = preparing(patience);
        lone.done(IT, 1);
        lone.hear(bind(LENT, IT.0, "1"));
        lone
    };
    let starting = |patience| {
        let mut lone = stopped(patience);
        lone.hear(started(LENT));
        lone
    };
    let started_ = |patience| {
        let mut lone = starting(patience);
        lone.done(IT, 2);
        lone
    };
    let draining = |patience| {
        let mut lone = started_(patience);
        lone.lend(IT, false);
        lone.hear(recall(LENT, false));
        lone
    };
    let stopping = |patience| {
        let mut lone = started_(patience);
        lone.hear(recall(LENT, false));
        lone
    };
    let failed = |mut lone: Lone, serial| {
        lone.failed(IT, serial);
        lone
    };
    let died = |mut lone: Lone| {
        lone.died(IT, 2);
        lone
    };
    let purging = || {
        let mut lone = stopped(none);
        lone.order(Instruction::RemoveComponent { component: IT });
        lone
    };
    let gone = || {
        let mut lone = purging();
        lone.done(IT, 2);
        lone
    };
    let states: &[(&str, Build)] = &[
        ("preparing", &|| preparing(none)),
        ("pausing to prepare again", &|| failed(preparing(&[Operation::Prepare]), 1)),
        ("failed to prepare", &|| failed(preparing(none), 1)),
        ("stopped, waiting for a loan", &|| stopped(none)),
        ("starting", &|| starting(none)),
        ("pausing to start again", &|| failed(starting(&[Operation::Start]), 2)),
        ("failed to start", &|| failed(starting(none), 2)),
        ("started", &|| started_(none)),
        ("draining, its own loan still out", &|| draining(none)),
        ("pausing after a death", &|| died(started_(&[Operation::Run]))),
        ("failed to run", &|| died(started_(none))),
        ("stopping", &|| stopping(none)),
        ("pausing to stop again", &|| failed(stopping(&[Operation::Stop]), 3)),
        ("failed to stop", &|| failed(stopping(none), 3)),
        ("purging", &purging),
        ("failed to purge", &|| failed(purging(), 2)),
        ("gone", &gone),
    ];
    let task = |lone: &Lone| (1..=4).rev().find(|serial| is_latest(lone, *serial)).unwrap_or(0);
    let happenings: &[(&str, Happen)] = &[
        ("remove", &|lone| lone.order(Instruction::RemoveComponent { component: IT })),
        ("restart", &|lone| lone.order(Instruction::RestartComponent { component: IT })),
        ("retry", &|lone| lone.order(Instruction::RetryComponent { component: IT })),
        ("skip", &|lone| lone.order(Instruction::SkipComponent { component: IT })),
        ("need two", &|lone| lone.order(Instruction::SetNeed { component: IT, import: name("in"), number: 2 })),
        ("bind again, other values", &|lone| lone.hear(bind(LENT, IT.0, "2"))),
        ("loan lent", &|lone| lone.hear(started(LENT))),
        ("loan recalled", &|lone| lone.hear(recall(LENT, false))),
        ("loan recalled for good", &|lone| lone.hear(recall(LENT, true))),
        ("its provider's VM forgotten", &|lone| lone.order(Instruction::ForgetVm { vm: THERE })),
        ("task done", &|lone| lone.done(IT, task(lone))),
        ("task failed", &|lone| lone.failed(IT, task(lone))),
        ("an old task done", &|lone| lone.done(IT, 0)),
        ("died", &|lone| lone.died(IT, 2)),
        ("retry alarm", &|lone| lone.rings(IT, task(lone))),
        ("an old retry alarm", &|lone| lone.rings(IT, 0)),
        ("steady alarm", &|lone| lone.step(Input::AlarmRang(Alarm::Steady { component: IT, serial: 2 }))),
        ("roll call", &|lone| lone.order(Instruction::RollCall)),
    ];
    check("component_life.txt", states, happenings, |lone| lone.state(IT).map_or("gone".into(), |it| it.to_string()));
}

/// Whether the latest task asked for the component has this serial: a retry alarm or outcome is awaited for no other.
fn is_latest(lone: &Lone, serial: u64) -> bool {
    let mut probe = lone.clone();
    let outcome = probe.done(IT, serial);
    let mut alarm = lone.clone();
    let rang = alarm.rings(IT, serial);
    !outcome.starts_with("note OutcomeTooLate") || !rang.starts_with("note AlarmTooLate")
}

#[test]
fn the_life_of_a_loan_as_its_provider_sees_it() {
    const LOAN: u64 = 11;
    let provider = |announced: bool, value: bool| {
        let mut lone = Lone::new();
        lone.add(Kind { imports: Default::default(), purges: false, ..kind(Need::Strong(1), &[]) });
        if announced {
            lone.done_with(IT, 1, lone::values("1"));
        }
        let (loan, _) = lone.lend(IT, value);
        assert_eq!(loan, LOAN);
        lone
    };
    let lent = || {
        let mut lone = provider(true, false);
        lone.done(IT, 2);
        lone
    };
    let recalled = || {
        let mut lone = lent();
        lone.order(Instruction::RestartComponent { component: IT });
        lone
    };
    let remove = |mut lone: Lone| {
        lone.order(Instruction::RemoveBinding { binding: BindingId(LOAN) });
        lone
    };
    let gone = || {
        let mut lone = remove(lent());
        lone.hear(confirm(LOAN, true));
        lone
    };
    let states: &[(&str, Build)] = &[
        ("home, not announced", &|| provider(false, false)),
        ("home, announced", &|| provider(true, false)),
        ("lent", &lent),
        ("recalled", &recalled),
        ("recalled and removed", &|| remove(recalled())),
        ("recalled for good", &|| remove(lent())),
        ("value, not announced", &|| provider(false, true)),
        ("value, announced", &|| provider(true, true)),
        ("value, recalled for good", &|| remove(provider(true, true))),
        ("gone", &gone),
    ];
    let happenings: &[(&str, Happen)] = &[
        ("remove the binding", &|lone| lone.order(Instruction::RemoveBinding { binding: BindingId(LOAN) })),
        ("remove the provider", &|lone| lone.order(Instruction::RemoveComponent { component: IT })),
        ("restart the provider", &|lone| lone.order(Instruction::RestartComponent { component: IT })),
        ("confirmed", &|lone| lone.hear(confirm(LOAN, false))),
        ("confirmed for good", &|lone| lone.hear(confirm(LOAN, true))),
        ("confirmed by a stranger", &|lone| lone.hear_from(VmId(3), confirm(LOAN, true))),
        ("the client's VM forgotten", &|lone| lone.order(Instruction::ForgetVm { vm: THERE })),
        ("prepared, with another port", &|lone| lone.done_with(IT, 1, lone::values("7"))),
        ("started, with another port", &|lone| lone.done_with(IT, 2, lone::values("8"))),
        ("the provider dies", &|lone| lone.died(IT, 2)),
    ];
    check("loan_life.txt", states, happenings, |lone| {
        let loan = lone.agent.components().get(&IT).and_then(|it| it.loans().get(BindingId(LOAN)));
        match loan.map(|loan| loan.state()) {
            None => "gone".into(),
            Some(LoanState::Home) => "home".into(),
            Some(LoanState::Lent) => "lent".into(),
            Some(LoanState::Recalled { last: false }) => "recalled".into(),
            Some(LoanState::Recalled { last: true }) => "recalled for good".into(),
            Some(LoanState::Reference) => "value".into(),
        }
    });
}

#[test]
fn the_life_of_a_binding_as_its_client_sees_it() {
    let client = |need| {
        let mut lone = Lone::new();
        lone.add(Kind { prepares: false, purges: false, ..kind(need, &[]) });
        lone
    };
    let bound = |need| {
        let mut lone = client(need);
        lone.hear(bind(LENT, IT.0, "1"));
        lone
    };
    let held = |need| {
        let mut lone = bound(need);
        lone.hear(started(LENT));
        lone.done(IT, 1);
        lone
    };
    let recalled = |last| {
        let mut lone = held(Need::Strong(1));
        lone.hear(recall(LENT, last));
        lone
    };
    let parked = |lent: bool| {
        let mut lone = Lone::new();
        lone.hear(bind(LENT, IT.0, "1"));
        if lent {
            lone.hear(started(LENT));
        }
        lone
    };
    let gone = || {
        let mut lone = Lone::new();
        lone.number_next(20);
        lone.order(Instruction::RollCall);
        lone
    };
    let states: &[(&str, Build)] = &[
        ("unknown", &|| client(Need::Strong(1))),
        ("bound", &|| bound(Need::Strong(1))),
        ("held, strong", &|| held(Need::Strong(1))),
        ("held, weak", &|| held(Need::Weak(1))),
        ("held, value", &|| held(Need::Value(1))),
        ("recalled", &|| recalled(false)),
        ("recalled for good", &|| recalled(true)),
        ("parked", &|| parked(false)),
        ("parked, lent", &|| parked(true)),
        ("client gone", &gone),
    ];
    let add = Kind { prepares: false, purges: false, ..kind(Need::Strong(1), &[]) };
    let happenings: &[(&str, Happen)] = &[
        ("bind", &|lone| lone.hear(bind(LENT, IT.0, "1"))),
        ("bind, other values", &|lone| lone.hear(bind(LENT, IT.0, "2"))),
        ("lent", &|lone| lone.hear(started(LENT))),
        ("recall", &|lone| lone.hear(recall(LENT, false))),
        ("recall for good", &|lone| lone.hear(recall(LENT, true))),
        ("recall by a stranger", &|lone| lone.hear_from(VmId(3), recall(LENT, true))),
        ("the provider's VM forgotten", &|lone| lone.order(Instruction::ForgetVm { vm: THERE })),
        ("the client removed", &|lone| lone.order(Instruction::RemoveComponent { component: IT })),
        ("the client added", &|lone| {
            if lone.agent.components().is_empty() && lone.agent.last_order().0 < IT.0 {
                lone.add(add.clone()).1
            } else {
                "it was added before".into()
            }
        }),
    ];
    check("holding_life.txt", states, happenings, |lone| {
        let known = lone.agent.components().get(&IT).map(|it| (it.state().to_string(), it.holdings()));
        let parked = || lone.agent.parked().get(&IT).map(|it| ("parked".to_string(), it));
        match known.or_else(parked) {
            None => "no client".into(),
            Some((client, holdings)) => {
                let holding = holdings.get(BindingId(LENT)).map(|it| format!("{:?}", it.state()).to_lowercase());
                format!("client {client}, binding {}", holding.unwrap_or("unknown".into()))
            }
        }
    });
}
