//! How the manager posts a change, waits, and knows when it is done; told as stories on a small stage.

mod stage;

use protocol::{
    ChangeId, ComponentState, Edit, Instruction, Kind, Need, Operation, Order, Strategy, VmState,
    manager::{self, Alarm, CloudOutcome, CloudTask, News, Note, Output, PhaseKind, Request, Waiting},
};
use stage::{
    Move, Stage, add, add_vm, bind, change, incomplete, kind, name, remove, remove_vm, restart, set_need, unbind,
};
use std::sync::Arc;

fn strong() -> Kind {
    kind(&[("in", "x", Need::Strong(1))], &["x"])
}

fn provider() -> Kind {
    kind(&[], &["x"])
}

/// `a → b`, each on its own VM.
fn pair() -> Stage {
    Stage::with([add_vm("va"), add_vm("vb"), add("a", "va", strong()), add("b", "vb", provider()), bind("a.in → b.x")])
}

/// Replaces `b` by `c` on the same VM.
fn replace() -> Vec<Edit> {
    vec![remove("b"), add("c", "vb", provider()), bind("a.in → c.x")]
}

/// The phases that were posted and done, in order.
fn phases(stage: &Stage) -> Vec<(bool, PhaseKind)> {
    let phase = |news: &News| match news {
        News::PhasePosted(_, kind) => Some((false, *kind)),
        News::PhaseDone(_, kind) => Some((true, *kind)),
        _ => None,
    };
    stage.news.iter().filter_map(phase).collect()
}

/// What was ordered in the latest step of the manager.
fn orders(stage: &Stage) -> Vec<&Order> {
    let order = |output: &'_ Output| matches!(output, Output::ToAgent(..));
    let orders = stage.said.iter().filter(|output| order(output));
    orders.map(|output| if let Output::ToAgent(_, order) = output { order } else { unreachable!() }).collect()
}

fn is_quiet(stage: &Stage) -> bool {
    stage.waiting().is_empty()
        && stage.moves().is_empty()
        && stage.agents.values().all(|agent| agent.parked().is_empty())
}

#[test]
fn a_change_is_accepted_first_then_posted_and_done_when_all_is_as_predicted() {
    let mut stage = Stage::new();
    let answer = stage.ask(change(Strategy::Together, [add_vm("va"), add("a", "va", provider())]));
    assert_eq!(answer, News::Accepted(ChangeId(1)));
    let vm = stage.vm("va");
    assert!(stage.said.contains(&Output::ToCloud(CloudTask::Create(vm, name("va")))));
    // Orders do not wait for the VM: the link keeps them until its agent is there.
    assert!(matches!(orders(&stage)[..], [Order { instruction: Instruction::AddComponent { .. }, .. }]));
    assert_eq!(
        stage.waiting()[0].waiting,
        [Waiting::Vm(name("va")), Waiting::Answer(name("va")), Waiting::Started(name("a"), true)]
    );
    stage.run();
    assert!(is_quiet(&stage));
    let told = [
        News::VmInstantiated(vm),
        News::VmIs(vm, VmState::Started),
        News::PhaseDone(ChangeId(1), PhaseKind::Both),
        News::ChangeDone(ChangeId(1)),
    ];
    let places: Vec<_> = told.iter().map(|news| stage.news.iter().position(|it| it == news)).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{:?}", stage.news);
}

#[test]
fn down_then_up_posts_additions_when_removals_are_done() {
    let mut stage = pair();
    stage.ask(change(Strategy::DownThenUp, replace()));
    assert!(orders(&stage).iter().all(|order| matches!(order.instruction, Instruction::RemoveComponent { .. })));
    stage.run();
    assert!(is_quiet(&stage));
    let expected = [(false, PhaseKind::Down), (true, PhaseKind::Down), (false, PhaseKind::Up), (true, PhaseKind::Up)];
    assert_eq!(phases(&stage), expected);
    assert_eq!(stage.state("a"), ComponentState::Started);
}

