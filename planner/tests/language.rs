//! The specification language as its users meet it: what is accepted, what it means, and what is said when it is wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use planner::language::{RequirementText, Requirements, translate_constraint, translate_preference};
use planner::plan::{Status, plan};
use planner::problem::{ComponentType, NodeClass, Problem};
use planner::zephyrus::{ReadError, read};

fn types() -> Vec<ComponentType> {
    ["Web", "Db", "Cache"]
        .iter()
        .map(|name| ComponentType {
            name: (*name).to_owned(),
            resources: [("CPU".to_owned(), 1)].into(),
            strong: if *name == "Web" { [("sql".to_owned(), 1)].into() } else { Default::default() },
            ..ComponentType::default()
        })
        .collect()
}

fn classes() -> Vec<NodeClass> {
    let class = |name: &str, number, cpu, cost| NodeClass {
        name: name.to_owned(),
        number,
        resources: [("CPU".to_owned(), cpu)].into(),
        cost,
    };
    vec![class("small", 3, 1, 10), class("big_eu", 2, 4, 30), class("big_us", 2, 4, 31)]
}

/// All complaints about a specification, one line each.
fn complaints(specification: &str) -> Vec<String> {
    let text = RequirementText { specification, ..RequirementText::default() };
    let complaints = Requirements::read(&text, &types(), &classes()).err().unwrap_or_default();
    complaints.iter().map(|complaint| complaint.complaint.to_string()).collect()
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let cases: [(&str, &[&str]); 22] = [
        ("Web >=", &["line 1, column 7: expected a number, a count, a quantifier or `(`, found the end"]),
        ("Web", &["line 1, column 1: expected something true or false, found a number: compare it, as in `> 0`"]),
        ("Web = 1 Db", &["line 1, column 9: expected an operator, `;` or the end, found `Db`"]),
        ("(Web = 1", &["line 1, column 9: expected `)`, found the end"]),
        ("Wob = 1", &["line 1, column 1: there is no component \"Wob\"; expected one of Web, Db, Cache"]),
        (
            "tiny[0].Web = 1",
            &["line 1, column 1: there is no location \"tiny\"; expected one of small, big_eu, big_us"],
        ),
        ("small[3].Web = 1", &["line 1, column 1: there are 3 of small: expected a number below 3"]),
        ("small[0] = 1", &["line 1, column 10: expected `.` and a component, as in `large[0].Web`, found `=`"]),
        ("?x = 1", &["line 1, column 1: ?x is not bound by a quantifier around it"]),
        ("forall ?x in locations: ?x = 1", &["line 1, column 25: ?x stands for a location, expected a component"]),
        ("forall ?x in components: ?x.Web = 1", &["line 1, column 26: ?x stands for a component, expected a location"]),
        ("forall x in locations: true", &["line 1, column 8: expected a variable, as in `?x`, found `x`"]),
        ("forall ?x of locations: true", &["line 1, column 11: expected `in`, found `of`"]),
        (
            "forall ?x in nodes: true",
            &["line 1, column 14: expected `components`, `locations` or a pattern in quotes, found `nodes`"],
        ),
        (
            "forall ?x in 'big(': true",
            &["line 1, column 14: 'big(' is not a regular expression: found open group without closing ')'"],
        ),
        (
            "forall ?x in 'big': ?x.Web = 0",
            &["line 1, column 14: no location matches 'big' (a pattern must match the whole name)"],
        ),
        (
            "Web = 1 # Db",
            &[
                "line 1, column 9: `#` is not a word of this language",
                "line 1, column 11: expected an operator, `;` or the end, found `Db`",
            ],
        ),
        (
            "Web = 'x",
            &[
                "line 1, column 7: this quote has no end: expected `'`",
                "line 1, column 7: expected a number, a count, a quantifier or `(`, found `'x'`",
            ],
        ),
        (
            "cost = 3",
            &[
                "line 1, column 1: expected a number or a count (`cost` can only be a preference of its own), found `cost`",
            ],
        ),
        ("Web = 99999999999999999999", &["line 1, column 7: expected a number up to 1000000000000"]),
        // All of them at once, on the lines where they are.
        (
            "Wob = 1\n and Web >= 2\n and Dbx = 3; cost; Caches",
            &[
                "line 1, column 1: there is no component \"Wob\"; expected one of Web, Db, Cache",
                "line 3, column 6: there is no component \"Dbx\"; expected one of Web, Db, Cache",
                "line 3, column 21: there is no component \"Caches\"; expected one of Web, Db, Cache",
            ],
        ),
        (
            "= 1; cost cost; + 2",
            &[
                "line 1, column 1: expected a number, a count, a quantifier or `(`, found `=`",
                "line 1, column 6: expected a number or a count (`cost` can only be a preference of its own), found `cost`",
                "line 1, column 17: expected a number, a count, a quantifier or `(`, found `+`",
            ],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(complaints(text), expected, "{text}");
    }
}

#[test]
fn whatever_is_written_nothing_panics() {
    let words = [
        "forall",
        "exists",
        "sum",
        "?x",
        "?",
        "in",
        "components",
        "locations",
        "'b.*'",
        "'",
        ":",
        ";",
        "Web",
        ".",
        "small",
        "[",
        "]",
        "0",
        "17",
        "(",
        ")",
        "and",
        "or",
        "impl",
        "iff",
        "not",
        "abs",
        "-",
        "+",
        "*",
        "<=",
        "=",
        "!=",
        "cost",
        "é",
        "bind",
        ",",
        "stopped",
    ];
    let mut state = 7_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(words[usize::try_from(state >> 40).unwrap() % words.len()]);
            text.push(' ');
        }
        let text =
            RequirementText { specification: &text, binding_preferences: vec![&text], ..RequirementText::default() };
        let _ = Requirements::read(&text, &types(), &classes());
    }
    for deep in
        ["(".repeat(5_000), "not ".repeat(5_000), "abs ".repeat(5_000), format!("Web{} = 1", " + 1".repeat(5_000))]
    {
        assert!(!complaints(&deep).is_empty());
    }
    // A long conjunction is no reason to complain.
    let long = vec!["Web >= 0"; 5_000].join(" and ");
    assert_eq!(complaints(&long), [""; 0]);
}

