//! A dry run predicts the actual end: random changes are first predicted, then made, and the two are compared.

mod test_manager;

use cloud_manager::document::ComponentStatus;
use cloud_manager::{
    client::Client,
    document::{Accepted, ChangeRecord, Component, Plan, Standing},
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use test_manager::TestManager;

/// A small random generator of our own, so that seeds stay valid.
struct Chance(u64);

impl Chance {
    fn below(&mut self, number: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % number
    }

    fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let number = u64::try_from(choices.len()).expect("there are few");
        &choices[usize::try_from(self.below(number)).expect("there are few")]
    }

    /// A random change to a system of a few components; some are invalid and refused.
    fn change(&mut self, there: &BTreeMap<String, bool>) -> Value {
        let all: Vec<String> = (0..6).map(|number| format!("c{number}")).collect();
        let mut edits = Vec::new();
        for _ in 0..=self.below(3) {
            let (name, other) = (self.one_of(&all).clone(), self.one_of(&all).clone());
            edits.push(match (there.contains_key(&name), self.below(5)) {
                (false, 0 | 1) => {
                    let import = json!({ "export": "x", *self.one_of(&["strong", "strong", "weak", "value"]): 1 });
                    json!({ "add-component": { "name": name, "vm": self.one_of(&["v0", "v1"]),
                        "imports": { "need": import }, "exports": { "x": {} } } })
                }
                (false, _) => json!({ "add-component": { "name": name, "vm": "v0", "exports": { "x": {} } } }),
                (true, 0) => json!({ "remove-component": name }),
                (true, 1) => json!({ "restart-component": name }),
                (true, 2) => json!({ "unbind": format!("{name}.need → {other}.x") }),
                (true, _) => json!({ "bind": format!("{name}.need → {other}.x") }),
            });
        }
        let strategy = self.one_of(&["together", "up-then-down", "down-then-up"]);
        json!({ "strategy": strategy, "incomplete": true, "edits": edits })
    }
}

async fn states(client: &Client) -> BTreeMap<String, bool> {
    let components: Vec<Component> = client.get("/v1/components").await.expect("there is a list");
    components.into_iter().map(|it| (it.name, it.state == ComponentStatus::Started)).collect()
}

#[tokio::test]
async fn the_end_is_as_predicted_and_only_predicted_components_stop() {
    let manager = TestManager::new("forecast");
    let client = manager.client();
    let vms = json!({ "edits": [{ "add-vm": { "name": "v0" } }, { "add-vm": { "name": "v1" } }] });
    let _: Accepted = client.post("/v1/changes", &vms).await.unwrap();
    let (mut made, mut different, mut stopped_any) = (0, 0, 0);
    for seed in 0..300 {
        let before = states(&client).await;
        let change = Chance(seed).change(&before);
        // Invalid changes are refused either way, and show nothing.
        let Ok(plan) = client.post::<Plan>("/v1/changes?dry-run=true", &change).await else { continue };
        let predicted = plan.forecast;
        let accepted: Accepted = client.post("/v1/changes", &change).await.unwrap();
        let after = states(&client).await;
        let record: ChangeRecord = client.get(&format!("/v1/changes/{}", accepted.change)).await.unwrap();
        assert!(record.done_at_ms.is_some(), "seed {seed}: {change:#}");
        assert_eq!(after.values().filter(|started| **started).count(), predicted.started, "seed {seed}: {change:#}");
        assert_eq!(after.len(), predicted.started + predicted.not_started, "seed {seed}: {change:#}");
        for difference in &predicted.differences {
            let now = after.get(&difference.component);
            let fits = match difference.then {
                Standing::Absent => now.is_none(),
                then => now == Some(&(then == Standing::Started)),
            };
            assert!(fits, "seed {seed}: {difference:?}: {change:#}");
        }
        // A component that stopped was predicted to stop, or is being removed.
        let stopped = record.events.iter().filter(|event| event.state == Some(ComponentStatus::Stopping));
        let stopped: BTreeSet<&String> = stopped.filter_map(|event| event.component.as_ref()).collect();
        let removed = |name: &&String| {
            change["edits"]
                .as_array()
                .is_some_and(|edits| edits.iter().any(|edit| edit["remove-component"] == name.as_str()))
        };
        for name in stopped.iter().filter(|name| before.get(**name) == Some(&true) && !removed(name)) {
            assert!(predicted.may_stop.contains(name), "seed {seed}: {name} stopped: {predicted:?}: {change:#}");
            stopped_any += 1;
        }
        made += 1;
        different += usize::from(!predicted.differences.is_empty());
    }
    // Enough has happened for this test to be meaningful.
    assert!(made > 60 && different > 40 && stopped_any > 20, "{made}, {different}, {stopped_any}");
}

#[tokio::test]
async fn a_provider_that_never_starts_does_not_keep_its_clients_up() {
    let manager = TestManager::new("idle-provider");
    let client = manager.client();
    let add = |name: &str, needs: bool| {
        let imports = if needs { json!({ "need": { "export": "x" } }) } else { json!({}) };
        json!({ "add-component": { "name": name, "vm": "v", "imports": imports, "exports": { "x": {} } } })
    };
    let edits = json!({ "incomplete": true, "edits": [
        { "add-vm": { "name": "v" } }, add("base", false), add("middle", true), add("idle", true), add("top", true),
        { "bind": "middle.need → base.x" }, { "bind": "top.need → middle.x" }, { "bind": "top.need → idle.x" },
    ] });
    let _: Accepted = client.post("/v1/changes", &edits).await.unwrap();
    let remove = json!({ "strategy": "up-then-down", "incomplete": true, "edits": [{ "remove-component": "base" }] });
    let plan: Plan = client.post("/v1/changes?dry-run=true", &remove).await.unwrap();
    let predicted = plan.forecast;
    assert_eq!(predicted.may_stop, ["middle", "top"]);
    let top = predicted.differences.iter().find(|it| it.component == "top").unwrap();
    assert_eq!(top.because, ["middle to be started, for need", "idle to be started, for need"]);
}
