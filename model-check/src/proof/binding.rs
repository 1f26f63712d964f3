//! The life of one binding in any surroundings: both sides, and the notices between them.
//!
//! All that concerns one binding travels on one pair of ordered links. So both sides of it, with the notices on the way, form
//! a system of their own, in which everything else (orders, other imports, hosts, deaths, crashes, lost VMs) is chosen freely.
//! It is finite, and [`explore`] looks at all of it. A crash changes nothing here: a machine comes back from its journal as it
//! was, and a link drops what has arrived before.

use super::{
    client::{self, Body, Client},
    provider::{self, Lender, Life, Provider, ToClient},
};
use protocol::{
    agent::{HoldingState, LoanState},
    invariant::{A2, A3, A4, A6},
};
use std::collections::{BTreeMap, VecDeque};

/// One binding, and what is on the way about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Binding {
    /// The provider's side.
    pub provider: Provider,
    /// The client's side; nothing if its VM is lost.
    pub client: Option<Client>,
    /// Notices to the client, each address with whether it has the provider's values of today.
    pub there: VecDeque<(ToClient, bool)>,
    /// Confirmations to the provider, each with whether it is for good.
    pub back: VecDeque<bool>,
    /// Whether the client knows the provider's values of today.
    pub knows: bool,
    /// Whether the provider's agent was told to forget the client's VM.
    pub provider_forgot: bool,
    /// Whether the client's agent was told to forget the provider's VM.
    pub client_forgot: bool,
}

impl Default for Binding {
    fn default() -> Self {
        Self {
            provider: Provider::Unordered,
            client: Some(Client { body: Body::Unknown, holding: None }),
            there: VecDeque::new(),
            back: VecDeque::new(),
            knows: false,
            provider_forgot: false,
            client_forgot: false,
        }
    }
}

/// Who moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mover {
    /// The provider's side, by itself.
    Provider,
    /// The client's side, by itself.
    Client,
    /// The next notice reaches the client.
    ToClient,
    /// The next confirmation reaches the provider.
    ToProvider,
    /// An agent is told to forget the other's VM.
    Forget,
    /// A VM is lost.
    Loss,
}

impl Binding {
    /// The lender, if there is one.
    fn lender(&self) -> Option<Lender> {
        if let Provider::Lends(lender) = self.provider { Some(lender) } else { None }
    }

    /// Everything that can happen. `value`: the client only needs values.
    pub fn moves(&self, value: bool) -> Vec<(Mover, Self)> {
        let mut found = Vec::new();
        for moved in provider::moves(self.provider, value, self.provider_forgot) {
            let after = self.with_provider(moved.provider, &moved.said);
            if moved.renewed {
                found.extend(after.with_any_values().into_iter().map(|it| (Mover::Provider, it)));
            } else {
                found.push((Mover::Provider, after));
            }
        }
        if let Some(client) = self.client {
            let moves = client::moves(client, value);
            found.extend(moves.into_iter().map(|moved| (Mover::Client, self.with_client(moved))));
            found.extend(self.deliver_to_client(value).map(|it| (Mover::ToClient, it)));
        }
        if self.provider != Provider::Lost {
            found.extend(self.deliver_to_provider().map(|it| (Mover::ToProvider, it)));
        }
        found.extend(self.forgets().into_iter().map(|it| (Mover::Forget, it)));
        found.extend(self.losses().into_iter().map(|it| (Mover::Loss, it)));
        found
    }

    fn with_provider(&self, provider: Provider, said: &[ToClient]) -> Self {
        let mut after = Self { provider, ..self.clone() };
        after.there.extend(said.iter().map(|it| (*it, *it == ToClient::Bind)));
        after.settled()
    }

    fn with_client(&self, (client, said): client::Moved) -> Self {
        let mut after = Self { client: Some(client), ..self.clone() };
        after.back.extend(said);
        after.settled()
    }

    /// The values of a provider that lends nothing, or of a binding that is not known, are nobody's concern.
    fn settled(mut self) -> Self {
        if self.lender().is_none() {
            self.there.iter_mut().for_each(|(_, present)| *present = false);
        }
        let known = self.client.is_some_and(|client| client.holding.is_some());
        self.knows &= known && self.lender().is_some();
        self
    }

    /// The provider's values have changed: what was told before may happen to be the same again, or not.
    fn with_any_values(&self) -> Vec<Self> {
        let mut all = vec![self.clone()];
        let binds: Vec<usize> = (0..self.there.len()).filter(|place| self.there[*place].0 == ToClient::Bind).collect();
        for place in binds {
            for mut it in std::mem::take(&mut all) {
                it.there[place].1 = false;
                all.push(it.clone());
                it.there[place].1 = true;
                all.push(it);
            }
        }
        let known = self.client.is_some_and(|client| client.holding.is_some());
        let knows: &[bool] = if known { &[false, true] } else { &[false] };
        all.iter().flat_map(|it| knows.iter().map(|knows| Self { knows: *knows, ..it.clone() })).collect()
    }

