//! Random small application files, and what is right and best for them by trying everything.
#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::collections::BTreeMap;

/// Splitmix64, so that a seed means the same next year.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }
}

pub(crate) const GROUPS: [&str; 3] = ["web", "data-base", "cache"];
const TYPES: [&str; 3] = ["T0", "T1", "T2"];
pub(crate) const VMS: [&str; 2] = ["small", "big-one"];

pub(crate) struct DraftType {
    cpu: usize,
    memory: usize,
    conflicts: Option<usize>,
    port: bool,
}

pub(crate) struct DraftGroup {
    kind: usize,
    pub(crate) count: usize,
    /// A group of VMs, or one of them.
    on: Option<(usize, Option<usize>)>,
}

pub(crate) struct DraftVm {
    number: usize,
    as_needed: bool,
    cost: usize,
    cpu: usize,
    /// What is not listed is not counted.
    memory: Option<usize>,
}

pub(crate) enum Rule {
    Apart(usize),
    ApartTwo(usize, usize),
    Alone(usize),
    AtMost(usize, usize),
    AtMostOfAll(usize),
    Together(usize, usize),
}

/// An application file in numbers.
pub(crate) struct Draft {
    types: Vec<DraftType>,
    pub(crate) groups: Vec<DraftGroup>,
    vms: Vec<DraftVm>,
    rules: Vec<Rule>,
}

/// How many components of each group one VM has.
pub(crate) type Contents = Vec<usize>;

impl Draft {
    pub(crate) fn random(dice: &mut Dice) -> Self {
        let types: Vec<DraftType> = (0..TYPES.len())
            .map(|_| DraftType {
                cpu: 1 + dice.roll(3),
                memory: dice.roll(3),
                conflicts: dice.one_in(4).then(|| dice.roll(TYPES.len())),
                port: dice.one_in(4),
            })
            .collect();
        let vms: Vec<DraftVm> = (0..1 + dice.roll(2))
            .map(|place| DraftVm {
                number: 1 + dice.roll(2),
                // The first leaves something to decide.
                as_needed: place == 0 || dice.one_in(2),
                cost: dice.roll(9),
                cpu: 2 + dice.roll(4),
                memory: dice.one_in(2).then(|| 1 + dice.roll(4)),
            })
            .collect();
        let groups: Vec<DraftGroup> = (0..1 + dice.roll(3))
            .map(|_| {
                let class = dice.roll(vms.len());
                let member = dice.one_in(2).then(|| dice.roll(vms[class].number));
                DraftGroup {
                    kind: dice.roll(TYPES.len()),
                    count: 1 + dice.roll(2),
                    on: dice.one_in(4).then_some((class, member)),
                }
            })
            .collect();
        let mut rules = Vec::new();
        for _ in 0..dice.roll(3) {
            let (one, other) = (dice.roll(groups.len()), dice.roll(groups.len()));
            rules.push(match dice.roll(6) {
                0 | 1 if one != other => Rule::ApartTwo(one, other),
                2 if one != other => Rule::Together(one, other),
                0 | 1 => Rule::Apart(one),
                3 => Rule::Alone(one),
                4 => Rule::AtMost(1 + dice.roll(2), one),
                _ => Rule::AtMostOfAll(1 + dice.roll(3)),
            });
        }
        Self { types, groups, vms, rules }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = "holdfast: 1\napplication: random\ntypes:\n".to_owned();
        for (it, name) in self.types.iter().zip(TYPES) {
            let conflicts = it.conflicts.map_or(String::new(), |other| format!("conflicts: {}, ", TYPES[other]));
            let port = if it.port { "operations: { check: { tcp: 80 } }, " } else { "" };
            let resources = format!("resources: {{ cpu: {}, memory: {} }}", it.cpu, it.memory);
            text += &format!("  {name}: {{ {conflicts}{port}{resources} }}\n");
        }
        text += "vms:\n";
        for (it, name) in self.vms.iter().zip(VMS) {
            let number = if it.as_needed { "most" } else { "count" };
            let memory = it.memory.map_or(String::new(), |memory| format!(", memory: {memory}"));
            let resources = format!("resources: {{ cpu: {}{memory} }}", it.cpu);
            text += &format!("  {name}: {{ {number}: {}, cost: {}, {resources} }}\n", it.number, it.cost);
        }
        text += "components:\n";
        for (it, name) in self.groups.iter().zip(GROUPS) {
            let on = match it.on {
                None => String::new(),
                Some((class, None)) => format!(", on: {}", VMS[class]),
                Some((class, Some(member))) => format!(", on: [\"{}[{member}]\"]", VMS[class]),
            };
            text += &format!("  {name}: {{ type: {}, count: {}{on} }}\n", TYPES[it.kind], it.count);
        }
        let rules: Vec<String> = self.rules.iter().map(Rule::text).collect();
        if rules.is_empty() { text } else { format!("{text}constraints: [{}]\n", rules.join(", ")) }
    }