/// Solves with these texts and returns the cost.
fn cost(constraints: &[&str], preferences: &[&str]) -> Option<i128> {
    let (mut types, classes) = (types(), classes());
    types[0].strong.clear();
    let text = RequirementText {
        constraints: constraints.to_vec(),
        preferences: preferences.to_vec(),
        ..RequirementText::default()
    };
    let requirements = Requirements::read(&text, &types, &classes).unwrap_or_else(|errors| panic!("{errors:?}"));
    let problem = Problem::new(types, classes, Default::default(), requirements).unwrap();
    let plan = plan(&problem, &mut |_| true).unwrap();
    match plan.status {
        Status::Optimal => Some(plan.cost),
        Status::Infeasible => None,
        Status::Feasible | Status::Unknown => panic!("{constraints:?} was not solved"),
    }
}

#[test]
fn constraints_mean_what_they_say() {
    let cases: [(&[&str], Option<i128>); 24] = [
        (&["Web = 2"], Some(20)),
        (&["Web = 4"], Some(30)),
        (&["Web = 5"], Some(40)),
        (&["Web = 2 and Db = 2"], Some(30)),
        (&["Web + 2 * Db >= 7"], Some(30)),
        (&["big_us[1].Web > 0"], Some(31)),
        (&["big_us.Web > 0 and big_us[1].Web > 0"], Some(62)),
        (&["Web = 3", "forall ?x in 'big.*': ?x.Web = 0"], Some(30)),
        (&["Web = 4", "forall ?x in 'big.*': ?x.Web = 0"], None),
        (&["exists ?x in 'big_u.': ?x.Web >= 2"], Some(31)),
        (&["(sum ?x in 'big_us': ?x.Web) = 5"], Some(62)),
        (&["forall ?x in components: ?x >= 1"], Some(30)),
        (&["(sum ?x in 'W.*|D.*': ?x) = 2 and Web != 1"], Some(20)),
        (&["Web * Db >= 4", "Web <= 2", "Db <= 2"], Some(30)),
        (&["Web * Web = 16"], Some(30)),
        (&["abs (Web - 6) <= 1", "Web <= 5"], Some(40)),
        (&["Web = 1 iff Db = 1", "Web + Db >= 1", "not Db = 2 and Db <= 1 and Web <= 2"], Some(20)),
        (&["Web = 3 impl Db = 4", "Web = 3"], Some(60)),
        (&["true"], Some(0)),
        (&["false"], None),
        // Comparing nodes with one another tells them apart.
        (&["forall ?x in 'small': forall ?y in 'small': ?x.Web = ?y.Web", "(sum ?x in 'small': ?x.Web) > 0"], Some(30)),
        (&["exists ?x in locations: ?x.Web = Web - 1", "Web = 5"], Some(40)),
        // Truth counts as one.
        (&["(sum ?x in locations: (?x.Web > 0)) = 3"], Some(30)),
        (&["(Web > 0) + (Db > 0) + (Cache > 0) = 2"], Some(20)),
    ];
    for (constraints, expected) in cases {
        assert_eq!(cost(constraints, &["cost"]), expected, "{constraints:?}");
    }
}

