//! What the manager must know of a recipe: which operations it has. All else is the agent's business.

use serde_json::{Map, Value, json};

/// The version of a recipe that does not say its own.
const VERSION: u32 = 1;

/// What of a recipe matters to the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// There is something to install or announce before others can be bound to the component.
    pub prepares: bool,
    /// It can be told of new bindings while it runs.
    pub rebinds: bool,
}

/// The bytes of a recipe, and which operations it has. No recipe at all is one without operations.
pub fn read(recipe: &Value) -> Result<(Vec<u8>, Operations), String> {
    let mut recipe = match recipe {
        Value::Null => Map::new(),
        Value::Object(members) => members.clone(),
        other => return Err(format!("a recipe is an object, not {other}")),
    };
    recipe.entry("version").or_insert(json!(VERSION));
    let has = |operation: &str| {
        let found = recipe.get("operations").and_then(|operations| operations.get(operation));
        found.is_some_and(|it| !it.is_null())
    };
    let values = recipe.get("values").and_then(Value::as_object);
    let announces = values.is_some_and(|values| values.values().any(|it| it.get("at") != Some(&json!("start"))));
    let operations = Operations { prepares: has("install") || has("announce") || announces, rebinds: has("rebind") };
    let bytes = serde_json::to_vec(&recipe).map_err(|error| error.to_string())?;
    Ok((bytes, operations))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_before_the_start_has_to_be_prepared() {
        let prepares = |recipe: Value| read(&recipe).unwrap().1.prepares;
        assert!(!prepares(json!({})));
        assert!(!prepares(json!({ "operations": { "start": { "process": { "run": "x" } } } })));
        assert!(prepares(json!({ "operations": { "install": { "run": "x" } } })));
        assert!(prepares(json!({ "values": { "port": { "template": "{{ free_port() }}" } } })));
        assert!(!prepares(json!({ "values": { "key": { "template": "k", "at": "start" } } })));
        assert!(read(&json!({ "operations": { "rebind": { "signal": "HUP" } } })).unwrap().1.rebinds);
        assert_eq!(read(&Value::Null).unwrap().0, br#"{"version":1}"#);
    }
}
