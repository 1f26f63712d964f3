//! Every input in every state has an answer: no sequence of inputs, however absurd, makes a machine panic, and an order
//! that comes again changes nothing.

mod any;
mod stage;

use proptest::{collection, prelude::*};
use protocol::{
    ChangeId, CloudManager, Need, VmAgent, VmId, agent,
    manager::{CloudOutcome, Input, News, Output},
};

#[test]
fn an_agent_answers_whatever_comes() {
    proptest!(any::cases(600), |(inputs in collection::vec(any::agent_input(), 1..60))| {
        let mut agent = VmAgent::new(VmId(1));
        for input in inputs {
            agent.step(input);
        }
    });
}

#[test]
fn an_order_that_comes_again_changes_nothing_and_is_not_answered_twice() {
    proptest!(any::cases(300), |(inputs in collection::vec(any::agent_input(), 1..40))| {
        let mut agent = VmAgent::new(VmId(1));
        for input in inputs {
            agent.step(input.clone());
            if let agent::Input::FromManager(order) = &input {
                let before = agent.clone();
                let again = agent.step(input.clone());
                prop_assert_eq!(again, vec![agent::Output::Note(agent::Note::OrderRepeated(order.number))]);
                prop_assert_eq!(&agent, &before);
            }
        }
    });
}

#[test]
fn a_manager_answers_whatever_comes_and_a_refused_request_changes_nothing() {
    proptest!(any::cases(600), |(inputs in collection::vec(any::manager_input(), 1..60))| {
        let mut manager = manager_of_a_few();
        for input in inputs.into_iter().filter(is_asked_for) {
            let before = manager.clone();
            let outputs = manager.step(input);
            if let Some(Output::ToOperator(News::Refused(_))) = outputs.first() {
                prop_assert_eq!(outputs.len(), 1);
                prop_assert_eq!(&manager, &before);
            }
            prop_assert_eq!(protocol::invariant::of_manager(&manager), None);
        }
    });
}

/// A manager with VMs and components of the names that the generator likes, so that much of what comes makes sense.
fn manager_of_a_few() -> CloudManager {
    let vms = ["a", "b"].map(stage::add_vm);
    let kind = || stage::kind(&[("sql", "sql", Need::Strong(1))], &["sql"]);
    let components = [("a", "a"), ("b", "b"), ("c", "b")].map(|(component, vm)| stage::add(component, vm, kind()));
    let bindings = ["a.sql → b.sql", "b.sql → c.sql"].map(stage::bind);
    let mut manager = CloudManager::new(Some(1_000));
    let request = stage::incomplete(vms.into_iter().chain(components).chain(bindings));
    let outputs = manager.step(Input::FromOperator(request));
    assert_eq!(outputs.first(), Some(&Output::ToOperator(News::Accepted(ChangeId(1)))));
    manager
}

/// The cloud destroys no VM by itself: such a VM is silent, and then declared lost.
fn is_asked_for(input: &Input) -> bool {
    !matches!(input, Input::FromCloud(CloudOutcome::Destroyed(_)))
}
