//! Mistakes that were made once, each with the smallest story that shows it.

mod stage;
use protocol::{Need::*, Strategy::*, manager::*, *};
use stage::*;

fn pair() -> Stage {
    Stage::with([
        add_vm("v1"),
        add_vm("v2"),
        add("a", "v1", kind(&[("in", "x", Strong(1))], &[])),
        add("b", "v2", kind(&[], &["x"])),
        bind("a.in → b.x"),
    ])
}

#[test]
fn a_binding_that_goes_with_its_client_is_not_waited_for() {
    let mut s = pair();
    let v2 = s.vm("v2");
    s.ask(change(Together, [unbind("a.in → b.x"), remove("a")]));
    s.run_but(|m| m == Move::Report(v2));
    s.run();
    assert!(s.waiting().is_empty(), "{:#?}", s.waiting());
}

#[test]
fn a_value_binding_that_goes_with_its_provider_is_not_waited_for() {
    let mut s = Stage::with([
        add_vm("v1"),
        add_vm("v2"),
        add("a", "v1", kind(&[("in", "x", Value(1))], &[])),
        add("b", "v2", kind(&[], &["x"])),
        bind("a.in → b.x"),
    ]);
    let (v1, v2) = (s.vm("v1"), s.vm("v2"));
    s.ask(incomplete([unbind("a.in → b.x")]));
    s.ask(incomplete([remove("b")]));
    s.run_but(|m| m == Move::Notice(v1, v2));
    s.run();
    assert!(s.waiting().is_empty(), "{:#?}", s.waiting());
}

#[test]
fn a_binding_that_goes_with_a_lost_vm_is_not_waited_for() {
    let mut s = pair();
    let (v1, _v2) = (s.vm("v1"), s.vm("v2"));
    s.ask(incomplete([unbind("a.in → b.x")]));
    s.lose(v1);
    s.run();
    s.ask(Request::DeclareLost(name("v1")));
    s.run();
    assert!(s.waiting().is_empty(), "{:#?}", s.waiting());
}

#[test]
fn a_vm_lost_before_its_removal_is_posted_is_not_waited_for() {
    let mut s = pair();
    let v1 = s.vm("v1");
    s.ask(change(UpThenDown, [add_vm("v3"), remove_vm("v1")]));
    s.lose(v1);
    s.ask(Request::DeclareLost(name("v1")));
    s.run();
    assert!(s.waiting().is_empty(), "{:#?}", s.waiting());
}

#[test]
fn the_need_of_a_new_component_can_be_set_in_the_same_change() {
    let mut s = Stage::new();
    s.ask(change(
        Together,
        [
            add_vm("v1"),
            add("b", "v1", kind(&[], &["x"])),
            add("a", "v1", kind(&[("in", "x", Strong(2))], &[])),
            bind("a.in → b.x"),
            set_need("a", "in", 1),
        ],
    ));
    s.run();
    assert_eq!(s.state("a"), ComponentState::Started);
}

#[test]
fn a_vm_destroyed_without_being_asked_counts_as_lost() {
    let mut s = pair();
    let v1 = s.vm("v1");
    s.lose(v1);
    s.tell_manager(Input::FromCloud(CloudOutcome::Destroyed(v1)));
    s.ask(change(Together, [restart("a")]));
}

#[test]
fn two_needs_can_be_raised_side_by_side() {
    let mut s = Stage::with([
        add_vm("v1"),
        add_vm("v2"),
        add("c", "v1", kind(&[("a", "x", Strong(1)), ("b", "y", Strong(1))], &[])),
        add("p", "v2", kind(&[], &["x", "y"])),
        bind("c.a → p.x"),
        bind("c.b → p.y"),
    ]);
    let v1 = s.vm("v1");
    s.ask(change(Together, [add("q", "v2", kind(&[], &["x"])), bind("c.a → q.x"), set_need("c", "a", 2)]));
    s.ask(incomplete([set_need("c", "b", 2)]));
    s.run_but(|m| m == Move::Order(v1));
    s.run();
    assert!(s.waiting().is_empty(), "{:#?}", s.waiting());
}

#[test]
fn a_vm_that_is_to_go_is_not_created_again() {
    let mut s = Stage::new();
    s.ask(change(Together, [add_vm("v1")]));
    let v1 = s.vm("v1");
    s.tell_manager(Input::FromCloud(CloudOutcome::CreateFailed(v1, "quota".into())));
    s.ask(change(Together, [remove_vm("v1")]));
    assert!(s.said.iter().any(|o| matches!(o, Output::ToCloud(CloudTask::Destroy(_)))));
    s.tell_manager(Input::AlarmRang(Alarm::CreateAgain(v1)));
    assert!(!s.said.iter().any(|o| matches!(o, Output::ToCloud(CloudTask::Create(..)))), "{:?}", s.said);
}

