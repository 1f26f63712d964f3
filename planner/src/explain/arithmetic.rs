//! The numbers that do not meet: why some causes contradict each other, where a simple sum shows it.
//!
//! The requirements and the requirements say how many components of each type there must be at least, and at most; the nodes and
//! the demands on each of them say how many there can be. Everything is in whole numbers, and only what the causes imply
//! is used. So a sentence, where there is one, is a proof; where there is none, the causes stand for themselves.

use std::collections::BTreeMap;

use super::claims::{Claim, Claims};
use crate::model::{Group, Model, Selection};
use crate::problem::Problem;

/// How many sets of claims are tried.
const SETS_MAX: u32 = 4_096;

/// How long a search for what one node can host may take.
const PATIENCE: u32 = 50;

/// Sentences that show that what is selected cannot hold; none, if no simple sum does.
pub(super) fn reasons(problem: &Problem, selection: &Selection, model: &Model) -> Vec<String> {
    let claims = Claims::new(problem, selection, model);
    match claims.conflict {
        Some(sentences) => sentences,
        None => Sums { problem, selection, model }.first_of(&claims.all()).unwrap_or_default(),
    }
}

/// Sums over claims and nodes.
struct Sums<'a> {
    problem: &'a Problem,
    selection: &'a Selection,
    model: &'a Model,
}

