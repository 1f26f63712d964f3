//! The progress of a change, tier by tier: a tier is what the forecast begins at the same moment.

use crate::rendering::plan::few;
use cloud_manager::{
    applications::forecast::within,
    document::{ComponentStatus, EventDocument, EventKind, Moment},
};
use protocol::Name;
use std::collections::BTreeSet;

/// Maximum number of rows; if there are more, those in progress are shown.
const ROWS_MAX: usize = 10;
/// The width of a bar.
const WIDTH: usize = 20;

/// The forecast, and how much of it has happened. Empty without a forecast.
#[derive(Debug, Default)]
pub(crate) struct Tiers {
    application: Option<Name>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    verb: &'static str,
    /// The state that shows that it has happened.
    state: ComponentStatus,
    names: BTreeSet<String>,
    done: BTreeSet<String>,
}

impl Tiers {
    /// The tiers of the forecast for an application.
    pub(crate) fn of<'a>(application: &Name, moments: impl Iterator<Item = &'a Moment>) -> Self {
        let rows = moments.flat_map(|moment| {
            let row = |verb, state, names: &Vec<String>| {
                let names: BTreeSet<String> = names.iter().cloned().collect();
                (!names.is_empty()).then(|| Row { verb, state, names, done: BTreeSet::new() })
            };
            [row("stop", ComponentStatus::Stopped, &moment.stop), row("start", ComponentStatus::Started, &moment.start)]
        });
        Self { application: Some(application.clone()), rows: rows.flatten().collect() }
    }

    /// Records an event; returns whether it is part of the forecast.
    pub(crate) fn note(&mut self, event: &EventDocument) -> bool {
        let (Some(application), Some(component)) = (&self.application, &event.component) else { return false };
        let name = within(application, component);
        let mut known = false;
        for row in self.rows.iter_mut().filter(|row| row.names.contains(&name)) {
            known |= !matches!(event.what, EventKind::OperationFailed | EventKind::AttemptFailed);
            if event.state == Some(row.state) && row.done.insert(name.clone()) {
                // A component that stops and starts is in two tiers; the first open one counts.
                return true;
            }
        }
        known
    }

    /// One line for each tier.
    pub(crate) fn bars(&self) -> String {
        let open = self.rows.iter().position(|row| row.done.len() < row.names.len()).unwrap_or(self.rows.len());
        let first = open.saturating_sub(ROWS_MAX / 2).min(self.rows.len().saturating_sub(ROWS_MAX));
        self.rows.iter().skip(first).take(ROWS_MAX).map(Row::bar).collect()
    }
}

impl Row {
    fn bar(&self) -> String {
        let (done, all) = (self.done.len(), self.names.len());
        let full = WIDTH * done / all.max(1);
        let left: Vec<String> = self.names.difference(&self.done).cloned().collect();
        let left = if left.is_empty() { "✓".into() } else { few(&left) };
        format!("  {:5} {}{} {done}/{all}  {left}\n", self.verb, "█".repeat(full), "░".repeat(WIDTH - full))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_events() {
        let application = Name::new("shop").expect("it is a name");
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let moments = [
            Moment { stop: names(&["app[0]"]), ..Moment::default() },
            Moment { at: 1.0, start: names(&["app[0]", "app[1]"]), ..Moment::default() },
        ];
        let mut tiers = Tiers::of(&application, moments.iter());
        let event = |component: &str, state: ComponentStatus| EventDocument {
            component: Some(component.into()),
            state: Some(state),
            what: EventKind::ComponentIs,
            ..EventDocument::default()
        };
        assert!(tiers.note(&event("shop/app[0]", ComponentStatus::Stopped)));
        assert!(tiers.note(&event("shop/app[1]", ComponentStatus::Started)));
        assert!(tiers.note(&event("shop/app[0]", ComponentStatus::Starting)));
        assert!(!tiers.note(&event("other/app[0]", ComponentStatus::Started)));
        assert_eq!(tiers.bars(), "  stop  ████████████████████ 1/1  ✓\n  start ██████████░░░░░░░░░░ 1/2  app[0]\n");
        assert_eq!(Tiers::default().bars(), "");
    }
}
