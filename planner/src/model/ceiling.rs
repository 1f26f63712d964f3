//! How much a node can still gain: an upper bound for every amount of room, by dynamic programming.
//!
//! Amounts of a resource are counted in units of their greatest common divisor. If the grid of all amounts is small,
//! the best gain for each point of it, from each type on, is tabulated; then a search never goes where it cannot
//! improve, except for filters and measures that are not sums. If the grid is large, each resource is looked at on its
//! own, as if instances could be cut into pieces.

/// More numbers than this are not tabulated.
const TABLE_MAX: usize = 2_000_000;

pub(super) enum Ceiling {
    Table {
        /// For each resource, how many of its units are one step, and how far apart its steps are in the table.
        units: Vec<(i64, usize)>,
        points: usize,
        /// Best gain by depth, then by point.
        best: Gains,
    },
    Pieces,
}

/// Gains as small numbers where they fit: most tables are half as large then.
pub(super) enum Gains {
    Small(Vec<i64>),
    Large(Vec<i128>),
}

/// One type: what an instance gains, what it consumes, and how many there can be.
pub(super) struct Item<'a> {
    pub(super) gain: i128,
    /// What each of the first `extra_most` instances gains beyond that; never negative.
    pub(super) extra: i128,
    pub(super) extra_most: i64,
    pub(super) size: &'a [i64],
    pub(super) most: i64,
}

impl Item<'_> {
    /// Whether any number of instances can be a gain.
    fn is_worthwhile(&self) -> bool {
        self.gain > 0 || (self.gain + self.extra > 0 && self.extra_most > 0)
    }

    /// Gains for an instance and how often each can be had, the greatest first.
    fn gains(&self) -> [(i128, i64); 2] {
        let first = self.extra_most.min(self.most);
        [(self.gain + self.extra, first), (self.gain, self.most - first)]
    }

    /// The most that all instances can gain.
    fn all(&self) -> i128 {
        self.gains()
            .iter()
            .map(|(gain, most)| (*gain).max(0).saturating_mul(i128::from(*most)))
            .fold(0, i128::saturating_add)
    }
}

impl Ceiling {
    pub(super) fn new(items: &[Item<'_>], room: &[i64]) -> Self {
        let mut units = Vec::new();
        let mut points = 1_usize;
        for (resource, available) in room.iter().enumerate() {
            let worthwhile = || items.iter().filter(|item| item.is_worthwhile());
            let unit = worthwhile().fold(0, |unit, item| common_divisor(unit, item.size[resource])).max(1);
            let all: i128 = worthwhile().map(|item| i128::from(item.size[resource]) * i128::from(item.most)).sum();
            // A resource with room for everything need not be looked at.
            let steps = if all <= i128::from(*available) { 0 } else { available / unit };
            units.push((if steps == 0 && all <= i128::from(*available) { 0 } else { unit }, points));
            points = points.saturating_mul(usize::try_from(steps).unwrap_or(usize::MAX).saturating_add(1));
        }
        if points.saturating_mul(items.len() + 1) > TABLE_MAX {
            return Self::Pieces;
        }
        let all = items.iter().fold(0_i128, |sum, item| sum.saturating_add(item.all()));
        let best = match i64::try_from(all).ok() {
            Some(_) => Gains::Small(table(items, &units, points, |gain| i64::try_from(gain).unwrap_or(i64::MAX))),
            None => Gains::Large(table(items, &units, points, |gain| gain)),
        };
        Self::Table { units, points, best }
    }

    /// An upper bound on what the items from `depth` on can gain in this room.
    pub(super) fn above(&self, items: &[Item<'_>], depth: usize, room: &[i64]) -> i128 {
        match self {
            Self::Table { units, points, best } => {
                let steps = room.iter().zip(units).filter(|(_, (unit, _))| *unit > 0);
                let point: usize =
                    steps.map(|(room, (unit, apart))| usize::try_from(room / unit).unwrap_or(0) * apart).sum();
                match best {
                    Gains::Small(best) => i128::from(best[depth * points + point]),
                    Gains::Large(best) => best[depth * points + point],
                }
            }
            Self::Pieces => pieces(&items[depth..], room),
        }
    }
}

/// For each depth and each amount of room, the best gain of the items from that depth on, each at most so often.
fn table<T: Copy + Default + Ord + std::ops::Add<Output = T>>(
    items: &[Item<'_>],
    units: &[(i64, usize)],
    points: usize,
    number: impl Fn(i128) -> T,
) -> Vec<T> {
    let mut best = vec![T::default(); points * (items.len() + 1)];
    let mut part = vec![T::default(); points];
    for (depth, item) in items.iter().enumerate().rev() {
        let (own, after) = best.split_at_mut((depth + 1) * points);
        let own = &mut own[depth * points..];
        own.copy_from_slice(&after[..points]);
        for (gain, most) in item.gains().into_iter().filter(|(gain, _)| *gain > 0) {
            // So many at once, in powers of two: together they make every number up to the most.
            let mut left = most;
            let mut batch = 1_i64;
            while left > 0 {
                let count = batch.min(left);
                left -= count;
                batch = batch.saturating_mul(2);
                let Some((needed, step)) = steps_of(item.size, count, units, points) else { break };
                let gain = number(gain * i128::from(count));
                if step == 0 {
                    own.iter_mut().for_each(|best| *best = *best + gain);
                    continue;
                }
                part.copy_from_slice(own);
                for point in step..points {
                    if fits(point, &needed, units, points) {
                        own[point] = part[point].max(part[point - step] + gain);
                    }
                }
            }
        }
    }
    best
}

/// The steps that `count` instances take in each resource, and in the table; `None` if they never fit.
fn steps_of(size: &[i64], count: i64, units: &[(i64, usize)], points: usize) -> Option<(Vec<usize>, usize)> {
    let mut needed = Vec::with_capacity(size.len());
    let mut step = 0_usize;
    for (size, (unit, apart)) in size.iter().zip(units) {
        let steps = if *unit == 0 { 0 } else { size.checked_mul(count)? / unit };
        let steps = usize::try_from(steps).ok()?;
        needed.push(steps);
        step = step.saturating_add(steps.saturating_mul(*apart));
    }
    (step < points).then_some((needed, step))
}

/// Whether so many steps fit into the room that a point of the table stands for.
fn fits(point: usize, needed: &[usize], units: &[(i64, usize)], points: usize) -> bool {
    needed.iter().zip(units).enumerate().all(|(resource, (needed, (_, apart)))| {
        let next = units.get(resource + 1).map_or(points, |(_, apart)| *apart);
        *needed <= point % next / apart
    })
}

fn pieces(items: &[Item<'_>], room: &[i64]) -> i128 {
    let worthwhile = || items.iter().filter(|item| item.is_worthwhile());
    let mut bound: i128 = worthwhile().map(Item::all).sum();
    for (resource, room) in room.iter().enumerate() {
        let mut weightless = 0_i128;
        let mut best = 0_i128;
        for item in worthwhile() {
            let size = item.size[resource];
            if size == 0 {
                weightless += item.all();
            } else {
                let all = item.gains()[0].0.max(item.gain) * i128::from(*room);
                best = best.max((all + i128::from(size) - 1) / i128::from(size));
            }
        }
        bound = bound.min(best + weightless);
    }
    bound
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
