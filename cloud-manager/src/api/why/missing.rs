//! Something that the manager does not have, but that an application may request.

use crate::{
    document::{Reason, Why, quoted},
    machine::View,
};
use application::{Key, hint};
use protocol::Name;
use std::collections::BTreeSet;

/// Why something that an application requests is missing; or an error that suggests the name that was probably meant.
pub(in crate::api) fn missing(manager: View<'_>, name: &Name) -> Result<Why, String> {
    let asked = name.as_str().split_once('/').and_then(|(home, key)| {
        let expansion = &manager.applications.get(&Name::new(home).ok()?)?.expansion;
        let key: Key = key.parse().ok()?;
        match (expansion.components.contains_key(&key), expansion.vms.contains_key(&key)) {
            (true, _) => Some(("component", home, quoted(name.as_str()))),
            (false, true) => Some(("vm", home, home.to_owned())),
            (false, false) => None,
        }
    });
    let (what, application, target) = asked.ok_or_else(|| unknown(manager, name))?;
    let says = format!("{name} is missing: application {application} requests it, but it does not exist");
    Ok(Why {
        name: name.to_string(),
        what: what.into(),
        well: false,
        reasons: vec![Reason { about: name.to_string(), says, ..Reason::default() }],
        remedies: vec![format!("holdfast reconcile {target} creates it")],
    })
}

fn unknown(manager: View<'_>, name: &Name) -> String {
    let book = manager.book();
    let mut known: BTreeSet<String> = book.components().map(|it| it.name.to_string()).collect();
    known.extend(book.vms().map(|it| it.name.to_string()));
    for (application, state) in manager.applications {
        let keys = state.expansion.components.keys().chain(state.expansion.vms.keys());
        known.extend(keys.map(|key| key.scoped(application).to_string()));
    }
    format!("there is no component and no VM {name}{}", hint(name.as_str(), known.iter().map(String::as_str)))
}