#[test]
fn up_then_down_never_stops_a_client_that_has_another_provider() {
    let mut stage = pair();
    stage.ask(change(Strategy::UpThenDown, replace()));
    let (vm, a) = stage.place("a");
    while let Some(next) = stage.moves().first().copied() {
        stage.make(next);
        assert_eq!(stage.agents[&vm].components()[&a].state(), ComponentState::Started);
    }
    assert!(is_quiet(&stage));
    let expected = [(false, PhaseKind::Up), (true, PhaseKind::Up), (false, PhaseKind::Down), (true, PhaseKind::Down)];
    assert_eq!(phases(&stage), expected);
}

#[test]
fn together_has_one_phase_and_no_barrier() {
    let mut stage = pair();
    stage.ask(change(Strategy::Together, replace()));
    assert_eq!(orders(&stage).len(), 3);
    stage.run();
    assert!(is_quiet(&stage));
    assert_eq!(phases(&stage), [(false, PhaseKind::Both), (true, PhaseKind::Both)]);
}

#[test]
fn a_roll_is_called_among_dependents_when_what_had_to_go_is_gone() {
    let mut stage = pair();
    let (va, vb) = (stage.vm("va"), stage.vm("vb"));
    stage.ask(change(Strategy::Together, [restart("b")]));
    stage.run_but(|it| it == Move::Report(vb));
    // The client has stopped and waits for the loan; its provider is up again, which the manager has not heard.
    assert_eq!(stage.done(), 0);
    let mut called = false;
    while let Some(next) = stage.moves().first().copied() {
        stage.make(next);
        called |= orders(&stage).iter().any(|order| order.instruction == Instruction::RollCall);
        assert!(called || stage.done() == 0, "done before the dependents have answered");
    }
    assert!(called && stage.done() == 1 && is_quiet(&stage));
    assert_eq!(stage.agents[&va].state(), VmState::Started);
}

#[test]
fn changes_about_different_components_run_side_by_side() {
    let mut stage = pair();
    let vb = stage.vm("vb");
    stage.ask(change(Strategy::Together, [restart("b")]));
    assert_eq!(stage.ask(change(Strategy::Together, [add("z", "va", provider())])), News::Accepted(ChangeId(3)));
    // The second is done while the first has not begun.
    stage.run_but(|it| it == Move::Order(vb));
    assert!(stage.news.contains(&News::ChangeDone(ChangeId(3))));
    assert!(!stage.news.contains(&News::ChangeDone(ChangeId(2))));
    stage.run();
    assert!(is_quiet(&stage));
}

#[test]
fn a_change_waits_while_an_earlier_one_has_still_to_post_about_the_same() {
    let mut stage = pair();
    stage.ask(change(Strategy::DownThenUp, replace()));
    // `c` is accepted and not yet posted; what is asked of it can only be posted later.
    stage.ask(incomplete([remove("c")]));
    assert_eq!(orders(&stage).len(), 0);
    let state = stage.waiting().pop().expect("the second change is not done");
    assert_eq!((state.change, state.phase), (ChangeId(3), None));
    stage.run();
    assert!(is_quiet(&stage));
    assert_eq!(stage.done(), 2);
    assert_eq!(stage.state("a"), ComponentState::Stopped);
}

#[test]
fn the_loss_of_a_vm_in_the_middle_of_a_change_ends_both() {
    let mut stage = pair();
    let (va, vb) = (stage.vm("va"), stage.vm("vb"));
    stage.ask(incomplete(replace()));
    stage.lose(vb);
    stage.run();
    assert_eq!(stage.done(), 0, "nobody answers for the lost VM");
    assert_eq!(stage.ask(Request::DeclareLost(name("vb"))), News::Accepted(ChangeId(3)));
    assert_eq!(orders(&stage)[0].instruction, Instruction::ForgetVm { vm: vb });
    stage.run();
    assert!(is_quiet(&stage), "{:#?}", stage.waiting());
    assert_eq!(stage.state("a"), ComponentState::Stopped);
    assert!(stage.agents[&va].has_forgotten(vb));
    // What the lost VM says later is not heard.
    let late = protocol::Report { through: protocol::OrderNumber(99), facts: Vec::new() };
    stage.tell_manager(manager::Input::FromAgent(vb, late));
    assert_eq!(stage.said, [Output::Note(Note::ReportFenced(vb))]);
}

