//! A number that tells definitions of components apart.
//!
//! Whoever wants to know whether thousands of components are what they were asked to be compares numbers, and reads only
//! the few definitions whose numbers are others. Another version of this program may come to other numbers: then more is
//! read, and what is read decides.

use super::change::usual_patience;
use protocol::{Kind, Operation};
use recipe::Recipe;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of a definition, but for how many providers each import needs, which may change while it runs. The texts of
/// secrets leave no trace in it: otherwise they could be guessed and compared.
pub fn digest(kind: &Kind) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, import) in &kind.imports {
        (name, &import.export, import.need.with_number(0)).hash(&mut hasher);
    }
    kind.exports.hash(&mut hasher);
    for operation in Operation::ALL {
        let patience = kind.patience.get(&operation).copied().unwrap_or_else(|| usual_patience(operation));
        patience.hash(&mut hasher);
    }
    if let Ok(mut recipe) = Recipe::decode(&kind.recipe) {
        recipe.secrets.values_mut().for_each(String::clear);
        recipe.encode().hash(&mut hasher);
    }
    hasher.finish()
}

/// The number of a definition whose imports, in order of names, need so many providers.
pub fn with_needs(digest: u64, numbers: impl Iterator<Item = u32>) -> u64 {
    let mut hasher = DefaultHasher::new();
    digest.hash(&mut hasher);
    numbers.for_each(|number| number.hash(&mut hasher));
    // Programs that read numbers as floating point keep this many bits.
    hasher.finish() >> 11
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(recipe: &Value) -> u64 {
        let recipe = super::super::recipe::read(recipe).unwrap();
        digest(&Kind { recipe: recipe.encode().into(), ..Kind::default() })
    }

    #[test]
    fn whatever_matters_counts_and_secrets_do_not() {
        let plain = of(&json!({ "parameters": { "level": 1 } }));
        assert_eq!(plain, of(&json!({ "version": 1, "parameters": { "level": 1 } })));
        assert_ne!(plain, of(&json!({ "parameters": { "level": 2 } })));
        assert_eq!(of(&json!({ "secrets": { "key": "a" } })), of(&json!({ "secrets": { "key": "b" } })));
        assert_ne!(of(&json!({ "secrets": { "key": "a" } })), of(&json!({ "secrets": { "word": "a" } })));
        // What is not said is as usual.
        let usual = [(Operation::Start, usual_patience(Operation::Start))].into();
        assert_eq!(digest(&Kind::default()), digest(&Kind { patience: usual, ..Kind::default() }));
        assert_ne!(with_needs(plain, [1].into_iter()), with_needs(plain, [2].into_iter()));
    }
}
