//! Reports of different VMs commute: whichever the manager hears first, it ends up knowing and saying the same.
//!
//! Three things do depend on which came first. The numbers of new orders: where each of two reports leads to orders of its
//! own, only what was ordered is compared. And, where changes overlap, the moment at which the earlier one is called done:
//! there, only the books are compared, as long as nothing new is posted. And whether the roll is called again: what one report says
//! may be older than the roll call that the other leads to, and the manager cannot know; there, what it says and its books are
//! compared.

mod any;
mod stage;

use proptest::{collection, prelude::*, sample::Index};
use protocol::{
    Change, CloudManager, Edit, Instruction, Need, Report, Strategy as Meet, VmId,
    manager::{Input, Output, Request},
};
use stage::{Move, Stage, add, add_vm, bind, incomplete, kind, remove, remove_vm, restart, unbind};

#[test]
fn reports_of_two_vms_commute() {
    proptest!(any::cases(CASES), |(system in system(), choices in collection::vec(any::<u16>(), 150))| {
        check(&system, &choices, true)?;
    });
}

#[test]
fn reports_of_two_vms_lead_to_the_same_book_also_where_changes_overlap() {
    proptest!(any::cases(CASES), |(system in system(), choices in collection::vec(any::<u16>(), 150))| {
        check(&system, &choices, false)?;
    });
}

const CASES: u32 = 400;

/// A small application on a few VMs, and what is asked for once it stands.
#[derive(Clone, Debug)]
struct System {
    first: Request,
    then: Vec<Request>,
}

/// Runs the system by random choices; wherever two reports are on their way, both orders are tried. A patient operator
/// waits until a change is done before asking for the next.
fn check(system: &System, choices: &[u16], patient: bool) -> Result<(), TestCaseError> {
    let mut stage = Stage::new();
    stage.ask(system.first.clone());
    stage.run();
    let mut then = system.then.iter();
    for choice in choices {
        check_pairs(&stage, patient)?;
        let moves = stage.moves();
        // The operator is one more who may be next.
        let next = usize::from(*choice) % (moves.len() + 1);
        match (moves.get(next), then.len()) {
            (Some(next), _) => stage.make(*next),
            (None, 0) if moves.is_empty() => break,
            (None, _) if patient && stage.manager.changes().next().is_some() => {}
            (None, _) => drop(then.next().map(|request| stage.ask(request.clone()))),
        }
    }
    Ok(())
}

fn check_pairs(stage: &Stage, patient: bool) -> Result<(), TestCaseError> {
    let ready: Vec<VmId> =
        stage.moves().into_iter().filter_map(|it| if let Move::Report(vm) = it { Some(vm) } else { None }).collect();
    for (place, one) in ready.iter().enumerate() {
        for other in &ready[place + 1..] {
            let (one, other) = ((*one, &stage.reports[one][0]), (*other, &stage.reports[other][0]));
            let (there, there_said) = hear(&stage.manager, [one, other]);
            let (back, back_said) = hear(&stage.manager, [other, one]);
            let order = |said: &[Vec<Output>]| said.iter().flat_map(|said| orders(said)).next().is_some();
            if patient && order(&there_said[..1]) && order(&back_said[..1]) {
                prop_assert_eq!(kinds_of_orders(&there_said), kinds_of_orders(&back_said));
            } else if patient {
                prop_assert_eq!(sorted(&there_said), sorted(&back_said), "after {:?} and {:?}", one, other);
                if there_said.iter().chain(&back_said).any(|said| calls_a_roll(said)) {
                    prop_assert_eq!(there.book(), back.book());
                } else {
                    prop_assert_eq!(there, back);
                }
            } else if !order(&there_said) && !order(&back_said) {
                prop_assert_eq!(there.book(), back.book());
            }
        }
    }
    Ok(())
}

