//! Explorations with each reduction against an exploration with none: the same breaches, the same ends.

use model_check::{
    Scenario,
    explore::{self, Findings, Settings},
    property::{Breach, End},
    random::Random,
    scenario::arbitrary::{self, Size},
};
use protocol::{ComponentState, Name, agent::HoldingState};
use std::collections::{BTreeMap, BTreeSet};

/// Random scenarios of several sorts, by seed: those in which things go wrong are the most.
pub(crate) fn scenario(seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let below = |n| random.below(n);
    match seed % 8 {
        0 => arbitrary::scenario(format!("random-{seed}"), Size::Tiny, below),
        1 => arbitrary::haste(format!("haste-{seed}"), below),
        2 | 3 => arbitrary::mishap_in_tier(format!("mishap-in-tier-{seed}"), below),
        _ => arbitrary::mishap(format!("mishap-{seed}"), below),
    }
}

/// Explores with no reduction and with each. Nothing if there are more than so many worlds; an error says what differs.
pub(crate) fn compare(scenario: &Scenario, states_max: usize) -> Option<Result<Findings, String>> {
    let thorough = |settings: Settings| {
        let settings = Settings { thorough: true, threads: 1, ..settings };
        explore::explore_scenario(scenario, settings)
    };
    let none = thorough(Settings { states_max, ..Settings::full() });
    if !none.complete {
        return None;
    }
    let variants = [
        ("ample sets", Settings { ample: true, ..Settings::full() }),
        ("links", Settings { links: true, ..Settings::full() }),
        ("ample sets and links", Settings { ample: true, links: true, ..Settings::full() }),
        ("symmetry", Settings { symmetry: true, ..Settings::full() }),
        ("all reductions", Settings::default()),
    ];
    for (name, settings) in variants {
        let reduced = thorough(settings);
        if let Some(wrong) = difference(scenario, &none, &reduced, settings) {
            return Some(Err(format!("{}, with {name}: {wrong}\n{scenario}", scenario.name)));
        }
    }
    Some(Ok(none))
}

fn difference(scenario: &Scenario, none: &Findings, reduced: &Findings, settings: Settings) -> Option<String> {
    let symmetry = settings.symmetry;
    // Letters that come a second time are counted where each is a step of its own.
    let counts_alike = !settings.links || !scenario.faults.repeats();
    // With symmetry another of several replicas may be the one that is named.
    let breaches = |findings: &Findings| -> BTreeSet<Breach> {
        let unnamed = |it: &Breach| Breach { property: it.property, detail: String::new() };
        findings.breaches.iter().map(|it| if symmetry { unnamed(it) } else { it.clone() }).collect()
    };
    let (one, two) = (breaches(none), breaches(reduced));
    if one != two {
        let (lost, new): (Vec<_>, Vec<_>) = (one.difference(&two).collect(), two.difference(&one).collect());
        return Some(format!("breaches lost {lost:?}, new {new:?}"));
    }
    let (one, two) = (outcomes(scenario, none, symmetry), outcomes(scenario, reduced, symmetry));
    if one != two {
        return Some(format!("ends lost {:?}, new {:?}", sorted(&one, &two), sorted(&two, &one)));
    }
    if !symmetry && counts_alike && none.ends != reduced.ends {
        return Some(format!("{} ends, not {}", reduced.ends, none.ends));
    }
    if counts_alike && (none.messages, none.longest) != (reduced.messages, reduced.longest) {
        return Some(format!("messages {:?}, not {:?}", reduced.messages, none.messages));
    }
    (reduced.states > none.states).then(|| format!("{} states, more than {}", reduced.states, none.states))
}

type Owned = BTreeMap<Name, (ComponentState, BTreeSet<(Name, Name, HoldingState)>)>;

/// The ends; with symmetry also those in which replicas that are alike have changed places.
fn outcomes(scenario: &Scenario, findings: &Findings, symmetry: bool) -> BTreeSet<Owned> {
    let mut found: BTreeSet<Owned> = findings.outcomes.iter().map(|end| End::clone(end)).collect();
    let classes = if symmetry { explore::interchangeable(scenario) } else { Vec::new() };
    let mut open: Vec<Owned> = found.iter().cloned().collect();
    while let Some(end) = open.pop() {
        for class in &classes {
            for (place, one) in class.iter().enumerate() {
                for other in &class[place + 1..] {
                    let image = swap(&end, one, other);
                    if found.insert(image.clone()) {
                        open.push(image);
                    }
                }
            }
        }
    }
    found
}

fn swap(end: &Owned, one: &[Name], other: &[Name]) -> Owned {
    let to = |name: &Name| {
        let there = |from: &[Name], to: &[Name]| from.iter().position(|it| it == name).map(|place| to[place].clone());
        there(one, other).or_else(|| there(other, one)).unwrap_or_else(|| name.clone())
    };
    let held = |held: &BTreeSet<(Name, Name, HoldingState)>| {
        held.iter().map(|(import, provider, state)| (import.clone(), to(provider), *state)).collect()
    };
    end.iter().map(|(name, (state, holds))| (to(name), (*state, held(holds)))).collect()
}

fn sorted(one: &BTreeSet<Owned>, other: &BTreeSet<Owned>) -> Vec<Owned> {
    one.difference(other).cloned().collect()
}
