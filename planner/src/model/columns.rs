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

/// A part of what one node may host. Limits that filters put on sums of counts are resources here.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The greatest number of each type.
    pub(crate) most: Vec<i64>,
    /// Amount of each resource that one instance of each type consumes.
    pub(crate) sizes: Vec<Vec<i64>>,
    /// Available amount of each resource.
    pub(crate) room: Vec<i64>,
    /// What is still to be checked.
    pub(crate) filters: Vec<super::local::Local>,
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
        let mut floor = floor;
        let search = self.walk_all(group, prices, &mut floor, false, keep_going, &mut |counts, worth, floor| {
            *floor = worth;
            found.push(self.column(group, counts.to_vec()));
            true
        });
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
        let mut found: Vec<Column> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        let overlap = self.groups[group].cases.len() > 1;
        let mut floor = floor;
        let search = self.walk_all(group, prices, &mut floor, true, keep_going, &mut |counts, _, _| {
            // Cases may overlap.
            if !overlap || seen.insert(counts.to_vec()) {
                found.push(self.column(group, counts.to_vec()));
            }
            found.len() <= limit
        });
        (found, search)
    }

    /// Visits multisets worth more than `floor`, case by case; some perhaps twice. With `all`, none is left out; otherwise
    /// only those that are no better than others.
    fn walk_all(
        &self,
        group: usize,
        prices: &Prices,
        floor: &mut i128,
        all: bool,
        keep_going: &mut dyn FnMut() -> bool,
        visit: &mut Visit<'_>,
    ) -> Search {
        let described = &self.groups[group];
        let prices = Worth::new(self, group, prices);
        let empty = vec![0_i64; self.types()];
        // The empty node first: all others cost something, which then counts from the start.
        if described.filters.iter().all(|filter| filter.evaluate(&empty) != 0) {
            let worth = prices.rest_of(&empty);
            if worth > *floor && !visit(&empty, worth, floor) {
                return Search::TooMany;
            }
        }
        for case in &described.cases {
            let mut walk = Walk::new(&prices, case, all, keep_going);
            walk.walk(0, prices.inhabited, visit, floor);
            if walk.search != Search::Complete {
                return walk.search;
            }
        }
        Search::Complete
    }
}

/// What to do with a multiset that was found, its worth, and the floor from now on; false ends the walk.
type Visit<'a> = dyn FnMut(&[i64], i128, &mut i128) -> bool + 'a;

/// What prices mean for the nodes of one group.
struct Worth<'a> {
    model: &'a Model,
    group: usize,
    prices: &'a Prices,
    /// What one more instance of each type adds, for measures that are linear in it.
    gains: Vec<i128>,
    /// What it adds beyond that if it stays: for as many as there are today.
    extra: Vec<i128>,
    /// Variables whose measures are not linear; they are bounded on the way and known once the multiset is complete.
    rest: Vec<usize>,
    /// What any node that hosts something adds: its cost.
    inhabited: i128,
}

impl<'a> Worth<'a> {
    fn new(model: &'a Model, group: usize, prices: &'a Prices) -> Self {
        let described = &model.groups[group];
        let mut gains = vec![0_i128; model.types()];
        let mut extra = vec![0_i128; model.types()];
        let mut rest = Vec::new();
        let mut inhabited = 0;
        for (variable, measure) in model.measures.iter().enumerate() {
            let price = prices[variable];
            match measure {
                None => {}
                Some(_) if price == 0 => {}
                Some(Measure::Count { kind, groups }) => gains[*kind] += if groups[group] { price } else { 0 },
                Some(Measure::Cost) => inhabited += price * i128::from(described.cost),
                Some(Measure::Inhabited { group: only }) => inhabited += if *only == group { price } else { 0 },
                Some(Measure::Kept { kind }) if price > 0 => {
                    extra[*kind] += if described.today[*kind] > 0 { price } else { 0 };
                }
                Some(measure) if measure.range(group, described) == (0, 0) => {}
                Some(_) => rest.push(variable),
            }
        }
        Self { model, group, prices, gains, extra, rest, inhabited }
    }

    /// What so many instances of a type add.
    fn of(&self, kind: usize, count: i64) -> i128 {
        let stay = count.min(self.model.groups[self.group].today[kind]);
        self.gains[kind] * i128::from(count) + self.extra[kind] * i128::from(stay)
    }

    /// The types that measures which are not linear depend on.
    fn types_of_rest(&self) -> std::collections::BTreeSet<usize> {
        let mut types = std::collections::BTreeSet::new();
        for measure in self.rest.iter().filter_map(|variable| self.model.measures[*variable].as_ref()) {
            match measure {
                Measure::Local { number, .. } => number.add_types(&mut types),
                Measure::Kept { kind } => {
                    types.insert(*kind);
                }
                Measure::Count { .. } | Measure::Cost | Measure::Inhabited { .. } => {}
            }
        }
        types
    }

    /// What measures that are not linear add for these counts.
    fn rest_of(&self, counts: &[i64]) -> i128 {
        let described = &self.model.groups[self.group];
        let measures = self.rest.iter().map(|variable| (self.prices[*variable], &self.model.measures[*variable]));
        measures
            .map(|(price, measure)| {
                let measure = measure.as_ref().expect("only measures are listed");
                price * i128::from(measure.value(self.group, described, counts))
            })
            .sum()
    }

