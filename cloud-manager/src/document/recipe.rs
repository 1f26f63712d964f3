//! What the manager must know of a recipe: which operations it has. All else is the agent's business.

use serde_json::Value;

/// What of a recipe matters to the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// There is something to install or announce before others can be bound to the component.
    pub prepares: bool,
    /// It can be told of new bindings while it runs.
    pub rebinds: bool,
}

/// The bytes of a recipe, and which operations it has.
pub fn read(recipe: &Value) -> Result<(Vec<u8>, Operations), String> {
    let operations = match recipe {
        Value::Null => return Ok((Vec::new(), Operations::default())),
        Value::Object(operations) => operations,
        other => return Err(format!("a recipe is an object, not {other}")),
    };
    let has = |name: &str| operations.get(name).is_some_and(|it| !is_empty(it));
    let bytes = serde_json::to_vec(recipe).map_err(|error| error.to_string())?;
    let prepares = has("install") || has("announce") || has("values");
    Ok((bytes, Operations { prepares, rebinds: has("rebind") }))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}