fn hear(manager: &CloudManager, reports: [(VmId, &Report); 2]) -> (CloudManager, [Vec<Output>; 2]) {
    let mut manager = manager.clone();
    let said = reports.map(|(vm, report)| manager.step(Input::FromAgent(vm, report.clone())));
    (manager, said)
}

fn sorted(said: &[Vec<Output>]) -> Vec<Output> {
    let mut said = said.concat();
    said.sort();
    said
}

fn orders(said: &[Output]) -> impl Iterator<Item = (VmId, &Instruction)> {
    said.iter()
        .filter_map(|it| if let Output::ToAgent(vm, order) = it { Some((*vm, &order.instruction)) } else { None })
}

fn calls_a_roll(said: &[Output]) -> bool {
    orders(said).any(|(_, it)| *it == Instruction::RollCall)
}

/// Who was ordered what sort of thing, numbers aside.
fn kinds_of_orders(said: &[Vec<Output>; 2]) -> Vec<(VmId, std::mem::Discriminant<Instruction>)> {
    let all = said.iter().flat_map(|said| orders(said));
    let mut kinds: Vec<_> = all.map(|(vm, it)| (vm, std::mem::discriminant(it))).collect();
    kinds.sort_by_key(|(vm, kind)| (*vm, format!("{kind:?}")));
    kinds
}

/// Up to five components on three VMs, each importing from some that come before it; then a few changes.
fn system() -> impl Strategy<Value = System> {
    let component = (0..3_usize, 0..3_u8, collection::vec(any::<bool>(), 5));
    let edits = collection::vec((0..6_u8, any::<Index>(), any::<Index>()), 1..3);
    let changes = collection::vec((edits, 0..3_usize), 1..3);
    (collection::vec(component, 2..5), changes).prop_map(|(components, changes)| {
        let mut edits: Vec<Edit> = (0..3).map(|vm| add_vm(&format!("v{vm}"))).collect();
        let mut bindings = Vec::new();
        for (place, (vm, sort, providers)) in components.iter().enumerate() {
            let need = [Need::Strong(1), Need::Weak(0), Need::Value(1)][usize::from(*sort)];
            let providers: Vec<usize> = (0..place).filter(|provider| providers[*provider]).collect();
            let imports: &[_] = if providers.is_empty() { &[] } else { &[("in", "x", need)] };
            edits.push(add(&format!("c{place}"), &format!("v{vm}"), kind(imports, &["x"])));
            bindings.extend(providers.iter().map(|provider| format!("c{place}.in → c{provider}.x")));
        }
        edits.extend(bindings.iter().map(|wire| bind(wire)));
        let then = changes.into_iter().map(|(wished, strategy)| {
            let edit = |(sort, which, other): (u8, Index, Index)| match sort {
                0 => vec![remove_vm(&format!("v{}", which.index(3)))],
                1 if !bindings.is_empty() => vec![unbind(&bindings[which.index(bindings.len())])],
                2 => vec![restart(&format!("c{}", which.index(components.len())))],
                3 => {
                    let provider = which.index(components.len());
                    let imports = [("in", "x", Need::Strong(1))];
                    let name = format!("d{}", other.index(2));
                    // A new client of what is there.
                    vec![
                        add(&name, &format!("v{}", other.index(3)), kind(&imports, &[])),
                        bind(&format!("{name}.in → c{provider}.x")),
                    ]
                }
                _ => vec![remove(&format!("c{}", which.index(components.len())))],
            };
            let mut edits: Vec<Edit> = wished.into_iter().flat_map(edit).collect();
            // A binding goes by itself or with one of its ends, not both.
            if edits.iter().any(|it| matches!(it, Edit::RemoveComponent { .. } | Edit::RemoveVm { .. })) {
                edits.retain(|it| !matches!(it, Edit::RemoveBinding(_)));
            }
            let strategy = Meet::NAMES[strategy].1;
            Request::Make(Change { strategy, incomplete: true, edits })
        });
        System { then: then.collect(), first: incomplete(edits) }
    })
}
