//! One application from several files: includes, overrides, and what differs between environments. Everything here
//! happens on the tree, before it is interpreted; so each part keeps its position, and problems are reported there.

use crate::{
    Inputs,
    nearest::hint,
    node::{Content, Key, Node, Style},
    reading::Reading,
    source::{Sources, Span},
    yaml,
};
use recipe::value_type::{VALUE_TYPES, ValueType};
use std::collections::BTreeMap;

/// The version of the language.
pub(crate) const VERSION: u64 = 1;
/// The fields of a file.
pub(crate) const FILE_FIELDS: &[&str] = &[
    "holdfast",
    "application",
    "include",
    "variables",
    "secrets",
    "types",
    "vms",
    "components",
    "constraints",
    "prefer",
    "autoscale",
    "on-failure",
    "override",
];
/// What becomes of a change that fails, with whether it is taken back.
pub(crate) const ON_FAILURE: [(&str, bool); 2] = [("wait", false), ("rollback", true)];
/// The fields of a variable.
pub(crate) const VARIABLE_FIELDS: &[&str] = &["type", "default", "description"];
/// The types of a variable: its value is in files and on command lines, so it is never a secret.
pub(crate) const VARIABLE_TYPES: [(&str, ValueType); 6] =
    [VALUE_TYPES[0], VALUE_TYPES[1], VALUE_TYPES[2], VALUE_TYPES[3], VALUE_TYPES[4], VALUE_TYPES[6]];
/// What is kept together from all files.
const SECTIONS: [&str; 5] = ["variables", "secrets", "types", "vms", "components"];
/// The sections that `override` can change.
pub(crate) const OVERRIDE_FIELDS: &[&str] = &["variables", "secrets", "types", "vms", "components"];
/// Maximum number of files of one application.
const FILES_MAX: usize = 1_000;

/// The sections of all files together.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) application: Option<Node>,
    sections: BTreeMap<&'static str, Vec<(Key, Node)>>,
    /// Constraints from all files.
    pub(crate) constraints: Vec<Node>,
    /// Preferences from all files, the most important first.
    pub(crate) preferences: Vec<Node>,
    /// How the application follows its load.
    pub(crate) autoscale: Option<Node>,
    /// Whether a change that fails is taken back by the manager.
    pub(crate) rolls_back_on_failure: bool,
    overrides: Vec<Node>,
}

