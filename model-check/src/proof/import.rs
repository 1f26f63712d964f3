//! One import of one component, with its numbers abstracted to signs.
//!
//! A1 compares how much is held with how much is needed. Both numbers may be any; so what is kept here is only the sign of a
//! difference, and a step that moves a difference by one may lead to each sign that this allows. Whatever holds here thus
//! holds for every number of providers and every need. The surroundings lend, recall, lose VMs, set needs, and start and
//! stop the component whenever this import lets them.

use std::collections::BTreeSet;

/// Looks at every state of one import. Returns how many there are, and one in which A1 does not hold, if there is one.
pub fn explore() -> (usize, Option<Import>) {
    walk(Import::moves)
}

fn walk(moves: impl Fn(Import) -> Vec<Import>) -> (usize, Option<Import>) {
    let mut seen: BTreeSet<Import> = Import::first().collect();
    let mut open: Vec<Import> = seen.iter().copied().collect();
    while let Some(at) = open.pop() {
        open.extend(moves(at).into_iter().filter(|next| seen.insert(*next)));
    }
    (seen.len(), seen.into_iter().find(|it| !it.holds()))
}

/// The sign of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sign {
    /// Less than enough.
    Below,
    /// Just enough.
    Equal,
    /// More than enough.
    Above,
}

impl Sign {
    /// Each sign.
    pub const ALL: [Self; 3] = [Self::Below, Self::Equal, Self::Above];

    /// The sign of a difference of two numbers.
    pub fn of(one: u32, other: u32) -> Self {
        match one.cmp(&other) {
            std::cmp::Ordering::Less => Self::Below,
            std::cmp::Ordering::Equal => Self::Equal,
            std::cmp::Ordering::Greater => Self::Above,
        }
    }

    fn with_one_more(self) -> &'static [Self] {
        match self {
            Self::Below => &[Self::Below, Self::Equal],
            Self::Equal | Self::Above => &[Self::Above],
        }
    }

    fn with_one_less(self) -> &'static [Self] {
        match self {
            Self::Below | Self::Equal => &[Self::Below],
            Self::Above => &[Self::Equal, Self::Above],
        }
    }
}

/// How one strong or value import stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Import {
    /// Whether the component is running.
    pub running: bool,
    /// What is held and not recalled, against the need.
    pub held: Sign,
    /// The same with what is recalled, unless a rebind under way leaves it out.
    pub kept: Sign,
    /// Whether something is recalled that no rebind under way leaves out.
    pub recalled: bool,
    /// Whether a higher need was ordered than is held.
    pub raised: bool,
    /// Whether something was lost with a VM in the present run and left too little.
    pub bereft: bool,
}

impl Import {
    /// Whether the component may run, as far as this import goes.
    pub fn is_enough(self) -> bool {
        !self.raised && self.held != Sign::Below
    }

    /// A1: while it runs, it keeps enough; unless a VM was lost, and then it must stop.
    pub fn holds(self) -> bool {
        !self.running || self.kept != Sign::Below || self.bereft
    }

    /// What is recalled is kept besides what is held.
    fn is_possible(self) -> bool {
        match (self.recalled, self.held) {
            (false, held) => self.kept == held,
            (true, Sign::Below) => true,
            (true, Sign::Equal | Sign::Above) => self.kept == Sign::Above,
        }
    }

    /// How an import may stand when its component becomes known: some may be parked already, and nothing is recalled.
    pub fn first() -> impl Iterator<Item = Self> {
        Sign::ALL.into_iter().map(|held| Self {
            running: false,
            held,
            kept: held,
            recalled: false,
            raised: false,
            bereft: false,
        })
    }

    /// Everything that can happen to it.
    pub fn moves(self) -> Vec<Self> {
        let mut found = Vec::new();
        let signs = || Sign::ALL.into_iter().flat_map(|held| Sign::ALL.map(|kept| (held, kept)));
        // C1: it starts with enough.
        if !self.running && self.is_enough() {
            found.push(Self { running: true, ..self });
        }
        // C4: it stops, and gives back what is recalled.
        if self.running {
            found.push(Self { running: false, kept: self.held, recalled: false, bereft: false, ..self });
        }
        // One more is lent.
        for held in self.held.with_one_more() {
            for kept in self.kept.with_one_more() {
                let more = Self { held: *held, kept: *kept, ..self };
                found.push(more);
                // The higher need is met, and is the need from now on.
                if self.raised {
                    found.extend(signs().filter(|(held, _)| *held == Sign::Equal).map(|(held, kept)| Self {
                        held,
                        kept,
                        raised: false,
                        ..more
                    }));
                }
            }
        }
        // One is recalled. One that is not running gives it back in the same step.
        for held in self.held.with_one_less() {
            found.push(match self.running {
                true => Self { held: *held, recalled: true, ..self },
                false => Self { held: *held, kept: *held, ..self },
            });
        }
        // C3 and C5: with enough, what is recalled is given back, or a rebind begins that leaves it out.
        if self.running && self.recalled && self.is_enough() {
            found.push(Self { kept: self.held, recalled: false, ..self });
        }
        // A rebind fails: what it was to leave out is still recalled.
        if self.running {
            found.extend(signs().filter(|(held, _)| *held == self.held).map(|(_, kept)| Self {
                kept: kept.max(self.kept),
                recalled: true,
                ..self
            }));
        }
        // A VM is lost with something that was held, or recalled.
        let bereave = |it: Self| Self { bereft: it.bereft || it.running && !it.is_enough(), ..it };
        for kept in self.kept.with_one_less() {
            for held in self.held.with_one_less() {
                found.push(bereave(Self { held: *held, kept: *kept, ..self }));
            }
            if self.recalled {
                found.extend([false, true].map(|recalled| bereave(Self { kept: *kept, recalled, ..self })));
            }
        }
        if self.running {
            // What a rebind under way leaves out is lost.
            found.push(bereave(self));
        }
        // 4.3: another need is ordered. A lower one counts at once, a higher one only if that many are held.
        found.push(Self { raised: true, ..self });
        found.extend(signs().map(|(held, kept)| Self { held, kept, raised: false, ..self }).filter(|it| {
            let lowered = it.held >= self.held && it.kept >= self.kept;
            lowered || it.held != Sign::Below
        }));
        found.retain(|it| it.is_possible());
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_component_keeps_what_it_needs_whatever_the_numbers() {
        assert_eq!(explore(), (34, None));
    }

    #[test]
    fn giving_back_what_is_needed_breaks_a1() {
        let flaw = |it: Import| {
            let returned = Import { kept: it.held, recalled: false, ..it };
            it.moves().into_iter().chain(it.running.then_some(returned)).collect()
        };
        assert!(walk(flaw).1.is_some());
    }

    #[test]
    fn starting_with_too_little_breaks_a1() {
        let flaw = |it: Import| it.moves().into_iter().chain([Import { running: true, ..it }]).collect();
        assert!(walk(flaw).1.is_some());
    }
}
