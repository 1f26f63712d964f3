//! Which numbers of instances can be wired: requirements, capacities, conflicts.
//!
//! Instances of a type are interchangeable, so a wiring exists exactly when a flow exists between types: from each need
//! (`number` bindings for each client instance), at most one binding for each pair of distinct instances, into stocks of
//! limited capacity. That is linear except for "one binding for each pair", a product of two counts. The solver
//! therefore works in a *box* (bounds for each count): in it the products are replaced by their tightest linear upper
//! bounds, and where the box is a single point those are exact. [`Interfaces::unwirable`] decides exactly; when it
//! refuses counts, it returns the cut that proves it, and that cut holds for all counts.

use std::collections::{BTreeMap, BTreeSet};

use super::{INSTANCES_MAX, Row, Selection};
use crate::problem::Problem;

/// A type needs `number` distinct providers on a port.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub(crate) kind: usize,
    pub(crate) port: String,
    pub(crate) number: i64,
}

/// Instances of a type share out `capacity` places over these ports.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    pub(crate) kind: usize,
    pub(crate) ports: BTreeSet<String>,
    pub(crate) capacity: Option<i64>,
}

/// No instance of `other` besides one of `kind`; if they are the same type, at most one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) kind: usize,
    pub(crate) other: usize,
    pub(crate) port: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Interfaces {
    pub(crate) needs: Vec<Need>,
    pub(crate) stocks: Vec<Stock>,
    pub(crate) conflicts: Vec<Conflict>,
}

/// `Σ need · clients ≤ Σ capacity · providers (open stocks) + Σ clients · providers (shut stocks)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    needs: Vec<usize>,
    open: Vec<usize>,
    shut: Vec<usize>,
}

impl Interfaces {
    pub(crate) fn new(problem: &Problem) -> Self {
        let mut all = Self::default();
        for (kind, described) in problem.types.iter().enumerate() {
            for (port, number) in described.requires().filter(|(_, number)| *number > 0) {
                all.needs.push(Need { kind, port: port.to_owned(), number });
            }
            for offer in &described.provides {
                all.stocks.push(Stock {
                    kind,
                    ports: offer.ports.clone(),
                    capacity: offer.capacity.map(|most| most.min(INSTANCES_MAX)),
                });
            }
            for port in &described.conflicts {
                for (other, provider) in problem.types.iter().enumerate() {
                    if provider.provision_of(port).is_some() {
                        all.conflicts.push(Conflict { kind, other, port: port.clone() });
                    }
                }
            }
        }
        all
    }

    pub(crate) fn selected(problem: &Problem, selection: &Selection) -> Self {
        let mut all = Self::new(problem);
        for (stock, selected) in all.stocks.iter_mut().zip(&selection.capacities) {
            if !selected {
                stock.capacity = None;
            }
        }
        let mut needs = selection.needs.iter();
        all.needs.retain(|_| *needs.next().expect("one choice for each need"));
        let mut conflicts = selection.conflicts.iter();
        all.conflicts.retain(|_| *conflicts.next().expect("one choice for each conflict"));
        all
    }

    /// The types that can provide for a need, with whether it is the client's own type.
    fn providers(&self, need: &Need) -> impl Iterator<Item = &Stock> {
        self.stocks.iter().filter(|stock| stock.ports.contains(&need.port))
    }

    /// Rows that hold for all wirable counts within the box.
    pub(crate) fn rows(&self, bounds: &[(i64, i64)], cuts: &[Cut]) -> Vec<Row> {
        let mut rows = Vec::new();
        for need in &self.needs {
            rows.extend(self.need_row(need, bounds[need.kind]));
        }
        for port in self.needs.iter().map(|need| &need.port).collect::<BTreeSet<_>>() {
            rows.extend(self.capacity_row(port));
        }
        for conflict in &self.conflicts {
            rows.extend(conflict.row(bounds));
        }
        for cut in cuts {
            rows.extend(self.cut_rows(cut, bounds));
        }
        rows
    }

