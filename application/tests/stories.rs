//! Stories of the language: what a file becomes, what differs between two, and what the manager is asked for.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod shop;

use application::{Difference, Existing, Expansion, How, Inputs, Key};
use protocol::{Edit, Strategy};
use shop::{SHOP, bindings, expand, expand_after, problems, read, vms};
use std::collections::{BTreeMap, BTreeSet};

fn difference(one: &Expansion, other: &Expansion) -> Difference {
    Difference::between(one, other)
}

/// The edits in a few words.
fn edits(one: &Expansion, other: &Expansion) -> Vec<String> {
    let difference = Difference::between(one, other);
    let planned = difference.planned(one, other, &[], difference.usual_strategy(other), &BTreeMap::new());
    let words = |edit: &Edit| match edit {
        Edit::AddVm { vm } => format!("+ vm {vm}"),
        Edit::RemoveVm { vm } => format!("- vm {vm}"),
        Edit::AddComponent { component, vm, .. } => format!("+ {component} on {vm}"),
        Edit::RemoveComponent { component } => format!("- {component}"),
        Edit::RestartComponent { component } => format!("restart {component}"),
        Edit::SetNeed { component, import, number } => format!("{component}.{import} needs {number}"),
        Edit::AddBinding(wire) => format!("bind {wire}"),
        Edit::RemoveBinding(wire) => format!("unbind {wire}"),
    };
    planned.change.edits.iter().map(words).collect()
}

#[test]
fn a_file_is_counted_out_placed_and_wired() {
    let shop = expand(SHOP);
    assert_eq!(
        vms(&shop),
        [
            "app[0] on web[0]",
            "app[1] on web[1]",
            "app[2] on web[0]",
            "cache[0] on data[0]",
            "database[0] on data[0]",
            "database[1] on data[0]"
        ]
    );
    assert_eq!(
        bindings(&shop),
        [
            "app[0].cache → cache[0].objects",
            "app[0].db → database[0].sql",
            "app[1].cache → cache[0].objects",
            "app[1].db → database[1].sql",
            "app[2].cache → cache[0].objects",
            "app[2].db → database[0].sql",
        ]
    );
    // What is kept can be read again.
    let kept = serde_json::to_string(&shop).unwrap();
    assert_eq!(serde_json::from_str::<Expansion>(&kept).unwrap(), shop);
}

#[test]
fn a_group_that_grows_changes_nothing_that_exists() {
    let three = expand(SHOP);
    let five = expand_after(&SHOP.replace("count: 3", "count: 5"), &three);
    let grown = difference(&three, &five);
    assert_eq!(grown.components.keys().map(ToString::to_string).collect::<Vec<_>>(), ["app[3]", "app[4]"]);
    assert!(grown.components.values().all(|how| *how == How::Added));
    assert_eq!((grown.unbound.len(), grown.unchanged.components, grown.unchanged.bindings), (0, 6, 6));
    // New clients go where there are fewest.
    assert!(bindings(&five).contains(&"app[3].db → database[1].sql".into()));
    // Back again: the highest go.
    let back = difference(&five, &expand_after(SHOP, &five));
    assert_eq!(back.components.keys().map(ToString::to_string).collect::<Vec<_>>(), ["app[3]", "app[4]"]);
    assert!(back.components.values().all(|how| *how == How::Removed));
}

