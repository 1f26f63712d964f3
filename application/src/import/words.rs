//! How compose writes commands, times and lists of variables.

/// Splits a command into words as a shell would, without being one. Nothing if a quote is not closed.
pub(super) fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars().peekable();
    let mut braces = 0_usize;
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() && braces == 0 {
            words.extend(word.take());
            continue;
        }
        let open = word.get_or_insert_default();
        match letter {
            // What is inside of `${…}` belongs together, spaces and all.
            '$' if letters.peek() == Some(&'{') => {
                open.push('$');
                open.extend(letters.next());
                braces += 1;
            }
            '}' if braces > 0 => {
                open.push('}');
                braces -= 1;
            }
            _ if braces > 0 => open.push(letter),
            '\'' => loop {
                match letters.next()? {
                    '\'' => break,
                    inner => open.push(inner),
                }
            },
            '"' => loop {
                match letters.next()? {
                    '"' => break,
                    '\\' => match letters.next()? {
                        inner @ ('"' | '\\' | '`' | '\n') => open.push(inner),
                        inner => open.extend(['\\', inner]),
                    },
                    inner => open.push(inner),
                }
            },
            '\\' => open.extend(letters.next().filter(|it| *it != '\n')),
            _ => open.push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

/// A time such as `90s`, `1m30s` or `1.5h`, in milliseconds.
pub(super) fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|it: char| it.is_ascii_digit()).unwrap_or(rest.len());
        let factor = match &rest[..unit] {
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1_000.0,
            "ms" => 1.0,
            "us" | "µs" => 0.001,
            "ns" => 0.000_001,
            _ => return None,
        };
        sum += number * factor;
        rest = &rest[unit..];
    }
    let whole = sum.ceil();
    #[allow(clippy::cast_possible_truncation, reason = "it is checked to be small")]
    #[allow(clippy::cast_sign_loss, reason = "there is no sign in it")]
    (!text.is_empty() && (0.0..1e15).contains(&whole)).then_some(whole as u64)
}

/// A time as application files write it.
pub(super) fn duration(milliseconds: u64) -> String {
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fits = units.into_iter().find(|(unit, _)| milliseconds > 0 && milliseconds.is_multiple_of(*unit));
    fits.map_or_else(|| format!("{milliseconds}ms"), |(unit, name)| format!("{}{name}", milliseconds / unit))
}

/// The variables of an environment file: `NAME=value` lines, remarks, quotes around values.
pub(super) fn variables(text: &str) -> Vec<(String, Option<String>)> {
    let line = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let Some((name, value)) = line.split_once('=') else { return Some((line.to_owned(), None)) };
        let value = value.trim();
        let quoted = |quote: char| value.strip_prefix(quote).and_then(|it| it.rsplit_once(quote)).map(|(it, _)| it);
        let plain = || value.split(" #").next().unwrap_or_default().trim_end();
        let value = quoted('"').or_else(|| quoted('\'')).unwrap_or_else(plain);
        Some((name.trim().to_owned(), Some(value.to_owned())))
    };
    text.lines().filter_map(line).collect()
}

/// A name in an application file: what cannot stand in one becomes a dash, and a letter comes first.
pub(super) fn name(text: &str, letters_max: usize) -> String {
    let fits = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '-' };
    let name: String = text.chars().map(fits).collect();
    let name = name.trim_matches(['-', '_']);
    let first = name.chars().next().filter(char::is_ascii_alphabetic);
    let name = if first.is_some() { name.to_owned() } else { format!("x{name}") };
    name.chars().take(letters_max).collect::<String>().trim_end_matches(['-', '_']).to_owned()
}

/// A YAML scalar: plain if that is unambiguous, otherwise in quotes.
pub(super) fn scalar(text: &str) -> String {
    let option = text.trim_start_matches('-');
    let option = text.len() - option.len() <= 2 && option.starts_with(|it: char| it.is_ascii_alphabetic());
    let first = option || text.starts_with('/');
    let plain = text.chars().all(|it| it.is_ascii_alphanumeric() || "_./-=".contains(it));
    let taken = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let number =
        text.len() < 8 && !text.starts_with('0') && !text.is_empty() && text.chars().all(|it| it.is_ascii_digit());
    if (first && plain && !taken.contains(&text.to_lowercase().as_str())) || number || text == "0" {
        return text.into();
    }
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            '\r' => quoted += "\\r",
            // What is not printable, or ends a line for YAML, is written as a number.
            _ if letter.is_control() || ('\u{2028}'..='\u{2029}').contains(&letter) || letter == '\u{feff}' => {
                quoted += &format!("\\U{:08X}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// A list of texts on one line.
pub(super) fn list<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    format!("[{}]", texts.into_iter().map(|it| scalar(it)).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_a_shell_would() {
        let cases: [(&str, &[&str]); 5] = [
            ("python  app.py", &["python", "app.py"]),
            ("sh -c 'a && b' \"c \\\"d\\\"\"", &["sh", "-c", "a && b", "c \"d\""]),
            ("run ${A:-b c} d", &["run", "${A:-b c}", "d"]),
            ("a\\ b --x='1 2' ''", &["a b", "--x=1 2", ""]),
            ("", &[]),
        ];
        for (text, words) in cases {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        assert_eq!(["'", "\"a", "a 'b"].map(split), [const { None }; 3]);
    }

    #[test]
    fn times_are_read_as_compose_writes_them() {
        let times = ["90s", "1m30s", "1.5h", "200ms", "1us"].map(duration_ms);
        assert_eq!(times, [Some(90_000), Some(90_000), Some(5_400_000), Some(200), Some(1)]);
        assert_eq!(["", "5", "5 s", "s", "-1s", "1e9h", "99999999999999h"].map(duration_ms), [None; 7]);
        assert_eq!([90_000, 7_200_000, 1_500, 0].map(duration), ["90s", "2h", "1500ms", "0ms"]);
    }

    #[test]
    fn environment_files_have_lines_remarks_and_quotes() {
        let read = variables("# remark\nA=1\nexport B='x y' # z\nC=\"q\"\nD\nE=a # b\n\n");
        let shown: Vec<String> = read.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        assert_eq!(shown, ["A=Some(\"1\")", "B=Some(\"x y\")", "C=Some(\"q\")", "D=None", "E=Some(\"a\")"]);
    }

    #[test]
    fn names_and_scalars_fit_into_application_files() {
        assert_eq!(["my.app", "9lives", "_x_", "é"].map(|it| name(it, 30)), ["my-app", "x9lives", "x", "x"]);
        assert_eq!(name(&"a".repeat(99), 30).len(), 30);
        let shown = ["redis:7", "on", "a-b", "--x=y", "-", "12", "007", ""].map(scalar);
        assert_eq!(shown, ["\"redis:7\"", "\"on\"", "a-b", "--x=y", "\"-\"", "12", "\"007\"", "\"\""]);
    }
}
