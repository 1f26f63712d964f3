//! Pictures of before and after: well formed, everything in them, in the colour of what becomes of it.
//!
//! `BLESS=1 cargo test --package application` draws the kept one anew; look at it before you commit it.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod shop;

use application::{Expansion, picture};
use protocol::Name;
use shop::{SHOP, expand, expand_after};
use std::{env, fs, path::Path};

fn nothing(like: &Expansion) -> Expansion {
    Expansion::empty(like.application.clone())
}

/// Whether every element is closed, in order, and nothing stands outside of the one.
#[track_caller]
fn check_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>') || open.last() == Some(&"style"), "{}", &rest[..at]);
        let end = at + rest[at..].find('>').unwrap();
        let tag = &rest[at + 1..end];
        assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
        rest = &rest[end + 1..];
        assert!(!open.is_empty() || rest.trim().is_empty());
    }
    assert!(open.is_empty(), "{open:?}");
    let lone = svg.match_indices('&').find(|(at, _)| !svg[*at..].split(';').next().unwrap().len().le(&5));
    assert_eq!(lone, None);
}

/// The classes in which a component is drawn, in each panel.
fn classes(svg: &str, component: &str) -> Vec<Option<String>> {
    let panels: Vec<&str> = svg.split("<g transform").skip(1).collect();
    let drawn = |panel: &&str| {
        let (before, _) = panel.split_once(&format!(">{component}</text>"))?;
        let tag = before.rsplit("<text").next()?;
        Some(tag.split("class=\"label ").nth(1)?.split('"').next()?.to_owned())
    };
    panels.iter().map(drawn).collect()
}

#[test]
fn everything_is_there_in_the_colour_of_what_becomes_of_it() {
    let before = expand(SHOP);
    let changed = SHOP
        .replace("exec mydb", "exec yourdb")
        .replace("type: App, on: web, count: 3", "type: App, on: web, count: 4")
        .replace("  cache: { type: Cache, on: data, parameters: { size: 64 } }\n", "");
    let after = expand_after(&changed, &before);
    let svg = picture(&before, &after);
    check_well_formed(&svg);
    let some = |class: &str| Some(class.to_owned());
    assert_eq!(classes(&svg, "database[1]"), [some("changed"), some("changed")]);
    assert_eq!(classes(&svg, "cache[0]"), [some("removed"), None]);
    assert_eq!(classes(&svg, "app[3]"), [None, some("added")]);
    assert_eq!(classes(&svg, "app[0]"), [some("unchanged"), some("unchanged")]);
    // Lines as well: one comes with the new component, three go with the old one.
    let lines = |class: &str| svg.matches(&format!("<path class=\"wire {class}\"")).count();
    assert_eq!((lines("added"), lines("removed"), lines("unchanged")), (1, 3, 6));
    for component in before.components.keys().chain(after.components.keys()) {
        assert!(svg.contains(&format!(">{component}</text>")), "{component}");
    }
}

#[test]
fn what_is_too_much_to_read_is_drawn_as_groups() {
    let before = expand(SHOP);
    let after = expand_after(
        &SHOP
            .replace("type: App, on: web, count: 3", "type: App, on: web, count: 300")
            .replace("capacity: 20", "capacity: 200"),
        &before,
    );
    let svg = picture(&before, &after);
    check_well_formed(&svg);
    assert!(svg.contains(">app ×300 +297</text>") && svg.contains(">database ×2</text>"), "{svg}");
    assert!(svg.len() < 30_000, "{}", svg.len());
    // Thirty components on three VMs are drawn one by one.
    let thirty = expand(&SHOP.replace("type: App, on: web, count: 3", "type: App, on: web, count: 27"));
    assert!(picture(&nothing(&thirty), &thirty).contains(">app[26]</text>"));
}

#[test]
fn nothing_is_drawn_and_no_secret_is_in_it() {
    let text = "holdfast: 1\napplication: a\nsecrets: { word: { command: echo hunter2 } }\ntypes:\n  T:\n    parameters: { word: { type: secret }, x: 1 }\n    operations: { start: { process: \"exec t {{ parameters.word }} {{ parameters.x }}\" } }\nvms: { v: {} }\ncomponents: { t: { type: T, parameters: { word: { secret: word } } } }\n";
    let before = expand(text);
    let after = expand_after(&text.replace("x: 1", "x: 2").replace("hunter2 }", "hunter2, version: 2 }"), &before);
    for (one, other) in [(&before, &after), (&nothing(&before), &before), (&before, &nothing(&before))] {
        let svg = picture(one, other);
        check_well_formed(&svg);
        assert!(!svg.contains("hunter2"), "{svg}");
    }
    let empty = Expansion::empty(Name::new("a").unwrap());
    check_well_formed(&picture(&empty, &empty));
}

#[test]
fn the_three_tiers_look_as_they_did() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join("examples/applications/three-tier.yaml")).unwrap();
    let before = expand(&text);
    let changed = text
        .replace("echo database at", "echo another database at")
        .replace("type: ObjectCache, on: middle", "type: ObjectCache, on: middle, count: 2")
        .replace("  profiler: { type: Profiler, on: front }\n", "");
    let svg = picture(&before, &expand_after(&changed, &before));
    let path = root.join("docs/before-and-after.svg");
    if env::var_os("BLESS").is_some() {
        fs::write(&path, &svg).unwrap();
    }
    assert_eq!(svg, fs::read_to_string(&path).unwrap());
}