/// An example with so many instances.
fn tiers(name: &str, instances: u32, before: Option<&Expansion>) -> Expansion {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/applications/tiers");
    let values = BTreeMap::from([("instances".to_owned(), instances.to_string())]);
    let inputs = Inputs { values, ..Inputs::default() };
    let mut open = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let application = application::Application::read(name, &inputs, &mut open).unwrap();
    application.expand(&Existing { before, others: &[] }).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn three_tiers_grow_from_ten_to_eleven_and_nothing_that_exists_is_touched() {
    for (name, told, bound) in [("d1.yaml", 0, 2), ("d2.yaml", 20, 42), ("d3.yaml", 0, 2), ("d4.yaml", 20, 42)] {
        let ten = tiers(name, 10, None);
        let eleven = tiers(name, 11, Some(&ten));
        let grown = difference(&ten, &eleven);
        assert!(grown.vms.values().all(|how| *how == How::Added) && grown.unchanged.vms == ten.vms.len());
        assert!(!grown.replaces() && !grown.removes() && grown.unbound.is_empty(), "{name}");
        let added = grown.components.iter().filter(|(_, how)| **how == How::Added);
        assert_eq!(added.map(|(key, _)| key.to_string()).collect::<Vec<_>>(), ["s1[10]", "s2[10]", "s3[10]"]);
        // Where each uses all, those who are there are told of one more while they run; where each uses one, nobody is.
        let adjusted = grown.components.values().filter(|how| matches!(how, How::Adjusted(_))).count();
        assert_eq!((adjusted, grown.bound.len()), (told, bound), "{name}");
        assert_eq!(grown.unchanged.bindings, ten.bindings());
    }
}

#[test]
fn more_providers_or_vms_move_nobody_and_fewer_move_only_their_own() {
    let before = expand(SHOP);
    let more = expand_after(&SHOP.replace("count: 2 }", "count: 4 }"), &before);
    let difference = difference(&before, &more);
    assert!(difference.unbound.is_empty() && difference.bound.is_empty());
    let more_vms = expand_after(&SHOP.replace("web: { count: 2", "web: { count: 9"), &before);
    assert!(Difference::between(&before, &more_vms).components.is_empty());
    let fewer = expand_after(
        &SHOP.replace("type: Database, on: data, count: 2", "type: Database, on: data, count: 1"),
        &before,
    );
    let difference = Difference::between(&before, &fewer);
    assert_eq!(difference.unbound.iter().map(ToString::to_string).collect::<Vec<_>>(), ["app[1].db → database[1].sql"]);
    assert_eq!(difference.bound.iter().map(ToString::to_string).collect::<Vec<_>>(), ["app[1].db → database[0].sql"]);
    assert_eq!(difference.usual_strategy(&fewer), Strategy::UpThenDown);
    assert_eq!(edits(&before, &fewer), ["- shop/database[1]", "bind shop/app[1].db → shop/database[0].sql"]);
}

#[test]
fn a_changed_component_is_replaced_with_its_bindings() {
    let before = expand(SHOP);
    let after = expand_after(&SHOP.replace("size: 64", "size: 128"), &before);
    let difference = difference(&before, &after);
    let how = &difference.components[&"cache[0]".parse().unwrap()];
    assert_eq!(*how, How::Replaced(vec!["parameter size: 64 → 128".into()]));
    assert_eq!(difference.components.len(), 1);
    assert_eq!(difference.usual_strategy(&after), Strategy::DownThenUp);
    assert_eq!(
        edits(&before, &after),
        [
            "- shop/cache[0]",
            "+ shop/cache[0] on shop/data[0]",
            "bind shop/app[0].cache → shop/cache[0].objects",
            "bind shop/app[1].cache → shop/cache[0].objects",
            "bind shop/app[2].cache → shop/cache[0].objects",
        ]
    );
}

#[test]
fn a_value_of_another_type_replaces_whoever_has_to_do_with_it() {
    let before = expand(SHOP);
    let after = expand_after(&SHOP.replace("values: [host, port]", "values: { host: text, port: port }"), &before);
    let difference = difference(&before, &after);
    let how = |key: &str| difference.components[&key.parse().unwrap()].clone();
    assert_eq!(how("database[0]"), How::Replaced(vec!["type of value port: text → port".into()]));
    assert_eq!(how("app[2]"), How::Replaced(vec!["type of db.port: text → port".into()]));
    assert_eq!(difference.components.len(), 5);
}

#[test]
fn a_number_of_providers_is_told_to_those_that_run() {
    let before = expand(SHOP);
    let after = expand_after(
        &SHOP.replace("{ export: sql }", "{ export: sql, strong: all }").replace("db: one", "db: all"),
        &before,
    );
    assert_eq!(
        edits(&before, &after),
        [
            "shop/app[0].db needs 2",
            "shop/app[1].db needs 2",
            "shop/app[2].db needs 2",
            "bind shop/app[0].db → shop/database[1].sql",
            "bind shop/app[1].db → shop/database[0].sql",
            "bind shop/app[2].db → shop/database[1].sql",
        ]
    );
}

#[test]
fn the_same_again_is_no_difference_and_an_empty_one_takes_all_away() {
    let shop = expand(SHOP);
    let again = difference(&shop, &expand_after(SHOP, &shop));
    assert!(again.is_empty());
    assert_eq!((again.unchanged.vms, again.unchanged.components, again.unchanged.bindings), (3, 6, 6));
    let empty = Expansion::empty(shop.application.clone());
    assert_eq!(edits(&shop, &empty), ["- vm shop/data[0]", "- vm shop/web[0]", "- vm shop/web[1]"]);
    assert_eq!(edits(&empty, &shop).len(), 3 + 6 + 6);
}

#[test]
fn another_application_can_be_used_and_its_replacement_takes_our_bindings_along() {
    let shared = "holdfast: 1\napplication: shared\ntypes:\n  Store:\n    exports: { blobs: { values: { size: integer }, capacity: 2 } }\n    values: { size: 1 }\n    parameters: { size: 1 }\nvms: { v: {} }\ncomponents:\n  store: { type: Store, parameters: { size: 1 } }\n";
    let own = "holdfast: 1\napplication: own\ntypes:\n  User: { imports: { store: { export: blobs } } }\nvms: { v: {} }\ncomponents:\n  user: { type: User, count: 2, bind: { store: shared/store } }\n";
    let shared_one = expand(shared);
    let application = read(own, &Inputs::default()).unwrap();
    let others = [shared_one.clone()];
    let existing = Existing { before: None, others: &others };
    let own_one = application.expand(&existing).unwrap();
    assert_eq!(bindings(&own_one), ["user[0].store → shared/store[0].blobs", "user[1].store → shared/store[0].blobs"]);
    let user = serde_json::to_value(&own_one.definitions[&protocol::Name::new("user").unwrap()].recipe).unwrap();
    assert_eq!(user["sorts"]["imports"]["store"]["size"], "integer");
    let shared_two = expand_after(&shared.replace("{ size: 1 } }", "{ size: 2 } }"), &shared_one);
    let difference = difference(&shared_one, &shared_two);
    let planned = difference.planned(&shared_one, &shared_two, &[own_one], Strategy::DownThenUp, &BTreeMap::new());
    let bound: Vec<String> = planned
        .change
        .edits
        .iter()
        .filter_map(|edit| if let Edit::AddBinding(wire) = edit { Some(wire.to_string()) } else { None })
        .collect();
    assert_eq!(bound, ["own/user[0].store → shared/store[0].blobs", "own/user[1].store → shared/store[0].blobs"]);
    // Its capacity counts for everybody.
    let third = own.replace("application: own", "application: third");
    let users = application.expand(&existing).unwrap();
    let all = [shared_one, users];
    let told = read(&third, &Inputs::default()).unwrap().expand(&Existing { before: None, others: &all }).unwrap_err();
    assert!(told.to_string().contains("capacity for 2 clients"), "{told}");
}

#[test]
fn whoever_is_not_told_of_what_it_reads_is_remarked_on() {
    let remarks = |text: &str| read(text, &Inputs::default()).unwrap().remarks();
    assert_eq!(remarks(SHOP), [""; 0]);
    // A need that is strong stops and starts it; only what it could do without comes and goes in silence.
    let deaf = SHOP.replace("      rebind: { signal: HUP }\n", "");
    let [remark] = &remarks(&deaf)[..] else { panic!("{:?}", remarks(&deaf)) };
    assert!(remark.starts_with("`App` reads the weak import `cache`"), "{remark}");
    let unread = deaf.replace("{% for cache in imports.cache %}cache = {{ cache.host }}\n        {% endfor %}", "");
    assert_eq!(remarks(&unread), [""; 0]);
}

#[test]
fn a_resource_that_no_vm_lists_is_remarked_on() {
    let text = |used: &str, vm: &str| {
        let text = format!(
            "holdfast: 1\napplication: a\ntypes: {{ T: {{ resources: {{ {used}: 2 }} }} }}\nvms: {{ v: {{ {vm} }} }}\ncomponents: {{ t: {{ type: T }} }}\n"
        );
        read(&text, &Inputs::default()).unwrap().remarks()
    };
    assert_eq!(text("cpu", "resources: { cpu: 4 }"), [""; 0]);
    let expected = ["`T` uses `cpus`: no VM declares this resource, so it is not enforced (did you mean `cpu`?)"];
    assert_eq!(text("cpus", "resources: { cpu: 4 }"), expected);
    // Where nothing is listed, nothing is counted, and that is meant.
    assert_eq!(text("cpu", ""), [""; 0]);
}

#[test]
fn those_who_would_restart_each_other_without_end_are_drawn() {
    let text = |at: &str, rebind: &str| {
        format!(
            "holdfast: 1\napplication: a\ntypes:\n  T:\n    imports: {{ other: {{ export: out, weak: 0 }} }}\n    exports: {{ out: {{ values: {{ mark: text }} }} }}\n    values: {{ mark: {{ template: x, at: {at} }} }}\n    operations: {{ start: {{ process: x }}{rebind} }}\nvms: {{ v: {{}} }}\ncomponents:\n  left: {{ type: T, bind: {{ other: right }} }}\n  right: {{ type: T, bind: {{ other: left }} }}\n"
        )
    };
    let [told] = &problems(&text("start", ""))[..] else { panic!("{:?}", problems(&text("start", ""))) };
    assert!(told.contains("restart each other forever"), "{told}");
    assert!(told.contains("left[0] ─other→ right[0] ─other→ left[0]"), "{told}");
    // What is chosen once ends where it began, and whoever can be told need not restart.
    expand(&text("prepare", ""));
    expand(&text("start", ", rebind: { signal: HUP }"));
}

#[test]
fn secrets_are_named_and_never_kept() {
    let text = "holdfast: 1\napplication: a\nsecrets: { password: { environment: PASSWORD } }\ntypes:\n  T:\n    parameters: { password: { type: secret } }\n    environment: { PASSWORD: \"{{ parameters.password }}\" }\nvms: { v: {} }\ncomponents: { t: { type: T, parameters: { password: { secret: password } } } }\n";
    let expansion = expand(text);
    let kept = serde_json::to_string(&expansion).unwrap();
    assert!(kept.contains("\"place\":\"PASSWORD\"") && !kept.contains("hunter2"));
    let empty = Expansion::empty(expansion.application.clone());
    let texts = BTreeMap::from([("password".to_string(), "hunter2".to_string())]);
    let planned = difference(&empty, &expansion).planned(&empty, &expansion, &[], Strategy::Together, &texts);
    let kind = planned
        .change
        .edits
        .iter()
        .find_map(|edit| if let Edit::AddComponent { kind, .. } = edit { Some(kind) } else { None });
    assert!(String::from_utf8_lossy(&kind.unwrap().recipe).contains("hunter2"));
    // A raised version replaces whoever has it.
    let raised = expand_after(&text.replace("PASSWORD } }", "PASSWORD, version: 2 } }"), &expansion);
    assert_eq!(difference(&expansion, &raised).components.len(), 1);
}

#[test]
fn some_components_are_mended_and_the_rest_stays() {
    let wanted = expand(SHOP);
    let key = |text: &str| text.parse::<Key>().unwrap();
    let keys = |texts: &[&str]| texts.iter().map(|text| key(text)).collect::<BTreeSet<Key>>();
    // A VM is lost with all that was on it, one is missing, one nobody asked for, one is another.
    let mut found = wanted.clone();
    found.vms.remove(&key("data[0]"));
    found.components.retain(|_, it| it.vm != key("data[0]"));
    found.components.remove(&key("app[2]"));
    found.components.insert(key("app[9]"), wanted.components[&key("app[1]")].clone());
    found.components.values_mut().for_each(|it| it.bound.clear());
    let mut other = wanted.definitions[&key("app[1]").group].clone();
    other.recipe.environment.insert("HASTE".into(), "1".into());
    found.older.insert(key("app[1]"), other);

    let mend = |texts: &[&str]| edits(&found, &found.mended(&wanted, &keys(texts)));
    assert_eq!(mend(&[]), [""; 0]);
    assert_eq!(mend(&["app[9]"]), ["- shop/app[9]"]);
    assert_eq!(
        mend(&["database[0]"]),
        ["+ vm shop/data[0]", "+ shop/database[0] on shop/data[0]", "bind shop/app[0].db → shop/database[0].sql"]
    );
    assert_eq!(
        mend(&["app[2]", "database[0]"]),
        [
            "+ vm shop/data[0]",
            "+ shop/app[2] on shop/web[0]",
            "+ shop/database[0] on shop/data[0]",
            "bind shop/app[0].db → shop/database[0].sql",
            "bind shop/app[2].db → shop/database[0].sql"
        ]
    );
    assert_eq!(mend(&["app[1]"]), ["- shop/app[1]", "+ shop/app[1] on shop/web[1]"]);
    // All of it, but for VMs that nobody chose, is what was wanted.
    let all: BTreeSet<Key> = found.components.keys().chain(wanted.components.keys()).cloned().collect();
    assert!(difference(&found.mended(&wanted, &all), &wanted).is_empty());

    // Who cannot start without others says so; what is weak is no reason.
    let lacking = |texts: &[&str]| {
        let lacking = found.lacking(&wanted, &keys(texts), |_, _| false);
        lacking.iter().map(|(client, provider)| format!("{client} lacks {provider}")).collect::<Vec<_>>()
    };
    assert_eq!(lacking(&["app[2]"]), ["app[2] lacks database[0]"]);
    assert_eq!(lacking(&["app[2]", "database[0]"]), [""; 0]);

    let about = difference(&found, &wanted).about(&keys(&["database[0]"]));
    assert_eq!(about.components, BTreeMap::from([(key("database[0]"), How::Added)]));
    let bound: Vec<String> = about.bound.iter().map(ToString::to_string).collect();
    assert_eq!(bound, ["app[0].db → database[0].sql", "app[2].db → database[0].sql"]);
}
