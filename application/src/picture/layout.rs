//! Where everything is: columns of boxes, clients to the left of their providers, the same in both panels.

use super::{Panel, Place};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const ROW: usize = 24;
pub(super) const HEAD: usize = 28;
pub(super) const PADDING: usize = 10;
const GAP_ACROSS: usize = 84;
const GAP_DOWN: usize = 26;
/// The width of a character, nearly.
const LETTER: usize = 8;
const BREADTH_MIN: usize = 110;
/// How far a line goes out that comes back to the same column.
pub(super) const BEND_MAX: usize = 44;

/// A rectangle, from the panel's left upper corner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Where everything is.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) boxes: BTreeMap<String, Area>,
    pub(super) components: BTreeMap<Place, Area>,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Plan {
    /// Finds a place for whatever is in one of the panels.
    pub(super) fn new(panels: &[Panel; 2]) -> Self {
        let wires = || panels.iter().flat_map(|it| it.wires.keys());
        let names = panels.iter().flat_map(|it| it.components.keys()).map(|(_, name)| group(name));
        let depths = depths(names, wires().map(|((_, client), (_, provider))| (group(client), group(provider))));
        let boxes = panels.iter().flat_map(|it| it.boxes.keys()).map(|name| group(name));
        let columns_of = self::depths(boxes, wires().map(|((one, _), (other, _))| (group(one), group(other))));
        let mut rows: BTreeMap<&str, Vec<&Place>> =
            panels.iter().flat_map(|it| it.boxes.keys()).map(|name| (name.as_str(), Vec::new())).collect();
        let places: BTreeSet<&Place> = panels.iter().flat_map(|it| it.components.keys()).collect();
        for place in places {
            rows.entry(&place.0).or_default().push(place);
        }
        let depth = |place: &Place| depths.get(group(&place.1)).copied().unwrap_or(0);
        // VMs of one group are in one column; what belongs to others is at the far end.
        let last = columns_of.values().max().map_or(0, |it| it + 1);
        let mut columns: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for name in rows.keys() {
            let column = if name.ends_with('/') { last } else { columns_of.get(group(name)).copied().unwrap_or(0) };
            columns.entry(column).or_default().push(name);
        }
        let mut plan = Self::default();
        let letters = |text: &str| text.chars().count();
        let mut x = PADDING;
        for names in columns.values_mut() {
            names.sort_by_key(|name| (group(name), number(name)));
            let widest = names.iter().flat_map(|name| {
                // Room for how many there are, and how many of them change.
                rows[name].iter().map(|it| letters(&it.1) + 2).chain([letters(name)])
            });
            let more = if panels[0].grouped { 14 } else { 2 };
            let width = (widest.max().unwrap_or(0) + more) * LETTER + 2 * PADDING;
            let width = width.max(BREADTH_MIN);
            let mut y = PADDING;
            for name in names {
                let mut own = rows[*name].clone();
                own.sort_by_key(|it| (depth(it), group(&it.1), number(&it.1)));
                let height = HEAD + own.len().max(1) * ROW + PADDING;
                plan.boxes.insert((*name).to_owned(), Area { x, y, width, height });
                for (place, row) in own.into_iter().enumerate() {
                    let area =
                        Area { x: x + PADDING, y: y + HEAD + place * ROW, width: width - 2 * PADDING, height: ROW - 4 };
                    plan.components.insert(row.clone(), area);
                }
                y += height + GAP_DOWN;
            }
            plan.height = plan.height.max(y + PADDING - GAP_DOWN);
            // Lines between boxes of one column go round at its right.
            plan.width = x + width + BEND_MAX;
            x += width + GAP_ACROSS;
        }
        plan.centre(&columns);
        plan
    }

    /// Moves short columns to the middle.
    fn centre(&mut self, columns: &BTreeMap<usize, Vec<&str>>) {
        for names in columns.values() {
            let bottom = names.iter().filter_map(|name| self.boxes.get(*name)).map(|it| it.y + it.height).max();
            let down = (self.height.saturating_sub(bottom.unwrap_or(0) + PADDING)) / 2;
            for name in names {
                self.boxes.entry((*name).to_owned()).and_modify(|it| it.y += down);
                for (_, area) in self.components.iter_mut().filter(|((of, _), _)| of == name) {
                    area.y += down;
                }
            }
        }
    }
}

/// `web` of `web[3]`.
fn group(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

/// `3` of `web[3]`.
fn number(name: &str) -> u32 {
    name.split(['[', ']']).nth(1).and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// The distance of everything from what has no clients; edges that close a cycle do not count.
fn depths<'a>(
    names: impl Iterator<Item = &'a str>,
    wires: impl Iterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<&'a str, usize> {
    let names: BTreeSet<&str> = names.collect();
    let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (client, provider) in wires.filter(|(client, provider)| client != provider) {
        needs.entry(client).or_default().insert(provider);
    }
    let needed: BTreeSet<&str> = needs.values().flatten().copied().collect();
    let roots = needs.keys().copied().filter(|it| !needed.contains(it));
    let mut order: Vec<&str> = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for start in roots.chain(names.iter().copied()) {
        // Depth first: a finished node comes before all that was reached from it.
        let mut open: Vec<(&str, bool)> = vec![(start, false)];
        while let Some((name, left)) = open.pop() {
            if left {
                order.push(name);
            } else if seen.insert(name) {
                open.push((name, true));
                open.extend(needs.get(name).into_iter().flatten().rev().map(|it| (*it, false)));
            }
        }
    }
    order.reverse();
    let turn: BTreeMap<&str, usize> = order.iter().enumerate().map(|(turn, name)| (*name, turn)).collect();
    let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &order {
        let own = depths.get(name).copied().unwrap_or(0);
        for other in needs.get(name).into_iter().flatten().filter(|it| turn[*it] > turn[name]) {
            let known = depths.entry(other).or_default();
            *known = (*known).max(own + 1);
        }
    }
    depths
}
