//! The language of scenarios: all problems at once, no panic on any text, and what is written reads back.

use model_check::{
    Faults, Line, Scenario,
    scenario::{Answer, Changes, ComponentEnd, Expected, VmEnd},
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use protocol::{
    Change, ChangeId, Edit, Export, Import, Kind, Name, Need, Operation, Patience, Strategy as Phases, Wire,
    manager::Request,
};
use std::{collections::BTreeSet, sync::Arc};

#[test]
fn all_problems_come_at_once_with_their_place_and_a_way_out() {
    let text = "\
faults: 1 deth
vm db : sql exports mysql, capacity 3
vm web : app imports mysql storng from slq
  cache exports objects valves host
  other imports mysql from sqll objects
chnage
  remove nobody
change down-and-up
  bind app to sql
  bind app.mysql sql
  bind web.mysql to cache
  fly away
remove app
vm late
----
change
app startd
nobody started
vm wob gone
app holds
";
    let error = Scenario::parse("shop.txt", text).unwrap_err().to_string();
    let expected = "\
shop.txt:1:11: \"deth\" is no fault (did you mean death?)
shop.txt:2:28: \"capacity\" does not describe a component (known here: exports, imports, prepares, rebinds, renews, purges, retry)
shop.txt:3:28: \"storng\" does not describe an import (did you mean strong?)
shop.txt:4:25: \"valves\" does not describe a component (known here: exports, imports, prepares, rebinds, renews, purges, retry)
shop.txt:5:28: there is no component \"sqll\" (did you mean sql?)
shop.txt:5:33: there is no component \"objects\" (known here: other, app, cache, sql)
shop.txt:6:1: \"chnage\" opens neither a VM nor a request (did you mean change?)
shop.txt:7:10: there is no component \"nobody\" (known here: other, app, cache, sql)
shop.txt:8:8: \"down-and-up\" says nothing about how this is to be done (did you mean down-then-up?)
shop.txt:9:8: expected COMPONENT.IMPORT, but found \"app\" (for example: bind app.mysql to sql)
shop.txt:10:18: expected \"to\", but found \"sql\" (for example: bind app.mysql to sql)
shop.txt:11:8: there is no component \"web\" (known here: other, app, cache, sql)
shop.txt:12:3: \"fly\" is no edit (known here: add, remove, restart, replace, bind, unbind, need, refused)
shop.txt:13:1: \"remove\" stands at the left edge (indent it below the request it belongs to)
shop.txt:14:1: the setup is over, so this VM comes too late (say \"add vm\" within a change)
shop.txt:16:1: \"change\" is a request, but this is the expected end (divide them by a line of dashes: what follows the last is the end)
shop.txt:17:5: \"startd\" is no end (did you mean started?)
shop.txt:18:1: there is no component \"nobody\" (known here: other, app, cache, sql)
shop.txt:19:4: there is no VM \"wob\" (did you mean web?)
shop.txt:20:10: expected the names of providers, but the line ends (for example: app holds sql)";
    assert_eq!(error, expected);
}

#[test]
fn a_replacement_takes_over_place_kind_and_bindings() {
    let sugar = "\
vm one : a imports b strong from b
vm two : b exports b, imports c optional from c
  c exports c
change
  replace b with d
----
";
    let plain = "\
vm one : a imports b strong from b
vm two : b exports b, imports c optional from c
  c exports c
change
  remove b
  add d on two exports b, imports c optional
  bind a.b to d
  bind d.c to c
----
";
    assert_eq!(Scenario::parse("x", sugar).unwrap(), Scenario::parse("x", plain).unwrap());
}

#[test]
fn what_must_be_refused_may_speak_of_what_does_not_exist() {
    let refused = "vm one\nchange\n  remove nobody\n  refused: does not exist\n----\n";
    assert!(Scenario::parse("x", refused).is_ok());
    let accepted = "vm one\nchange\n  remove nobody\n----\n";
    assert!(Scenario::parse("x", accepted).is_err());
}

#[test]
fn a_word_of_the_language_is_a_name_in_quotes() {
    let text = "vm \"vm\" : \"change\" exports \"values\", imports \"values\" as \"strong\" optional\n----\n\"change\" started\n";
    let scenario = Scenario::parse("x", text).unwrap();
    assert_eq!(scenario.to_string(), text);
    let bare = Scenario::parse("x", "vm change\n").unwrap_err().to_string();
    assert!(bare.contains("is a word of the language"), "{bare}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        check_spots(&text);
    }

    #[test]
    fn no_heap_of_words_makes_the_parser_panic(words in vec(select(WORDS.to_vec()), 0..60)) {
        check_spots(&words.join(" "));
        check_spots(&words.concat());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back_as_the_same(scenario in scenarios()) {
        let text = scenario.to_string();
        let again = Scenario::parse("made-up.txt", &text);
        prop_assert!(again.is_ok(), "{}\n{text}", again.unwrap_err());
        prop_assert_eq!(again.unwrap(), scenario, "{}", text);
    }
}

/// Every problem is somewhere in the text, or just behind the end of a line.
fn check_spots(text: &str) {
    if let Err(error) = Scenario::parse("any.txt", text) {
        assert!(!error.problems.is_empty());
        for problem in error.problems {
            let line = text.lines().nth(problem.spot.line - 1).expect("the line exists");
            assert!(problem.spot.column <= line.chars().count() + 1, "{problem} in {text:?}");
        }
    }
}

const WORDS: [&str; 62] = [
    "vm",
    "vm ",
    "\nvm",
    "\n",
    "\n  ",
    "\n----\n",
    "change",
    "\nchange",
    "down-then-up",
    "incomplete",
    "at",
    "any",
    "time",
    "after",
    "that",
    "add",
    "remove",
    "bind",
    "unbind",
    "a.b",
    ".",
    "to",
    "from",
    "replace",
    "with",
    "restart",
    "need",
    "1",
    "99999999999",
    "0",
    "retry",
    "skip",
    "lose",
    "refused",
    ":",
    "refused:",
    "maybe",
    "faults:",
    "death",
    ",",
    "#",
    "\"",
    "\"a",
    "exports",
    "imports",
    "values",
    "capacity",
    "strong",
    "weak",
    "optional",
    "value",
    "as",
    "on",
    "prepares",
    "start",
    "never",
    "stopped",
    "holds",
    "nothing",
    "or",
    "é",
    "a",
];

/// Names that are used for everything; some are words of the language.
fn names() -> impl Strategy<Value = Name> {
    select(vec!["a", "b", "c.d", "web", "vm", "values", "7", "x'", "app[2]", "strong", "gone"]).prop_map(called)
}

/// Imports and exports have names without dots.
fn ports() -> impl Strategy<Value = Name> {
    select(vec!["s", "t", "from", "9"]).prop_map(called)
}

fn called(text: &str) -> Name {
    Name::new(text).expect("a made-up name is a name")
}

fn kinds() -> impl Strategy<Value = Arc<Kind>> {
    let needs =
        prop_oneof![(1..4u32).prop_map(Need::Strong), (0..4u32).prop_map(Need::Weak), (1..4u32).prop_map(Need::Value)];
    let imports = vec((ports(), ports(), needs), 0..3);
    let exports = vec((ports(), vec(ports(), 0..3), option::of(0..9u32)), 0..3);
    let operations = select(vec![Operation::Prepare, Operation::Start, Operation::Run, Operation::Stop]);
    let patience = vec((operations, 0..4u32, 0..2_000u64, 0..4u32), 0..3);
    (imports, exports, any::<[bool; 4]>(), patience).prop_map(|(imports, exports, traits, patience)| {
        let import = |(name, export, need)| (name, Import { export, need });
        let export = |(name, values, capacity)| (name, Export { values, capacity });
        let patient =
            |(operation, retries, pause_ms_first, factor)| (operation, Patience { retries, pause_ms_first, factor });
        Arc::new(Kind {
            imports: imports.into_iter().map(import).collect(),
            exports: exports.into_iter().map(export).collect(),
            prepares: traits[0],
            rebinds: traits[1],
            purges: traits[2],
            renews: traits[3],
            patience: patience.into_iter().map(patient).collect(),
            ..Kind::default()
        })
    })
}

fn wires() -> impl Strategy<Value = Wire> {
    let parts = (names(), ports(), names(), ports());
    parts.prop_map(|(client, import, provider, export)| Wire { client, import, provider, export })
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        names().prop_map(|vm| Edit::AddVm { vm }),
        names().prop_map(|vm| Edit::RemoveVm { vm }),
        (names(), names(), kinds()).prop_map(|(component, vm, kind)| Edit::AddComponent { component, vm, kind }),
        names().prop_map(|component| Edit::RemoveComponent { component }),
        names().prop_map(|component| Edit::RestartComponent { component }),
        (names(), ports(), 0..9u32).prop_map(|(component, import, number)| Edit::SetNeed { component, import, number }),
        wires().prop_map(Edit::AddBinding),
        wires().prop_map(Edit::RemoveBinding),
    ]
}

/// Requests at random, which may therefore be refused.
fn lines() -> impl Strategy<Value = (Line, Answer)> {
    let strategy = select(Phases::NAMES.map(|(_, strategy)| strategy).to_vec());
    let change = (strategy, any::<bool>(), vec(edits(), 0..6))
        .prop_map(|(strategy, incomplete, edits)| Request::Make(Change { strategy, incomplete, edits }));
    let request = prop_oneof![
        3 => change,
        1 => names().prop_map(Request::Retry),
        1 => names().prop_map(Request::Skip),
        1 => names().prop_map(Request::DeclareLost),
        1 => (0..9u64).prop_map(|change| Request::Cancel(ChangeId(change))),
    ];
    let texts = vec(select(vec!["no such thing", "a: b, \"c\"", "vm#3"]).prop_map(String::from), 1..3);
    let answer = prop_oneof![texts.prop_map(Answer::Refused), Just(Answer::Either)];
    (request, any::<bool>(), answer).prop_map(|(request, patient, answer)| (Line { request, patient }, answer))
}

/// A setup in which everything fits: VMs with components that are all bound to a first one.
fn setups() -> impl Strategy<Value = Line> {
    let names: Vec<Name> = ["a", "b", "c.d", "web", "vm", "values", "7", "x'"].map(called).to_vec();
    vec((kinds(), any::<bool>()), 0..8).prop_map(move |components| {
        let exports = ["s", "t", "from", "9"].map(|port| (called(port), Export::default())).into();
        let first = Edit::AddComponent {
            component: called("strong"),
            vm: called("gone"),
            kind: Arc::new(Kind { exports, ..Kind::default() }),
        };
        let mut edits = vec![Edit::AddVm { vm: called("gone") }, first];
        let mut wires = Vec::new();
        let mut vm = called("gone");
        for ((kind, moves), name) in components.into_iter().zip(&names) {
            if moves {
                vm = name.clone();
                edits.push(Edit::AddVm { vm: vm.clone() });
            }
            let wire = |(import, it): (&Name, &Import)| {
                let (client, provider) = (name.clone(), called("strong"));
                Edit::AddBinding(Wire { client, import: import.clone(), provider, export: it.export.clone() })
            };
            wires.extend(kind.imports.iter().map(wire));
            edits.push(Edit::AddComponent { component: name.clone(), vm: vm.clone(), kind });
        }
        edits.extend(wires);
        Line { request: Request::Make(Change { edits, ..Change::default() }), patient: true }
    })
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let faults = (0..3u32, 0..3u32, 0..3u32, 0..3u32, 0..3u32);
    let faults = faults.prop_map(|(failures, deaths, crashes, breaks, losses)| Faults {
        failures,
        deaths,
        crashes,
        breaks,
        losses,
    });
    let ends =
        vec(select(vec![ComponentEnd::Started, ComponentEnd::Stopped, ComponentEnd::Failed, ComponentEnd::Gone]), 1..4);
    let vm_ends = vec(select(vec![VmEnd::Started, VmEnd::Stopped, VmEnd::Empty, VmEnd::Lost, VmEnd::Gone]), 1..4);
    let changes = select(vec![Changes::Done, Changes::Unfinished, Changes::Either]);
    let story = select(vec!["", "One line.", "Two lines,\n\nand a gap."]);
    (setups(), vec(lines(), 0..4), faults, (ends, vm_ends, changes, any::<bool>()), story).prop_map(
        |(setup, lines, faults, (ends, vm_ends, changes, holds), story)| {
            let mut answers = vec![Answer::Accepted];
            answers.extend(lines.iter().map(|(_, answer)| answer.clone()));
            let lines: Vec<Line> = [setup].into_iter().chain(lines.into_iter().map(|(line, _)| line)).collect();
            let name = called("strong");
            let one = BTreeSet::from([name.clone()]);
            let expected = Expected {
                answers,
                components: [(name.clone(), ends.into_iter().collect())].into(),
                vms: [(called("gone"), vm_ends.into_iter().collect())].into(),
                holds: [(name, if holds { one.clone() } else { BTreeSet::new() })].into(),
                never_stopped: if holds { BTreeSet::new() } else { one.clone() },
                sometimes_stopped: one,
                changes,
            };
            Scenario { name: "made-up".into(), story: story.into(), lines: lines.into(), faults, expected }
        },
    )
}