#[test]
fn a_deed_about_what_was_lost_before_it_could_be_posted_is_dropped() {
    let mut stage = pair();
    let vb = stage.vm("vb");
    stage.ask(change(Strategy::UpThenDown, [add("z", "va", provider()), restart("b")]));
    stage.lose(vb);
    stage.ask(Request::DeclareLost(name("vb")));
    let mut dropped = false;
    while let Some(next) = stage.moves().first().copied() {
        stage.make(next);
        dropped |= stage.said.contains(&Output::Note(Note::DeedDropped(ChangeId(2))));
    }
    assert!(dropped && is_quiet(&stage), "{:#?}", stage.waiting());
}

#[test]
fn a_need_is_raised_only_once_the_client_holds_the_new_loan() {
    let mut stage = pair();
    let (vm, a) = stage.place("a");
    let grow = [add("c", "vb", provider()), bind("a.in → c.x"), set_need("a", "in", 2)];
    stage.ask(change(Strategy::Together, grow));
    while let Some(next) = stage.moves().first().copied() {
        stage.make(next);
        assert_eq!(stage.agents[&vm].components()[&a].state(), ComponentState::Started, "growing stops nobody");
    }
    assert!(is_quiet(&stage));
    assert_eq!(stage.agents[&vm].components()[&a].holdings().imports()[&name("in")].need, Need::Strong(2));
    // From now on it needs both.
    stage.ask(incomplete([remove("c")]));
    stage.run();
    assert!(is_quiet(&stage));
    assert_eq!(stage.state("a"), ComponentState::Stopped);
}

#[test]
fn a_need_is_lowered_and_the_answer_awaited_before_a_provider_goes() {
    let grow = [add("c", "vb", provider()), bind("a.in → c.x"), set_need("a", "in", 2)];
    let mut stage = pair();
    stage.ask(change(Strategy::Together, grow));
    stage.run();
    stage.news.clear();
    let (vm, a) = stage.place("a");
    stage.ask(change(Strategy::Together, [set_need("a", "in", 1), remove("c")]));
    assert!(matches!(orders(&stage)[..], [Order { instruction: Instruction::SetNeed { number: 1, .. }, .. }]));
    while let Some(next) = stage.moves().first().copied() {
        stage.make(next);
        assert_eq!(stage.agents[&vm].components()[&a].state(), ComponentState::Started, "shrinking stops nobody");
    }
    assert!(is_quiet(&stage));
    let expected =
        [(false, PhaseKind::Lower), (true, PhaseKind::Lower), (false, PhaseKind::Both), (true, PhaseKind::Both)];
    assert_eq!(phases(&stage), expected);
}

#[test]
fn a_failed_start_waits_for_a_person_who_asks_to_retry() {
    let mut stage = Stage::with([add_vm("va")]);
    let vm = stage.vm("va");
    stage.ask(change(Strategy::Together, [add("a", "va", provider())]));
    stage.make(Move::Order(vm));
    stage.fail("a");
    stage.run();
    let (_, a) = stage.place("a");
    assert!(stage.news.contains(&News::OperationFailed(a, Operation::Start, Arc::from("failed"))));
    assert_eq!(stage.done(), 0);
    stage.ask(Request::Retry(name("a")));
    stage.run();
    assert!(is_quiet(&stage));
    assert_eq!((stage.done(), stage.state("a")), (2, ComponentState::Started));
}

#[test]
fn a_failed_stop_may_be_skipped_by_a_person() {
    let mut stage = pair();
    let (vm, a) = stage.place("a");
    stage.ask(change(Strategy::Together, [restart("a")]));
    stage.make(Move::Order(vm));
    stage.fail("a");
    stage.run();
    assert_eq!(stage.agents[&vm].components()[&a].state(), ComponentState::Failed(Operation::Stop));
    assert_eq!(stage.done(), 0);
    assert_eq!(stage.ask(Request::Skip(name("a"))), News::Accepted(ChangeId(3)));
    stage.run();
    assert!(is_quiet(&stage), "{:#?}", stage.waiting());
    assert_eq!((stage.done(), stage.state("a")), (2, ComponentState::Started));
}