    /// Where a client exists, there are enough others to provide for it.
    fn need_row(&self, need: &Need, (least, most): (i64, i64)) -> Option<Row> {
        if most <= 0 {
            return None;
        }
        let mut terms: BTreeMap<usize, i128> = BTreeMap::new();
        let mut number = i128::from(need.number);
        for stock in self.providers(need) {
            terms.insert(stock.kind, 1);
            number += i128::from(stock.kind == need.kind);
        }
        if least >= 1 {
            return Row::at_least(terms, number);
        }
        // Clients may be absent: providers · most >= number · clients holds for 0 and for 1..most clients.
        for factor in terms.values_mut() {
            *factor = i128::from(most);
        }
        *terms.entry(need.kind).or_insert(0) -= number;
        Row::at_least(terms, 0)
    }

    /// All clients of a port find room, where every provider's capacity is limited.
    fn capacity_row(&self, port: &str) -> Option<Row> {
        let mut terms: BTreeMap<usize, i128> = BTreeMap::new();
        for stock in self.stocks.iter().filter(|stock| stock.ports.contains(port)) {
            *terms.entry(stock.kind).or_insert(0) += i128::from(stock.capacity?);
        }
        for need in self.needs.iter().filter(|need| need.port == port) {
            *terms.entry(need.kind).or_insert(0) -= i128::from(need.number);
        }
        Row::at_least(terms, 0)
    }