    fn deliver_to_client(&self, value: bool) -> Option<Self> {
        let mut after = self.clone();
        let (notice, present) = after.there.pop_front()?;
        let client = self.client?;
        if self.client_forgot {
            return Some(after);
        }
        let moved = match notice {
            ToClient::Bind => {
                after.knows = present;
                client::hear_bind(client, value)
            }
            ToClient::Started => client::hear_loan(client),
            ToClient::Recall { last } => client::hear_recall(client, last),
        };
        Some(after.with_client(moved))
    }

    fn deliver_to_provider(&self) -> Option<Self> {
        let mut after = self.clone();
        let last = after.back.pop_front()?;
        let moved = provider::hear(self.provider, self.provider_forgot, last);
        Some(after.with_provider(moved.provider, &moved.said))
    }

    /// M7: an agent is told to forget the other's VM, whether that is lost or only taken to be.
    fn forgets(&self) -> Vec<Self> {
        let mut found = Vec::new();
        if !self.provider_forgot && self.provider != Provider::Lost {
            let after = Self { provider_forgot: true, provider: provider::forget(self.provider), ..self.clone() };
            found.push(after.settled());
        }
        if let Some(client) = self.client.filter(|_| !self.client_forgot) {
            let client = Some(Client { holding: None, ..client });
            found.push(Self { client_forgot: true, client, ..self.clone() }.settled());
        }
        found
    }

    fn losses(&self) -> Vec<Self> {
        let mut found = Vec::new();
        if self.provider != Provider::Lost {
            found.push(Self { provider: Provider::Lost, ..self.clone() }.settled());
        }
        if self.client.is_some() {
            found.push(Self { client: None, ..self.clone() }.settled());
        }
        found
    }

    /// Whether the client uses the loan.
    fn is_used(&self) -> bool {
        let uses = |client: Client| {
            client.body == Body::Running
                && matches!(client.holding, Some(HoldingState::Held | HoldingState::Recalled { .. }))
        };
        self.client.is_some_and(uses)
    }

    /// The property that is broken, if one is.
    pub fn breach(&self, value: bool) -> Option<&'static str> {
        let holding = self.client.and_then(|client| client.holding);
        let recalled = matches!(holding, Some(HoldingState::Recalled { .. }));
        if recalled && self.client.is_some_and(|client| client.body != Body::Running) {
            return Some(A4);
        }
        if self.client_forgot && holding.is_some() || self.provider_forgot && self.lender().is_some() {
            return Some(A3);
        }
        if value {
            return None;
        }
        let lender = self.lender();
        let stands = |it: Lender| matches!(it.life, Life::Started | Life::Died);
        let out = |it: Lender| matches!(it.state, LoanState::Lent | LoanState::Recalled { last: false });
        if lender.is_some_and(|it| out(it) && !stands(it)) {
            return Some(A2);
        }
        // Nothing can tell the client earlier that its provider's VM is lost; and a client that was declared lost is not
        // waited for.
        if !self.is_used() || self.provider == Provider::Lost || self.provider_forgot {
            return None;
        }
        match lender.filter(|it| it.is_out() && stands(*it)) {
            None => Some(A2),
            Some(_) => (!self.knows).then_some(A6),
        }
    }

    /// Whether a recall waits for an answer.
    fn is_recalled(&self) -> bool {
        self.lender().is_some_and(|it| matches!(it.state, LoanState::Recalled { .. }))
    }
}

/// What the exploration of one binding found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// Moves between them.
    pub moves: usize,
    /// The most notices about the binding on a link at the same time.
    pub notices_max: usize,
    /// The first property that is broken, with the states on the way there.
    pub breach: Option<(&'static str, Vec<Binding>)>,
    /// A state from which a recall can never be answered, with the way there.
    pub unanswered: Option<Vec<Binding>>,
}

/// Looks at every state of one binding. `value`: the client only needs values. `lossy`: VMs may be lost or declared lost.
pub fn explore(value: bool, lossy: bool) -> Explored {
    let happens = |(mover, _): &(Mover, Binding)| lossy || !matches!(mover, Mover::Forget | Mover::Loss);
    walk(value, |state| state.moves(value).into_iter().filter(happens).collect())
}

/// Looks at every state that moves lead to.
fn walk(value: bool, moves: impl Fn(&Binding) -> Vec<(Mover, Binding)>) -> Explored {
    let mut numbers = BTreeMap::from([(Binding::default(), 0_usize)]);
    let (mut states, mut parents) = (vec![Binding::default()], vec![0]);
    let mut edges: Vec<(usize, Mover, usize)> = Vec::new();
    let mut at = 0;
    let way = |states: &[Binding], parents: &[usize], mut at: usize| {
        let mut way = vec![states[at].clone()];
        while at != 0 {
            at = parents[at];
            way.push(states[at].clone());
        }
        way.reverse();
        way
    };
    let mut breach = None;
    while at < states.len() {
        let state = states[at].clone();
        if let Some(property) = state.breach(value) {
            // A system that is wrong need not be finite.
            breach = Some((property, way(&states, &parents, at)));
            break;
        }
        for (mover, after) in moves(&state) {
            let fresh = states.len();
            let number = *numbers.entry(after.clone()).or_insert(fresh);
            if number == fresh {
                states.push(after);
                parents.push(at);
            }
            edges.push((at, mover, number));
        }
        at += 1;
    }
    let unanswered = unanswered(&states, &edges).filter(|_| breach.is_none()).map(|at| way(&states, &parents, at));
    let notices_max = states.iter().map(|it| it.there.len().max(it.back.len())).max().unwrap_or(0);
    Explored { states: states.len(), moves: edges.len(), notices_max, breach, unanswered }
}

