//! Placements that are left to the planner: at least cost, with what the file says about places, and with little moved.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod draft;
mod shop;

use application::{Application, Difference, Existing, Expansion, How, Inputs, LoadError};
use draft::{Contents, Dice, Draft, GROUPS, VMS};
use protocol::Strategy;
use shop::{expand, expand_after, problems, read};
use std::collections::BTreeMap;

/// Web servers and a database, on small and large VMs, of which there are as many as are used.
const OPEN: &str = r"holdfast: 1
application: shop
types:
  Database: { exports: { sql: { capacity: 2 } }, resources: { cpu: 3 } }
  Web: { imports: { db: sql }, resources: { cpu: 1 } }
vms:
  small: { most: 5, cost: 10, resources: { cpu: 2 } }
  large: { most: 5, cost: 15, resources: { cpu: 4 } }
components:
  database: { type: Database }
  web-server: { type: Web, count: 3, bind: { db: { from: database, how: all } } }
";

/// `[app[0] on web[1], …]`.
fn places(expansion: &Expansion) -> Vec<String> {
    expansion.components.iter().map(|(key, it)| format!("{key} on {}", it.vm)).collect()
}

fn cost(expansion: &Expansion) -> i64 {
    let choice = expansion.choice.as_ref().unwrap();
    assert!(choice.proven);
    choice.cost
}

fn mistakes(text: &str) -> String {
    problems(text).join("\n")
}

#[test]
fn what_the_planner_is_told_is_looked_at_in_any_case_and_nothing_is_counted_before_it_has_answered() {
    let text = OPEN.replace("{ type: Database }", "{ type: Database, count: any }").replace(", how: all", ", how: one");
    let text = format!("{text}constraints: [aprt web-server]\nprefer: [cst]\n");
    let slips = ["12:15 there is no `aprt` (did you mean `apart`?)", "13:10 there is no `cst` (did you mean `cost`?)"];
    assert_eq!(problems(&text), slips);
    let told = problems(&text.replace("cost: 15", "csot: 15"));
    assert_eq!(told[1..], slips);
    // What nobody offers is offered nowhere, wherever anybody is.
    let told =
        problems(&OPEN.replace("db: sql", "db: sqll").replace(", bind: { db: { from: database, how: all } }", ""));
    assert_eq!(
        told,
        ["11:3 import `db` of `web-server` needs export `sqll`, and no component has it (did you mean `sql`?)"]
    );
}

#[test]
fn two_components_of_one_machine_do_not_get_the_same_fixed_port() {
    let text = "holdfast: 1
application: shop
types:
  Web: { operations: { start: { process: serve }, check: { tcp: 8080 } } }
vms: { web: { count: 2, cloud: local } }
components:
  front: { type: Web, on: 'web[0]' }
  back: { type: Web, on: 'web[1]' }
";
    let why = "both listen on port 8080, and VMs of cloud `local` are all on the manager's machine";
    let told = mistakes(text);
    assert!(told.starts_with(&format!("7:3 `front[0]` and `back[0]` {why}")), "{told}");
    // VMs that are machines of their own have ports of their own.
    expand(&text.replace(", cloud: local", ""));
    let one = expand(&text.replace("  back: { type: Web, on: 'web[1]' }\n", ""));
    // Another application is on the same machine.
    let other = read(
        &text.replace(": shop", ": other").replace("  front: { type: Web, on: 'web[0]' }\n", ""),
        &Inputs::default(),
    );
    let others = [one];
    let told = other.unwrap().expand(&Existing { before: None, others: &others }).unwrap_err().to_string();
    assert!(told.contains(&format!("`back[0]` and `shop/front[0]` {why}")), "{told}");
    // One that asks elsewhere says nothing about its own port.
    expand(&text.replace("tcp: 8080", "tcp: 8080, host: 10.0.0.1"));
}

