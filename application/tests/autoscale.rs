//! Following the load: what a file can say about it, and what follows from a measured load.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod shop;

use application::{Inputs, Measured, Source, Wish};
use shop::{problems, read};
use std::collections::BTreeMap;

/// Web servers that take 100 each, and workers that take 50 and get two of each request.
const SHOP: &str = r#"holdfast: 1
application: shop
types:
  Web: {}
  Worker: {}
vms: { node: { count: 3 } }
components:
  web: { type: Web, load: 100 }
  worker: { type: Worker, load: { each: 50, factor: 2 } }
  log: { type: Web }
autoscale:
  source: { http: "http://127.0.0.1:9100/load" }
  least: { web: 2 }
  most: { worker: 10 }
  every: 5s
  cool-down: 60s
  saves: 20
"#;

fn counts(numbers: &[(&str, u32)]) -> BTreeMap<String, u32> {
    numbers.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
}

/// What follows from a load when there are so many web servers and workers, so long after the last change.
fn wish(text: &str, load: u64, web: u32, worker: u32, after_ms: u64) -> Wish {
    let application = read(text, &Inputs::default()).unwrap();
    let measured = Measured {
        load: Some(load),
        loads: BTreeMap::new(),
        counts: counts(&[("web", web), ("worker", worker), ("log", 1)]),
        now_ms: 1_000_000 + after_ms,
        changed_ms: 1_000_000,
    };
    application.wish(&measured).unwrap().unwrap()
}

#[test]
fn all_components_follow_one_load_at_once() {
    let because = "load 230: web 2 → 3, worker 1 → 10".to_owned();
    let expected = Wish::Scale { counts: counts(&[("web", 3), ("worker", 10)]), shrinks_only: false, because };
    // Growing does not wait for the cool-down.
    assert_eq!(wish(SHOP, 230, 2, 1, 0), expected);
    assert_eq!(wish(SHOP, 230, 3, 10, 0), Wish::Stay);
}

#[test]
fn limits_hold_and_a_load_beyond_them_is_told() {
    let Wish::Scale { counts: found, because, .. } = wish(SHOP, 1_000, 2, 1, 0) else { panic!() };
    assert_eq!(found, counts(&[("web", 10), ("worker", 10)]));
    assert_eq!(because, "load 1000: web 2 → 10, worker 1 → 10 (40 needed)");
    // Without any load there are two web servers left.
    let Wish::Scale { counts: found, shrinks_only: true, .. } = wish(SHOP, 0, 9, 9, 60_000) else { panic!() };
    assert_eq!(found, counts(&[("web", 2), ("worker", 1)]));
}

#[test]
fn shrinking_waits_for_the_cool_down_unless_something_grows() {
    let Wish::Wait { until_ms, counts: found, .. } = wish(SHOP, 100, 4, 4, 59_999) else { panic!() };
    assert_eq!((until_ms, found), (1_060_000, counts(&[("web", 2)])));
    assert!(matches!(wish(SHOP, 100, 4, 4, 60_000), Wish::Scale { shrinks_only: true, .. }));
    // Workers are needed now; that there are fewer web servers comes along.
    assert!(matches!(wish(SHOP, 100, 4, 1, 0), Wish::Scale { shrinks_only: false, .. }));
}

#[test]
fn a_plan_that_only_shrinks_must_save_enough() {
    let application = read(SHOP, &Inputs::default()).unwrap();
    let autoscale = application.autoscale().unwrap();
    assert!(autoscale.is_worthwhile(100, 80) && !autoscale.is_worthwhile(100, 81));
    // Where VMs cost nothing there is nothing to compare.
    assert!(autoscale.is_worthwhile(0, 0));
}

#[test]
fn a_component_can_follow_a_load_of_its_own() {
    let text =
        SHOP.replace("source: { http: \"http://127.0.0.1:9100/load\" }", "sources: { web: { command: cat load } }");
    let application = read(&text, &Inputs::default()).unwrap();
    assert_eq!(application.autoscale().unwrap().sources["web"], Source::Command("cat load".into()));
    let loads = BTreeMap::from([("web".to_owned(), 450)]);
    let measured = Measured { loads, counts: counts(&[("web", 2), ("worker", 7)]), ..Measured::default() };
    let Wish::Scale { counts: found, because, .. } = application.wish(&measured).unwrap().unwrap() else { panic!() };
    // Workers have no source, so nothing follows for them.
    assert!(application.follows_load("web") && !application.follows_load("worker"));
    assert_eq!((found, because.as_str()), (counts(&[("web", 5)]), "load 450 of web: web 2 → 5"));
}

#[test]
fn an_application_without_the_section_follows_nothing() {
    let text = &SHOP[..SHOP.find("autoscale").unwrap()];
    assert_eq!(read(text, &Inputs::default()).unwrap().wish(&Measured::default()), Ok(None));
}

#[test]
fn mistakes_are_reported_where_they_are() {
    let told = |from: &str, to: &str| problems(&SHOP.replace(from, to)).join("\n");
    assert_eq!(
        told("least: { web: 2 }", "least: { wbe: 2 }"),
        "13:12 there is no component `wbe` with a `load` (did you mean `web`?)"
    );
    assert_eq!(
        told("most: { worker: 10 }", "most: { web: 1 }"),
        "12:3 `web`: at least 2 and at most 1 cannot both hold"
    );
    assert_eq!(told("every: 5s", "every: 5ms"), "15:10 `every` must be at least 100ms");
    assert_eq!(told("saves: 20", "saves: 120"), "17:10 `saves` is a percentage, so it is at most 100");
    assert_eq!(
        told("http: \"http://127.0.0.1:9100/load\"", "http: 127.0.0.1"),
        "12:19 `127.0.0.1` is not an address such as http://127.0.0.1:9090"
    );
    assert_eq!(
        told("http: \"http://127.0.0.1:9100/load\"", "prometheus: \"http://127.0.0.1:9090\""),
        "12:13 `prometheus` needs a `query`"
    );
    assert_eq!(
        told("http: \"http://127.0.0.1:9100/load\"", "command: ls, value: x"),
        "12:26 `value` does not belong to `command`"
    );
    assert_eq!(
        told("source: { http: \"http://127.0.0.1:9100/load\" }", "source: { value: x }"),
        "12:11 a source of load needs one of `prometheus`, `http`, `command`, `component`"
    );
    assert_eq!(
        told("  source: { http: \"http://127.0.0.1:9100/load\" }\n", ""),
        "12:3 `autoscale` needs a `source` of load (`source: { http: \"http://…\" }`), or `sources`"
    );
}
