//! How many components of each type there must be, what they may be hosted by, and how many there can be at most.
//!
//! What the requirements says about a number directly is read off; then requirements, capacities and conflicts are followed from
//! type to type as long as they add something.

use std::collections::BTreeMap;

use super::arithmetic::joined;
use crate::configuration::Node;
use crate::language::syntax::{Arithmetic, Comparison, Connective, Quantifier};
use crate::language::{Range, Spot, Term, Which};
use crate::model::interfaces::{Interfaces, Need, Stock};
use crate::model::{Model, Selection};
use crate::problem::Problem;

/// Numbers are followed this often from type to type: a circle may make them grow for ever.
const ROUNDS_MAX: usize = 32;

/// Larger numbers in requirements are not computed with here; a product of two of these is exact.
const NUMBER_MAX: i128 = 1 << 60;

/// There are at least so many components of a type on nodes of some groups.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) kind: usize,
    pub(super) groups: Vec<bool>,
    pub(super) amount: i64,
    /// The sentences that led here; none if the requirements says so itself.
    pub(super) because: Vec<String>,
}

/// A bound of a number, with the sentences that led to it.
#[derive(Clone, Debug, Default)]
struct Bound {
    amount: i64,
    because: Vec<String>,
}

pub(super) struct Claims<'a> {
    problem: &'a Problem,
    interfaces: Interfaces,
    least: Vec<Bound>,
    most: Vec<Option<Bound>>,
    /// Where each type may be.
    allowed: Vec<Vec<bool>>,
    /// Claims about some nodes only.
    local: Vec<Claim>,
    /// Sentences that show a conflict of numbers already, wherever components are.
    pub(super) conflict: Option<Vec<String>>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(problem: &'a Problem, selection: &Selection, model: &Model) -> Self {
        let mut claims = Self {
            problem,
            interfaces: Interfaces::selected(problem, selection),
            least: vec![Bound::default(); problem.types.len()],
            most: vec![None; problem.types.len()],
            allowed: vec![vec![true; model.groups.len()]; problem.types.len()],
            local: Vec::new(),
            conflict: None,
        };
        for (demand, _) in
            problem.requirements.demands.iter().zip(&selection.demands).filter(|(_, selected)| **selected)
        {
            claims.read(&demand.term, model);
        }
        for conflict in &claims.interfaces.conflicts {
            if conflict.kind == conflict.other && claims.most[conflict.kind].as_ref().is_none_or(|most| most.amount > 1)
            {
                claims.most[conflict.kind] = Some(Bound { amount: 1, because: Vec::new() });
            }
        }
        for _ in 0..ROUNDS_MAX {
            claims.conflict = claims.crossed().or_else(|| claims.unprovided());
            if claims.conflict.is_some() || !claims.follow() {
                break;
            }
        }
        claims
    }

    pub(super) fn all(&self) -> Vec<Claim> {
        let total = self.least.iter().enumerate().filter(|(_, least)| least.amount > 0);
        let total = total.map(|(kind, least)| Claim {
            kind,
            groups: self.allowed[kind].clone(),
            amount: least.amount,
            because: least.because.clone(),
        });
        let local = self.local.iter().cloned().map(|mut claim| {
            let allowed = &self.allowed[claim.kind];
            claim.groups.iter_mut().zip(allowed).for_each(|(group, allowed)| *group &= *allowed);
            claim
        });
        total.chain(local).collect()
    }

    /// What a demand says about numbers, if it says it plainly.
    fn read(&mut self, term: &Term, model: &Model) {
        match term {
            Term::Connected { connective: Connective::And, parts } => {
                parts.iter().for_each(|part| self.read(part, model));
            }
            Term::Comparison { operator, left, right } => {
                let (Some(left), Some(right)) = (Sum::of(left), Sum::of(right)) else { return };
                let Some(difference) = left.plus(&right, -1) else { return };
                let Some(turned) = Sum::default().plus(&difference, -1) else { return };
                match operator {
                    Comparison::AtLeast => self.not_negative(&difference, model),
                    Comparison::Greater => self.not_negative(&difference.less_one(), model),
                    Comparison::AtMost => self.not_negative(&turned, model),
                    Comparison::Less => self.not_negative(&turned.less_one(), model),
                    Comparison::Equal => {
                        self.not_negative(&difference, model);
                        self.not_negative(&turned, model);
                    }
                    Comparison::Different => {}
                }
            }
            _ => {}
        }
    }

    /// Takes note that a sum is at least 0.
    fn not_negative(&mut self, sum: &Sum, model: &Model) {
        let parts: Vec<(&(usize, Place), &i128)> = sum.parts.iter().collect();
        if let [((kind, place), factor)] = parts.as_slice() {
            self.bounded(*kind, place, **factor, sum.constant, model);
        }
        // At least as many in these places as in all of them: none anywhere else.
        let whole = parts.iter().find(|((_, place), factor)| *place == Place::Anywhere && **factor == -1);
        let Some(((kind, _), _)) = whole else { return };
        let places = || parts.iter().filter(|((_, place), _)| *place != Place::Anywhere);
        if sum.constant == 0
            && places().count() + 1 == parts.len()
            && places().all(|((other, _), factor)| other == kind && **factor == 1)
        {
            for (position, allowed) in self.allowed[*kind].iter_mut().enumerate() {
                *allowed &= places().any(|((_, place), _)| place.contains(position, model));
            }
        }
    }

    /// Takes note that `factor · count + constant` is at least 0.
    fn bounded(&mut self, kind: usize, place: &Place, factor: i128, constant: i128, model: &Model) {
        if factor > 0 {
            // count >= -constant / factor
            let amount = -constant.div_euclid(factor);
            let Some(amount) = i64::try_from(amount).ok().filter(|amount| *amount > 0) else { return };
            if *place == Place::Anywhere {
                if amount > self.least[kind].amount {
                    self.least[kind] = Bound { amount, because: Vec::new() };
                }
                return;
            }
            let groups = (0..model.groups.len()).map(|group| place.contains(group, model)).collect();
            self.local.push(Claim { kind, groups, amount, because: Vec::new() });
            return;
        }
        let Ok(amount) = i64::try_from(constant.div_euclid(-factor)) else { return };
        if *place == Place::Anywhere {
            if self.most[kind].as_ref().is_none_or(|most| amount < most.amount) {
                self.most[kind] = Some(Bound { amount, because: Vec::new() });
            }
        } else if amount <= 0 {
            for (position, allowed) in self.allowed[kind].iter_mut().enumerate() {
                *allowed &= !place.contains(position, model);
            }
        }
    }

    fn name(&self, kind: usize) -> &str {
        &self.problem.types[kind].name
    }

    /// A type of which there must be more than there can be.
    fn crossed(&self) -> Option<Vec<String>> {
        let crossed = self.least.iter().zip(&self.most).enumerate();
        crossed.filter_map(|(kind, (least, most))| Some((kind, least, most.as_ref()?))).find_map(
            |(kind, least, most)| {
                if least.amount <= most.amount {
                    return None;
                }
                let sentence = match most.amount {
                    ..0 => format!("there cannot be fewer than 0 {}", self.name(kind)),
                    0 => format!("there must be {} {}, there can be none", least.amount, self.name(kind)),
                    most => format!("there must be {} {}, there can be only {most}", least.amount, self.name(kind)),
                };
                Some(chain([least, most], sentence))
            },
        )
    }

    fn stocks<'b>(&'b self, port: &'b str) -> impl Iterator<Item = &'b Stock> {
        self.interfaces.stocks.iter().filter(move |stock| stock.ports.contains(port))
    }

    /// Clients for which there are too few providers, or too few places.
    fn unprovided(&self) -> Option<Vec<String>> {
        self.interfaces.needs.iter().filter(|need| self.least[need.kind].amount > 0).find_map(|need| {
            if self.stocks(&need.port).next().is_none() {
                let sentence = format!("nothing provides {}", need.port);
                return Some(chain([&self.least[need.kind]], sentence));
            }
            self.too_few(need).or_else(|| self.too_narrow(&need.port))
        })
    }

    fn too_few(&self, need: &Need) -> Option<Vec<String>> {
        let mut there = 0_i64;
        let mut bounds = vec![&self.least[need.kind]];
        let mut providers = Vec::new();
        for stock in self.stocks(&need.port) {
            let most = self.most[stock.kind].as_ref()?;
            bounds.push(most);
            there = there.saturating_add(most.amount.max(0));
            providers.push(format!("{} {}", most.amount.max(0), self.name(stock.kind)));
        }
        let own = self.stocks(&need.port).any(|stock| stock.kind == need.kind);
        let there = if own { there.saturating_sub(1) } else { there };
        if there >= need.number {
            return None;
        }
        let (client, number, port) = (self.name(need.kind), need.number, &need.port);
        let others = if own { " and none provides for itself" } else { "" };
        let needs = if number == 1 { "a provider".to_owned() } else { format!("{number} different providers") };
        let sentence =
            format!("each {client} needs {needs} of {port}; there can be only {}{others}", joined(providers));
        Some(chain(bounds, sentence))
    }

    fn too_narrow(&self, port: &str) -> Option<Vec<String>> {
        let mut places = 0_i128;
        let mut bounds = Vec::new();
        let mut providers = Vec::new();
        for stock in self.stocks(port) {
            let (most, capacity) = (self.most[stock.kind].as_ref()?, stock.capacity?);
            bounds.push(most);
            places += i128::from(most.amount.max(0)) * i128::from(capacity);
            let with = if capacity == 1 { "1 place".to_owned() } else { format!("{capacity} places") };
            let each = if most.amount == 1 { "" } else { " each" };
            providers.push(format!("{} {} with {with}{each}", most.amount.max(0), self.name(stock.kind)));
        }
        let (clients, list, more) = self.clients(&[port]);
        if clients <= places {
            return None;
        }
        let have = if bounds.len() == 1 && bounds[0].amount == 1 { "has" } else { "have" };
        let sentence = format!("{list}; {} {have} {places}", joined(providers));
        bounds.extend(more);
        Some(chain(bounds, sentence))
    }

    /// How many clients some ports have at least, in words, and what that rests on.
    fn clients(&self, ports: &[&str]) -> (i128, String, Vec<&Bound>) {
        let mut sum = 0_i128;
        let (mut parts, mut bounds) = (Vec::new(), Vec::new());
        for need in self.interfaces.needs.iter().filter(|need| ports.contains(&need.port.as_str())) {
            let least = &self.least[need.kind];
            if least.amount > 0 {
                sum += i128::from(least.amount) * i128::from(need.number);
                let each =
                    if need.number == 1 { String::new() } else { format!(" with {} bindings each", need.number) };
                parts.push(format!("{} {}{each}", least.amount, self.name(need.kind)));
                bounds.push(least);
            }
        }
        let (are, clients) = if sum == 1 { ("is", "client") } else { ("are", "clients") };
        (sum, format!("{} {are} {sum} {clients} of {}", joined(parts), ports.join(", ")), bounds)
    }

    /// One round from clients to providers; whether it added anything.
    fn follow(&mut self) -> bool {
        let mut news: Vec<(usize, Bound)> = Vec::new();
        for need in self.interfaces.needs.iter().filter(|need| self.least[need.kind].amount > 0) {
            let mut stocks = self.stocks(&need.port);
            if let (Some(only), None) = (stocks.next(), stocks.next()) {
                let amount = need.number + i64::from(only.kind == need.kind);
                let (client, provider) = (self.name(need.kind), self.name(only.kind));
                let others = match need.number {
                    1 => format!("1 {provider}"),
                    number => format!("{number} different {provider}"),
                };
                let besides = if only.kind == need.kind { " besides itself" } else { "" };
                let sentence = format!("each {client} needs {others}{besides} for {}", need.port);
                news.push((only.kind, Bound { amount, because: chain([&self.least[need.kind]], sentence) }));
            }
        }
        for stock in &self.interfaces.stocks {
            let only_here = |port: &&String| self.stocks(port).count() == 1;
            let ports: Vec<&str> = stock.ports.iter().filter(only_here).map(String::as_str).collect();
            let (clients, list, bounds) = self.clients(&ports);
            let Some(capacity) = stock.capacity.filter(|capacity| *capacity > 0) else { continue };
            let amount = clients.div_euclid(capacity.into()) + i128::from(clients.rem_euclid(capacity.into()) > 0);
            let Ok(amount) = i64::try_from(amount) else { continue };
            let provider = self.name(stock.kind);
            let sentence = format!("{list}; each {provider} takes {capacity}, so there must be {amount} {provider}");
            news.push((stock.kind, Bound { amount, because: chain(bounds, sentence) }));
        }
        let mut added = false;
        for (kind, bound) in news {
            if bound.amount > self.least[kind].amount {
                self.least[kind] = bound;
                added = true;
            }
        }
        for conflict in self.interfaces.conflicts.iter().filter(|conflict| conflict.kind != conflict.other) {
            for (here, there) in [(conflict.kind, conflict.other), (conflict.other, conflict.kind)] {
                let least = &self.least[here];
                if least.amount > 0 && self.most[there].as_ref().is_none_or(|most| most.amount > 0) {
                    self.most[there] = Some(Bound { amount: 0, because: least.because.clone() });
                    added = true;
                }
            }
        }
        added
    }
}

