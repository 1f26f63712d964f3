//! Random files: valid ones expand, are written anew and read the same; garbage is told and never breaks anything.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod shop;

use application::{Application, Difference, Existing, Expansion, Inputs};
use proptest::prelude::*;
use shop::{SHOP, expand, problems, read};
use std::fmt::Write;

/// Tiers that each use the one before: how many components, how many VMs, how wired, and what the value of its export is.
#[derive(Clone, Debug)]
struct Tier {
    count: u32,
    vms: u32,
    way: &'static str,
    need: &'static str,
    value: Value,
}

/// A value of an export: its type, if that is said, its text, and whether a parameter says it.
#[derive(Clone, Copy, Debug)]
struct Value {
    sort: Option<&'static str>,
    text: &'static str,
    by_parameter: bool,
}

fn value() -> impl Strategy<Value = Value> {
    let sorts = prop_oneof![
        Just((None, "a text")),
        Just((Some("text"), "true")),
        Just((Some("secret"), "8080")),
        Just((Some("integer"), "-3")),
        Just((Some("number"), "0.5")),
        Just((Some("boolean"), "false")),
        Just((Some("port"), "8080")),
    ];
    (sorts, any::<bool>()).prop_map(|((sort, text), by_parameter)| Value { sort, text, by_parameter })
}

fn tier() -> impl Strategy<Value = Tier> {
    let ways = prop_oneof![Just("one"), Just("all"), Just("none")];
    let needs = prop_oneof![Just("weak: 0"), Just("strong: 1"), Just("value: 1"), Just("strong: all")];
    (1..6_u32, 1..4_u32, ways, needs, value()).prop_map(|(count, vms, way, need, value)| {
        // Nobody can be bound to nobody and need somebody.
        let way = if need == "weak: 0" || way != "none" { way } else { "all" };
        Tier { count, vms, way, need, value }
    })
}

fn file(tiers: &[Tier]) -> String {
    let mut text = String::from("holdfast: 1\napplication: tiers # a remark\ntypes:\n");
    for (place, tier) in tiers.iter().enumerate() {
        let Value { sort, text: value, by_parameter } = tier.value;
        writeln!(text, "  T{place}:").unwrap();
        if let Some(below) = place.checked_sub(1) {
            writeln!(text, "    imports: {{ below: {{ export: e{below}, {} }} }}", tier.need).unwrap();
        }
        let values = sort.map_or("[host, it]".to_owned(), |sort| format!("{{ host: text, it: {sort} }}"));
        writeln!(text, "    exports: {{ e{place}: {{ values: {values} }} }}").unwrap();
        let said = if by_parameter { "\"{{ parameters.it }}\"" } else { value };
        // A port of its own could be had by one component of each VM.
        writeln!(text, "    values: {{ host: elsewhere, it: {said} }}").unwrap();
        writeln!(text, "    parameters: {{ it: {value}, x: {{ default: \"a: 'b' #{place}\" }} }}").unwrap();
        // Whoever can calculates.
        let below = place.checked_sub(1).and_then(|it| tiers[it].value.sort);
        let more = if ["integer", "number", "port"].contains(&below.unwrap_or_default()) { " + 1" } else { "" };
        let reads = if place == 0 {
            String::new()
        } else {
            format!("{{% if imports.below %}}{{{{ imports.below[0].it{more} }}}}{{% endif %}}")
        };
        write!(text, "    files:\n      f: |\n        # no remark {{{{ parameters.x }}}} {reads}\n          deeper\n")
            .unwrap();
    }
    text += "vms:\n";
    tiers.iter().enumerate().for_each(|(place, tier)| writeln!(text, "  v{place}: {{ count: {} }}", tier.vms).unwrap());
    text += "components:\n";
    for (place, tier) in tiers.iter().enumerate() {
        let bind = if place == 0 { String::new() } else { format!(", bind: {{ below: {} }}", tier.way) };
        writeln!(text, "  c{place}: {{ type: T{place}, on: v{place}, count: {}{bind} }}", tier.count).unwrap();
    }
    text
}

fn expanded(text: &str, before: Option<&Expansion>) -> Expansion {
    let existing = Existing { before, others: &[] };
    read(text, &Inputs::default())
        .and_then(|it| it.expand(&existing))
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

proptest! {
    #[test]
    fn valid_files_expand_and_read_the_same_when_written_anew(tiers in prop::collection::vec(tier(), 1..5)) {
        let text = file(&tiers);
        let expansion = expanded(&text, None);
        let written = application::format("shop.yaml", &text).unwrap();
        prop_assert_eq!(&expanded(&written, None), &expansion);
        prop_assert_eq!(&application::format("shop.yaml", &written).unwrap(), &written);
        let kept = serde_json::to_string(&expansion).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Expansion>(&kept).unwrap(), &expansion);
        // The same again is no difference.
        let again = Difference::between(&expansion, &expanded(&text, Some(&expansion)));
        prop_assert!(again.is_empty());
    }

    #[test]
    fn growing_touches_no_key_that_exists(tiers in prop::collection::vec(tier(), 1..5), place in 0..5_usize) {
        let place = place % tiers.len();
        let before = expanded(&file(&tiers), None);
        let mut grown = tiers;
        grown[place].count += 1;
        let after = expanded(&file(&grown), Some(&before));
        let difference = Difference::between(&before, &after);
        prop_assert!(difference.unbound.is_empty());
        prop_assert!(difference.components.values().all(|how| !matches!(how, application::How::Removed | application::How::Replaced(_))));
        // And back again, the highest goes and nobody else.
        grown[place].count -= 1;
        let back = expanded(&file(&grown), Some(&after));
        prop_assert_eq!(&back, &before);
    }

    #[test]
    fn a_value_of_another_type_is_told(tiers in prop::collection::vec(tier(), 1..5), place in 0..5_usize) {
        let mut tiers = tiers;
        let place = place % tiers.len();
        let value = &mut tiers[place].value;
        value.text = "nonsense";
        let expected = usize::from(!matches!(value.sort, None | Some("text" | "secret")));
        prop_assert_eq!(problems(&file(&tiers)).len(), expected);
    }

    #[test]
    fn garbage_is_told(text in ".{0,200}") {
        let _ = problems(&text);
        let _ = application::format("a.yaml", &text);
        let _ = Application::data(&text);
    }

    #[test]
    fn a_damaged_file_is_told(place in 0..SHOP.len(), length in 0..40_usize, instead in prop_oneof!["[a-z{}:\\[\\]\"' \n-]{0,6}", ".{0,4}"]) {
        let (start, end) = (place, (place + length).min(SHOP.len()));
        if SHOP.is_char_boundary(start) && SHOP.is_char_boundary(end) {
            let text = format!("{}{instead}{}", &SHOP[..start], &SHOP[end..]);
            let _ = problems(&text);
            if let Ok(written) = application::format("a.yaml", &text) {
                prop_assert_eq!(Application::data(&written), Application::data(&text));
            }
        }
    }
}

#[test]
fn the_generator_makes_different_things() {
    let value = Value { sort: Some("port"), text: "8080", by_parameter: true };
    let tiers = [
        Tier { count: 2, vms: 1, way: "one", need: "strong: 1", value },
        Tier { count: 3, vms: 2, way: "all", need: "strong: all", value },
    ];
    assert!(file(&tiers).contains("imports.below[0].it + 1"));
    assert_eq!(expanded(&file(&tiers), None).bindings(), 6);
    assert_eq!(expand(SHOP).bindings(), 6);
}