    /// The cut with each product replaced by linear upper bounds that are exact at the box's corners.
    fn cut_rows(&self, cut: &Cut, bounds: &[(i64, i64)]) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for first in [true, false] {
            let mut terms: BTreeMap<usize, i128> = BTreeMap::new();
            let mut constant = 0_i128;
            for need in cut.needs.iter().map(|need| &self.needs[*need]) {
                *terms.entry(need.kind).or_insert(0) -= i128::from(need.number);
                for stock in cut.shut.iter().map(|stock| &self.stocks[*stock]) {
                    if !stock.ports.contains(&need.port) {
                        continue;
                    }
                    let (a, b) = wide(bounds[need.kind]);
                    let (c, d) = wide(bounds[stock.kind]);
                    if stock.kind == need.kind {
                        *terms.entry(need.kind).or_insert(0) += a + b - 1;
                        constant -= a * b;
                    } else if first {
                        *terms.entry(need.kind).or_insert(0) += d;
                        *terms.entry(stock.kind).or_insert(0) += a;
                        constant -= a * d;
                    } else {
                        *terms.entry(need.kind).or_insert(0) += c;
                        *terms.entry(stock.kind).or_insert(0) += b;
                        constant -= b * c;
                    }
                }
            }
            for stock in cut.open.iter().map(|stock| &self.stocks[*stock]) {
                let capacity = stock.capacity.expect("an open stock in a cut is limited");
                *terms.entry(stock.kind).or_insert(0) += i128::from(capacity);
            }
            if let Some(row) = Row::at_least(terms, -constant)
                && !rows.contains(&row)
            {
                rows.push(row);
            }
        }
        rows
    }

    /// Decides whether these numbers of instances can be wired; if not, returns the cut that proves it.
    pub(crate) fn unwirable(&self, counts: &[i64]) -> Option<Cut> {
        let mut flow = vec![vec![0_i64; self.stocks.len()]; self.needs.len()];
        let mut used = vec![0_i64; self.stocks.len()];
        for need in 0..self.needs.len() {
            let mut open = self.needs[need].number * counts[self.needs[need].kind];
            while open > 0 {
                match self.augment(counts, need, open, &mut flow, &mut used) {
                    Ok(amount) => open -= amount,
                    Err(cut) => return Some(cut),
                }
            }
        }
        None
    }

    /// How many further bindings fit between a need and a stock.
    fn room(&self, counts: &[i64], need: usize, stock: usize, flow: &[Vec<i64>]) -> i64 {
        let (need_described, stock_described) = (&self.needs[need], &self.stocks[stock]);
        if !stock_described.ports.contains(&need_described.port) {
            return 0;
        }
        let own = i64::from(need_described.kind == stock_described.kind);
        counts[need_described.kind] * (counts[stock_described.kind] - own).max(0) - flow[need][stock]
    }

    /// Finds a way for more bindings of `start`, or the cut that shows there is none.
    fn augment(
        &self,
        counts: &[i64],
        start: usize,
        wanted: i64,
        flow: &mut [Vec<i64>],
        used: &mut [i64],
    ) -> Result<i64, Cut> {
        // Breadth first over needs and stocks; `from_need[stock]` and `from_stock[need]` record the way.
        let mut from_need: Vec<Option<usize>> = vec![None; self.stocks.len()];
        let mut from_stock: Vec<Option<usize>> = vec![None; self.needs.len()];
        let mut reached = vec![start];
        let mut next = 0;
        while next < reached.len() {
            let need = reached[next];
            next += 1;
            for stock in 0..self.stocks.len() {
                if from_need[stock].is_some() || self.room(counts, need, stock, flow) <= 0 {
                    continue;
                }
                from_need[stock] = Some(need);
                let spare = self.spare(counts, stock, used);
                if spare > 0 {
                    return Ok(self.push(counts, stock, start, wanted.min(spare), &from_need, &from_stock, flow, used));
                }
                for other in 0..self.needs.len() {
                    if other != start && from_stock[other].is_none() && flow[other][stock] > 0 {
                        from_stock[other] = Some(stock);
                        reached.push(other);
                    }
                }
            }
        }
        reached.sort_unstable();
        let (open, shut) = (0..self.stocks.len()).partition(|stock| from_need[*stock].is_some());
        Err(Cut { needs: reached, open, shut })
    }

    fn spare(&self, counts: &[i64], stock: usize, used: &[i64]) -> i64 {
        let described = &self.stocks[stock];
        match described.capacity {
            None if counts[described.kind] > 0 => i64::MAX,
            None => 0,
            Some(capacity) => capacity * counts[described.kind] - used[stock],
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one step of the search above, split off to fit on a screen")]
    fn push(
        &self,
        counts: &[i64],
        end: usize,
        start: usize,
        wanted: i64,
        from_need: &[Option<usize>],
        from_stock: &[Option<usize>],
        flow: &mut [Vec<i64>],
        used: &mut [i64],
    ) -> i64 {
        let mut way = Vec::new();
        let mut stock = end;
        let mut amount = wanted;
        loop {
            let need = from_need[stock].expect("the search came this way");
            amount = amount.min(self.room(counts, need, stock, flow));
            way.push((need, stock, true));
            if need == start {
                break;
            }
            stock = from_stock[need].expect("the search came this way");
            amount = amount.min(flow[need][stock]);
            way.push((need, stock, false));
        }
        for (need, stock, forward) in way {
            flow[need][stock] += if forward { amount } else { -amount };
        }
        used[end] += amount;
        amount
    }

    /// The types whose counts decide whether the cut holds.
    pub(crate) fn kinds_of(&self, cut: &Cut) -> BTreeSet<usize> {
        let needs = cut.needs.iter().map(|need| self.needs[*need].kind);
        let stocks = cut.open.iter().chain(&cut.shut).map(|stock| self.stocks[*stock].kind);
        needs.chain(stocks).collect()
    }

    /// The first conflict that these counts violate.
    pub(crate) fn violated_conflict(&self, counts: &[i64]) -> Option<&Conflict> {
        self.conflicts.iter().find(|conflict| {
            if conflict.kind == conflict.other {
                counts[conflict.kind] > 1
            } else {
                counts[conflict.kind] > 0 && counts[conflict.other] > 0
            }
        })
    }
}

impl Conflict {
    fn row(&self, bounds: &[(i64, i64)]) -> Option<Row> {
        let ((least, most), (other_least, other_most)) = (wide(bounds[self.kind]), wide(bounds[self.other]));
        if self.kind == self.other {
            return Row::at_least(BTreeMap::from([(self.kind, -1)]), -1);
        }
        if most == 0 || other_most == 0 {
            return None;
        }
        if least > 0 {
            return Row::at_least(BTreeMap::from([(self.other, -1)]), 0);
        }
        if other_least > 0 {
            return Row::at_least(BTreeMap::from([(self.kind, -1)]), 0);
        }
        Row::at_least(BTreeMap::from([(self.kind, -other_most), (self.other, -most)]), -(most * other_most))
    }
}

fn wide((least, most): (i64, i64)) -> (i128, i128) {
    (i128::from(least), i128::from(most))
}