#[test]
fn room_that_is_not_counted_or_far_too_large_is_room_enough() {
    let text = "holdfast: 1
application: shop
types:
  Database: { exports: { sql: { capacity: 20 } }, resources: { cpu: 1 } }
  App: { imports: { db: sql } }
vms:
  data: { resources: { cpu: 4 } }
  web: { count: 2 }
components:
  database: { type: Database }
  app: { type: App, on: web, count: 3 }
";
    for large in ["web: { count: 2", "web: { count: 2, resources: { cpu: 100000 }"] {
        let text = text.replace("web: { count: 2", large);
        assert!(expand(&text).choice.unwrap().proven);
        // What is called proven is the best: no more databases than are needed.
        let many =
            text.replace("{ type: Database }", "{ type: Database, count: any }").replace("count: 3", "count: 300");
        let expansion = expand(&many);
        assert!(!expansion.choice.as_ref().unwrap().proven || expansion.components.len() == 315);
    }
}

#[test]
fn what_is_left_open_goes_where_it_costs_least_and_only_what_is_used_is_there() {
    let text = OPEN.replace("capacity: 2", "capacity: 9");
    let expansion = expand(&text);
    assert_eq!(
        places(&expansion),
        [
            "database[0] on large[0]",
            "web-server[0] on large[0]",
            "web-server[1] on small[0]",
            "web-server[2] on small[0]"
        ]
    );
    assert_eq!((cost(&expansion), expansion.vms.len(), expansion.bindings()), (25, 2, 3));
    // The same again is no difference.
    assert!(Difference::between(&expansion, &expand_after(&text, &expansion)).is_empty());
}

#[test]
fn one_more_moves_nobody_if_that_costs_no_more() {
    let text = OPEN.replace("capacity: 2", "capacity: 9").replace("cost: 15", "cost: 25");
    let before = expand(&text);
    let after = expand_after(&text.replace("count: 3", "count: 4"), &before);
    let difference = Difference::between(&before, &after);
    let changed: Vec<_> = difference.components.iter().map(|(key, how)| (key.to_string(), how.clone())).collect();
    assert_eq!(changed, [("web-server[3]".to_owned(), How::Added)]);
    assert_eq!((cost(&after), difference.unchanged.components), (45, 4));
    // Back again, the highest goes and its VM with it.
    assert_eq!(places(&expand_after(&text, &after)), places(&before));
}

#[test]
fn the_number_follows_from_what_is_needed() {
    // A database takes two clients.
    let text = OPEN.replace("database: { type: Database }", "database: { type: Database, count: any }");
    let text = text.replace(", bind: { db: { from: database, how: all } }", "");
    let expansion = expand(&text);
    assert_eq!(expansion.components.keys().filter(|it| it.group.as_str() == "database").count(), 2);
    assert_eq!(cost(&expansion), 40);
    let more = expand_after(&text.replace("count: 3", "count: 5"), &expansion);
    assert_eq!(more.components.keys().filter(|it| it.group.as_str() == "database").count(), 3);
    let fewer = expand_after(&text.replace("count: 3", "count: 1"), &more);
    let keys: Vec<String> = fewer.components.keys().map(ToString::to_string).collect();
    assert_eq!(keys, ["database[0]", "web-server[0]"]);
}

/// No preference counts components here, and there is room for many more of them than are needed.
#[test]
fn a_count_that_is_left_open_is_as_small_as_the_goals_allow_whatever_they_are() {
    let text = OPEN.replace("database: { type: Database }", "database: { type: Database, count: any }");
    let text = text.replace(", bind: { db: { from: database, how: all } }", "").replace("cpu: 3", "cpu: 1");
    let free = text.replace("cost: 10", "cost: 0").replace("cost: 15", "cost: 0");
    for preferences in ["", "prefer: [cost]\n", "prefer: [stopped]\n", "prefer: [stopped, cost]\n"] {
        for (base, what) in [(&text, "paid"), (&free, "free")] {
            let expansion = expand(&format!("{base}{preferences}"));
            let number = expansion.components.keys().filter(|it| it.group.as_str() == "database").count();
            assert_eq!(number, 2, "{what} {preferences}");
        }
    }
    // A goal that wants more of them comes first.
    let many = expand(&format!("{free}prefer: [\"(0 - database)\"]\nconstraints: [database <= 5]\n"));
    assert_eq!(many.components.keys().filter(|it| it.group.as_str() == "database").count(), 5);
}

