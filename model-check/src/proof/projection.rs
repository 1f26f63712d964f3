//! Every step of a real agent, seen from one binding or one import, is a sequence of moves of the abstract systems.
//!
//! An agent's step is looked at from each binding that it concerns: the agent's side of it before and after, the notice about
//! it that came in, and the notices about it that went out. There must be moves of that side that lead from the one to the
//! other, hear what came in first, and say exactly what went out. Of a binding between two components of one VM both sides
//! move in one step, and their notices do not leave it. What is on the links is left to the links, which deliver what was
//! sent, in order, and once.

use super::{
    binding::{Binding, Mover},
    client::{self, Body, Client},
    import::{Import, Sign},
    provider::{self, Lender, Life, Provider, ToClient, Told},
};
use crate::world::Output;
use protocol::{
    BindingId, ComponentId, ComponentState, Instruction, Name, Notice, Values, VmAgent, VmId,
    agent::{self, Component, HoldingState, LoanState},
    invariant,
};
use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    hash::Hash,
};

/// What one agent's step does that no moves of the abstract systems lead to.
pub fn of_step(before: &VmAgent, input: &agent::Input, outputs: &[Output], after: &VmAgent) -> Option<String> {
    let step = Step { before, input, outputs, after };
    step.bindings().into_iter().find_map(|binding| step.of_binding(binding)).or_else(|| step.of_imports())
}

/// One step of an agent.
struct Step<'s> {
    before: &'s VmAgent,
    input: &'s agent::Input,
    outputs: &'s [Output],
    after: &'s VmAgent,
}

/// Both ends of a binding that are on this VM, and where the other one is.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    client_vm: Option<VmId>,
    provider_vm: Option<VmId>,
    client: Option<ComponentId>,
    value: bool,
}

