//! Why an operation failed, for people: first what failed, then what was written.

/// Of what was written, so many lines from the beginning and from the end. A check that failed comes first, the program that
/// was checked last.
const FIRST_MAX: usize = 3;
const LAST_MAX: usize = 5;

/// What failed, in one line.
pub fn first(operation: Option<&str>, detail: &str) -> String {
    let line = detail.lines().next().unwrap_or_default();
    // Which operation it was is said before the reason already.
    let again = operation.map(|it| format!("{it}: ")).unwrap_or_default();
    line.strip_prefix(&again).unwrap_or(line).to_owned()
}

/// What was written, below it.
pub fn rest(detail: &str) -> String {
    let lines: Vec<&str> = detail.lines().skip(1).collect();
    let line = |it: &&str| format!("    {it}\n");
    if lines.len() <= FIRST_MAX + LAST_MAX {
        return lines.iter().map(line).collect();
    }
    let (begin, end) = (&lines[..FIRST_MAX], &lines[lines.len() - LAST_MAX..]);
    let between = lines.len() - FIRST_MAX - LAST_MAX;
    let (begin, end): (String, String) = (begin.iter().map(line).collect(), end.iter().map(line).collect());
    format!("{begin}    … {between} more lines\n{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_comes_first_and_what_was_written_below() {
        let detail = "start: not ready within 5s; the last check: exit code 3\nboom\ndoing start";
        assert_eq!(first(Some("start"), detail), "not ready within 5s; the last check: exit code 3");
        assert_eq!(rest(detail), "    boom\n    doing start\n");
        let long: String = (0..20).map(|line| format!("{line}\n")).collect();
        let shown = rest(&long);
        assert!(shown.starts_with("    1\n    2\n    3\n    … 11 more lines\n    15\n"), "{shown}");
        assert!(shown.ends_with("    19\n"), "{shown}");
    }
}
