//! Random numbers for tests. The generator is ours, so that a seed means the same next year.

/// Splitmix64.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self, sides: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        i64::try_from((mixed ^ (mixed >> 31)) % sides.unsigned_abs()).unwrap()
    }

    pub(crate) fn one_in(&mut self, sides: i64) -> bool {
        self.roll(sides) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        let choice = self.roll(i64::try_from(choices.len()).unwrap());
        choices[usize::try_from(choice).unwrap()]
    }
}
