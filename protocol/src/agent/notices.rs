//! What neighbours say about bindings, recorded as facts.

use super::{Holding, HoldingState, Holdings, LoanState, Note, Turn};
use crate::{BindingId, ComponentId, Fact, Name, Notice, Values, VmId};

impl Turn<'_> {
    /// Records a notice, if it comes from the VM at the other end of the binding.
    pub(super) fn hear(&mut self, from: VmId, notice: Notice) {
        let binding = notice.binding();
        if self.agent.forgotten.contains(&from) {
            return self.note(Note::NoticeFenced(from, binding));
        }
        match notice {
            Notice::Bind { binding, client, import, values, ticket: _ } => {
                self.hear_bind(from, binding, client, import, values);
            }
            Notice::Started { binding } => {
                if let Some(client) = self.holder(from, binding) {
                    self.hear_loan(client, binding);
                }
            }
            Notice::UnbindRequired { binding, last } => {
                if let Some(client) = self.holder(from, binding) {
                    self.hear_recall(client, binding, last);
                }
            }
            Notice::UnbindConfirmed { binding, last } => self.hear_confirmation(from, binding, last),
        }
    }

    /// Rule C6: a client that is not yet known is waited for, and for one that is gone the agent answers.
    fn hear_bind(&mut self, from: VmId, binding: BindingId, client: ComponentId, import: Name, values: Values) {
        if self.agent.holders.contains_key(&binding) {
            if let Some(client) = self.holder(from, binding) {
                self.hear_values(client, binding, &values);
            }
            return;
        }
        let holding = Holding::new(from, import, values);
        if let Some(component) = self.agent.components.get_mut(&client) {
            component.holdings.bind(binding, holding, component.state.is_running());
            self.touched.insert(client);
        } else if client.0 > self.agent.last_order.0 {
            self.note(Note::Parked(binding, client));
            self.agent.parked.entry(client).or_default().bind(binding, holding, false);
        } else {
            // The client is gone, and only this agent can say so.
            return self.tell(from, Notice::UnbindConfirmed { binding, last: true });
        }
        self.agent.holders.insert(binding, client);
        self.share(from, binding);
    }

    /// New values for a binding that is known.
    fn hear_values(&mut self, client: ComponentId, binding: BindingId, values: &Values) {
        if let Some((holdings, running)) = self.holdings(client) {
            holdings.bind_again(binding, values, running);
            self.touched.insert(client);
        }
    }

    /// A loan: the binding may be used.
    fn hear_loan(&mut self, client: ComponentId, binding: BindingId) {
        if self.state_of(client, binding) == Some(HoldingState::Bound) {
            self.put_holding(client, binding, HoldingState::Held);
        } else {
            self.note(Note::NoticeTooLate(binding));
        }
    }

    /// A loan is asked back. What is not in use is returned at once; the rules decide about the rest.
    fn hear_recall(&mut self, client: ComponentId, binding: BindingId, last: bool) {
        let known = self.agent.components.contains_key(&client);
        match self.state_of(client, binding) {
            Some(HoldingState::Held) if known => self.put_holding(client, binding, HoldingState::Recalled { last }),
            Some(HoldingState::Recalled { last: before }) => {
                self.put_holding(client, binding, HoldingState::Recalled { last: last || before });
            }
            // Parked, or known but not lent: it is not in use.
            Some(HoldingState::Held | HoldingState::Bound) | None => self.confirm(client, binding, last),
        }
    }

    /// Where a holding is, known or parked.
    fn state_of(&mut self, client: ComponentId, binding: BindingId) -> Option<HoldingState> {
        self.holdings(client).and_then(|(holdings, _)| holdings.get(binding)).map(Holding::state)
    }

    /// What a component holds, or what is parked for one that is not yet known; and whether it is running.
    fn holdings(&mut self, client: ComponentId) -> Option<(&mut Holdings, bool)> {
        match self.agent.components.get_mut(&client) {
            Some(component) => Some((&mut component.holdings, component.state.is_running())),
            None => self.agent.parked.get_mut(&client).map(|parked| (parked, false)),
        }
    }

    /// Rule P6: a loan is home again.
    fn hear_confirmation(&mut self, from: VmId, binding: BindingId, last: bool) {
        let Some(provider) = self.agent.lenders.get(&binding).copied() else {
            return self.note(Note::NoticeTooLate(binding));
        };
        let component = self.component(provider);
        let (leaving, loans) = (component.is_leaving(), &mut component.loans);
        let loan = loans.get(binding).expect("lenders lists only loans that exist");
        if loan.client_vm != from {
            return self.note(Note::NoticeFenced(from, binding));
        }
        let (state, removing) = (loan.state(), loan.removing);
        match (last, state) {
            // A last confirmation clears the loan at any time, asked for or not.
            (true, _) => {
                self.drop_loan(provider, binding);
                if removing {
                    self.facts.push(Fact::BindingGone { binding });
                }
            }
            // It was removed meanwhile: now recall it for good.
            (false, LoanState::Recalled { .. }) if removing || leaving => {
                loans.put(binding, LoanState::Recalled { last: true });
                self.tell(from, Notice::UnbindRequired { binding, last: true });
            }
            (false, LoanState::Recalled { .. }) => {
                loans.put(binding, LoanState::Home);
                self.touched.insert(provider);
            }
            // Nothing was asked for.
            (false, LoanState::Home | LoanState::Lent | LoanState::Reference) => {
                self.note(Note::NoticeTooLate(binding));
            }
        }
    }

    /// The component that holds a binding, known or parked, if the notice comes from its provider's VM.
    fn holder(&mut self, from: VmId, binding: BindingId) -> Option<ComponentId> {
        let Some(client) = self.agent.holders.get(&binding).copied() else {
            // Its last confirmation is already on the way.
            self.note(Note::NoticeTooLate(binding));
            return None;
        };
        let provider_vm = self.holdings(client).and_then(|(it, _)| it.get(binding)).map(Holding::provider_vm);
        if provider_vm == Some(from) {
            return Some(client);
        }
        self.note(Note::NoticeFenced(from, binding));
        None
    }

    fn put_holding(&mut self, client: ComponentId, binding: BindingId, state: HoldingState) {
        if let Some((holdings, running)) = self.holdings(client) {
            holdings.put(binding, state, running);
            self.touched.insert(client);
        }
    }

    /// Gives a recalled loan back.
    pub(super) fn give_back(&mut self, client: ComponentId, binding: BindingId) {
        let holding = self.component(client).holdings.get(binding).expect("only what is held is given back");
        let last = holding.state() == HoldingState::Recalled { last: true };
        self.confirm(client, binding, last);
    }

    /// Says that a binding is not in use, and forgets it if that is for good.
    fn confirm(&mut self, client: ComponentId, binding: BindingId, last: bool) {
        let Some((holdings, running)) = self.holdings(client) else { return };
        let Some(provider_vm) = holdings.get(binding).map(Holding::provider_vm) else { return };
        if last {
            if holdings.may_be_value(binding) {
                self.facts.push(Fact::ValueWithdrawn { binding });
            }
            self.drop_holding(client, binding);
        } else {
            holdings.put(binding, HoldingState::Bound, running);
        }
        self.tell(provider_vm, Notice::UnbindConfirmed { binding, last });
    }

    /// The client's books no longer know the binding.
    pub(super) fn drop_holding(&mut self, client: ComponentId, binding: BindingId) {
        let Some((holdings, running)) = self.holdings(client) else { return };
        if let Some(holding) = holdings.remove(binding, running) {
            self.unshare(holding.provider_vm, binding);
        }
        self.agent.holders.remove(&binding);
        self.touched.insert(client);
        if self.agent.parked.get(&client).is_some_and(Holdings::is_empty) {
            self.agent.parked.remove(&client);
        }
    }
}