#[test]
fn shorthands_mean_what_they_say() {
    let cases: [(&[&str], Option<i128>); 14] = [
        (&["Web = 4", "apart Web"], Some(60)),
        (&["Web = 8", "apart Web"], None),
        (&["Web = 2", "Db = 2", "apart Web, Db"], Some(50)),
        (&["Web = 2", "Db = 1", "together Web, Db"], Some(30)),
        (&["Web = 2", "Db = 1", "alone Db"], Some(30)),
        (&["Web = 4", "Db = 1", "alone Db"], Some(40)),
        (&["Web = 4"], Some(30)),
        (&["Web = 4", "spread Web"], Some(40)),
        (&["Web = 1", "spread Web"], Some(10)),
        (&["Web = 4", "spread Web over 3"], Some(50)),
        (&["Web = 4", "spread Web over 3 vms"], Some(50)),
        (&["Web = 4", "at most 2 Web per vm"], Some(50)),
        (&["Web = 2 and Db = 2", "at most 2 per vm"], Some(50)),
        (&["Web = 2 and Db = 2", "at most 1 per vm"], Some(60)),
    ];
    for (constraints, expected) in cases {
        assert_eq!(cost(constraints, &["cost"]), expected, "{constraints:?}");
    }
    // As a preference: as many nodes as possible, then cheap.
    assert_eq!(cost(&["Web = 3"], &["spread Web", "cost"]), Some(30));
    assert_eq!(cost(&["Web = 4"], &["spread Web", "cost"]), Some(60));
}

#[test]
fn shorthands_translate_and_complain_like_the_rest() {
    let translated =
        |text: &str| translate_constraint(text).map(|read| read.map_err(|complaint| complaint.to_string()));
    assert_eq!(translated("Web >= 2"), None);
    assert_eq!(translated("apart >= 2"), None);
    assert_eq!(translated("apart Web"), Some(Ok("forall ?vm in locations: ?vm.Web <= 1".to_owned())));
    assert_eq!(translated("together Web"), Some(Err("expected `,` and a second component, found the end".to_owned())));
    assert_eq!(translated("at least 2 per vm"), Some(Err("expected `most`, found `least`".to_owned())));
    assert_eq!(translated("at most 2 Web per node"), Some(Err("expected `vm`, found `node`".to_owned())));
    assert_eq!(translated("alone Db Web"), Some(Err("expected the end, found `Web`".to_owned())));
    assert!(translate_preference("cost").is_none());
}

#[test]
fn files_that_are_wrong_are_refused_with_all_reasons() {
    let shape = |text: &str| match read(text) {
        Err(ReadError::Shape(misfits)) => misfits.iter().map(ToString::to_string).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(read("{"), Err(ReadError::Json(_))));
    assert_eq!(shape("[]"), ["the file: expected an object"]);
    assert_eq!(
        shape(
            r#"{ "components": { "A": { "requires": [], "weight": 1 } }, "locations": { "n": { "num": "3" } }, "x": 1 }"#
        ),
        [
            "the file: unknown key \"x\"; expected one of components, locations, specification, bind preferences, configuration, options",
            "component type \"A\": unknown key \"weight\"; expected one of resources, requires, weak, provides, conflicts",
            "component type \"A\": requires: expected an object from names to whole numbers",
            "location \"n\": num: expected a whole number, found \"3\"",
        ]
    );
    assert_eq!(
        shape(r#"{ "components": { "and": {}, "B c": {} }, "locations": { "n": { "num": -1, "cost": -5 } } }"#),
        [
            "component type \"B c\": expected a name of letters, digits and underscores that starts with a letter",
            "component type \"and\": \"and\" is a word of the specification language, choose another name",
            "location \"n\": num is -1, expected a number from 0 to 1000000",
            "location \"n\": cost is -5, expected a number from 0 to 1000000000000",
        ]
    );
}
