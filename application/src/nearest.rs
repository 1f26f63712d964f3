//! Suggestions for misspelt names.

/// The known name nearest to a given one, if it is near enough to be a misspelling.
pub(crate) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = given.chars().count().max(3) / 3;
    let near = known.into_iter().map(|name| (distance(given, name), name));
    // A name of one letter is a single change away from every other one.
    let is_near = |distance: usize, name: &str| {
        distance == 0 || (distance <= allowed && distance < given.chars().count().min(name.chars().count()))
    };
    near.filter(|(distance, name)| is_near(*distance, name)).min().map(|(_, name)| name)
}

/// ` (did you mean …?)`, or all known names if there are few, or nothing.
pub fn hint<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match (nearest(given, known.iter().copied()), known.len()) {
        (Some(name), _) => format!(" (did you mean `{name}`?)"),
        (None, 1..=10) => format!(" (known: {})", listed(&known)),
        (None, _) => String::new(),
    }
}

/// `a`, `b` and `c`.
pub(crate) fn listed(names: &[&str]) -> String {
    match names {
        [] => "nothing".into(),
        [one] => format!("`{one}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", first.join(", "))
        }
    }
}

/// Edit distance: letters inserted, removed, changed or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) =
        (one.to_lowercase().chars().collect(), other.to_lowercase().chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, wanted) in other.iter().enumerate() {
            let change = rows[i][j] + usize::from(letter != wanted);
            let mut least = change.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *wanted {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_seen_and_another_word_is_not() {
        let known = ["imports", "exports", "operations"];
        assert_eq!(nearest("import", known), Some("imports"));
        assert_eq!(nearest("xeports", known), Some("exports"));
        assert_eq!(nearest("Operation", known), Some("operations"));
        assert_eq!(nearest("files", known), None);
        assert_eq!((nearest("bd", ["db"]), nearest("a", ["b"]), nearest("ab", ["b"])), (Some("db"), None, None));
        assert_eq!(hint("zzz", ["a", "b", "c"]), " (known: `a`, `b` and `c`)");
        assert_eq!(hint("", []), "");
    }
}