    /// The most that they can add for counts in this range.
    fn rest_most(&self, least: &[i64], most: &[i64]) -> i128 {
        let described = &self.model.groups[self.group];
        let measures = self.rest.iter().map(|variable| (self.prices[*variable], &self.model.measures[*variable]));
        measures
            .map(|(price, measure)| {
                let measure = measure.as_ref().expect("only measures are listed");
                let (low, high) = measure.range_within(self.group, described, least, most);
                (price * i128::from(low)).max(price * i128::from(high))
            })
            .sum()
    }
}

/// A depth-first walk over multisets, most worthwhile types first, that turns back where nothing can exceed the floor.
struct Walk<'a> {
    worth: &'a Worth<'a>,
    case: &'a Case,
    /// Types in the order they are decided.
    order: Vec<usize>,
    /// The same as items of a knapsack.
    items: Vec<Item<'a>>,
    ceiling: Ceiling,
    least: Vec<i64>,
    most: Vec<i64>,
    room: Vec<i64>,
    steps: u64,
    keep_going: &'a mut dyn FnMut() -> bool,
    search: Search,
}

/// Types are decided first for the sake of measures that are not linear if these are at most so many.
const REST_MAX: usize = 40;

/// How many steps to walk between two questions whether to go on.
const STEPS_BETWEEN: u64 = 4_096;

impl<'a> Walk<'a> {
    /// `all`: whether multisets that are merely no better than others matter, too.
    fn new(worth: &'a Worth<'a>, case: &'a Case, all: bool, keep_going: &'a mut dyn FnMut() -> bool) -> Self {
        // Where nothing but sums counts, what gains nothing only makes a node worse.
        let all = all || !worth.rest.is_empty() || !case.filters.is_empty();
        let gain = |kind: usize| worth.gains[kind] + worth.extra[kind];
        let mut order: Vec<usize> =
            (0..case.most.len()).filter(|kind| case.most[*kind] > 0 && (all || gain(*kind) > 0)).collect();
        // Types of great worth for their size first: the first multiset is then a good one.
        let weight = |kind: usize| -> i128 {
            let shares = case.sizes[kind].iter().zip(&case.room);
            shares
                .map(|(size, room)| i128::from(*size) * 1_000_000 / i128::from(*room).max(1))
                .max()
                .unwrap_or(0)
                .max(1)
        };
        // Before them those that decide about more than their own gain: what is left is then a plain knapsack.
        let first = if worth.rest.len() <= REST_MAX { worth.types_of_rest() } else { Default::default() };
        order.sort_by_key(|kind| (!first.contains(kind), -(gain(*kind) * 1_000 / weight(*kind)), *kind));
        let items: Vec<Item<'a>> = order
            .iter()
            .map(|kind| Item {
                gain: worth.gains[*kind],
                extra: worth.extra[*kind],
                extra_most: worth.model.groups[worth.group].today[*kind].min(case.most[*kind]),
                size: &case.sizes[*kind],
                most: case.most[*kind],
            })
            .collect();
        let mut most = vec![0; case.most.len()];
        order.iter().for_each(|kind| most[*kind] = case.most[*kind]);
        Self {
            worth,
            case,
            ceiling: Ceiling::new(&items, &case.room),
            order,
            items,
            least: vec![0; case.most.len()],
            most,
            room: case.room.clone(),
            steps: 0,
            keep_going,
            search: Search::Complete,
        }
    }

    /// Decides the types from `depth` on; false means the walk has ended.
    fn walk(&mut self, depth: usize, worth: i128, visit: &mut Visit<'_>, floor: &mut i128) -> bool {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BETWEEN) && !(self.keep_going)() {
            self.search = Search::Stopped;
            return false;
        }
        let most = worth + self.ceiling.above(&self.items, depth, &self.room);
        if most + self.worth.rest_most(&self.least, &self.most) <= *floor || !self.may_pass() {
            return true;
        }
        let Some(kind) = self.order.get(depth).copied() else {
            let empty = self.least.iter().all(|count| *count == 0);
            let worth = worth + self.worth.rest_of(&self.least);
            if !empty && worth > *floor && !visit(&self.least, worth, floor) {
                self.search = Search::TooMany;
                return false;
            }
            return true;
        };
        let (before_least, before_most) = (self.least[kind], self.most[kind]);
        let size = &self.case.sizes[kind];
        let fits = self.room.iter().zip(size).filter(|(_, size)| **size > 0).map(|(room, size)| room / size).min();
        let most = fits.unwrap_or(before_most).min(before_most);
        let mut goes_on = true;
        for count in (0..=most).rev() {
            (self.least[kind], self.most[kind]) = (count, count);
            self.take(kind, count);
            goes_on = self.walk(depth + 1, worth + self.worth.of(kind, count), visit, floor);
            self.take(kind, -count);
            if !goes_on {
                break;
            }
        }
        (self.least[kind], self.most[kind]) = (before_least, before_most);
        goes_on
    }

    fn take(&mut self, kind: usize, count: i64) {
        for (room, size) in self.room.iter_mut().zip(&self.case.sizes[kind]) {
            *room -= size * count;
        }
    }

    /// Whether some multiset that agrees with what is decided can pass the filters.
    fn may_pass(&self) -> bool {
        self.case.filters.iter().all(|filter| filter.range(&self.least, &self.most) != (0, 0))
    }
}
