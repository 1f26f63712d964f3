//! Short stories of one agent, where the table of one step does not show the point.

mod lone;

use lone::{HERE, Lone, THERE, bind, confirm, name, recall, started, values};
use protocol::{
    BindingId, ComponentId, ComponentState, Export, Fact, Import, Instruction, Kind, Need, Operation, Order,
    OrderNumber, Patience, Ticket, VmId, VmState,
    agent::{Alarm, Input, Output},
    bounds::FACTS_PER_REPORT_MAX,
    wire,
};

fn kind(need: Need) -> Kind {
    Kind {
        imports: [(name("in"), Import { export: name("x"), need })].into(),
        exports: [(name("out"), Export { values: vec![name("port")], capacity: None })].into(),
        ..Kind::default()
    }
}

fn provider() -> Kind {
    Kind { imports: Default::default(), ..kind(Need::Strong(1)) }
}

/// A started component that holds binding 5 from the neighbour.
fn holder(kind: Kind) -> (Lone, ComponentId) {
    let mut lone = Lone::new();
    let (it, _) = lone.add(kind);
    lone.hear(bind(5, it.0, "1"));
    lone.hear(started(5));
    if lone.state(it) == Some(ComponentState::Starting) {
        lone.done(it, 1);
    }
    assert_eq!(lone.state(it), Some(ComponentState::Started));
    (lone, it)
}

/// Binds a client here to a provider here.
fn bind_locally(lone: &mut Lone, provider: ComponentId, client: ComponentId) -> String {
    lone.order(Instruction::AddBinding {
        provider,
        export: name("out"),
        client,
        client_vm: HERE,
        import: name("in"),
        value: false,
        ticket: Ticket::default(),
    })
}

#[test]
fn a_local_binding_follows_the_same_rules_inside_one_step() {
    let mut lone = Lone::new();
    let (provider, _) = lone.add(provider());
    let (client, _) = lone.add(kind(Need::Strong(1)));
    bind_locally(&mut lone, provider, client);
    assert_eq!(lone.state(client), Some(ComponentState::Stopped));
    // The provider is ready, and the client starts in the same step.
    let said = lone.done(provider, 1);
    assert_eq!(
        said,
        "host: start (task 1) with [binding#12]; report through 12: started since 10, binding#12 held, starting since 11"
    );
    lone.done(client, 1);
    // The provider is removed: the client stops first, and only then the provider.
    let said = lone.order(Instruction::RemoveComponent { component: provider });
    assert_eq!(said, "host: stop (task 2); report through 13: binding#12 not held, stopping since 11, vm stopped");
    assert_eq!(lone.state(provider), Some(ComponentState::Started));
    lone.done(client, 2);
    assert_eq!(lone.state(provider), Some(ComponentState::Stopping));
    let said = lone.done(provider, 2);
    assert!(said.ends_with("report through 13: gone"), "{said}");
    assert!(lone.agent.components()[&client].holdings().is_empty(), "the binding went with its provider");
}

#[test]
fn what_comes_before_its_component_is_parked_and_taken_over() {
    let mut lone = Lone::new();
    assert_eq!(lone.hear(bind(5, 10, "1")), "note Parked(binding#5, component#10)");
    lone.hear(started(5));
    // A recall is answered from the parking place, at once.
    assert_eq!(lone.hear(recall(5, false)), "to vm#2: unbind binding#5 confirmed");
    lone.hear(bind(5, 10, "2"));
    lone.hear(started(5));
    let (it, said) = lone.add(kind(Need::Strong(1)));
    assert!(said.starts_with("host: start (task 1) with [binding#5]"), "{said}");
    assert!(lone.agent.parked().is_empty());
    assert_eq!(lone.state(it), Some(ComponentState::Starting));
}