#[test]
fn a_change_is_not_done_before_value_clients_have_heard() {
    let mut s = Stage::with([
        add_vm("v1"),
        add_vm("v2"),
        add_vm("v3"),
        add("c", "v2", kind(&[("in", "x", Value(1))], &[])),
        add("p", "v1", kind(&[], &["x"])),
        bind("c.in → p.x"),
    ]);
    let (v1, v2, v3) = (s.vm("v1"), s.vm("v2"), s.vm("v3"));
    s.ask(change(Together, [remove("p"), add("q", "v3", kind(&[], &["x"])), bind("c.in → q.x")]));
    s.run_but(|m| m == Move::Notice(v1, v2) || m == Move::Notice(v3, v2));
    let done = s.done();
    s.make(Move::Notice(v1, v2));
    assert!(done == 0 || s.state("c") == ComponentState::Started, "done {done} but {:?}", s.state("c"));
}

#[test]
fn each_operation_has_its_own_patience() {
    let patience = Patience { retries: 1, pause_ms_first: 1, factor: 1 };
    let mut k = kind(&[("in", "x", Weak(0))], &[]);
    k.rebinds = true;
    k.patience = [(Operation::Rebind, patience), (Operation::Stop, patience)].into();
    let mut s = Stage::with([add_vm("v1"), add("a", "v1", k), add("b", "v1", kind(&[], &["x"])), bind("a.in → b.x")]);
    s.ask(change(Together, [restart("b")]));
    let (v1, a) = s.place("a");
    s.make(Move::Order(v1));
    s.fail("a");
    let (_, alarm, _) = *s.alarms.last().unwrap();
    s.tell_agent(v1, agent::Input::AlarmRang(alarm));
    s.fail("a");
    assert_eq!(s.state("a"), ComponentState::Stopping);
    s.fail("a");
    let _ = a;
    assert_eq!(s.state("a"), ComponentState::Stopping, "{:?}", s.agent_said);
}

#[test]
fn only_the_provider_is_believed_that_a_binding_is_gone() {
    let mut s = pair();
    let v1 = s.vm("v1");
    let id = s.manager.book().wires().next().unwrap().1.unwrap();
    let before = s.manager.clone();
    s.tell_manager(Input::FromAgent(
        v1,
        Report { through: OrderNumber(6), facts: vec![Fact::BindingGone { binding: id }] },
    ));
    assert_eq!(before.book().wires().count(), s.manager.book().wires().count());
}

#[test]
fn a_death_during_a_rebind_waits_for_the_host() {
    let mut k = kind(&[("in", "x", Weak(0))], &[]);
    k.rebinds = true;
    k.patience = [(Operation::Run, Patience { retries: 1, pause_ms_first: 1, factor: 1 })].into();
    let mut s = Stage::with([add_vm("v1"), add("a", "v1", k), add("b", "v1", kind(&[], &["x"])), bind("a.in → b.x")]);
    s.ask(change(Together, [restart("b")]));
    let (v1, a) = s.place("a");
    s.make(Move::Order(v1));
    s.tell_agent(v1, agent::Input::FromHost(HostOutcome::Died { component: a, serial: 1, detail: "x".into() }));
    assert!(s.alarms.is_empty(), "the host is still busy with the rebind");
    s.fail("a");
    let (_, alarm, _) = *s.alarms.last().unwrap();
    s.tell_agent(v1, agent::Input::AlarmRang(alarm));
    s.run();
    assert_eq!(s.state("a"), ComponentState::Started);
}

#[test]
fn a_skipped_start_fulfils_the_restart() {
    let mut s = pair();
    s.ask(change(Together, [restart("b")]));
    let (v2, b) = s.place("b");
    s.make(Move::Order(v2));
    s.tell_agent(v2, agent::Input::FromHost(HostOutcome::Died { component: b, serial: 1, detail: "x".into() }));
    s.run();
    s.ask(Request::Skip(name("b")));
    s.run();
    assert!(s.waiting().is_empty(), "{:#?}", s.waiting());
}

#[test]
fn a_loan_heard_twice_changes_nothing() {
    let mut k = kind(&[("in", "x", Strong(1))], &[]);
    k.rebinds = true;
    let mut s = Stage::with([
        add_vm("v1"),
        add_vm("v2"),
        add("a", "v1", k),
        add("b", "v2", kind(&[], &["x"])),
        bind("a.in → b.x"),
    ]);
    let (v1, v2) = (s.vm("v1"), s.vm("v2"));
    let id = s.manager.book().wires().next().unwrap().1.unwrap();
    let before = s.agents[&v1].clone();
    s.tell_agent(v1, agent::Input::FromPeer(v2, Notice::Started { binding: id }));
    assert_eq!(before, s.agents[&v1], "{:?}", s.agent_said);
}

#[test]
fn a_failed_stop_of_a_leaving_component_can_be_skipped() {
    let mut s = pair();
    let (vm, a) = s.place("a");
    s.ask(change(Together, [remove("a")]));
    s.make(Move::Order(vm));
    let task = s.tasks.remove(&(vm, a)).unwrap();
    let outcome = HostOutcome::Failed { component: a, serial: task.serial, detail: "stuck".into() };
    s.tell_agent(vm, agent::Input::FromHost(outcome));
    s.run();
    assert!(matches!(s.ask(Request::Skip(name("a"))), News::Accepted(_)), "nobody can help it any more");
}
