//! The reason of a failed operation, for display: first what failed, then its output.

/// Number of lines of output from the beginning and from the end. The output of a failed check comes first, that of the
/// checked program last.
const FIRST_MAX: usize = 3;
const LAST_MAX: usize = 5;

/// What failed, in one line.
pub fn first(operation: Option<&str>, detail: &str) -> String {
    let line = detail.lines().next().unwrap_or_default();
    // The operation is already named before the reason.
    let again = operation.map(|it| format!("{it}: ")).unwrap_or_default();
    line.strip_prefix(&again).unwrap_or(line).to_owned()
}

/// The output, below it.
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
    fn the_failed_operation_comes_first_and_its_output_below() {
        let detail = "start: not ready within 5s; the last check: exit code 3\nboom\ndoing start";
        assert_eq!(first(Some("start"), detail), "not ready within 5s; the last check: exit code 3");
        assert_eq!(rest(detail), "    boom\n    doing start\n");
        let long: String = (0..20).map(|line| format!("{line}\n")).collect();
        let shown = rest(&long);
        assert!(shown.starts_with("    1\n    2\n    3\n    … 11 more lines\n    15\n"), "{shown}");
        assert!(shown.ends_with("    19\n"), "{shown}");
    }
}
