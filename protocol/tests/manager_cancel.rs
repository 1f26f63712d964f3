//! Stories of changes that are cancelled: what becomes of them is said before, and then it is so.

mod stage;

use protocol::{
    ChangeId, ComponentState, HostOutcome, Kind, Need, Refusal, Strategy, Values, Work, agent,
    manager::{CancelOutlook, News, Request},
};
use stage::{Move, Stage, add, add_vm, bind, change, incomplete, name, remove, remove_vm, restart, set_need, unbind};

const SECOND: ChangeId = ChangeId(2);

fn provider() -> Kind {
    stage::kind(&[], &["x"])
}

fn client() -> Kind {
    stage::kind(&[("in", "x", Need::Strong(1))], &[])
}

/// A client and its provider, each on its own VM, and an empty VM.
fn site() -> Stage {
    let components = [add("a", "va", provider()), add("b", "vb", client()), bind("b.in → a.x")];
    Stage::with([add_vm("va"), add_vm("vb"), add_vm("vc")].into_iter().chain(components))
}

/// Asks what would become of the second change, cancels it, and compares.
fn cancel(stage: &mut Stage) -> CancelOutlook {
    let before = stage.manager.clone();
    let outlook = stage.manager.cancel_outlook(SECOND).expect("it can be cancelled");
    assert_eq!(stage.manager, before, "a question changes nothing");
    assert_eq!(stage.ask(Request::Cancel(SECOND)), News::Cancelling(SECOND, outlook.clone()));
    outlook
}

/// Cancelling the second change is refused, and so is the question.
fn refusals(stage: &mut Stage, change: ChangeId) -> Vec<Refusal> {
    let before = stage.manager.clone();
    let refusals = stage.manager.cancel_outlook(change).expect_err("it cannot be cancelled");
    assert_eq!(stage.ask(Request::Cancel(change)), News::Refused(refusals.clone()));
    assert_eq!(stage.manager, before, "a refusal changes nothing");
    refusals
}

fn is_started(stage: &Stage, component: &str) -> bool {
    stage.manager.book().component(&name(component)).is_some() && stage.state(component) == ComponentState::Started
}

fn outcome_is(stage: &mut Stage, started: &[&str], gone: &[&str]) {
    stage.run();
    assert_eq!(stage.waiting(), [], "every change has come to its end");
    assert!(stage.news.contains(&News::ChangeCancelled(SECOND)), "{:?}", stage.news);
    assert!(!stage.news.contains(&News::ChangeDone(SECOND)), "{:?}", stage.news);
    for component in started {
        assert!(is_started(stage, component), "{component}");
    }
    for component in gone {
        assert!(stage.manager.book().component(&name(component)).is_none(), "{component}");
        let named = |agent: &protocol::VmAgent| agent.components().values().any(|it| it.name() == &name(component));
        assert!(!stage.agents.values().any(named), "{component}");
    }
}

fn names(them: &[&str]) -> Vec<protocol::Name> {
    them.iter().map(|it| name(it)).collect()
}

#[test]
fn a_change_that_waits_for_another_is_dropped_and_nothing_moves() {
    let mut stage = site();
    // The second change has still to add something when the third comes.
    stage.ask(change(Strategy::DownThenUp, [restart("a"), add("c", "vc", client()), bind("c.in → a.x")]));
    stage.ask(change(Strategy::Together, [restart("a"), remove_vm("vb")]));
    let third = ChangeId(3);
    assert_eq!(stage.ask(Request::Cancel(third)), News::Cancelling(third, CancelOutlook::Dropped));
    assert!(stage.news.contains(&News::ChangeCancelled(third)));
    stage.run();
    assert_eq!(stage.waiting(), []);
    assert!(is_started(&stage, "b") && is_started(&stage, "c"));
}

#[test]
fn what_was_added_goes_again_and_a_start_is_aborted() {
    let mut stage = site();
    stage.ask(change(Strategy::Together, [add("c", "vc", client()), bind("c.in → a.x")]));
    let (vm, c) = (stage.vm("vc"), stage.place("c").1);
    stage.run_but(|next| next == Move::Finish(vm, c));
    assert_eq!(stage.state("c"), ComponentState::Starting);
    let outlook = cancel(&mut stage);
    assert_eq!(outlook, CancelOutlook::Undone { removes: names(&["c"]), adds: names(&[]) });
    stage.run_but(|next| next == Move::Finish(vm, c));
    assert_eq!(stage.tasks[&(vm, c)].work, Work::Abort, "the start need not run into its time limit");
    outcome_is(&mut stage, &["a", "b"], &["c"]);
    assert!(!stage.news.iter().any(|news| matches!(news, News::OperationFailed(..))), "nothing has failed");
}