/// A state with a recall from which no moves of the two sides and the links alone lead to its answer; a VM that is lost is
/// forgotten in the end.
fn unanswered(states: &[Binding], edges: &[(usize, Mover, usize)]) -> Option<usize> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); states.len()];
    for (from, mover, to) in edges {
        let helps = match mover {
            Mover::Provider | Mover::Client | Mover::ToClient | Mover::ToProvider => true,
            Mover::Forget => states[*from].client.is_none(),
            Mover::Loss => false,
        };
        if helps {
            before[*to].push(*from);
        }
    }
    let mut answered: Vec<bool> = states.iter().map(|it| !it.is_recalled()).collect();
    let mut open: Vec<usize> = (0..states.len()).filter(|it| answered[*it]).collect();
    while let Some(at) = open.pop() {
        for from in &before[at] {
            if !std::mem::replace(&mut answered[*from], true) {
                open.push(*from);
            }
        }
    }
    // A client whose agent was told to forget the provider's VM does not answer it: that VM is no more for it.
    (0..states.len()).find(|it| !answered[*it] && !states[*it].client_forgot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::provider::Told;

    #[test]
    fn one_binding_is_safe_in_any_surroundings() {
        // Spin counts the same states: see `cargo xtask proof`.
        let expected = [(false, false, 1_689), (false, true, 5_165), (true, false, 699), (true, true, 2_092)];
        for (value, lossy, states) in expected {
            let explored = explore(value, lossy);
            assert_eq!((explored.breach, explored.unanswered), (None, None));
            assert_eq!(explored.states, states, "value: {value}, lossy: {lossy}");
            assert!(explored.notices_max <= 4, "{} notices on one link", explored.notices_max);
        }
    }

    /// The property that breaks when one more move is allowed.
    fn broken_by(flaw: impl Fn(&Binding) -> Option<Binding>) -> Option<&'static str> {
        let moves = |state: &Binding| {
            let more = flaw(state).map(|after| (Mover::Provider, after));
            state.moves(false).into_iter().chain(more).collect()
        };
        walk(false, moves).breach.map(|(property, _)| property)
    }

    fn lent(state: &Binding, change: impl Fn(&mut Lender)) -> Option<Binding> {
        let mut lender = state.lender().filter(|it| it.is_out())?;
        change(&mut lender);
        Some(Binding { provider: Provider::Lends(lender), ..state.clone() })
    }

    #[test]
    fn a_provider_that_does_not_wait_for_its_loan_breaks_a2() {
        assert_eq!(broken_by(|state| lent(state, |it| it.life = Life::Down)), Some(A2));
        let takes_it_back = |state: &Binding| lent(state, |it| it.state = LoanState::Home);
        assert_eq!(broken_by(takes_it_back), Some(A2));
    }

    #[test]
    fn a_loan_without_the_address_before_it_breaks_a6() {
        let flaw = |state: &Binding| {
            let lender = state.lender().filter(|it| it.told == Told::Outdated && it.life == Life::Started)?;
            let ready = lender.state == LoanState::Home && !lender.leaving;
            let lent = Provider::Lends(Lender { state: LoanState::Lent, ..lender });
            ready.then(|| state.with_provider(lent, &[ToClient::Started]))
        };
        assert_eq!(broken_by(flaw), Some(A6));
    }

    #[test]
    fn a_client_that_stops_and_keeps_what_is_recalled_breaks_a4() {
        let flaw = |state: &Binding| {
            let client = state.client.filter(|it| it.body == Body::Running)?;
            Some(Binding { client: Some(Client { body: Body::Idle, ..client }), ..state.clone() })
        };
        assert_eq!(broken_by(flaw), Some(A4));
    }

    #[test]
    fn a_client_that_hears_a_vm_it_has_forgotten_breaks_a3() {
        let flaw = |state: &Binding| {
            let deaf = Binding { client_forgot: false, ..state.clone() };
            let after = deaf.deliver_to_client(false).filter(|_| state.client_forgot)?;
            Some(Binding { client_forgot: true, ..after })
        };
        assert_eq!(broken_by(flaw), Some(A3));
    }

    #[test]
    fn a_client_that_does_not_answer_leaves_a_recall_open() {
        let mute = |(mover, after): &(Mover, Binding)| *mover != Mover::ToProvider || after.back.len() > 9;
        let found = walk(false, |state| {
            // Links that lose what the client says; as many as fit are kept, so that the system stays finite.
            let short = |(_, after): &(Mover, Binding)| after.back.len() < 4;
            state.moves(false).into_iter().filter(mute).filter(short).collect()
        });
        assert!(found.unanswered.is_some());
    }
}
