//! A recipe as it comes in: read once here, so that what an agent could not carry out is refused before anything changes.

use recipe::Recipe;
use serde_json::{Map, Value, json};

/// The version of a recipe that does not say its own.
const VERSION: u32 = 1;

/// The recipe in a document, or what is wrong with it. No recipe at all is one without operations.
pub fn read(recipe: &Value) -> Result<Recipe, String> {
    let mut recipe = match recipe {
        Value::Null => Map::new(),
        Value::Object(members) => members.clone(),
        other => return Err(format!("a recipe is an object, not {other}")),
    };
    recipe.entry("version").or_insert(json!(VERSION));
    let bytes = serde_json::to_vec(&recipe).map_err(|error| error.to_string())?;
    Recipe::decode(&bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_before_the_start_has_to_be_prepared() {
        let prepares = |recipe: Value| read(&recipe).unwrap().prepares();
        assert!(!prepares(json!({})));
        assert!(!prepares(json!({ "operations": { "start": { "process": { "run": "x" } } } })));
        assert!(prepares(json!({ "operations": { "install": { "run": "x" } } })));
        assert!(prepares(json!({ "values": { "port": { "template": "{{ free_port() }}" } } })));
        assert!(!prepares(json!({ "values": { "key": { "template": "k", "at": "start" } } })));
        assert!(read(&json!({ "operations": { "rebind": { "signal": "HUP" } } })).unwrap().rebinds());
        assert!(!prepares(Value::Null));
    }

    #[test]
    fn what_an_agent_could_not_carry_out_is_refused_at_the_door() {
        let wrong = read(&json!({ "operations": { "rebind": { "run": "x" } } })).unwrap_err();
        assert!(wrong.contains("expected one of `command`, `signal`, `restart`"), "{wrong}");
        assert!(read(&json!([])).is_err());
    }
}