#[test]
fn a_rebind_lets_go_before_the_loan_is_given_back() {
    let (mut lone, it) = holder(Kind { rebinds: true, ..kind(Need::Weak(0)) });
    // It was started before the loan came, so it is told of it now; only then it counts as held.
    assert_eq!(lone.done(it, 2), "report through 10: binding#5 held");
    assert_eq!(lone.hear(recall(5, false)), "host: rebind (task 3) with []; report through 10: binding#5 not held");
    assert_eq!(lone.done(it, 3), "to vm#2: unbind binding#5 confirmed");
    // Two things that happen during one rebind lead to one more, with the set as it then is.
    lone.hear(started(5));
    lone.hear(bind(6, it.0, "1"));
    lone.hear(started(6));
    lone.hear(bind(7, it.0, "1"));
    lone.hear(started(7));
    let said = lone.done(it, 4);
    assert_eq!(said, "host: rebind (task 5) with [binding#5, binding#6, binding#7]; report through 10: binding#5 held");
    assert_eq!(lone.done(it, 5), "report through 10: binding#6 held, binding#7 held");
}

#[test]
fn a_rebind_that_fails_for_good_makes_the_component_stop_and_then_give_back() {
    let (mut lone, it) = holder(Kind { rebinds: true, ..kind(Need::Weak(0)) });
    lone.done(it, 2);
    lone.hear(recall(5, false));
    let said = lone.failed(it, 3);
    assert_eq!(
        said,
        "retry task 3 in 10000 ms; host: stop (task 4); report through 10: rebind failed for good, stopping since 10, vm stopped"
    );
    let said = lone.done(it, 4);
    assert!(said.starts_with("to vm#2: unbind binding#5 confirmed; host: start (task 5) with []"), "{said}");
}

#[test]
fn clients_are_told_new_values_before_the_loan_goes_out_again() {
    let mut lone = Lone::new();
    let (it, _) = lone.add(provider());
    let (loan, said) = lone.lend(it, false);
    assert_eq!(said, "to vm#2: bind binding#11 []; report through 11");
    let said = lone.done_with(it, 1, values("1"));
    assert!(said.starts_with("to vm#2: bind binding#11 [port=1]; to vm#2: started binding#11"), "{said}");
    lone.order(Instruction::RestartComponent { component: it });
    lone.hear(confirm(loan, false));
    lone.done(it, 2);
    // The same port as before: nothing new to tell.
    let mut same = lone.clone();
    assert!(same.done_with(it, 3, values("1")).starts_with("to vm#2: started binding#11"));
    assert!(lone.done_with(it, 3, values("2")).starts_with("to vm#2: bind binding#11 [port=2]; to vm#2: started"));
}

#[test]
fn patience_grows_and_ends_with_a_person() {
    let patience = Patience { retries: 2, pause_ms_first: 100, factor: 3 };
    let mut lone = Lone::new();
    let (it, _) = lone.add(Kind { patience: [(Operation::Start, patience)].into(), ..provider() });
    assert!(lone.failed(it, 1).contains("retry task 1 in 100 ms"));
    lone.rings(it, 1);
    assert!(lone.failed(it, 2).contains("retry task 2 in 300 ms"));
    assert!(lone.rings(it, 1).starts_with("note AlarmTooLate"), "the alarm of an earlier failure has lost its reason");
    lone.rings(it, 2);
    assert!(lone.failed(it, 3).contains("start failed for good"));
    assert_eq!(lone.state(it), Some(ComponentState::Failed(Operation::Start)));
    // A person's retry starts patience anew.
    lone.order(Instruction::RetryComponent { component: it });
    assert!(lone.failed(it, 4).contains("retry task 4 in 100 ms"));
}

#[test]
fn a_component_that_dies_recalls_its_loans_and_starts_again_when_they_are_home() {
    let patience = Patience { retries: 2, pause_ms_first: 100, factor: 2 };
    let (mut lone, it) = holder(Kind { patience: [(Operation::Run, patience)].into(), ..kind(Need::Strong(1)) });
    let (loan, _) = lone.lend(it, false);
    let said = lone.died(it, 1);
    assert!(said.starts_with("to vm#2: unbind binding#11 required; note WillRetry"), "{said}");
    // The pause is over, but the loan is not home.
    assert_eq!(lone.rings(it, 1), "");
    assert!(lone.hear(confirm(loan, false)).starts_with("host: start (task 2) with [binding#5]"));
    assert!(lone.done(it, 2).contains("steady after run 2 in 1000 ms"));
    // Deaths add up until it has been steady.
    assert!(lone.died(it, 2).contains("in 200 ms"));
    lone.hear(confirm(loan, false));
    lone.rings(it, 2);
    lone.done(it, 3);
    assert_eq!(lone.step(Input::AlarmRang(Alarm::Steady { component: it, serial: 3 })), "report through 11: at rest");
    assert!(lone.died(it, 3).contains("in 100 ms"));
}

