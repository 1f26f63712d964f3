//! The client's side of one binding, with everything else of the client chosen freely.
//!
//! Whether a client starts, stops or gives something back while it runs depends on all its imports. Here the surroundings
//! choose it: a client may start and stop at any time, and return what is recalled at any time. What it must not do is to
//! keep what is recalled once it is not running.

use protocol::agent::HoldingState;

/// Where the client is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    /// Its agent has not heard of it yet.
    Unknown,
    /// It is known, and not running.
    Idle,
    /// It is running.
    Running,
    /// It is removed and not running: it will not run again.
    Leaving,
    /// It was there and is forgotten.
    Gone,
}

impl Body {
    /// Whether its agent has it.
    fn is_known(self) -> bool {
        matches!(self, Self::Idle | Self::Running | Self::Leaving)
    }
}

/// The client's side of one binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client {
    /// The component.
    pub body: Body,
    /// What its agent knows of the binding.
    pub holding: Option<HoldingState>,
}

/// What one move leads to: the client's side, and what the provider is told (whether for good).
pub type Moved = (Client, Option<bool>);

/// A recalled holding, or one that is not in use, is given back.
fn confirm(client: Client, last: bool) -> Moved {
    (Client { holding: (!last).then_some(HoldingState::Bound), ..client }, Some(last))
}

/// Everything that the client's side may do without hearing from the provider. `value`: it only needs values.
pub fn moves(client: Client, value: bool) -> Vec<Moved> {
    let mut found = Vec::new();
    let with = |body: Body| Client { body, ..client };
    match client.body {
        // What was parked is taken over. A value is held as soon as it is known.
        Body::Unknown => {
            let holding = client.holding.map(|state| if value { HoldingState::Held } else { state });
            found.push((Client { body: Body::Idle, holding }, None));
        }
        Body::Idle => found.extend([(with(Body::Running), None), (with(Body::Leaving), None)]),
        // C4: not running any more, it gives back what is recalled in the same step.
        Body::Running => found.extend([Body::Idle, Body::Leaving].map(|body| match client.holding {
            Some(HoldingState::Recalled { last }) => confirm(with(body), last),
            Some(HoldingState::Bound | HoldingState::Held) | None => (with(body), None),
        })),
        // P7: it gives back all that it holds, and goes.
        Body::Leaving => found.push(match client.holding {
            Some(_) => confirm(client, true),
            None => (with(Body::Gone), None),
        }),
        Body::Gone => {}
    }
    // C3 and C5: while it runs, it may return what it can do without.
    if let (Body::Running, Some(HoldingState::Recalled { last })) = (client.body, client.holding) {
        found.push(confirm(client, last));
    }
    found
}

/// What the client's side makes of an address: what it knew before is replaced.
pub fn hear_bind(client: Client, value: bool) -> Moved {
    match (client.holding, client.body) {
        (Some(_), _) => (client, None),
        // C6: for one that is gone its agent answers.
        (None, Body::Gone) => (client, Some(true)),
        (None, body) => {
            let state = if value && body.is_known() { HoldingState::Held } else { HoldingState::Bound };
            (Client { holding: Some(state), ..client }, None)
        }
    }
}

/// What the client's side makes of a loan.
pub fn hear_loan(client: Client) -> Moved {
    match client.holding {
        Some(HoldingState::Bound) => (Client { holding: Some(HoldingState::Held), ..client }, None),
        Some(HoldingState::Held | HoldingState::Recalled { .. }) | None => (client, None),
    }
}

/// What the client's side makes of a recall.
pub fn hear_recall(client: Client, last: bool) -> Moved {
    match client.holding {
        None => (client, None),
        Some(HoldingState::Held) if client.body == Body::Running => {
            (Client { holding: Some(HoldingState::Recalled { last }), ..client }, None)
        }
        Some(HoldingState::Bound | HoldingState::Held) => confirm(client, last),
        Some(HoldingState::Recalled { last: before }) => {
            (Client { holding: Some(HoldingState::Recalled { last: last || before }), ..client }, None)
        }
    }
}
