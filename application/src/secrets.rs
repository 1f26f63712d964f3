//! Secrets as files name them: where each comes from, and where that is written. Their texts are read elsewhere.

use crate::{
    Application, Problems,
    application::SECRET_FIELDS,
    document::beside,
    expansion::Secret,
    node::{Key, Node},
    problem::Findings,
    reading::Reading,
    source::{Sources, Span},
};
use std::collections::BTreeMap;

impl Application {
    /// Reports unavailable secrets, each with the reason.
    pub fn without_secrets(&self, reasons: &BTreeMap<String, String>) -> Problems {
        let mut findings = Findings::default();
        for (name, why) in reasons {
            let span = self.secrets.get(name).copied().unwrap_or(Span::beginning(0));
            findings.add(span, format!("secret `{name}` is unavailable: {why}"));
        }
        findings.conclude(&self.sources).err().unwrap_or(Problems(Vec::new()))
    }
}

/// Reads where secrets come from; nothing for one that is wrong, which others may still speak of.
pub(crate) fn read(
    section: &[(Key, Node)],
    sources: &Sources,
    reading: &mut Reading,
) -> BTreeMap<String, Option<Secret>> {
    let mut secrets = BTreeMap::new();
    for (key, node) in section {
        reading.name(&key.text, key.span);
        let fields = reading.fields(node, "a secret", SECRET_FIELDS);
        let version = fields.get("version").map_or(Some(1), |node| reading.count(node, "the version of a secret"));
        let types = ["environment", "file", "command"];
        let given = types.map(|name| fields.entry(name));
        let mut given = given.into_iter().flatten();
        let (Some((from, node)), None) = (given.next(), given.next()) else {
            reading.not_one_of(&fields, &types, "a secret needs exactly one of `environment`, `file` and `command`");
            secrets.insert(key.text.clone(), None);
            continue;
        };
        let text = reading.text(node, &format!("`{}`", from.text));
        if text.is_some_and(|text| text.trim().is_empty()) {
            reading.wrong(node.span, format!("`{}` is empty, and must say where the secret is", from.text));
        }
        let place = text.map(|text| match from.text.as_str() {
            "file" => from_main(sources, node.span, text),
            _ => text.to_owned(),
        });
        let (name, from, version) = (key.text.clone(), from.text.clone(), version.unwrap_or(1));
        secrets.insert(key.text.clone(), place.map(|place| Secret { name, from, place, version }));
    }
    secrets
}

/// A file that is named somewhere, as seen from beside the main file: so it is the same wherever that lies.
fn from_main(sources: &Sources, span: Span, name: &str) -> String {
    let folder = |file: usize| sources.name(file).rsplit_once('/').map_or("", |(folder, _)| folder);
    let (main, own) = (folder(0), folder(span.file));
    if main == own || name.starts_with('/') {
        return name.into();
    }
    let whole = beside(own, name);
    let from: Vec<&str> = main.split('/').filter(|it| !it.is_empty()).collect();
    let to: Vec<&str> = whole.split('/').collect();
    let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = from.len() - common;
    std::iter::repeat_n("..", up).chain(to[common..].iter().copied()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_as_seen_from_the_main_one() {
        let seen = |main: &str, own: &str, name: &str| {
            let mut sources = Sources::default();
            sources.add(main, "");
            let file = sources.add(own, "");
            from_main(&sources, Span::beginning(file), name)
        };
        assert_eq!(seen("shop.yaml", "shop.yaml", "key.pem"), "key.pem");
        assert_eq!(seen("shop.yaml", "sub/keys.yaml", "key.pem"), "sub/key.pem");
        assert_eq!(seen("x/shop.yaml", "x/sub/keys.yaml", "../key.pem"), "key.pem");
        assert_eq!(seen("x/shop.yaml", "common/keys.yaml", "key.pem"), "../common/key.pem");
        assert_eq!(seen("../x/shop.yaml", "../../keys.yaml", "key.pem"), "../../key.pem");
        assert_eq!(seen("x/shop.yaml", "x/sub/keys.yaml", "/etc/key.pem"), "/etc/key.pem");
    }
}