#[test]
fn a_value_provider_never_waits_for_its_clients() {
    let mut lone = Lone::new();
    let (it, _) = lone.add(provider());
    lone.lend(it, true);
    assert!(!lone.done_with(it, 1, values("1")).contains("started binding"), "a value is not lent");
    assert!(lone.order(Instruction::RestartComponent { component: it }).starts_with("host: stop"));
    lone.done(it, 2);
    lone.done_with(it, 3, values("1"));
    lone.order(Instruction::RemoveComponent { component: it });
    assert_eq!(lone.done(it, 4), "to vm#2: unbind binding#11 required for good; report through 13: gone, vm empty");
}

#[test]
fn a_forgotten_vm_is_not_heard_and_not_lent_to() {
    let (mut lone, it) = holder(kind(Need::Weak(0)));
    lone.order(Instruction::ForgetVm { vm: THERE });
    assert!(lone.agent.components()[&it].holdings().is_empty());
    assert_eq!(lone.hear(bind(6, it.0, "1")), "note NoticeFenced(vm#2, binding#6)");
    let (loan, said) = lone.lend(it, false);
    assert_eq!(said, "report through 12", "a client there would never answer");
    let removal = Instruction::RemoveBinding { binding: BindingId(loan) };
    assert_eq!(lone.order(removal), "report through 13: binding#12 gone");
    // Others are heard as before.
    assert_eq!(lone.hear_from(VmId(3), bind(7, it.0, "1")), "");
}

#[test]
fn a_vm_is_started_exactly_when_all_its_components_are() {
    let mut lone = Lone::new();
    assert_eq!(lone.agent.state(), VmState::Empty);
    let (one, said) = lone.add(provider());
    assert!(said.ends_with("vm stopped"), "{said}");
    let (other, _) = lone.add(provider());
    assert!(!lone.done(one, 1).contains("vm"));
    assert!(lone.done(other, 1).ends_with("vm started"));
    lone.order(Instruction::RemoveComponent { component: one });
    assert!(lone.done(one, 2).ends_with("gone, vm started"), "the one that is left is started");
}

#[test]
fn more_facts_than_a_report_may_have_are_told_in_order_and_only_the_last_report_answers() {
    let (mut lone, client) = holder(kind(Need::Weak(0)));
    let bindings = 1_000..1_000 + u64::try_from(FACTS_PER_REPORT_MAX).expect("it is small") + 10;
    for binding in bindings.clone() {
        lone.hear(bind(binding, client.0, "1"));
        lone.hear(started(binding));
    }
    let before = lone.agent.last_order();
    let order = Order { number: OrderNumber(900_000), instruction: Instruction::ForgetVm { vm: THERE } };
    let said = lone.agent.step(Input::FromManager(order));
    let reports: Vec<_> =
        said.iter().filter_map(|it| if let Output::ToManager(it) = it { Some(it) } else { None }).collect();
    let told: Vec<_> = reports.iter().map(|report| (report.through, report.facts.len())).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], (before, FACTS_PER_REPORT_MAX));
    assert_eq!(told[1].0, OrderNumber(900_000));
    let lost = reports.iter().flat_map(|report| &report.facts).filter_map(|fact| match fact {
        Fact::BindingHeld { binding, held: false } => Some(binding.0),
        _ => None,
    });
    assert!(lost.eq(std::iter::once(5).chain(bindings)));
    assert!(reports.iter().all(|report| wire::encode(report).is_ok()), "each fits into a message");
}
