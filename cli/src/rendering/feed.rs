//! Which events of a change are shown, and in which order.
//!
//! Agents report to the manager over separate links, so the report that a client starts may arrive before the report that
//! its provider has started. Shown like that, it would look as if the order were wrong. The feed holds such an event back
//! until enough providers were shown as started, or until nothing else arrives.

use cloud_manager::document::{Binding, ComponentStatus, EventDocument, EventKind};
use protocol::Need;
use std::collections::BTreeMap;

/// The events of a change on their way to the screen.
#[derive(Default)]
pub(crate) struct Feed {
    /// Everything is shown.
    verbose: bool,
    /// The strong imports of each client: what they need, and the providers that they are bound to.
    imports: BTreeMap<String, BTreeMap<String, (Need, Vec<String>)>>,
    /// The states that were shown so far.
    shown: BTreeMap<String, ComponentStatus>,
    /// Events that are held back, in the order of their arrival.
    held: Vec<EventDocument>,
}

impl Feed {
    /// A feed for components that are bound like this.
    pub(crate) fn new(verbose: bool, bindings: &[Binding]) -> Self {
        let mut feed = Self { verbose, ..Self::default() };
        for it in bindings.iter().filter(|it| it.need.0.is_strong() && !it.leaving) {
            let imports = feed.imports.entry(it.client.clone()).or_default();
            let (_, providers) = imports.entry(it.import.clone()).or_insert((it.need.0, Vec::new()));
            providers.push(it.provider.clone());
        }
        feed
    }

    /// Takes the next event; answers with those that are to be shown now.
    pub(crate) fn take(&mut self, event: EventDocument) -> Vec<EventDocument> {
        self.held.push(event);
        let mut ready = Vec::new();
        let mut place = 0;
        while place < self.held.len() {
            if self.must_wait(place) {
                place += 1;
                continue;
            }
            let event = self.held.remove(place);
            ready.extend(self.show(event));
            // What was shown may be what an earlier event waits for.
            place = 0;
        }
        ready
    }

    /// Answers with all events that are held back: nothing else has arrived.
    pub(crate) fn release(&mut self) -> Vec<EventDocument> {
        let held = std::mem::take(&mut self.held);
        held.into_iter().filter_map(|event| self.show(event)).collect()
    }

    fn must_wait(&self, place: usize) -> bool {
        let event = &self.held[place];
        let Some(component) = &event.component else { return false };
        if self.held[..place].iter().any(|it| it.component.as_ref() == Some(component)) {
            return true;
        }
        let starts = matches!(event.state, Some(ComponentStatus::Starting | ComponentStatus::Started));
        // What was never shown was started before.
        let is_started = |it: &&String| self.shown.get(*it).is_none_or(|state| *state == ComponentStatus::Started);
        let mut imports = self.imports.get(component).into_iter().flat_map(BTreeMap::values);
        starts
            && imports.any(|(need, providers)| {
                let started = providers.iter().filter(is_started).count();
                !need.is_met_by(u32::try_from(started).unwrap_or(u32::MAX))
            })
    }

    fn show(&mut self, event: EventDocument) -> Option<EventDocument> {
        let before = event.component.as_ref().and_then(|it| self.shown.get(it).copied());
        if let (Some(component), Some(state)) = (&event.component, event.state) {
            self.shown.insert(component.clone(), state);
        }
        let matters = match event.what {
            EventKind::VmIs | EventKind::PhasePosted | EventKind::PhaseDone => false,
            // A new component begins as stopped.
            EventKind::ComponentIs => event.state != Some(ComponentStatus::Stopped) || before.is_some(),
            _ => true,
        };
        (matters || self.verbose).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_manager::document::NeedText;
    use std::collections::BTreeSet;

    fn binding(client: &str, provider: &str, need: Need) -> Binding {
        Binding {
            binding: String::new(),
            id: None,
            client: client.into(),
            import: "i".into(),
            provider: provider.into(),
            export: "e".into(),
            need: NeedText(need),
            held: false,
            leaving: false,
        }
    }

    fn event(component: &str, state: ComponentStatus) -> EventDocument {
        let (component, state) = (Some(component.to_owned()), Some(state));
        EventDocument { component, state, what: EventKind::ComponentIs, ..EventDocument::default() }
    }

    fn names(events: &[EventDocument]) -> Vec<String> {
        events.iter().map(|it| format!("{} {}", it.component.as_deref().unwrap(), it.state.unwrap())).collect()
    }

    #[test]
    fn a_client_is_shown_after_its_provider_whatever_arrives_first() {
        use ComponentStatus::{Started, Starting, Stopped};
        let mut feed = Feed::new(false, &[binding("app", "db", Need::Strong(1))]);
        let mut shown = Vec::new();
        for event in [
            event("db", Stopped),
            event("app", Stopped),
            event("db", Starting),
            event("app", Starting),
            event("app", Started),
            event("db", Started),
        ] {
            shown.extend(feed.take(event));
        }
        assert_eq!(names(&shown), ["db starting", "db started", "app starting", "app started"]);
        // What died is shown, and what waits for it is shown at last even if the provider is never heard of again.
        assert_eq!(names(&feed.take(event("db", Stopped))), ["db stopped"]);
        assert!(feed.take(event("app", Starting)).is_empty());
        assert_eq!(names(&feed.release()), ["app starting"]);
    }

    #[test]
    fn enough_providers_are_enough_and_weak_ones_are_not_waited_for() {
        use ComponentStatus::{Started, Starting, Stopped};
        let bindings = [binding("app", "a", Need::Strong(1)), binding("app", "b", Need::Strong(1))];
        let mut feed = Feed::new(true, &bindings);
        feed.take(event("a", Stopped));
        feed.take(event("b", Stopped));
        assert!(feed.take(event("app", Starting)).is_empty());
        assert_eq!(names(&feed.take(event("b", Started))), ["b started", "app starting"]);
        let mut feed = Feed::new(true, &[binding("app", "a", Need::Weak(0))]);
        feed.take(event("a", Stopped));
        assert_eq!(names(&feed.take(event("app", Starting))), ["app starting"]);
    }

    #[test]
    fn every_event_is_shown_once_and_in_its_components_order() {
        use ComponentStatus::{Started, Starting, Stopped, Stopping};
        let states = [Stopped, Starting, Started, Stopping];
        let components = ["a", "b", "c"];
        let bindings = [binding("c", "b", Need::Strong(1)), binding("b", "a", Need::Strong(1))];
        // A small generator of orders: every start is repeatable.
        for seed in 0..2_000_u64 {
            let (mut feed, mut next, mut random) = (Feed::new(true, &bindings), [0; 3], seed);
            let mut shown = Vec::new();
            while next.iter().any(|it| *it < states.len()) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let which = usize::try_from(random >> 33).unwrap() % 3;
                if next[which] < states.len() {
                    shown.extend(feed.take(event(components[which], states[next[which]])));
                    next[which] += 1;
                }
            }
            shown.extend(feed.release());
            assert_eq!(shown.len(), 12);
            for component in components {
                let own: Vec<_> = shown.iter().filter(|it| it.component.as_deref() == Some(component)).collect();
                assert!(own.iter().map(|it| it.state.unwrap()).eq(states), "{seed}");
            }
            assert_eq!(names(&shown).into_iter().collect::<BTreeSet<_>>().len(), 12);
        }
    }
}