impl Sums<'_> {
    /// The reason that takes the fewest claims.
    fn first_of(&self, claims: &[Claim]) -> Option<Vec<String>> {
        let mut sets = SETS_MAX;
        for size in 1..=claims.len() {
            if let Some(found) = self.of_size(claims, size, &mut Vec::new(), &mut sets) {
                return Some(found);
            }
        }
        None
    }

    fn of_size<'c>(
        &self,
        claims: &'c [Claim],
        size: usize,
        chosen: &mut Vec<&'c Claim>,
        sets: &mut u32,
    ) -> Option<Vec<String>> {
        if size == 0 {
            *sets = sets.checked_sub(1)?;
            let last = self.homeless(chosen).or_else(|| self.resource(chosen)).or_else(|| self.places(chosen))?;
            let mut sentences: Vec<String> = Vec::new();
            for sentence in chosen.iter().flat_map(|claim| &claim.because).chain([&last]) {
                if !sentences.contains(sentence) {
                    sentences.push(sentence.clone());
                }
            }
            return Some(sentences);
        }
        for (position, claim) in claims.iter().enumerate() {
            // Two claims about one type may be about the same components.
            if chosen.iter().any(|other| other.kind == claim.kind) {
                continue;
            }
            chosen.push(claim);
            let found = self.of_size(&claims[position + 1..], size - 1, chosen, sets);
            chosen.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn name(&self, kind: usize) -> &str {
        &self.problem.types[kind].name
    }

    /// `3 Web and 1 Database`.
    fn list(&self, claims: &[&Claim]) -> String {
        joined(claims.iter().map(|claim| format!("{} {}", claim.amount, self.name(claim.kind))))
    }

    /// Whether the number of nodes like these is not limited.
    fn is_endless(&self, group: &Group) -> bool {
        !self.selection.numbers[group.class] && !self.model.given.contains(&group.class)
    }

    /// The groups where one of the claimed types may be, with whether one fits by its size.
    fn homes<'c>(&'c self, claims: &'c [&Claim]) -> impl Iterator<Item = (usize, &'c Group)> {
        self.model.groups.iter().enumerate().filter(|(position, group)| {
            claims.iter().any(|claim| claim.groups[*position] && group.most[claim.kind] > 0)
        })
    }

    /// A type that fits nowhere.
    fn homeless(&self, claims: &[&Claim]) -> Option<String> {
        let [claim] = claims else { return None };
        if self.homes(claims).next().is_some() {
            return None;
        }
        if !claim.groups.contains(&true) {
            return Some(format!("there must be {}, and there is no node that may host one", self.list(claims)));
        }
        let kind = &self.problem.types[claim.kind];
        let nowhere = if claim.groups.contains(&false) { "none of the nodes it may be on" } else { "no node" };
        let amounts: Vec<String> = kind.resources.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
        Some(format!("{nowhere} has room for one {}, which uses {}", kind.name, amounts.join(", ")))
    }

    /// More of a resource is needed than there is.
    fn resource(&self, claims: &[&Claim]) -> Option<String> {
        if self.homes(claims).any(|(_, group)| self.is_endless(group)) {
            return None;
        }
        self.problem.resources().into_iter().enumerate().find_map(|(position, resource)| {
            let sizes = claims.iter().map(|claim| (claim.amount, self.model.sizes[claim.kind][position]));
            let needed: i128 = sizes.map(|(amount, size)| i128::from(amount) * i128::from(size)).sum();
            let homes = self.homes(claims);
            let there: i128 =
                homes.map(|(_, group)| i128::from(group.number()) * i128::from(group.room[position])).sum();
            let list = self.list(claims);
            let verb = if claims.len() == 1 && claims[0].amount == 1 { "needs" } else { "need" };
            (needed > there).then(|| format!("{list} {verb} {needed} {resource}, {} {there}", self.together(claims)))
        })
    }

    /// `all nodes together have`, or those that count.
    fn together(&self, claims: &[&Claim]) -> String {
        let homes: Vec<(usize, &Group)> = self.homes(claims).collect();
        let nodes: i64 = homes.iter().map(|(_, group)| group.number()).sum();
        if nodes == 1 {
            return format!("the {} has", self.problem.classes[homes[0].1.class].name);
        }
        if homes.len() == self.model.groups.len() {
            return "all nodes together have".to_owned();
        }
        let mut numbers: BTreeMap<usize, i64> = BTreeMap::new();
        for (_, group) in homes {
            *numbers.entry(group.class).or_insert(0) += group.number();
        }
        let parts = numbers.iter().map(|(class, number)| format!("{number} {}", self.problem.classes[*class].name));
        format!("the {} that can host them have together", joined(parts))
    }

    /// More places on nodes are needed than there are.
    fn places(&self, claims: &[&Claim]) -> Option<String> {
        // How many nodes of each class can host how many of these.
        let mut places: BTreeMap<(usize, i64), i64> = BTreeMap::new();
        let mut there = 0_i128;
        for (position, group) in self.homes(claims) {
            let most = self.most_on(position, claims)?;
            if most > 0 && self.is_endless(group) {
                return None;
            }
            if most > 0 {
                *places.entry((group.class, most)).or_insert(0) += group.number();
            }
            there += i128::from(most) * i128::from(group.number());
        }
        let needed: i128 = claims.iter().map(|claim| i128::from(claim.amount)).sum();
        if needed <= there {
            return None;
        }
        let list = self.list(claims);
        let one = if claims.len() == 1 { "one" } else { "one of them" };
        if there == 0 {
            return Some(format!("there must be {list}, but no node can host {one}"));
        }
        if places.keys().all(|(_, most)| *most == 1) {
            let each = match needed {
                1 => "needs a node".to_owned(),
                _ => format!(
                    "need {needed} nodes, as no node can host two{}",
                    if claims.len() == 1 { "" } else { " of them" }
                ),
            };
            return Some(format!("{list} {each}; only {there} can host {one}"));
        }
        let parts = places.iter().map(|((class, most), number)| {
            let each = if *number == 1 { "" } else { " each" };
            format!("{number} {} can host {most}{each}", self.problem.classes[*class].name)
        });
        let in_all = if claims.len() == 1 { String::new() } else { format!(", {needed} in all") };
        Some(format!("there must be {list}{in_all}; {}, which is {there}", joined(parts)))
    }

    /// How many components of the claimed types one node of a group can host at most; nothing if that is too hard.
    fn most_on(&self, group: usize, claims: &[&Claim]) -> Option<i64> {
        let mut prices = vec![0_i128; self.model.bounds.len()];
        for claim in claims.iter().filter(|claim| claim.groups[group]) {
            prices[claim.kind] = 1;
        }
        let mut patience = PATIENCE;
        let mut go_on = || {
            patience = u32::saturating_sub(patience, 1);
            patience > 0
        };
        let (found, search) = self.model.best_columns(group, &prices, 0, &mut go_on);
        if search != crate::model::columns::Search::Complete {
            return None;
        }
        found.last().map_or(Some(0), |column| i64::try_from(column.worth(&prices)).ok())
    }
}

/// `a, b and c`.
pub(super) fn joined(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().collect();
    match parts.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}
