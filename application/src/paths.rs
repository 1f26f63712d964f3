//! The paths of a component's files: inside its directory, or absolute; and no two the same.

use crate::{
    node::{Key, Node, in_words},
    reading::Reading,
};
use std::collections::BTreeMap;

/// Looks at the paths of the files of a type, as far as they are known before templates are rendered.
pub(crate) fn check(files: &[(Key, Node)], reading: &mut Reading) {
    let mut known: BTreeMap<Vec<&str>, &Key> = BTreeMap::new();
    for (key, _) in files {
        match parts(&key.text) {
            Err(says) => reading.wrong(key.span, format!("{} {says}", in_words(&key.text))),
            Ok(parts) => match known.get(&parts) {
                Some(other) => {
                    reading.wrong(key.span, format!("this is the same file as `{}`", other.text.escape_debug()));
                }
                None => drop(known.insert(parts, key)),
            },
        }
    }
    for (path, key) in &known {
        let is_above = |length: &usize| known.contains_key(&path[..*length]);
        if let Some(above) = (1..path.len()).find(is_above).and_then(|length| known.get(&path[..length])) {
            let above = above.text.escape_debug();
            reading.wrong(key.span, format!("`{above}` is a file, so another file cannot be inside it"));
        }
    }
}

/// The parts of a path, the first of which is empty if it is absolute; or why it is none for a file.
fn parts(path: &str) -> Result<Vec<&str>, &'static str> {
    let is_absolute = path.starts_with('/');
    // What begins with a template may be an absolute path.
    let is_open = path.starts_with('{');
    let mut parts: Vec<&str> = is_absolute.then_some("").into_iter().collect();
    let least = parts.len();
    for part in split(path) {
        match part {
            "" | "." => {}
            ".." if parts.len() > least => drop(parts.pop()),
            ".." if is_absolute || is_open => {}
            ".." => return Err("is outside the component's directory (write an absolute path)"),
            part => parts.push(part),
        }
    }
    let is_directory = path.ends_with('/') || matches!(path.rsplit('/').next(), Some("." | ".."));
    if parts.len() == least || is_directory { Err("is not the path of a file") } else { Ok(parts) }
}

/// The pieces between slashes; those inside of a template do not count.
fn split(path: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut inside) = (Vec::new(), 0, 0_usize);
    for (at, letter) in path.char_indices() {
        match letter {
            '{' => inside += 1,
            '}' => inside = inside.saturating_sub(1),
            '/' if inside == 0 => {
                pieces.push(&path[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&path[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lies_in_its_directory_or_where_its_full_path_says() {
        for (path, right) in [
            ("a/./b", Some(vec!["a", "b"])),
            ("a/../b", Some(vec!["b"])),
            ("/etc//x", Some(vec!["", "etc", "x"])),
            ("{{ a | replace('/', '-') }}/b", Some(vec!["{{ a | replace('/', '-') }}", "b"])),
            ("{{ directory }}/../x", Some(vec!["x"])),
            ("", None),
            (".", None),
            ("/", None),
            ("a/", None),
            ("a/..", None),
            ("a/b/..", None),
            ("../a", None),
            ("a/../../b", None),
        ] {
            assert_eq!(parts(path).ok(), right, "{path}");
        }
    }
}
