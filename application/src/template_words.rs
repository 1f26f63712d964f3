//! What templates can call: functions, filters and tests, as the agent's templates have them.

/// Functions; `free_port` is one for values only.
pub(crate) const FUNCTIONS: [&str; 3] = ["range", "dict", "debug"];

/// What stands after `|`.
#[rustfmt::skip]
pub(crate) const FILTERS: [&str; 48] = [
    "abs", "attr", "batch", "bool", "capitalize", "chain", "count", "d", "default", "dictsort", "e", "escape", "first", "float",
    "format", "groupby", "indent", "int", "items", "join", "last", "length", "lines", "list", "lower", "map", "max", "min",
    "pprint", "quote", "reject", "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "slice", "sort",
    "split", "string", "sum", "title", "trim", "unique", "upper", "zip",
];

/// What stands after `is`.
#[rustfmt::skip]
pub(crate) const TESTS: [&str; 36] = [
    "boolean", "defined", "divisibleby", "endingwith", "eq", "equalto", "escaped", "even", "false", "filter", "float", "ge",
    "greaterthan", "gt", "in", "int", "integer", "iterable", "le", "lessthan", "lower", "lt", "mapping", "ne", "none", "number",
    "odd", "safe", "sameas", "sequence", "startingwith", "string", "test", "true", "undefined", "upper",
];

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::Environment;

    #[test]
    fn the_agents_templates_have_these_words() {
        let environment = Environment::new();
        let is = |name: &str, sort: &str| {
            let asked = environment.compile_expression(&format!("'{name}' is {sort}")).and_then(|it| it.eval(()));
            asked.unwrap().is_true()
        };
        for filter in FILTERS {
            assert!(is(filter, "filter") || filter == "quote", "{filter}");
        }
        for test in TESTS {
            assert!(is(test, "test"), "{test}");
        }
    }
}
