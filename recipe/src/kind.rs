//! What the protocol needs to know of a component, as far as its recipe determines it.

use crate::{At, Rebind, Recipe, Start};
use protocol::{Export, Import, Kind, Name, Operation, Patience};
use std::collections::BTreeMap;

impl Recipe {
    /// The kind of a component with this recipe.
    pub fn kind(
        &self,
        imports: BTreeMap<Name, Import>,
        exports: BTreeMap<Name, Export>,
        patience: BTreeMap<Operation, Patience>,
    ) -> Kind {
        Kind {
            prepares: self.prepares(),
            rebinds: self.rebinds(),
            renews: self.renews(&exports),
            // The component's directory is always removed.
            purges: true,
            recipe: self.encode().into(),
            imports,
            exports,
            patience,
        }
    }

    /// Whether a kind with this recipe has something to install or announce before it can be bound to.
    pub fn prepares(&self) -> bool {
        let announces = self.values.values().any(|value| value.at == At::Prepare);
        announces || self.operations.install.is_some() || self.operations.announce.is_some()
    }

    /// Whether a kind with this recipe can be told of new bindings while it runs.
    pub fn rebinds(&self) -> bool {
        match &self.operations.rebind {
            Some(Rebind::Restart) => false,
            Some(Rebind::Command(_) | Rebind::Signal(_)) => true,
            None => self.operations.reload.is_some(),
        }
    }

    /// Whether the exported values of a kind with this recipe may differ after each start: they are chosen then, or a
    /// start script may write them.
    pub fn renews(&self, exports: &BTreeMap<Name, Export>) -> bool {
        let scripted = matches!(self.operations.start, Some(Start::Script(_)));
        exports.values().flat_map(|export| &export.values).any(|name| match self.values.get(name) {
            Some(value) => value.at == At::Start,
            None => scripted,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_that_are_chosen_at_each_start_or_written_by_it_are_renewed() {
        let renews = |recipe: serde_json::Value, value: &str| {
            let recipe: Recipe = serde_json::from_value(recipe).unwrap();
            let values = vec![Name::new(value).unwrap()];
            recipe.renews(&[(Name::new("out").unwrap(), Export { values, capacity: None })].into())
        };
        let values = json!({ "once": { "template": "x" }, "each": { "template": "x", "at": "start" } });
        let script = json!({ "start": { "script": { "run": "x" } }, "stop": { "command": { "run": "x" } } });
        assert!(!renews(json!({ "version": 1, "values": values }), "once"));
        assert!(renews(json!({ "version": 1, "values": values }), "each"));
        // A value that the recipe does not define is written by a command; of these, only the start is repeated.
        assert!(!renews(json!({ "version": 1 }), "written"));
        assert!(renews(json!({ "version": 1, "operations": script }), "written"));
        assert!(!renews(json!({ "version": 1, "operations": script, "values": values }), "once"));
    }
}