#[test]
fn places_conflicts_ports_and_constraints_are_kept() {
    let base = OPEN.replace("capacity: 2", "capacity: 9");
    let spread = format!("{base}constraints: [apart web-server, web-server <= 3]\n");
    let expansion = expand(&spread);
    assert_eq!((expansion.vms.len(), cost(&expansion)), (3, 35));
    let alone = expand(&format!("{base}constraints: alone database\n"));
    assert_eq!((alone.vms.len(), cost(&alone)), (2, 30));
    let there = expand(&base.replace("type: Web,", "type: Web, on: small,"));
    assert_eq!(cost(&there), 35);
    let one = expand(&base.replace("type: Web,", "type: Web, on: [\"large[2]\"],"));
    assert_eq!(cost(&one), 30);
    assert!(places(&one).contains(&"web-server[1] on large[2]".to_owned()), "{:?}", places(&one));
    let conflict = expand(&base.replace("Web: {", "Web: { conflicts: Web,"));
    assert_eq!(cost(&conflict), 35);
    let ports = base.replace("Web: {", "Web: { operations: { check: { tcp: 80 } },");
    assert_eq!(cost(&expand(&ports)), 35);
}

#[test]
fn what_is_preferred_decides_and_little_is_disturbed_in_the_end() {
    let base = OPEN.replace("capacity: 2", "capacity: 9");
    let spread = expand(&format!("{base}prefer: [spread web-server, cost]\n"));
    assert_eq!(cost(&spread), 35);
    let objectives = &spread.choice.as_ref().unwrap().objectives;
    let texts: Vec<(&str, i64)> = objectives.iter().map(|it| (it.text.as_str(), it.value)).collect();
    assert_eq!(texts, [("spread web-server", -3), ("cost", 35), ("stopped", 0)]);
    // From there the cheapest moves something; who would rather not, pays.
    let cheap = expand_after(&base, &spread);
    assert_eq!(cost(&cheap), 25);
    let said = expand(&format!("{base}prefer: [stopped, cost]\n")).choice.unwrap().objectives;
    assert_eq!(said.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["stopped", "cost"]);
    let calm = expand_after(&format!("{base}prefer: [stopped, cost]\n"), &spread);
    assert!(Difference::between(&spread, &calm).is_empty());
    let existing = Existing { before: Some(&spread), others: &[] };
    let rows = read(&base, &Inputs::default()).unwrap().trade_offs(&existing, 9).unwrap();
    assert_eq!(rows.iter().map(|it| (it.cost, it.stopped)).collect::<Vec<_>>(), [(25, 1), (35, 0)]);
}

#[test]
fn clients_use_who_is_near_if_that_is_preferred() {
    let text = r"holdfast: 1
application: near
types:
  Cache: { exports: { objects: {} }, resources: { cpu: 1 } }
  Web: { imports: { cache: objects }, resources: { cpu: 1 } }
vms: { a: { count: 3, resources: { cpu: 2 } } }
components:
  cache: { type: Cache, count: 3 }
  web: { type: Web, count: 3, bind: { cache: { from: cache, how: one } } }
constraints: [apart cache, apart web]
prefer: [local]
";
    let expansion = expand(text);
    assert_eq!(expansion.components.len(), 6);
    for component in expansion.components.values() {
        for provider in component.bound.values().flatten() {
            assert_eq!(expansion.components[&provider.key].vm, component.vm);
        }
    }
    assert_eq!(expansion.bindings(), 3);
}

