//! Whether two files mean the same, however they are written.

use crate::{problem::Findings, yaml};

/// Whether two files mean the same, apart from comments, order and style. A file that cannot be read equals no other.
pub fn says_the_same(one: &str, other: &str) -> bool {
    let read = |text: &str| {
        let mut findings = Findings::default();
        let (node, _) = yaml::parse(0, text, &mut findings);
        node.filter(|_| findings.count() == 0)
    };
    one == other || read(one).zip(read(other)).is_some_and(|(one, other)| one.is_same(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_and_ways_of_writing_make_no_difference() {
        let text = "a: 1 # one\nb: [x, y]\n";
        assert!(says_the_same(text, "b:\n- x\n- y\n# two\na: 1\n"));
        assert!(!says_the_same(text, "a: 2\nb: [x, y]\n"));
        assert!(!says_the_same("a: [", "a:  ["));
    }
}
