//! Compares an answer with the description: types, required members, optional members.

use serde_json::Value;

/// The differences between an answer and the description of its route.
pub(crate) fn misfits(description: &Value, method: &str, path: &str, status: u16, answer: &Value) -> Vec<String> {
    let place = format!("{method} {path} → {status}");
    let response = &description["paths"][path][method]["responses"][status.to_string()];
    if response.is_null() {
        return vec![format!("{place}: not described")];
    }
    let schema = &response["content"]["application/json"]["schema"];
    let mut found = Vec::new();
    fits(description, schema, answer, &place, &mut found);
    found
}

/// Dangling references.
pub(crate) fn dangling(description: &Value) -> Vec<String> {
    let mut open = vec![description];
    let mut found = Vec::new();
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            Value::String(text) if text.starts_with("#/") && description.pointer(&text[1..]).is_none() => {
                found.push(text.clone());
            }
            _ => {}
        }
    }
    found
}

fn fits(description: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return match description.pointer(pointer) {
            Some(schema) => fits(description, schema, value, place, found),
            None => found.push(format!("{place}: {reference} is not described")),
        };
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let any = choices.iter().any(|choice| {
            let mut found = Vec::new();
            fits(description, choice, value, place, &mut found);
            found.is_empty()
        });
        if !any {
            found.push(format!("{place}: fits none of the choices"));
        }
    }
    let sorts: Vec<&str> = match &schema["type"] {
        Value::String(sort) => vec![sort],
        Value::Array(sorts) => sorts.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !sorts.is_empty() && !sorts.iter().any(|sort| is(sort, value)) {
        found.push(format!("{place}: {value} is not {}", sorts.join(" or ")));
    }
    if let (Some(words), false) = (schema["enum"].as_array(), value.is_null())
        && !words.contains(value)
    {
        found.push(format!("{place}: {value} is not one of {words:?}"));
    }
    for (place_inside, item) in value.as_array().into_iter().flatten().enumerate() {
        fits(description, &schema["items"], item, &format!("{place}[{place_inside}]"), found);
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if value.is_object() {
        found.extend(required.filter(|it| value.get(it).is_none()).map(|it| format!("{place}: {it} is missing")));
    }
    if let (Some(members), Some(known)) = (value.as_object(), schema["properties"].as_object()) {
        for (name, member) in members {
            match known.get(name) {
                Some(schema) => fits(description, schema, member, &format!("{place}.{name}"), found),
                None => found.push(format!("{place}: {name} is not described")),
            }
        }
    }
}

fn is(sort: &str, value: &Value) -> bool {
    match sort {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}
