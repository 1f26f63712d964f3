//! Multisets of components that fit on one node, listed or searched for the one of greatest worth.

use super::ceiling::{Ceiling, Item};
use super::{Measure, Model};

/// A multiset for a node of a group, and its value for each measure (by variable, zeros left out).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Column {
    pub(crate) group: usize,
    pub(crate) counts: Vec<i64>,
    pub(crate) values: Vec<(usize, i64)>,
}

/// The worth of one unit of each variable; the worth of a column is the sum over its values.
pub(crate) type Prices = [i128];

impl Column {
    pub(crate) fn worth(&self, prices: &Prices) -> i128 {
        self.values.iter().map(|(variable, value)| prices[*variable] * i128::from(*value)).sum()
    }
}

/// How a search for columns ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// Nothing was left out.
    Complete,
    /// There are more than asked for.
    TooMany,
    /// The caller wanted to stop.
    Stopped,
}

impl Model {
    pub(crate) fn column(&self, group: usize, counts: Vec<i64>) -> Column {
        let described = &self.groups[group];
        let values = self.measures.iter().enumerate().filter_map(|(variable, measure)| {
            let value = measure.as_ref()?.value(group, described, &counts);
            (value != 0).then_some((variable, value))
        });
        let values = values.collect();
        Column { group, counts, values }
    }

    /// Whether the multiset fits and passes the filters of the group.
    pub(crate) fn allows(&self, group: usize, counts: &[i64]) -> bool {
        let described = &self.groups[group];
        let fits = described.room.iter().enumerate().all(|(resource, room)| {
            let used: i64 = counts.iter().zip(&self.sizes).map(|(count, size)| count * size[resource]).sum();
            used <= *room
        });
        let most = counts.iter().zip(&described.most).all(|(count, most)| count <= most);
        fits && most && described.filters.iter().all(|filter| filter.evaluate(counts) != 0)
    }

    /// Columns of greatest worth: each one found is worth more than `floor` and than those found before it.
    pub(crate) fn best_columns(
        &self,
        group: usize,
        prices: &Prices,
        floor: i128,
        keep_going: &mut dyn FnMut() -> bool,
    ) -> (Vec<Column>, Search) {
        let mut found = Vec::new();
        let mut walk = Walk::new(self, group, prices, keep_going);
        let search = walk.run(
            &mut |counts, worth, floor| {
                *floor = worth;
                found.push(self.column(group, counts.to_vec()));
                true
            },
            floor,
        );
        (found, search)
    }

    /// All columns worth more than `floor`, unless they are more than `limit`.
    pub(crate) fn columns_above(
        &self,
        group: usize,
        prices: &Prices,
        floor: i128,
        limit: usize,
        keep_going: &mut dyn FnMut() -> bool,
    ) -> (Vec<Column>, Search) {
        let mut found = Vec::new();
        let mut walk = Walk::new(self, group, prices, keep_going);
        let search = walk.run(
            &mut |counts, _, _| {
                found.push(self.column(group, counts.to_vec()));
                found.len() <= limit
            },
            floor,
        );
        (found, search)
    }
}

/// What to do with a multiset that was found, its worth, and the floor from now on; false ends the walk.
type Visit<'a> = dyn FnMut(&[i64], i128, &mut i128) -> bool + 'a;

/// A depth-first walk over multisets, most worthwhile types first, that turns back where nothing can exceed the floor.
struct Walk<'a> {
    model: &'a Model,
    group: usize,
    prices: &'a Prices,
    /// Types in the order they are decided.
    order: Vec<usize>,
    /// What one more instance of each type adds, for measures that are linear in it, in that order.
    items: Vec<Item<'a>>,
    ceiling: Ceiling,
    /// Variables whose measures are not linear; they are bounded on the way and known once the multiset is complete.
    rest: Vec<usize>,
    /// What any node that hosts something adds: its cost.
    inhabited: i128,
    least: Vec<i64>,
    most: Vec<i64>,
    room: Vec<i64>,
    steps: u64,
    keep_going: &'a mut dyn FnMut() -> bool,
    search: Search,
}

/// How many steps to walk between two questions whether to go on.
const STEPS_BETWEEN: u64 = 4_096;

