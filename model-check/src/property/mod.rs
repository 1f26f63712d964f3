//! What must hold, with names: always, and at every end.
//!
//! Each property is written once, here or in [`protocol::invariant`], and every mode calls it: the explorer remembers the
//! verdict on parts, steps and pairs of agents that it has seen before; the [`inspector`](crate::inspector) of simulations,
//! replays and audits looks at what a step has touched. [`mode`] says which property is evaluated in which mode.
//!
//! Read next: [`machine`] for what one machine shows alone, [`whole`] for what only the whole world shows.

mod disruption;
mod machine;
pub mod mode;
mod whole;

pub use disruption::{Disruption, loses, may_stop};
pub use machine::{of_part, of_step, probe};
pub use mode::{Asked, Mode};
pub use protocol::invariant::{A1, A2, A3, A4, A5, A6, FAILED, P1};
pub use whole::{at_end, calls_for_a_look, of_event, while_idle};

use crate::world::{Part, World};
use protocol::{
    ComponentState, Name,
    agent::{HoldingState, LoanState},
    invariant::{self, View, Violation},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

/// A property that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Breach {
    /// The property's name.
    pub property: &'static str,
    /// What is wrong.
    pub detail: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.property, self.detail)
    }
}

impl From<&Violation> for Breach {
    fn from(violation: &Violation) -> Self {
        Self { property: violation.property(), detail: violation.to_string() }
    }
}

/// A host is asked for nothing that it cannot do.
pub const ONCE: &str = "nothing is started twice or stopped twice";
/// Only dependents of what leaves, died, failed or was lost are stopped.
pub const MINIMAL: &str = "only dependents of what leaves are stopped";
/// When a change is called done, the operator can rely on it.
pub const DONE: &str = "what is done is done: with no change under way, nothing moves";
/// The same of each change, while others are under way.
pub const OWN: &str = "a change is done only when its own components are as predicted";
/// The agent knows the number that the manager predicts with.
pub const NEED: &str = "when a change is done, agents know the needs that it set";
/// A failed operation is retried as its patience says.
pub const PATIENCE: &str = "failed operations are retried as often and after such pauses as specified";
/// What is no longer so changes nothing.
pub const STALE: &str = "outdated outcomes and alarms are ignored";
/// An agent speaks for its own VM only.
pub const TRUST: &str = "an agent is not believed about other VMs";
/// What is proven for one binding and one import in any surroundings holds for systems of every size.
pub const COVERED: &str = "the proof for every size covers each step";
/// Every VM is known to the manager.
pub const VMS: &str = "no VM exists outside the manager's book";
/// The machines come to rest with nothing left over.
pub const RESTS: &str = "the system comes to rest with every order and notice answered";
/// The end is the predicted one.
pub const PREDICTED: &str = "the end is the predicted one";
/// At rest, what the manager was told is what is so.
pub const KNOWN: &str = "at rest, the manager knows the state of every component";
/// A component without `rebind` does not run on with values that were replaced.
pub const FOLLOWED: &str = "a component that cannot rebind has restarted with values that changed";
/// A component with `rebind` was told of all that it holds, and of nothing else.
pub const REBOUND: &str = "a component that can rebind was last told exactly what it holds";
/// The end does not depend on timing.
pub const ONE_END: &str = "the end is always the same";

/// The story comes out as its scenario says.
pub const AS_TOLD: &str = "the expected end is reached";

/// Every property, with its word.
pub const ALL: [(&str, &str); 24] = [
    ("always", A1),
    ("always", A2),
    ("always", A3),
    ("always", A4),
    ("always", A5),
    ("always", A6),
    ("always", P1),
    ("always", FAILED),
    ("always", ONCE),
    ("always", MINIMAL),
    ("always", DONE),
    ("always", OWN),
    ("always", NEED),
    ("always", PATIENCE),
    ("always", STALE),
    ("always", TRUST),
    ("always", VMS),
    ("always", COVERED),
    ("eventually", RESTS),
    ("eventually", PREDICTED),
    ("eventually", KNOWN),
    ("eventually", FOLLOWED),
    ("eventually", REBOUND),
    ("eventually", ONE_END),
];

/// What should be seen at least once in any exploration worth the name.
pub const SOMETIMES: [&str; 3] = ["a component is started", "a loan is lent", "a loan is recalled"];

/// Which of [`SOMETIMES`] a part shows.
pub fn sights(part: &Part) -> Vec<&'static str> {
    let Part::Agent(agent) = part else { return Vec::new() };
    let components = || agent.components().values();
    let loan =
        |state: fn(LoanState) -> bool| components().any(|it| it.loans().iter().any(|(_, loan)| state(loan.state())));
    let seen = [
        components().any(|component| component.state() == ComponentState::Started),
        loan(|state| state == LoanState::Lent),
        loan(|state| matches!(state, LoanState::Recalled { .. })),
    ];
    SOMETIMES.into_iter().zip(seen).filter(|(_, seen)| *seen).map(|(name, _)| name).collect()
}

/// What an agent shows to others.
pub fn view(part: &Part) -> Option<View> {
    if let Part::Agent(agent) = part { Some(invariant::view(agent)) } else { None }
}

/// A2, A6 and P1 between the clients of one agent and the providers of another.
pub fn between(client: &View, provider: &View) -> Option<Breach> {
    invariant::between(client, provider).as_ref().map(Breach::from)
}

/// Everything that must hold of a world at any time.
pub fn of_world(world: &World, may_stop: Option<&BTreeSet<Name>>) -> Option<Breach> {
    let alone = world.parts().find_map(|(_, part)| of_part(part, may_stop));
    alone.or_else(|| {
        let views: Vec<View> = world.parts().filter_map(|(_, part)| view(part)).collect();
        let pairs = views.iter().flat_map(|client| views.iter().map(move |provider| (client, provider)));
        pairs.into_iter().find_map(|(client, provider)| between(client, provider))
    })
}

/// The end as an operator would describe it: what is in which state and what it holds. Numbers are left out, because they
/// may depend on timing.
pub type End = BTreeMap<Name, (ComponentState, BTreeSet<(Name, Name, HoldingState)>)>;

/// Describes the end of a world.
pub fn end_of(world: &World) -> Arc<End> {
    let book = world.manager().book();
    let components = world.agents().flat_map(|agent| agent.components().values());
    let described = components.map(|component| {
        let held = component.holdings().iter().filter_map(|(binding, holding)| {
            let wire = book.wire_by_id(binding)?;
            Some((holding.import().clone(), wire.provider, holding.state()))
        });
        (component.name().clone(), (component.state(), held.collect()))
    });
    Arc::new(described.collect())
}
