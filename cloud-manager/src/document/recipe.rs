//! A recipe in a request: read once here, so that an invalid recipe is refused before anything changes.

use recipe::Recipe;
use serde_json::{Map, Value, json};

/// The default version of the recipe format.
const VERSION: u32 = 1;

/// The recipe in a document, or an error. An absent recipe has no operations.
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
    fn values_announced_before_the_start_have_to_be_prepared() {
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
    fn a_recipe_that_an_agent_could_not_carry_out_is_refused() {
        let wrong = read(&json!({ "operations": { "rebind": { "run": "x" } } })).unwrap_err();
        assert!(wrong.contains("expected one of `command`, `signal`, `restart`"), "{wrong}");
        assert!(read(&json!([])).is_err());
    }
}