#[test]
fn where_room_is_scarce_what_goes_goes_first() {
    let text = r"holdfast: 1
application: tight
types:
  Old: { resources: { cpu: 2 } }
  New: { resources: { cpu: 2 } }
vms: { a: { resources: { cpu: 2 } }, b: { resources: { cpu: 1 } } }
components:
  old: { type: Old }
";
    let before = expand(text);
    let after = expand_after(&text.replace("old: { type: Old }", "new: { type: New }"), &before);
    let difference = Difference::between(&before, &after);
    assert_eq!(difference.usual_strategy(&after), Strategy::DownThenUp);
    let roomy = text
        .replace("old: { type: Old }", "new: { type: New }")
        .replace("a: { resources: { cpu: 2 } }", "a: { resources: { cpu: 4 } }");
    let roomy = expand_after(&roomy, &before);
    assert_eq!(Difference::between(&before, &roomy).usual_strategy(&roomy), Strategy::UpThenDown);
}

#[test]
fn what_makes_no_sense_is_told_with_its_place() {
    let wrong = format!("{OPEN}constraints:\n  - apart web-servers\n  - web_server >\nprefer: [cheap]\n");
    let told = mistakes(&wrong);
    for sight in [
        "13:5 there is no `web-servers` (did you mean `web-server`?)",
        "14:17 expected",
        "15:10 there is no component \"cheap\"",
    ] {
        assert!(told.contains(sight), "{sight} is not in\n{told}");
    }
    let impossible = OPEN.replace("capacity: 2", "capacity: 9").replace("most: 5, cost: 15", "most: 0, cost: 15");
    assert_eq!(
        mistakes(&impossible),
        "10:3 there is no placement; a smallest set of demands that cannot hold together: there is 1 database; there are 0 \
         large with cpu 4 (no node has room for one database, which uses cpu 3)"
    );
    let crowded = OPEN.replace("capacity: 2", "capacity: 99").replace("count: 3", "count: 40");
    assert_eq!(
        mistakes(&crowded),
        "10:3 there is no placement; a smallest set of demands that cannot hold together: there are 40 web-server; there \
         are 5 large with cpu 4; there are 5 small with cpu 2 (40 web-server need 40 cpu, all nodes together have 30)"
    );
    let both = mistakes(&OPEN.replace("most: 5, cost: 10", "most: 5, count: 2, cost: 10"));
    assert!(both.contains("either `count` (exactly this many) or `most`"), "{both}");
    let nowhere = mistakes("holdfast: 1\napplication: a\ntypes: { T: {} }\ncomponents: { c: { type: T } }\n");
    assert!(nowhere.contains("`c` has no VM to run on"), "{nowhere}");
}

fn mail() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/applications/mail-pipeline.yaml"))
        .unwrap()
}

fn mail_with(counts: &BTreeMap<String, u32>) -> Application {
    read(&mail(), &Inputs { counts: counts.clone(), ..Inputs::default() }).unwrap()
}

/// What the authors of the pipeline report for 10K, +20K, +50K and +80K simultaneous requests.
const TABLE: [(&str, [u32; 4]); 11] = [
    ("message-parser", [1, 1, 2, 2]),
    ("header-analyser", [1, 1, 2, 2]),
    ("link-analyser", [1, 1, 2, 2]),
    ("text-analyser", [1, 2, 4, 6]),
    ("sentiment-analyser", [1, 4, 8, 14]),
    ("virus-scanner", [1, 4, 8, 14]),
    ("attachments-manager", [1, 2, 4, 6]),
    ("image-analyser", [1, 2, 4, 6]),
    ("nsfw-detector", [1, 4, 8, 14]),
    ("image-recognizer", [1, 4, 8, 14]),
    ("message-analyser", [1, 2, 4, 6]),
];