impl Document {
    /// Reads the main file and all that it includes. Files are asked for by name, relative to the file that names them.
    pub(crate) fn read(
        main: &str,
        sources: &mut Sources,
        reading: &mut Reading,
        open: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Self {
        let mut document = Self::default();
        // The position that asks for the file; none for the first.
        let mut waiting: Vec<(String, Option<Span>)> = vec![(main.into(), None)];
        while let Some((name, asked)) = waiting.pop() {
            if sources.has(&name) {
                continue;
            }
            let before = reading.findings.count();
            let text = match open(&name) {
                Ok(_) if !sources.name(FILES_MAX).is_empty() => {
                    Err(format!("more than {FILES_MAX} files are included"))
                }
                other => other,
            };
            let text = text.unwrap_or_else(|why| {
                let span = asked.unwrap_or(Span::beginning(0));
                reading.wrong(span, format!("{name} cannot be read: {why}"));
                String::new()
            });
            let file = sources.add(&name, &text);
            let root = yaml::parse(file, &text, &mut reading.findings).0;
            if root.is_none() && reading.findings.count() > before {
                reading.is_incomplete = true;
                continue;
            }
            // An empty file has no sections, which is not reported yet.
            let root = root.unwrap_or(Node::nothing(Span::beginning(file)));
            let included = document.take(&root, asked.is_none(), reading);
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            waiting.extend(included.into_iter().map(|(name, span)| (beside(folder, &name), Some(span))));
        }
        // The main file has priority, and was read first.
        let overrides: Vec<Node> = document.overrides.drain(..).rev().collect();
        overrides.iter().for_each(|over| document.lay_over(over, reading));
        document
    }

    /// The entries of a section.
    pub(crate) fn section(&self, name: &str) -> &[(Key, Node)] {
        self.sections.get(name).map_or(&[], Vec::as_slice)
    }

    fn take(&mut self, root: &Node, is_main: bool, reading: &mut Reading) -> Vec<(String, Span)> {
        let fields = reading.fields(root, "a file", FILE_FIELDS);
        match fields.get("holdfast") {
            Some(node) => match reading.number(node, "the version of the language") {
                Some(VERSION) | None => {}
                Some(other) => {
                    let says = format!(
                        "the file uses version {other} of the language, and this program reads version {VERSION} (upgrade the program)"
                    );
                    reading.wrong(node.span, says);
                }
            },
            None if is_main => {
                let says = format!("the file must declare the version of the language: `holdfast: {VERSION}`");
                reading.missing(&fields, &["holdfast"], Span::beginning(fields.span.file), says);
            }
            None => {}
        }
        if is_main {
            self.application = fields.get("application").cloned();
            if self.application.is_none() {
                let says = "the application needs a name (`application: …`)";
                reading.missing(&fields, &["application"], Span::beginning(fields.span.file), says);
            }
        }
        if let Some(node) = fields.get("on-failure") {
            let said = reading.one_of(node, "`on-failure`", &ON_FAILURE);
            self.rolls_back_on_failure |= said.unwrap_or_default();
        }
        // A section that cannot be read may contain what is missing elsewhere.
        let is_lost = |section: &str| fields.get(section).is_some_and(|it| !matches!(it.content, Content::Map { .. }));
        reading.is_incomplete |= fields.may_have(&SECTIONS) || SECTIONS.into_iter().any(is_lost);
        for section in SECTIONS {
            let Some(node) = fields.get(section) else { continue };
            let known = self.sections.entry(section).or_default();
            let first: BTreeMap<String, Span> = known.iter().map(|(key, _)| (key.text.clone(), key.span)).collect();
            for (key, node) in reading.entries(node, &format!("`{section}`")) {
                match first.get(&key.text) {
                    Some(first) => {
                        let says = format!("`{}` is defined twice; to change it, use `override`", key.text);
                        reading.findings.add_again(key.span, says, *first);
                    }
                    None => known.push((key.clone(), node.clone())),
                }
            }
        }
        for (name, known) in [("constraints", &mut self.constraints), ("prefer", &mut self.preferences)] {
            let items = fields.get(name).map(|node| reading.items(node, &format!("`{name}`"))).unwrap_or_default();
            known.extend(items.iter().cloned());
        }
        match (fields.entry("autoscale"), &self.autoscale) {
            (Some((key, _)), Some(first)) => {
                reading.findings.add_again(key.span, "`autoscale` is defined twice", first.span);
            }
            (Some((_, node)), None) => self.autoscale = Some(node.clone()),
            (None, _) => {}
        }
        self.overrides.extend(fields.get("override").cloned());
        let included = fields.get("include").map(|node| reading.items(node, "`include`")).unwrap_or_default();
        let name = |node: &Node| Some((reading.text(node, "a file's name")?.to_owned(), node.span));
        included.iter().filter_map(name).collect()
    }

    fn lay_over(&mut self, over: &Node, reading: &mut Reading) {
        let fields = reading.fields(over, "`override`", OVERRIDE_FIELDS);
        for section in SECTIONS {
            let Some(node) = fields.get(section) else { continue };
            let known = self.sections.entry(section).or_default();
            for (key, node) in reading.entries(node, &format!("`{section}`")) {
                let place = known.iter().position(|(it, _)| it.text == key.text);
                match place {
                    Some(place) if node.is_nothing() => drop(known.remove(place)),
                    Some(place) => known[place].1.overlay(node),
                    None => {
                        let right = hint(&key.text, known.iter().map(|(it, _)| it.text.as_str()));
                        let says = format!("cannot override unknown `{}` under `{section}`{right}", key.text);
                        reading.absent(key.span, says);
                    }
                }
            }
        }
    }

    /// Replaces `${name}` in VMs, components, constraints, preferences and `autoscale`. Types are not changed: they see only their
    /// parameters.
    pub(crate) fn fill_in(&mut self, inputs: &Inputs, sources: &mut Sources, reading: &mut Reading) {
        let values = self.variables(inputs, sources, reading);
        for section in ["vms", "components"] {
            for (_, node) in self.sections.entry(section).or_default() {
                fill(node, &values, reading);
            }
        }
        let texts = self.constraints.iter_mut().chain(&mut self.preferences).chain(&mut self.autoscale);
        texts.for_each(|node| fill(node, &values, reading));
    }

    /// The value of each variable: from the command line, otherwise from the last values file that has it, otherwise
    /// its default.
    fn variables(
        &self,
        inputs: &Inputs,
        sources: &mut Sources,
        reading: &mut Reading,
    ) -> BTreeMap<String, Option<Node>> {
        let mut given: BTreeMap<String, Node> = BTreeMap::new();
        for (name, text) in &inputs.values_files {
            let file = sources.add(name, text);
            let before = reading.findings.count();
            let Some(root) = yaml::parse(file, text, &mut reading.findings).0 else {
                reading.is_incomplete |= reading.findings.count() > before;
                continue;
            };
            for (key, node) in reading.entries(&root, "a values file") {
                self.expect_variable(&key.text, key.span, reading);
                // An empty entry does not remove what an earlier file gave.
                match node.is_nothing() {
                    true => given.remove(&key.text),
                    false => given.insert(key.text.clone(), node.clone()),
                };
            }
        }
        for (name, text) in &inputs.values {
            let file = sources.add("--set", &format!("{name}={text}"));
            let end = name.len();
            self.expect_variable(name, Span { file, start: 0, end }, reading);
            let span = Span { file, start: end + 1, end: end + 1 + text.len() };
            // On a command line, quotes around an empty text are not possible.
            let style = if text.is_empty() { Style::Quoted } else { Style::Plain };
            given.insert(name.clone(), Node { span, content: Content::Scalar { text: text.clone(), style } });
        }
        let mut values = BTreeMap::new();
        for (key, node) in self.section("variables") {
            reading.name(&key.text, key.span);
            let described = matches!(node.content, Content::Map { .. });
            let mut is_misspelt = false;
            let (value_type, default) = if described {
                let fields = reading.fields(node, "a variable", VARIABLE_FIELDS);
                is_misspelt = fields.may_have(&["default"]);
                let value_type = fields.get("type").and_then(|node| {
                    if matches!(&node.content, Content::Scalar { text, .. } if text == "secret") {
                        let says = "a variable cannot be secret, because variables are stored in plain text (define it under `secrets`)";
                        reading.wrong(node.span, says);
                        return None;
                    }
                    reading.one_of(node, "the type of a variable", &VARIABLE_TYPES)
                });
                (value_type, fields.get("default").cloned())
            } else {
                (None, Some(node.clone()).filter(|it| !it.is_nothing()))
            };
            let mut value = given.remove(&key.text).or(default);
            if let (Some(value_type), Some(wrong)) = (value_type, &value)
                && !value_type.fits(&Reading::value(wrong))
            {
                reading.not_of_type(&key.text, value_type, wrong);
                value = None;
            } else if value.is_none() && !is_misspelt {
                let says = format!("`{0}` has no value (give it a default, or pass --set {0}=…)", key.text);
                reading.absent(key.span, says);
            }
            if let Some(Node { span, content: Content::Scalar { text, .. } }) = &value {
                let other = |it: &&(Key, Node)| text.contains(&format!("${{{}}}", it.0.text));
                if let Some((other, _)) = self.section("variables").iter().find(other) {
                    let says = format!(
                        "`${{{}}}` is not replaced here: a variable cannot refer to another one (combine them where they are used)",
                        other.text
                    );
                    reading.wrong(*span, says);
                }
            }
            values.insert(key.text.clone(), value);
        }
        values
    }

    fn expect_variable(&self, name: &str, span: Span, reading: &mut Reading) {
        let known = self.section("variables");
        if !known.iter().any(|(key, _)| key.text == name) {
            let right = hint(name, known.iter().map(|(key, _)| key.text.as_str()));
            reading.absent(span, format!("unknown variable `{}`{right}", name.escape_debug()));
        }
    }
}

/// Replaces `${name}`; a text that is nothing else becomes the value of the variable. `$${` stands for `${`.
fn fill(node: &mut Node, values: &BTreeMap<String, Option<Node>>, reading: &mut Reading) {
    let span = node.span;
    match &mut node.content {
        Content::List { items, .. } => items.iter_mut().for_each(|item| fill(item, values, reading)),
        Content::Map { entries, .. } => entries.iter_mut().for_each(|(_, node)| fill(node, values, reading)),
        Content::Scalar { text, style } if text.contains("${") => {
            let alone = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).filter(|it| !it.contains('$'));
            if let Some(Some(Some(value))) = alone.map(|name| values.get(name)) {
                // It keeps the position where it is used, because that is where it may be wrong.
                node.content = value.content.clone();
                return;
            }
            *text = filled(text, span, values, reading);
            *style = Style::Quoted;
        }
        Content::Scalar { .. } => {}
    }
}