impl<'a> Walk<'a> {
    fn new(model: &'a Model, group: usize, prices: &'a Prices, keep_going: &'a mut dyn FnMut() -> bool) -> Self {
        let described = &model.groups[group];
        let mut gains = vec![0_i128; model.types()];
        let mut rest = Vec::new();
        let mut inhabited = 0;
        // Only for the order: components that stay are worth more than others.
        let mut extra = vec![0_i128; model.types()];
        for (variable, measure) in model.measures.iter().enumerate() {
            let price = prices[variable];
            match measure {
                None => {}
                Some(_) if price == 0 => {}
                Some(Measure::Count { kind, groups }) => gains[*kind] += if groups[group] { price } else { 0 },
                Some(Measure::Cost) => inhabited += price * i128::from(described.cost),
                Some(measure) => {
                    if let Measure::Kept { kind } = measure {
                        extra[*kind] += if described.today[*kind] > 0 { price } else { 0 };
                    }
                    if measure.range(group, described) != (0, 0) {
                        rest.push(variable);
                    }
                }
            }
        }
        let mut order: Vec<usize> = (0..model.types()).filter(|kind| described.most[*kind] > 0).collect();
        // Types of great worth for their size first: the first multiset is then a good one.
        let weight = |kind: usize| -> i128 {
            let shares = model.sizes[kind].iter().zip(&described.room);
            shares
                .map(|(size, room)| i128::from(*size) * 1_000_000 / i128::from(*room).max(1))
                .max()
                .unwrap_or(0)
                .max(1)
        };
        order.sort_by_key(|kind| (-((gains[*kind] + extra[*kind]) * 1_000 / weight(*kind)), *kind));
        let items: Vec<Item<'a>> = order
            .iter()
            .map(|kind| Item { gain: gains[*kind], size: &model.sizes[*kind], most: described.most[*kind] })
            .collect();
        let ceiling = Ceiling::new(&items, &described.room);
        Self {
            model,
            group,
            prices,
            order,
            items,
            ceiling,
            rest,
            inhabited,
            least: vec![0; model.types()],
            most: described.most.clone(),
            room: described.room.clone(),
            steps: 0,
            keep_going,
            search: Search::Complete,
        }
    }

    fn run(&mut self, visit: &mut Visit<'_>, floor: i128) -> Search {
        let mut floor = floor;
        // The empty node first: all others cost something, which then counts from the start.
        let none = vec![0; self.most.len()];
        let passes = self.model.groups[self.group].filters.iter().all(|filter| filter.evaluate(&none) != 0);
        if passes && !self.arrive(0, visit, &mut floor) {
            return self.search;
        }
        self.walk(0, self.inhabited, visit, &mut floor);
        self.search
    }

    /// Decides the types from `depth` on; false means the walk has ended.
    fn walk(&mut self, depth: usize, worth: i128, visit: &mut Visit<'_>, floor: &mut i128) -> bool {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BETWEEN) && !(self.keep_going)() {
            self.search = Search::Stopped;
            return false;
        }
        let most = worth + self.ceiling.above(&self.items, depth, &self.room);
        if most + self.rest_most() <= *floor || !self.may_pass() {
            return true;
        }
        let Some(kind) = self.order.get(depth).copied() else {
            let empty = self.least.iter().all(|count| *count == 0);
            return empty || self.arrive(worth, visit, floor);
        };
        let (before_least, before_most) = (self.least[kind], self.most[kind]);
        let size = &self.model.sizes[kind];
        let fits = self.room.iter().zip(size).filter(|(_, size)| **size > 0).map(|(room, size)| room / size).min();
        let most = fits.unwrap_or(before_most).min(before_most);
        let mut goes_on = true;
        for count in (0..=most).rev() {
            (self.least[kind], self.most[kind]) = (count, count);
            self.take(kind, count);
            goes_on = self.walk(depth + 1, worth + self.items[depth].gain * i128::from(count), visit, floor);
            self.take(kind, -count);
            if !goes_on {
                break;
            }
        }
        (self.least[kind], self.most[kind]) = (before_least, before_most);
        goes_on
    }

    fn take(&mut self, kind: usize, count: i64) {
        for (room, size) in self.room.iter_mut().zip(&self.model.sizes[kind]) {
            *room -= size * count;
        }
    }

    fn arrive(&mut self, worth: i128, visit: &mut Visit<'_>, floor: &mut i128) -> bool {
        let described = &self.model.groups[self.group];
        let mut worth = worth;
        for variable in &self.rest {
            let measure = self.model.measures[*variable].as_ref().expect("only measures are listed");
            worth += self.prices[*variable] * i128::from(measure.value(self.group, described, &self.least));
        }
        if worth > *floor && !visit(&self.least, worth, floor) {
            self.search = Search::TooMany;
            return false;
        }
        true
    }

    /// The most that measures which are not linear can add, given what is decided.
    fn rest_most(&self) -> i128 {
        let described = &self.model.groups[self.group];
        let mut sum = 0;
        for variable in &self.rest {
            let measure = self.model.measures[*variable].as_ref().expect("only measures are listed");
            let (low, high) = measure.range_within(self.group, described, &self.least, &self.most);
            let price = self.prices[*variable];
            sum += (price * i128::from(low)).max(price * i128::from(high));
        }
        sum
    }

    /// Whether some multiset that agrees with what is decided can pass the filters.
    fn may_pass(&self) -> bool {
        let filters = &self.model.groups[self.group].filters;
        filters.iter().all(|filter| filter.range(&self.least, &self.most) != (0, 0))
    }
}
