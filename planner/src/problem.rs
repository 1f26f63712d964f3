//! What is asked of the planner: types of components, classes of nodes, today's configuration and requirements.
//!
//! A `Problem` is checked when it is made ([`Problem::new`]), so the rest of the crate trusts it: names are unique,
//! numbers are within bounds that keep all later sums inside `i64`, today's components exist and fit their nodes.
//! Types and classes are referred to by their position in the lists.

use std::collections::{BTreeMap, BTreeSet};

use crate::configuration::Configuration;
use crate::language::Requirements;

/// The largest amount of a resource, cost or capacity that is accepted.
pub const AMOUNT_MAX: i64 = 1_000_000_000_000;
/// The largest number of nodes of one class.
pub const NODES_MAX: i64 = 1_000_000;
/// The largest number of distinct providers that one interface may require.
pub const PROVIDERS_MAX: i64 = 1_000_000;

/// A kind of component: what it offers, what it needs, what it cannot live with, what it consumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentType {
    pub name: String,
    /// Amount of each resource that one instance consumes.
    pub resources: BTreeMap<String, i64>,
    /// Interfaces that must be provided from creation on: least number of distinct providers.
    pub strong: BTreeMap<String, i64>,
    /// Interfaces that must be provided once a change is complete; 0 means optional.
    pub weak: BTreeMap<String, i64>,
    /// Interfaces that it offers.
    pub provides: Vec<Provision>,
    /// Interfaces that no *other* component may provide while an instance of this type exists.
    pub conflicts: BTreeSet<String>,
}

/// Interfaces that an instance offers from one common stock of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provision {
    pub ports: BTreeSet<String>,
    /// The greatest number of clients over all these ports together; `None` is no limit.
    pub capacity: Option<i64>,
}

impl ComponentType {
    /// Every required interface, strong and weak, with its least number of distinct providers.
    pub fn requires(&self) -> impl Iterator<Item = (&str, i64)> {
        let all = self.strong.iter().chain(&self.weak);
        all.map(|(port, number)| (port.as_str(), *number))
    }

    /// The position in `provides` of the stock that offers `port`.
    pub fn provision_of(&self, port: &str) -> Option<usize> {
        self.provides.iter().position(|offer| offer.ports.contains(port))
    }
}

/// A number of identical nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeClass {
    pub name: String,
    pub number: i64,
    pub resources: BTreeMap<String, i64>,
    /// What one node costs as soon as it hosts a component.
    pub cost: i64,
}

/// Everything the planner needs to know.
#[derive(Clone, Debug)]
pub struct Problem {
    pub types: Vec<ComponentType>,
    pub classes: Vec<NodeClass>,
    pub today: Configuration,
    pub requirements: Requirements,
}

/// Why a problem cannot be posed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct Misfit {
    /// What it is about: a type, a class, a component of today.
    pub place: String,
    pub reason: String,
}

impl Problem {
    /// Checks everything that can be checked without solving, and reports all that is wrong at once.
    pub fn new(
        types: Vec<ComponentType>,
        classes: Vec<NodeClass>,
        today: Configuration,
        requirements: Requirements,
    ) -> Result<Self, Vec<Misfit>> {
        let problem = Self { types, classes, today, requirements };
        let mut misfits = Misfits::default();
        problem.check_types(&mut misfits);
        problem.check_classes(&mut misfits);
        if misfits.0.is_empty() {
            for (place, reason) in problem.today.misfits(&problem) {
                misfits.push(&place, reason);
            }
        }
        if misfits.0.is_empty() { Ok(problem) } else { Err(misfits.0) }
    }

    /// The position of the type with this name.
    pub fn type_named(&self, name: &str) -> Option<usize> {
        self.types.iter().position(|kind| kind.name == name)
    }

    /// The position of the class with this name.
    pub fn class_named(&self, name: &str) -> Option<usize> {
        self.classes.iter().position(|class| class.name == name)
    }

    /// Every resource that a type consumes or a class has.
    pub fn resources(&self) -> BTreeSet<&str> {
        let consumed = self.types.iter().flat_map(|kind| kind.resources.keys());
        let offered = self.classes.iter().flat_map(|class| class.resources.keys());
        consumed.chain(offered).map(String::as_str).collect()
    }

    fn check_types(&self, misfits: &mut Misfits) {
        let mut names = BTreeSet::new();
        for kind in &self.types {
            let place = format!("component type {:?}", kind.name);
            if !names.insert(&kind.name) {
                misfits.push(&place, "its name is used twice".to_owned());
            }
            misfits.check_name(&place, &kind.name);
            misfits.check_amounts(&place, &kind.resources);
            for (port, number) in &kind.strong {
                if kind.weak.contains_key(port) {
                    misfits.push(&place, format!("requires {port:?} both strongly and weakly"));
                }
                misfits.check_range(&place, &format!("required interface {port:?}"), *number, 0, PROVIDERS_MAX);
            }
            for (port, number) in &kind.weak {
                misfits.check_range(&place, &format!("required interface {port:?}"), *number, 0, PROVIDERS_MAX);
            }
            let mut offered = BTreeSet::new();
            for offer in &kind.provides {
                for port in &offer.ports {
                    if !offered.insert(port) {
                        misfits.push(&place, format!("provides {port:?} twice"));
                    }
                }
                if let Some(capacity) = offer.capacity {
                    misfits.check_range(&place, "capacity", capacity, 0, AMOUNT_MAX);
                }
            }
        }
    }

    fn check_classes(&self, misfits: &mut Misfits) {
        let mut names = BTreeSet::new();
        for class in &self.classes {
            let place = format!("location {:?}", class.name);
            if !names.insert(&class.name) {
                misfits.push(&place, "its name is used twice".to_owned());
            }
            misfits.check_name(&place, &class.name);
            misfits.check_amounts(&place, &class.resources);
            misfits.check_range(&place, "num", class.number, 0, NODES_MAX);
            misfits.check_range(&place, "cost", class.cost, 0, AMOUNT_MAX);
        }
    }
}

#[derive(Default)]
struct Misfits(Vec<Misfit>);

impl Misfits {
    fn push(&mut self, place: &str, reason: String) {
        self.0.push(Misfit { place: place.to_owned(), reason });
    }

    fn check_range(&mut self, place: &str, what: &str, value: i64, least: i64, most: i64) {
        if !(least..=most).contains(&value) {
            self.push(place, format!("{what} is {value}, expected a number from {least} to {most}"));
        }
    }

    fn check_amounts(&mut self, place: &str, amounts: &BTreeMap<String, i64>) {
        for (resource, amount) in amounts {
            self.check_range(place, &format!("resource {resource:?}"), *amount, 0, AMOUNT_MAX);
        }
    }

    /// Names are written in specifications, so they must be words of that language.
    fn check_name(&mut self, place: &str, name: &str) {
        let mut letters = name.chars();
        let head = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
        if !head || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            self.push(place, "expected a name of letters, digits and underscores that starts with a letter".to_owned());
        } else if crate::language::is_reserved(name) {
            self.push(place, format!("{name:?} is a word of the specification language, choose another name"));
        }
    }
}
