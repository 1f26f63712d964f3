//! The same worlds for Stateright, another explorer: the same actions, the same steps, the same properties.

use model_check::{Action, World, property};
use stateright::{Model, Property};

/// A world for Stateright.
pub(crate) struct Walk(pub(crate) World);

impl Model for Walk {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.0.clone()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.extend(world.actions());
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.apply(action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("every property of the project", |_, world: &World| {
            property::of_world(world, None).is_none()
        })]
    }
}