fn filled(text: &str, span: Span, values: &BTreeMap<String, Option<Node>>, reading: &mut Reading) -> String {
    let mut done = String::new();
    let mut rest = text;
    let mut is_known = true;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            done += before;
            done += "${";
            rest = after;
            continue;
        }
        done += before;
        let Some((name, after)) = after.split_once('}') else {
            reading.wrong(span, "`${` without `}` (write $${ for a literal `${`)");
            return done;
        };
        match values.get(name) {
            Some(Some(Node { content: Content::Scalar { text, .. }, .. })) => done += text,
            Some(Some(_)) => {
                reading.wrong(span, format!("`{name}` is a list or a map, which cannot be part of a text"));
            }
            // It was already reported that it has no value.
            Some(None) => is_known = false,
            None => {
                let right = hint(name, values.keys().map(String::as_str));
                reading.absent(span, format!("unknown variable `{}`{right}", name.escape_debug()));
                is_known = false;
            }
        }
        rest = after;
    }
    // Only now, because several may be missing from one text.
    if !is_known {
        reading.unfilled.insert(span);
    }
    done + rest
}

/// A path relative to a directory, normalised: a file has one name, however it is written.
pub(crate) fn beside(folder: &str, name: &str) -> String {
    let is_absolute = name.starts_with('/') || folder.starts_with('/');
    let folder = if name.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(name.split('/')) {
        match (part, parts.last()) {
            ("." | "", _) => {}
            ("..", None) if is_absolute => {}
            ("..", Some(last)) if *last != ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let root = if is_absolute { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_looked_for_beside_the_one_that_names_it() {
        assert_eq!(beside("", "a.yaml"), "a.yaml");
        assert_eq!(beside("x/y", "../a.yaml"), "x/a.yaml");
        assert_eq!(beside("/x", "./a.yaml"), "/x/a.yaml");
        assert_eq!(beside("..", "../a.yaml"), "../../a.yaml");
        assert_eq!(beside("x", "/a.yaml"), "/a.yaml");
        assert_eq!((beside("", "./x/a.yaml"), beside(".", "x//b/../a.yaml")), ("x/a.yaml".into(), "x/a.yaml".into()));
        assert_eq!((beside("", "../a.yaml"), beside("", "/x/../../a.yaml")), ("../a.yaml".into(), "/a.yaml".into()));
    }
}