    /// Every VM that there can be: its group and its index.
    pub(crate) fn places(&self) -> Vec<(usize, usize)> {
        let all = self.vms.iter().enumerate();
        all.flat_map(|(class, it)| (0..it.number).map(move |member| (class, member))).collect()
    }

    /// Whether a VM may have these components, by everything the file says.
    pub(crate) fn allows(&self, (class, member): (usize, usize), contents: &Contents) -> bool {
        let vm = &self.vms[class];
        let here = || self.groups.iter().zip(contents).enumerate().filter(|(_, (_, number))| **number > 0);
        let sum = |amount: fn(&DraftType) -> usize| -> usize {
            here().map(|(_, (group, number))| number * amount(&self.types[group.kind])).sum()
        };
        let of_type = |kind: usize| -> usize {
            here().filter(|(_, (group, _))| group.kind == kind).map(|(_, (_, number))| *number).sum()
        };
        let room = sum(|it| it.cpu) <= vm.cpu && vm.memory.is_none_or(|memory| sum(|it| it.memory) <= memory);
        let ports = sum(|it| usize::from(it.port)) <= 1;
        let peace = self.types.iter().enumerate().all(|(kind, it)| match it.conflicts {
            None => true,
            Some(other) if other == kind => of_type(kind) <= 1,
            Some(other) => of_type(kind) == 0 || of_type(other) == 0,
        });
        let on = here().all(|(_, (group, _))| match group.on {
            None => true,
            Some((wanted, None)) => wanted == class,
            Some((wanted, Some(index))) => (wanted, index) == (class, member),
        });
        room && ports && peace && on && self.rules.iter().all(|rule| rule.holds(contents))
    }

    pub(crate) fn cost(&self, placement: &BTreeMap<(usize, usize), Contents>) -> usize {
        let places = self.places().into_iter();
        let paid = places.filter(|place| {
            !self.vms[place.0].as_needed || placement.get(place).is_some_and(|it| it.iter().any(|number| *number > 0))
        });
        paid.map(|(class, _)| self.vms[class].cost).sum()
    }

    /// The least cost over all placements, by trying each.
    pub(crate) fn best(&self) -> Option<usize> {
        let components: Vec<usize> =
            self.groups.iter().enumerate().flat_map(|(group, it)| vec![group; it.count]).collect();
        let mut best = None;
        let empty = self.places().into_iter().map(|place| (place, vec![0; self.groups.len()])).collect();
        self.try_all(&components, &empty, &mut best);
        best
    }

    fn try_all(&self, left: &[usize], placement: &BTreeMap<(usize, usize), Contents>, best: &mut Option<usize>) {
        let Some((group, rest)) = left.split_first() else {
            let cost = self.cost(placement);
            if best.is_none_or(|best| cost < best) && placement.iter().all(|(place, it)| self.allows(*place, it)) {
                *best = Some(cost);
            }
            return;
        };
        for place in self.places() {
            let mut further = placement.clone();
            further.get_mut(&place).unwrap()[*group] += 1;
            self.try_all(rest, &further, best);
        }
    }
}

impl Rule {
    fn text(&self) -> String {
        match self {
            Self::Apart(one) => format!("apart {}", GROUPS[*one]),
            Self::ApartTwo(one, other) => format!("\"apart {}, {}\"", GROUPS[*one], GROUPS[*other]),
            Self::Alone(one) => format!("alone {}", GROUPS[*one]),
            Self::AtMost(number, one) => format!("at most {number} {} per vm", GROUPS[*one]),
            Self::AtMostOfAll(number) => format!("at most {number} per vm"),
            Self::Together(one, other) => format!("\"together {}, {}\"", GROUPS[*one], GROUPS[*other]),
        }
    }

    fn holds(&self, contents: &Contents) -> bool {
        match self {
            Self::Apart(one) => contents[*one] <= 1,
            Self::ApartTwo(one, other) => contents[*one] == 0 || contents[*other] == 0,
            Self::Alone(one) => contents[*one] == 0 || contents.iter().sum::<usize>() == 1,
            Self::AtMost(number, one) => contents[*one] <= *number,
            Self::AtMostOfAll(number) => contents.iter().sum::<usize>() <= *number,
            Self::Together(one, other) => (contents[*one] > 0) == (contents[*other] > 0),
        }
    }
}