impl Step<'_> {
    /// The bindings that the step concerns.
    fn bindings(&self) -> BTreeSet<BindingId> {
        let mut found = BTreeSet::new();
        for agent in [self.before, self.after] {
            for component in agent.components().values() {
                found.extend(component.loans().iter().map(|(binding, _)| binding));
                found.extend(component.holdings().iter().map(|(binding, _)| binding));
            }
            found.extend(agent.parked().values().flat_map(|parked| parked.iter().map(|(binding, _)| binding)));
        }
        if let agent::Input::FromPeer(_, notice) = self.input {
            found.insert(notice.binding());
        }
        found.extend(self.said().map(|(_, notice)| notice.binding()));
        found
    }

    fn said(&self) -> impl Iterator<Item = (VmId, &Notice)> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Agent(agent::Output::ToPeer(vm, notice)) => Some((*vm, notice)),
            Output::Agent(_) | Output::Manager(_) => None,
        })
    }

    fn ends(&self, binding: BindingId) -> Ends {
        let mut ends = Ends::default();
        for agent in [self.before, self.after] {
            if let Some((_, loan)) = loan_of(agent, binding) {
                ends.client_vm = Some(loan.client_vm());
                ends.value |= loan.state() == LoanState::Reference;
            }
            if let Some((client, holding)) = holding_of(agent, binding) {
                (ends.provider_vm, ends.client) = (Some(holding.provider_vm()), Some(client));
                let import =
                    agent.components().get(&client).and_then(|it| it.holdings().imports().get(holding.import()));
                ends.value |= import.is_some_and(|it| it.need.is_value());
            }
        }
        if let agent::Input::FromPeer(from, notice) = self.input
            && notice.binding() == binding
        {
            match notice {
                Notice::Bind { client, .. } => {
                    ends.client = ends.client.or(Some(*client));
                    ends.provider_vm = ends.provider_vm.or(Some(*from));
                }
                Notice::Started { .. } | Notice::UnbindRequired { .. } => {
                    ends.provider_vm = ends.provider_vm.or(Some(*from));
                }
                Notice::UnbindConfirmed { .. } => ends.client_vm = ends.client_vm.or(Some(*from)),
            }
        }
        ends
    }

    /// The notice about a binding that came in, if it came from that VM.
    fn heard(&self, binding: BindingId, from: Option<VmId>) -> Option<&Notice> {
        match self.input {
            agent::Input::FromPeer(vm, notice) if notice.binding() == binding && Some(*vm) == from => Some(notice),
            _ => None,
        }
    }

    /// Whether the step is told to forget a VM.
    fn forgets(&self, vm: Option<VmId>) -> bool {
        let agent::Input::FromManager(order) = self.input else { return false };
        let meant = matches!(order.instruction, Instruction::ForgetVm { vm: forgotten } if Some(forgotten) == vm);
        meant && order.number > self.before.last_order()
    }

    fn of_binding(&self, binding: BindingId) -> Option<String> {
        let ends = self.ends(binding);
        let here = Some(self.before.id());
        // Of a binding within this VM the client may still be to come.
        if ends.client_vm == here || ends.provider_vm == here {
            return self.of_local(binding, ends);
        }
        let provides = self.of_provider(binding, ends);
        provides.or_else(|| self.of_client(binding, ends)).map(|it| format!("{binding}: {it}"))
    }

    fn of_provider(&self, binding: BindingId, ends: Ends) -> Option<String> {
        let (from, to) = (provider_side(self.before, binding), provider_side(self.after, binding));
        let said: Vec<ToClient> = self.said().filter_map(|(_, it)| to_client(it, binding)).collect();
        let heard = match self.heard(binding, ends.client_vm) {
            Some(Notice::UnbindConfirmed { last, .. }) => Some(*last),
            _ => None,
        };
        let forgot = ends.client_vm.is_some_and(|vm| self.before.has_forgotten(vm));
        let forgets = self.forgets(ends.client_vm);
        if let Some(values) = self.told_otherwise(binding) {
            return Some(format!("its client is told {values:?}, which are not the provider's values"));
        }
        if from == to && said.is_empty() && heard.is_none() {
            return None;
        }
        let key = (from, to, said.clone(), heard, (ends.value, forgot, forgets));
        let allowed = remembered(&PROVIDERS, key, || {
            let (mut first, mut forgot) =
                (provider::Moved { provider: from, said: Vec::new(), renewed: false }, forgot);
            if let Some(last) = heard {
                first = provider::hear(from, forgot, last);
            }
            if forgets {
                (first.provider, forgot) = (provider::forget(first.provider), true);
            }
            let moves = |(at, told): &(Provider, Vec<ToClient>)| {
                let moves = provider::moves(*at, ends.value, forgot).into_iter();
                moves.map(|it| (it.provider, [told.clone(), it.said].concat())).collect()
            };
            leads((first.provider, first.said), &(to, said.clone()), |it| said.starts_with(&it.1), moves)
        });
        (!allowed).then(|| format!("from {from:?} no moves lead to {to:?} and say {said:?}, having heard {heard:?}"))
    }

    /// P1: an address that goes out has the values of its provider.
    fn told_otherwise(&self, binding: BindingId) -> Option<Values> {
        let (provider, loan) = loan_of(self.after, binding)?;
        let stand = invariant::stand_of(provider, binding, loan);
        let values = self.said().filter_map(|(_, notice)| match notice {
            Notice::Bind { binding: about, values, .. } if *about == binding => Some(values),
            _ => None,
        });
        values.last().filter(|values| !stand.value && **values != stand.values).cloned()
    }

    fn of_client(&self, binding: BindingId, ends: Ends) -> Option<String> {
        let from = client_side(self.before, binding, ends.client);
        let to = client_side(self.after, binding, ends.client);
        let said: Vec<bool> = self.said().filter_map(|(_, it)| to_provider(it, binding)).collect();
        let forgot = ends.provider_vm.is_some_and(|vm| self.before.has_forgotten(vm));
        let heard = self.heard(binding, ends.provider_vm).filter(|_| !forgot);
        let forgets = self.forgets(ends.provider_vm);
        if let Some(wrong) = self.knows_otherwise(binding, heard) {
            return Some(wrong);
        }
        let word = heard.and_then(|notice| to_client(notice, binding));
        if from == to && said.is_empty() && word.is_none() {
            return None;
        }
        let key = (from, to, said.clone(), word, (ends.value, forgets));
        let allowed = remembered(&CLIENTS, key, || {
            let (mut first, reply) = match word {
                Some(ToClient::Bind) => client::hear_bind(from, ends.value),
                Some(ToClient::Started) => client::hear_loan(from),
                Some(ToClient::Recall { last }) => client::hear_recall(from, last),
                None => (from, None),
            };
            if forgets {
                first.holding = None;
            }
            let moves = |(at, told): &(Client, Vec<bool>)| {
                let moves = client::moves(*at, ends.value).into_iter();
                moves.map(|(next, said)| (next, told.iter().copied().chain(said).collect())).collect()
            };
            leads((first, reply.into_iter().collect()), &(to, said.clone()), |it| said.starts_with(&it.1), moves)
        });
        (!allowed).then(|| format!("from {from:?} no moves lead to {to:?} and say {said:?}, having heard {word:?}"))
    }

    /// A client knows what it was told last.
    fn knows_otherwise(&self, binding: BindingId, heard: Option<&Notice>) -> Option<String> {
        let after = holding_of(self.after, binding).map(|(_, holding)| holding.values())?;
        let before = holding_of(self.before, binding).map(|(_, holding)| holding.values());
        let told = match heard {
            Some(Notice::Bind { values, .. }) => Some(values),
            _ => before,
        };
        (told != Some(after)).then(|| format!("its client was told {told:?} and knows {after:?}"))
    }

    /// A binding within this VM: both sides move, and nothing is left on the way between them.
    fn of_local(&self, binding: BindingId, ends: Ends) -> Option<String> {
        let client = ends.client.or_else(|| {
            let loan = loan_of(self.before, binding).or_else(|| loan_of(self.after, binding));
            loan.map(|(_, loan)| loan.client())
        });
        let side = |agent: &VmAgent| Binding {
            provider: provider_side(agent, binding),
            client: Some(client_side(agent, binding, client)),
            ..Binding::default()
        };
        let (from, to) = (side(self.before), side(self.after));
        if from == to {
            return None;
        }
        let allowed = remembered(&LOCALS, (from.clone(), to.clone(), ends.value), || {
            let moves = |at: &Binding| {
                let moves = at.moves(ends.value).into_iter();
                // Whether values agree is compared by A6; here it would only multiply states.
                let plain = |mut it: Binding| {
                    it.knows = false;
                    it.there.iter_mut().for_each(|(_, present)| *present = false);
                    it
                };
                moves
                    .filter(|(mover, _)| !matches!(mover, Mover::Forget | Mover::Loss))
                    .map(|(_, it)| plain(it))
                    .collect()
            };
            leads(from.clone(), &to, |_| true, moves)
        });
        (!allowed).then(|| format!("{binding}: within this VM, from {from:?} no moves lead to {to:?}"))
    }

    fn of_imports(&self) -> Option<String> {
        self.after.components().iter().find_map(|(id, component)| {
            let before = self.before.components().get(id);
            component.holdings().imports().iter().find_map(|(name, _)| {
                let to = import_side(component, name)?;
                let from = before.and_then(|it| import_side(it, name));
                if from == Some(to) {
                    return None;
                }
                let allowed = remembered(&IMPORTS, (from, to), || {
                    let mut firsts = from.map_or_else(|| Import::first().collect(), |from| vec![from]).into_iter();
                    firsts.any(|first| leads(first, &to, |_| true, |it| it.moves()))
                });
                let who = component.name();
                (!allowed).then(|| format!("{who}: its import {name}: from {from:?} no moves lead to {to:?}"))
            })
        })
    }
}

