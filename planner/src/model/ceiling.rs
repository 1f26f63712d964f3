//! How much a node can still gain: an upper bound for every amount of room, by dynamic programming.
//!
//! Amounts of a resource are counted in units of their greatest common divisor. If the grid of all amounts is small,
//! the best gain for each point of it, from each type on, is tabulated; then a search never goes where it cannot
//! improve, except for filters and measures that are not sums. If the grid is large, each resource is looked at on its
//! own, as if instances could be cut into pieces.

/// More points than this are not tabulated.
const POINTS_MAX: usize = 400_000;

pub(super) enum Ceiling {
    Table {
        /// For each resource, how many of its units are one step, and how far apart its steps are in the table.
        units: Vec<(i64, usize)>,
        points: usize,
        /// Best gain by depth, then by point.
        best: Vec<i128>,
    },
    Pieces,
}

/// One type: what an instance gains, what it consumes, and how many there can be.
pub(super) struct Item<'a> {
    pub(super) gain: i128,
    pub(super) size: &'a [i64],
    pub(super) most: i64,
}

impl Ceiling {
    pub(super) fn new(items: &[Item<'_>], room: &[i64]) -> Self {
        let mut units = Vec::new();
        let mut points = 1_usize;
        for (resource, available) in room.iter().enumerate() {
            let unit = items.iter().fold(0, |unit, item| common_divisor(unit, item.size[resource])).max(1);
            units.push((unit, points));
            let steps = usize::try_from(available / unit).unwrap_or(usize::MAX).saturating_add(1);
            points = points.saturating_mul(steps);
        }
        if points.saturating_mul(items.len() + 1) > POINTS_MAX {
            return Self::Pieces;
        }
        let mut best = vec![0_i128; points * (items.len() + 1)];
        for (depth, item) in items.iter().enumerate().rev() {
            let (own, after) = best.split_at_mut((depth + 1) * points);
            let own = &mut own[depth * points..];
            own.copy_from_slice(&after[..points]);
            if item.gain <= 0 {
                continue;
            }
            if item.size.iter().all(|size| *size == 0) {
                own.iter_mut().for_each(|gain| *gain += item.gain * i128::from(item.most));
                continue;
            }
            let step: usize = item
                .size
                .iter()
                .zip(&units)
                .map(|(size, (unit, apart))| usize::try_from(size / unit).unwrap_or(usize::MAX).saturating_mul(*apart))
                .fold(0, usize::saturating_add);
            for point in step..points {
                if fits(point, item.size, &units, points) {
                    own[point] = own[point].max(own[point - step] + item.gain);
                }
            }
        }
        Self::Table { units, points, best }
    }

    /// An upper bound on what the items from `depth` on can gain in this room.
    pub(super) fn above(&self, items: &[Item<'_>], depth: usize, room: &[i64]) -> i128 {
        match self {
            Self::Table { units, points, best } => {
                let point: usize = room
                    .iter()
                    .zip(units)
                    .map(|(room, (unit, apart))| usize::try_from(room / unit).unwrap_or(0) * apart)
                    .sum();
                best[depth * points + point]
            }
            Self::Pieces => pieces(&items[depth..], room),
        }
    }
}

/// Whether one instance fits into the room that a point of the table stands for.
fn fits(point: usize, size: &[i64], units: &[(i64, usize)], points: usize) -> bool {
    size.iter().zip(units).enumerate().all(|(resource, (size, (unit, apart)))| {
        let next = units.get(resource + 1).map_or(points, |(_, apart)| *apart);
        let steps = point % next / apart;
        usize::try_from(size / unit).is_ok_and(|needed| needed <= steps)
    })
}

fn pieces(items: &[Item<'_>], room: &[i64]) -> i128 {
    let worthwhile = || items.iter().filter(|item| item.gain > 0);
    let mut bound: i128 = worthwhile().map(|item| item.gain * i128::from(item.most)).sum();
    for (resource, room) in room.iter().enumerate() {
        let mut weightless = 0_i128;
        let mut best = 0_i128;
        for item in worthwhile() {
            let size = item.size[resource];
            if size == 0 {
                weightless += item.gain * i128::from(item.most);
            } else {
                let all = item.gain * i128::from(*room);
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
