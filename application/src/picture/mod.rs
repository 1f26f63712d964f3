//! Draws an application before and after, as a self-contained picture for light and dark backgrounds.
//!
//! Both panels have the same layout, so that what stays is at the same place in both: VMs are boxes with their
//! components, clients to the left of their providers, and a binding is a line from the client to its provider. Green
//! is added, red removed, amber changed, grey unchanged. If there is too much to be readable, a group is one box with
//! its number.

mod layout;
mod svg;

use crate::{Difference, Expansion, How, Key, Reference};
use std::collections::BTreeMap;

/// More of them are drawn as groups.
const VMS_MAX: usize = 12;
const COMPONENTS_MAX: usize = 40;
/// More lines than these hide each other.
const BINDINGS_MAX: usize = 80;

/// Draws two expansions of one application beside each other, as an SVG document.
pub fn picture(before: &Expansion, after: &Expansion) -> String {
    let difference = Difference::between(before, after);
    let many =
        |it: &Expansion| it.vms.len() > VMS_MAX || it.components.len() > COMPONENTS_MAX || it.bindings() > BINDINGS_MAX;
    let grouped = many(before) || many(after);
    let panels =
        [Panel::new(before, &difference, Side::Before, grouped), Panel::new(after, &difference, Side::After, grouped)];
    let plan = layout::Plan::new(&panels);
    svg::draw(after.application.as_str(), [before, after], &panels, &plan)
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// What becomes of something, or came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Added,
    Removed,
    Changed,
    Unchanged,
}

/// What is drawn as one: a thing, or a group of things.
#[derive(Clone, Debug, Default)]
struct Item {
    fates: BTreeMap<Fate, usize>,
    /// The reason, shown as a tooltip.
    reasons: Vec<String>,
}

/// A box, and a component in it.
type Place = (String, String);

/// What one of the two shows.
#[derive(Debug, Default)]
struct Panel {
    boxes: BTreeMap<String, Item>,
    components: BTreeMap<Place, Item>,
    /// From the client to the provider.
    wires: BTreeMap<(Place, Place), Item>,
    grouped: bool,
}

impl Item {
    fn add(&mut self, fate: Fate, reasons: &[String]) {
        *self.fates.entry(fate).or_default() += 1;
        for reason in reasons {
            if !self.reasons.contains(reason) {
                self.reasons.push(reason.clone());
            }
        }
    }

    fn count(&self) -> usize {
        self.fates.values().sum()
    }

    /// What is to be seen at a glance: the one thing that happens in it, or that several do.
    fn fate(&self) -> Fate {
        let mut happening = self.fates.keys().filter(|it| **it != Fate::Unchanged);
        match (happening.next(), happening.next()) {
            (None, _) => Fate::Unchanged,
            (Some(one), None) => *one,
            (Some(_), Some(_)) => Fate::Changed,
        }
    }

    /// How many come, go and change, where only some do.
    fn told(&self) -> String {
        if self.fates.len() < 2 {
            return String::new();
        }
        let signs = [(Fate::Added, '+'), (Fate::Removed, '−'), (Fate::Changed, '~')];
        let some = signs.iter().filter_map(|(fate, sign)| self.fates.get(fate).map(|count| format!(" {sign}{count}")));
        some.collect()
    }
}

impl Panel {
    fn new(expansion: &Expansion, difference: &Difference, side: Side, grouped: bool) -> Self {
        let mut panel = Self { grouped, ..Self::default() };
        let name = |key: &Key| if grouped { key.group.to_string() } else { key.to_string() };
        for key in expansion.vms.keys() {
            let (fate, reasons) = fate(difference.vms.get(key));
            panel.boxes.entry(name(key)).or_default().add(fate, &reasons);
        }
        let place = |key: &Key| Some((name(&expansion.components.get(key)?.vm), name(key)));
        for key in expansion.components.keys() {
            let (fate, reasons) = fate(difference.components.get(key));
            if let Some(place) = place(key) {
                panel.components.entry(place).or_default().add(fate, &reasons);
            }
        }
        let changed = match side {
            Side::Before => &difference.unbound,
            Side::After => &difference.bound,
        };
        let changed: std::collections::BTreeSet<String> = changed.iter().map(ToString::to_string).collect();
        for (client, component) in &expansion.components {
            let Some(from) = place(client) else { continue };
            for (import, providers) in &component.bound {
                let definition = expansion.definitions.get(&client.group).and_then(|it| it.imports.get(import));
                for provider in providers {
                    let Some(to) = panel.provider(provider, &place, &name) else { continue };
                    let export = definition.map(|it| it.export.to_string()).unwrap_or_default();
                    let wire = format!("{client}.{import} → {provider}.{export}");
                    let fate = match side {
                        _ if !changed.contains(&wire) => Fate::Unchanged,
                        Side::Before => Fate::Removed,
                        Side::After => Fate::Added,
                    };
                    let wires = panel.wires.entry((from.clone(), to)).or_default();
                    let said = if grouped { import.to_string() } else { wire };
                    wires.add(fate, &[said]);
                }
            }
        }
        panel
    }

    /// Where a provider is drawn; one of another application is in a box of that name.
    fn provider(
        &mut self,
        provider: &Reference,
        place: &dyn Fn(&Key) -> Option<Place>,
        name: &dyn Fn(&Key) -> String,
    ) -> Option<Place> {
        let Some(application) = &provider.application else { return place(&provider.key) };
        let outside = (format!("{application}/"), name(&provider.key));
        self.boxes.entry(outside.0.clone()).or_default();
        self.components.entry(outside.clone()).or_insert_with(|| {
            let mut item = Item::default();
            item.add(Fate::Unchanged, &[]);
            item
        });
        Some(outside)
    }
}

fn fate(how: Option<&How>) -> (Fate, Vec<String>) {
    match how {
        Some(How::Added) => (Fate::Added, Vec::new()),
        Some(How::Removed) => (Fate::Removed, Vec::new()),
        Some(How::Replaced(why) | How::Adjusted(why)) => (Fate::Changed, why.clone()),
        None => (Fate::Unchanged, Vec::new()),
    }
}
