//! Secrets in recipes: their texts are never shown, and a copied recipe keeps them without showing them.
//!
//! In a document, a reference to its owner replaces a secret's text: `••• of shop/app[0]`. When such a document is sent
//! back, the reference is replaced by the text that this component has.

use super::{EditDocument, NewChange, NewComponent};
use protocol::{Name, manager::Book};
use serde_json::Value;

/// The placeholder of a secret, before the name of the component that has it.
const WHOSE: &str = "••• of ";

impl NewComponent {
    /// The same component, with references in the place of secrets.
    pub fn without_secrets(mut self) -> Self {
        let secrets = self.recipe.get_mut("secrets").and_then(Value::as_object_mut);
        for text in secrets.into_iter().flat_map(|it| it.values_mut()) {
            *text = format!("{WHOSE}{}", self.name).into();
        }
        self
    }
}

impl NewChange {
    /// Whether it contains references to secrets.
    pub fn has_secret_references(&self) -> bool {
        let recipes = self.edits.iter().filter_map(|edit| match edit {
            EditDocument::AddComponent(NewComponent { recipe, .. }) => Some(recipe),
            _ => None,
        });
        let texts = recipes.filter_map(|it| it.get("secrets")?.as_object()).flat_map(|it| it.values());
        texts.filter_map(Value::as_str).any(|text| text.starts_with(WHOSE))
    }

    /// Replaces references by the secrets' texts; returns those that cannot be replaced.
    pub fn resolve_secrets(&mut self, book: &Book) -> Vec<String> {
        let mut problems = Vec::new();
        for edit in &mut self.edits {
            let EditDocument::AddComponent(component) = edit else { continue };
            let Some(Value::Object(secrets)) = component.recipe.get_mut("secrets") else { continue };
            for (name, text) in secrets {
                let Some(owner) = text.as_str().and_then(|text| text.strip_prefix(WHOSE)) else { continue };
                match known(book, owner, name) {
                    Some(found) => *text = found.into(),
                    None => problems.push(format!("{}: {owner} has no secret {name:?}", component.name)),
                }
            }
        }
        problems
    }
}

fn known(book: &Book, owner: &str, secret: &str) -> Option<String> {
    let entry = book.component(&Name::new(owner).ok()?)?;
    let recipe: Value = serde_json::from_slice(&entry.kind.recipe).ok()?;
    Some(recipe.get("secrets")?.get(secret)?.as_str()?.to_owned())
}