#[test]
fn a_start_that_is_done_before_it_could_be_aborted_is_stopped() {
    let mut stage = site();
    stage.ask(change(Strategy::Together, [add("c", "vc", client()), bind("c.in → a.x")]));
    let (vm, c) = (stage.vm("vc"), stage.place("c").1);
    stage.run_but(|next| next == Move::Finish(vm, c));
    cancel(&mut stage);
    stage.run_but(|next| next == Move::Finish(vm, c));
    let start = stage.tasks.remove(&(vm, c)).expect("the start is under way");
    let done = HostOutcome::Done { component: c, serial: start.serial, values: Values::new() };
    stage.tell_agent(vm, agent::Input::FromHost(done));
    assert_eq!(stage.tasks[&(vm, c)].work, Work::Stop);
    // The host hears of the abort too late, and says that there is nothing left: that is too late in its turn.
    let late = HostOutcome::Failed { component: c, serial: start.serial, detail: "aborted".into() };
    stage.tell_agent(vm, agent::Input::FromHost(late));
    assert_eq!(stage.agent_said, [agent::Output::Note(agent::Note::OutcomeTooLate(c))]);
    outcome_is(&mut stage, &["a", "b"], &["c"]);
}

#[test]
fn what_was_removed_is_added_again_with_its_bindings_and_needs() {
    let mut stage = site();
    stage.ask(change(Strategy::Together, [set_need("b", "in", 1)]));
    stage.run();
    // The change of before was the second.
    stage.ask(change(Strategy::DownThenUp, [remove("a"), add("n", "vc", provider()), bind("b.in → n.x")]));
    let third = ChangeId(3);
    // The old provider is on its way out when the change is cancelled.
    stage.run_but(|next| matches!(next, Move::Report(_)));
    let outlook = CancelOutlook::Undone { removes: names(&[]), adds: names(&["a"]) };
    assert_eq!(stage.ask(Request::Cancel(third)), News::Cancelling(third, outlook));
    stage.run();
    assert_eq!(stage.waiting(), []);
    assert!(is_started(&stage, "a") && is_started(&stage, "b"));
    assert!(stage.manager.book().component(&name("n")).is_none());
}

#[test]
fn a_removal_that_is_not_posted_is_withdrawn() {
    let mut stage = site();
    let before = stage.place("a");
    stage.ask(change(Strategy::UpThenDown, [add("n", "vc", provider()), bind("b.in → n.x"), remove("a")]));
    let outlook = cancel(&mut stage);
    assert_eq!(outlook, CancelOutlook::Undone { removes: names(&["n"]), adds: names(&[]) });
    outcome_is(&mut stage, &["a", "b"], &["n"]);
    assert_eq!(stage.place("a"), before, "it is the same component");
    assert!(!stage.manager.book().component(&name("a")).expect("it is there").is_leaving());
}

#[test]
fn needs_are_set_back() {
    let two = stage::kind(&[("in", "x", Need::Strong(2))], &[]);
    let components = [add("a", "va", provider()), add("o", "va", provider()), add("b", "vb", two)];
    let wires = [bind("b.in → a.x"), bind("b.in → o.x")];
    let mut stage = Stage::with([add_vm("va"), add_vm("vb")].into_iter().chain(components).chain(wires));
    stage.ask(change(Strategy::Together, [set_need("b", "in", 1), unbind("b.in → o.x")]));
    stage.run_but(|next| matches!(next, Move::Report(_)));
    cancel(&mut stage);
    outcome_is(&mut stage, &["a", "o", "b"], &[]);
    let (vm, b) = stage.place("b");
    let import = &stage.agents[&vm].components()[&b].holdings().imports()[&name("in")];
    assert_eq!((import.need, import.held), (Need::Strong(2), 2));
}

#[test]
fn a_restart_is_finished() {
    let mut stage = site();
    stage.ask(change(Strategy::Together, [restart("a")]));
    assert_eq!(cancel(&mut stage), CancelOutlook::Finished);
    outcome_is(&mut stage, &["a", "b"], &[]);
}