#[test]
fn a_vm_goes_when_its_last_component_is_gone_and_its_neighbours_forget_it() {
    let mut stage = pair();
    let (va, vb) = (stage.vm("va"), stage.vm("vb"));
    stage.ask(change(Strategy::Together, [remove_vm("va")]));
    assert!(!stage.said.contains(&Output::ToCloud(CloudTask::Destroy(va))), "its component is still there");
    stage.run();
    assert!(is_quiet(&stage), "{:#?}", stage.waiting());
    assert!(stage.news.contains(&News::VmDestroyed(va)));
    assert!(stage.agents[&vb].has_forgotten(va));
    assert_eq!(stage.manager.book().vms().count(), 1);
    assert_eq!(stage.state("b"), ComponentState::Started);
}

#[test]
fn removing_a_binding_alone_stops_only_who_needs_it() {
    let mut stage = pair();
    stage.ask(incomplete([unbind("a.in → b.x")]));
    stage.run();
    assert!(is_quiet(&stage));
    assert_eq!((stage.state("a"), stage.state("b")), (ComponentState::Stopped, ComponentState::Started));
    assert_eq!(stage.manager.book().wires().count(), 0);
}

#[test]
fn a_vm_that_cannot_be_made_is_asked_for_again() {
    let mut stage = Stage::new();
    stage.ask(change(Strategy::Together, [add_vm("va")]));
    let vm = stage.vm("va");
    stage.tell_manager(manager::Input::FromCloud(CloudOutcome::CreateFailed(vm, Arc::from("quota"))));
    assert!(stage.said.contains(&Output::SetAlarm(Alarm::CreateAgain(vm), manager::CREATE_AGAIN_MS)));
    stage.tell_manager(manager::Input::AlarmRang(Alarm::CreateAgain(vm)));
    assert_eq!(stage.said, [Output::ToCloud(CloudTask::Create(vm, name("va")))]);
    stage.tell_manager(manager::Input::FromCloud(CloudOutcome::Created(vm)));
    assert_eq!(stage.done(), 1);
    // Once it is there the alarm has lost its reason.
    stage.tell_manager(manager::Input::AlarmRang(Alarm::CreateAgain(vm)));
    assert_eq!(stage.said, [Output::Note(Note::TooLate(vm))]);
}

#[test]
fn a_silent_vm_is_suspected_and_declared_lost_only_by_its_own_suspicion() {
    let mut stage = pair();
    let vb = stage.vm("vb");
    let mut patient = stage.clone();
    // Without a limit nobody is declared lost by the manager itself.
    patient.tell_manager(manager::Input::FromCloud(CloudOutcome::Silent(vb)));
    assert_eq!(patient.said, [Output::ToOperator(News::VmSuspected(vb))]);

    stage.manager = protocol::CloudManager::new(Some(30_000));
    stage.ask(change(Strategy::Together, [add_vm("vb")]));
    let vb = stage.vm("vb");
    let tell = |stage: &mut Stage, outcome| stage.tell_manager(manager::Input::FromCloud(outcome));
    tell(&mut stage, CloudOutcome::Created(vb));
    tell(&mut stage, CloudOutcome::Silent(vb));
    assert!(stage.said.contains(&Output::SetAlarm(Alarm::Suspicion(vb, 1), 30_000)));
    tell(&mut stage, CloudOutcome::Heard(vb));
    tell(&mut stage, CloudOutcome::Silent(vb));
    // The alarm of the first suspicion says nothing about the second.
    stage.tell_manager(manager::Input::AlarmRang(Alarm::Suspicion(vb, 1)));
    assert_eq!(stage.said, [Output::Note(Note::TooLate(vb))]);
    stage.tell_manager(manager::Input::AlarmRang(Alarm::Suspicion(vb, 2)));
    assert!(stage.said.contains(&Output::ToOperator(News::VmLost(vb))));
}
