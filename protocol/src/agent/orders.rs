//! What the manager orders, recorded as facts.

use super::{Component, ComponentState, Loan, LoanState, Note, TaskState, Turn, component::Run};
use crate::{BindingId, ComponentId, Fact, Instruction, Notice, Operation, Order, OrderNumber, VmId};

impl Turn<'_> {
    /// Records an order. Every order is answered, also one with nothing to do.
    pub(super) fn obey(&mut self, order: Order) {
        if order.number <= self.agent.last_order {
            return self.note(Note::OrderRepeated(order.number));
        }
        self.agent.last_order = order.number;
        self.ordered = true;
        match order.instruction {
            Instruction::AddComponent { name, kind } => {
                let id = ComponentId(order.number.0);
                let parked = self.agent.parked.remove(&id).unwrap_or_default();
                self.agent.components.insert(id, Component::new(id, name, kind, parked));
                self.agent.down += 1;
                self.touched.insert(id);
            }
            Instruction::RemoveComponent { component } => {
                if let Some(found) = self.ordered_component(component, order.number) {
                    found.orders.leave();
                }
            }
            Instruction::RestartComponent { component } => self.restart(component, order.number),
            Instruction::RetryComponent { component } => self.retry(component, order.number),
            Instruction::SkipComponent { component } => self.skip(component, order.number),
            Instruction::SetNeed { component, import, number } => {
                if let Some(found) = self.ordered_component(component, order.number) {
                    found.holdings.set_need(&import, number);
                }
            }
            Instruction::AddBinding { provider, export, client, client_vm, import, value, ticket } => {
                let binding = BindingId(order.number.0);
                // A client on a forgotten VM will never answer.
                let lost = self.agent.forgotten.contains(&client_vm);
                if let Some(found) = self.ordered_component(provider, order.number).filter(|_| !lost) {
                    found.loans.insert(binding, Loan::new(client, client_vm, import, export, value, ticket));
                    self.agent.lenders.insert(binding, provider);
                    self.share(client_vm, binding);
                    self.bind(provider, binding);
                }
            }
            Instruction::RemoveBinding { binding } => self.remove_binding(binding),
            Instruction::ForgetVm { vm } => self.forget_vm(vm),
            Instruction::RollCall => {}
        }
    }

    /// The component that an order is about; its rules will be looked at.
    fn ordered_component(&mut self, id: ComponentId, order: OrderNumber) -> Option<&mut Component> {
        if !self.agent.components.contains_key(&id) {
            self.note(Note::NothingToDo(order));
        }
        self.touched.insert(id);
        self.agent.components.get_mut(&id)
    }

    fn restart(&mut self, id: ComponentId, order: OrderNumber) {
        let Some(component) = self.ordered_component(id, order) else { return };
        component.orders.renew(order);
        match component.state {
            // What runs, or is about to, was begun before this order.
            ComponentState::Starting | ComponentState::Started => component.orders.restart(),
            // The next start comes after this order in any case; no need to sit out a pause.
            ComponentState::Stopped => {
                component.tasks.failures = None;
                if let TaskState::Pausing(_) = component.tasks.state {
                    component.tasks.state = TaskState::None;
                }
            }
            ComponentState::Stopping => {}
            ComponentState::Failed(_) => self.retry(id, order),
        }
    }

    /// The operator asks to retry the failed operation: its retries are counted anew.
    fn retry(&mut self, id: ComponentId, order: OrderNumber) {
        let Some(component) = self.ordered_component(id, order) else { return };
        let ComponentState::Failed(operation) = component.state else { return self.note(Note::NothingToDo(order)) };
        component.tasks.forgive();
        match operation {
            Operation::Stop => {
                self.put(id, ComponentState::Stopping);
                self.stop(id);
            }
            Operation::Prepare | Operation::Start | Operation::Run | Operation::Rebind | Operation::Purge => {
                self.put(id, ComponentState::Stopped);
            }
        }
    }

    /// The operator marks the failed operation as done.
    fn skip(&mut self, id: ComponentId, order: OrderNumber) {
        let Some(component) = self.ordered_component(id, order) else { return };
        let ComponentState::Failed(operation) = component.state else { return self.note(Note::NothingToDo(order)) };
        component.tasks.failures = None;
        component.tasks.state = TaskState::UnderWay(operation);
        match operation {
            // A start counts as done only while what it needs is there.
            Operation::Start | Operation::Run if component.must_stop() || !component.loans.all_home() => {
                component.tasks.state = TaskState::None;
                self.put(id, ComponentState::Stopped);
            }
            Operation::Start | Operation::Run => {
                component.tasks.state = TaskState::UnderWay(Operation::Start);
                component.orders.begin_run();
                component.tasks.deaths = 0;
                self.put(id, ComponentState::Starting);
                self.done(id, Default::default());
            }
            Operation::Prepare | Operation::Purge | Operation::Rebind => {
                self.put(id, ComponentState::Stopped);
                self.done(id, Default::default());
            }
            // It may still be running, so it is stopped once more before it starts again.
            Operation::Stop => {
                let run = component.run.serial();
                self.put(id, ComponentState::Stopping);
                self.done(id, Default::default());
                self.component(id).run = run.map_or(Run::None, Run::Unconfirmed);
            }
        }
    }

    /// Rule P5: takes a binding back for good. A recall under way is waited for first, so that two answers cannot be confused.
    fn remove_binding(&mut self, binding: BindingId) {
        let Some(provider) = self.agent.lenders.get(&binding).copied() else {
            // Its client was gone and has said so.
            return self.facts.push(Fact::BindingGone { binding });
        };
        let loans = &mut self.component(provider).loans;
        let loan = loans.get_mut(binding).expect("lenders lists only loans that exist");
        loan.removing = true;
        match (loan.state(), loan.told, loan.client_vm) {
            (LoanState::Home | LoanState::Reference, None, _) => {
                self.drop_loan(provider, binding);
                self.facts.push(Fact::BindingGone { binding });
            }
            (LoanState::Home | LoanState::Lent, _, client_vm) => {
                loans.put(binding, LoanState::Recalled { last: true });
                self.tell(client_vm, Notice::UnbindRequired { binding, last: true });
            }
            (LoanState::Reference, Some(_), client_vm) => {
                self.tell(client_vm, Notice::UnbindRequired { binding, last: true });
            }
            (LoanState::Recalled { .. }, _, _) => {}
        }
    }

    /// That VM is no more: loans to it are home, loans from it are gone.
    fn forget_vm(&mut self, vm: VmId) {
        self.agent.forgotten.insert(vm);
        for binding in self.agent.shared.remove(&vm).unwrap_or_default() {
            if let Some(provider) = self.agent.lenders.get(&binding).copied() {
                let removing = self.component(provider).loans.get(binding).is_some_and(|loan| loan.removing);
                self.drop_loan(provider, binding);
                if removing {
                    self.facts.push(Fact::BindingGone { binding });
                }
            } else {
                self.lose_holding(binding);
            }
        }
    }

    /// The provider's books no longer know the binding.
    pub(super) fn drop_loan(&mut self, provider: ComponentId, binding: BindingId) {
        if let Some(loan) = self.component(provider).loans.remove(binding) {
            self.unshare(loan.client_vm, binding);
        }
        self.agent.lenders.remove(&binding);
        self.touched.insert(provider);
    }

    /// The loan has gone with its provider's VM: there is nothing to return, and no agent to return it to.
    fn lose_holding(&mut self, binding: BindingId) {
        let Some(client) = self.agent.holders.get(&binding).copied() else { return };
        if let Some(component) = self.agent.components.get_mut(&client) {
            component.holdings.lose(binding, component.state.is_running());
        }
        self.drop_holding(client, binding);
    }
}