#[test]
fn a_change_that_waits_for_a_person_ends_when_it_is_cancelled() {
    let mut stage = site();
    stage.ask(change(Strategy::Together, [restart("a")]));
    let (vm, a) = stage.place("a");
    stage.run_but(|next| next == Move::Finish(vm, a));
    stage.make(Move::Finish(vm, a));
    stage.fail("a");
    stage.run();
    assert_eq!(stage.waiting().len(), 1);
    assert_eq!(cancel(&mut stage), CancelOutlook::Finished);
    outcome_is(&mut stage, &[], &[]);
}

#[test]
fn cancelled_twice_it_is_answered_the_same() {
    let mut stage = site();
    stage.ask(change(Strategy::Together, [add("c", "vc", client()), bind("c.in → a.x")]));
    let first = cancel(&mut stage);
    let before = stage.manager.clone();
    assert_eq!(cancel(&mut stage), first);
    assert_eq!(stage.manager, before);
    assert!(stage.waiting()[0].cancelled);
    outcome_is(&mut stage, &["a", "b"], &["c"]);
}

#[test]
fn what_cannot_be_cancelled_is_refused_with_the_reason() {
    let mut stage = site();
    for change in [ChangeId(0), ChangeId(9)] {
        assert_eq!(refusals(&mut stage, change), [Refusal::UnknownChange { change }]);
    }
    assert_eq!(refusals(&mut stage, ChangeId(1)), [Refusal::ChangeIsDone { change: ChangeId(1) }]);
    stage.ask(Request::DeclareLost(name("va")));
    assert_eq!(refusals(&mut stage, SECOND), [Refusal::NothingToCancel { change: SECOND }]);
}

#[test]
fn a_change_on_which_a_later_one_builds_is_not_cancelled() {
    // What is not posted.
    let mut stage = site();
    let later = add("d", "vb", client());
    stage.ask(change(Strategy::DownThenUp, [restart("a"), add("c", "vc", provider())]));
    stage.ask(change(Strategy::Together, [later.clone(), bind("d.in → c.x")]));
    let needed = Refusal::NeededLater { change: SECOND, later: ChangeId(3) };
    let short = || Refusal::TooFewProviders { component: name("d"), import: name("in"), needed: 1, bound: 0 };
    assert_eq!(refusals(&mut stage, SECOND), [short(), needed]);
    // What is posted.
    let mut stage = site();
    stage.ask(change(Strategy::Together, [add("c", "vc", provider())]));
    stage.ask(change(Strategy::Together, [later, bind("d.in → c.x")]));
    assert_eq!(refusals(&mut stage, SECOND), [short()]);
    // With the later one cancelled, nothing stands in the way.
    assert!(matches!(stage.ask(Request::Cancel(ChangeId(3))), News::Cancelling(..)));
    cancel(&mut stage);
    outcome_is(&mut stage, &["a", "b"], &["c", "d"]);
}

#[test]
fn what_was_incomplete_before_may_be_so_again() {
    let mut stage = Stage::with([add_vm("va"), add_vm("vb")]);
    stage.ask(incomplete([add("b", "vb", client())]));
    stage.run();
    stage.ask(change(Strategy::Together, [add("a", "va", provider()), bind("b.in → a.x")]));
    let third = ChangeId(3);
    let outlook = CancelOutlook::Undone { removes: names(&["a"]), adds: names(&[]) };
    assert_eq!(stage.ask(Request::Cancel(third)), News::Cancelling(third, outlook));
    stage.run();
    assert_eq!(stage.waiting(), []);
    assert_eq!(stage.state("b"), ComponentState::Stopped);
}

#[test]
fn a_vm_is_kept_until_it_is_destroyed() {
    let mut stage = site();
    stage.ask(incomplete([remove_vm("vb")]));
    let outlook = cancel(&mut stage);
    assert_eq!(outlook, CancelOutlook::Undone { removes: names(&[]), adds: names(&["b"]) });
    outcome_is(&mut stage, &["a", "b"], &[]);

    let mut stage = site();
    stage.ask(incomplete([remove_vm("vb")]));
    stage.run_but(|next| matches!(next, Move::Cloud(_)));
    assert_eq!(refusals(&mut stage, SECOND), [Refusal::VmIsGoing { vm: name("vb") }]);
}