/// Whether moves lead from one state to another, through states that may be on the way.
fn leads<S: Clone + Eq + Hash>(from: S, to: &S, fits: impl Fn(&S) -> bool, moves: impl Fn(&S) -> Vec<S>) -> bool {
    let mut seen = HashSet::from([from.clone()]);
    let mut open = VecDeque::from([from]);
    while let Some(at) = open.pop_front() {
        if at == *to {
            return true;
        }
        for next in moves(&at).into_iter().filter(|next| fits(next)) {
            if seen.insert(next.clone()) {
                open.push_back(next);
            }
        }
    }
    false
}

type Verdicts<K> = RefCell<HashMap<K, bool>>;
type ProviderStep = (Provider, Provider, Vec<ToClient>, Option<bool>, (bool, bool, bool));
type ClientStep = (Client, Client, Vec<bool>, Option<ToClient>, (bool, bool));

thread_local! {
    static PROVIDERS: Verdicts<ProviderStep> = RefCell::default();
    static CLIENTS: Verdicts<ClientStep> = RefCell::default();
    static LOCALS: Verdicts<(Binding, Binding, bool)> = RefCell::default();
    static IMPORTS: Verdicts<(Option<Import>, Import)> = RefCell::default();
}

/// The same question is asked very often, and there are few different ones.
fn remembered<K: Eq + Hash>(
    verdicts: &'static std::thread::LocalKey<Verdicts<K>>,
    key: K,
    ask: impl FnOnce() -> bool,
) -> bool {
    if let Some(known) = verdicts.with_borrow(|it| it.get(&key).copied()) {
        return known;
    }
    let verdict = ask();
    verdicts.with_borrow_mut(|it| it.insert(key, verdict));
    verdict
}