/// The sentences that some bounds rest on, and one more.
fn chain<'b>(bounds: impl IntoIterator<Item = &'b Bound>, last: String) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for earlier in bounds.into_iter().flat_map(|bound| &bound.because) {
        if !sentences.contains(earlier) {
            sentences.push(earlier.clone());
        }
    }
    sentences.push(last);
    sentences
}

/// Where components are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Anywhere,
    Classes(Vec<usize>),
    Node(Node),
}

impl Place {
    fn contains(&self, group: usize, model: &Model) -> bool {
        let group = &model.groups[group];
        match self {
            Self::Anywhere => true,
            Self::Classes(classes) => classes.contains(&group.class),
            Self::Node(node) => group.class == node.class && group.members.as_slice() == [node.index],
        }
    }
}

/// `constant + Σ factor · count`.
#[derive(Clone, Debug, Default)]
struct Sum {
    constant: i128,
    parts: BTreeMap<(usize, Place), i128>,
}

impl Sum {
    /// A term as a sum of counts, if it is one.
    fn of(term: &Term) -> Option<Self> {
        match term {
            Term::Integer(value) => Self::default().plus(&Self { constant: i128::from(*value), ..Self::default() }, 1),
            Term::Count { place: None, component: Which::Type(kind) } => Some(Self::count(*kind, Place::Anywhere)),
            Term::Count { place: Some(Spot::Node(node)), component: Which::Type(kind) } => {
                Some(Self::count(*kind, Place::Node(*node)))
            }
            Term::Quantified { quantifier: Quantifier::Sum, slot, range: Range::Nodes(classes), body } => {
                match body.as_ref() {
                    Term::Count { place: Some(Spot::Slot(here)), component: Which::Type(kind) } if here == slot => {
                        Some(Self::count(*kind, Place::Classes(classes.clone())))
                    }
                    _ => None,
                }
            }
            Term::Arithmetic { operator, left, right } => {
                let (left, right) = (Self::of(left)?, Self::of(right)?);
                match operator {
                    Arithmetic::Add => left.plus(&right, 1),
                    Arithmetic::Subtract => left.plus(&right, -1),
                    Arithmetic::Multiply if left.parts.is_empty() => Self::default().plus(&right, left.constant),
                    Arithmetic::Multiply if right.parts.is_empty() => Self::default().plus(&left, right.constant),
                    Arithmetic::Multiply => None,
                }
            }
            _ => None,
        }
    }

    fn count(kind: usize, place: Place) -> Self {
        Self { constant: 0, parts: BTreeMap::from([((kind, place), 1)]) }
    }

    /// The sum of both, unless its numbers are too large to compute with.
    fn plus(mut self, other: &Self, factor: i128) -> Option<Self> {
        let small = |number: i128| (number.abs() <= NUMBER_MAX).then_some(number);
        self.constant = small(self.constant + other.constant * factor)?;
        for (part, amount) in &other.parts {
            let sum = self.parts.entry(part.clone()).or_insert(0);
            *sum = small(*sum + amount * factor)?;
        }
        self.parts.retain(|_, amount| *amount != 0);
        Some(self)
    }

    fn less_one(mut self) -> Self {
        self.constant -= 1;
        self
    }
}