#[test]
fn the_mail_pipeline_grows_as_reported_from_what_runs() {
    let mut before: Option<Expansion> = None;
    for (step, load) in [10_000, 20_000, 50_000, 80_000].into_iter().enumerate() {
        // Four services get more than each e-mail brings; what they get is measured, and given.
        let own = [
            ("sentiment-analyser", 15_000),
            ("virus-scanner", 13_000),
            ("nsfw-detector", 13_000),
            ("image-recognizer", 13_000),
        ];
        let table: BTreeMap<&str, u32> = TABLE.iter().map(|(name, counts)| (*name, counts[step])).collect();
        let own = own.map(|(name, each)| (name.to_owned(), u64::from(table[name]) * each)).into();
        let counts = mail_with(&BTreeMap::new()).counts_for(load, &own).unwrap();
        assert_eq!(counts.iter().map(|(name, count)| (name.as_str(), *count)).collect::<BTreeMap<_, _>>(), table);
        let existing = Existing { before: before.as_ref(), others: &[] };
        let after = mail_with(&counts).expand(&existing).unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(after.components.len(), [24, 40, 67, 99][step]);
        // As the planner finds it for the published model.
        assert_eq!(cost(&after), [4282, 9757, 17610, 29034][step], "step {step}");
        if let Some(before) = &before {
            let moved = Difference::between(before, &after);
            let moved = moved.components.values().filter(|how| matches!(how, How::Replaced(_) | How::Removed)).count();
            assert_eq!(moved, [0, 2, 0, 0][step]);
        }
        before = Some(after);
    }
}

#[test]
fn a_load_needs_somebody_who_says_what_it_takes() {
    let shop = read(OPEN, &Inputs::default()).unwrap();
    assert_eq!(shop.counts_for(1, &BTreeMap::new()), Err(LoadError::Unknown("shop".into())));
    let stranger = BTreeMap::from([("virus-scaner".to_owned(), 1)]);
    let told = mail_with(&BTreeMap::new()).counts_for(1, &stranger).unwrap_err().to_string();
    assert!(told.contains("did you mean `virus-scanner`?"), "{told}");
    let nothing = mistakes(&OPEN.replace("type: Database }", "type: Database, load: 0 }"));
    assert!(nothing.contains("`each` must be at least 1"), "{nothing}");
}

#[test]
fn random_files_are_placed_as_well_as_by_trying_everything() {
    let (mut placed, mut impossible) = (0, 0);
    for seed in 0..400 {
        let draft = Draft::random(&mut Dice(seed));
        let text = draft.text();
        let expanded = read(&text, &Inputs::default()).and_then(|it| it.expand(&Existing::default()));
        let Some(best) = draft.best() else {
            let told = expanded.map(|it| places(&it)).unwrap_err().to_string();
            assert!(told.contains("there is no placement"), "seed {seed}:\n{text}{told}");
            impossible += 1;
            continue;
        };
        let expansion = expanded.unwrap_or_else(|problems| panic!("seed {seed}: {problems}\n{text}"));
        assert_eq!(usize::try_from(cost(&expansion)).unwrap(), best, "seed {seed}:\n{text}{:?}", places(&expansion));
        // What was chosen is right by everything the file says, and costs what is said.
        let mut placement: BTreeMap<(usize, usize), Contents> = BTreeMap::new();
        for (key, it) in &expansion.components {
            let group = GROUPS.iter().position(|name| *name == key.group.as_str()).unwrap();
            let class = VMS.iter().position(|name| *name == it.vm.group.as_str()).unwrap();
            let place = (class, usize::try_from(it.vm.index).unwrap());
            placement.entry(place).or_insert_with(|| vec![0; draft.groups.len()])[group] += 1;
        }
        for (group, described) in draft.groups.iter().enumerate() {
            assert_eq!(placement.values().map(|it| it[group]).sum::<usize>(), described.count, "seed {seed}:\n{text}");
        }
        let wrong = placement.iter().find(|(place, it)| !draft.places().contains(place) || !draft.allows(**place, it));
        assert_eq!(wrong, None, "seed {seed}:\n{text}{:?}", places(&expansion));
        assert_eq!(draft.cost(&placement), best, "seed {seed}:\n{text}{:?}", places(&expansion));
        placed += 1;
    }
    assert!(placed > 150 && impossible > 50, "{placed} {impossible}");
}