fn loan_of(agent: &VmAgent, binding: BindingId) -> Option<(&Component, &agent::Loan)> {
    agent.components().values().find_map(|it| Some((it, it.loans().get(binding)?)))
}

fn holding_of(agent: &VmAgent, binding: BindingId) -> Option<(ComponentId, &agent::Holding)> {
    let known = agent.components().iter().find_map(|(id, it)| Some((*id, it.holdings().get(binding)?)));
    known.or_else(|| agent.parked().iter().find_map(|(id, it)| Some((*id, it.get(binding)?))))
}

/// The provider's side of a binding in an agent's books.
fn provider_side(agent: &VmAgent, binding: BindingId) -> Provider {
    let Some((component, loan)) = loan_of(agent, binding) else {
        return if binding.0 > agent.last_order().0 { Provider::Unordered } else { Provider::Dropped };
    };
    let life = match component.state() {
        ComponentState::Started => Life::Started,
        ComponentState::Starting => Life::Starting,
        _ if component.has_died() => Life::Died,
        ComponentState::Stopped | ComponentState::Stopping | ComponentState::Failed(_) => Life::Down,
    };
    let told = match loan.told() {
        None => Told::Never,
        Some(edition) if edition == component.edition() => Told::Present,
        Some(_) => Told::Outdated,
    };
    Provider::Lends(Lender {
        state: loan.state(),
        told,
        removing: loan.is_removing(),
        life,
        leaving: component.is_leaving(),
        announced: component.announced().is_some(),
    })
}

/// The client's side of a binding in an agent's books.
fn client_side(agent: &VmAgent, binding: BindingId, client: Option<ComponentId>) -> Client {
    let holding = holding_of(agent, binding).map(|(_, holding)| holding.state());
    let body = match client.map(|id| (id, agent.components().get(&id))) {
        Some((_, Some(component))) if component.state().is_running() => Body::Running,
        Some((_, Some(component))) if component.is_leaving() => Body::Leaving,
        Some((_, Some(_))) => Body::Idle,
        Some((id, None)) if id.0 > agent.last_order().0 => Body::Unknown,
        Some((_, None)) | None => Body::Gone,
    };
    Client { body, holding }
}

/// How a strong or value import stands; nothing of others.
fn import_side(component: &Component, name: &Name) -> Option<Import> {
    let state = component.holdings().imports().get(name).filter(|it| !it.need.is_weak())?;
    let mut recalled = 0;
    for (binding, holding) in component.holdings().iter().filter(|(_, it)| it.import() == name) {
        let kept = matches!(holding.state(), HoldingState::Recalled { .. }) && !component.holdings().is_let_go(binding);
        recalled += u32::from(kept);
    }
    let number = state.need.number();
    Some(Import {
        running: component.state().is_running(),
        held: Sign::of(state.held, number),
        kept: Sign::of(state.held + recalled, number),
        recalled: recalled > 0,
        raised: state.raise.is_some(),
        bereft: state.bereft,
    })
}

fn to_client(notice: &Notice, binding: BindingId) -> Option<ToClient> {
    match notice {
        _ if notice.binding() != binding => None,
        Notice::Bind { .. } => Some(ToClient::Bind),
        Notice::Started { .. } => Some(ToClient::Started),
        Notice::UnbindRequired { last, .. } => Some(ToClient::Recall { last: *last }),
        Notice::UnbindConfirmed { .. } => None,
    }
}

fn to_provider(notice: &Notice, binding: BindingId) -> Option<bool> {
    match notice {
        Notice::UnbindConfirmed { binding: about, last } if *about == binding => Some(*last),
        _ => None,
    }
}
