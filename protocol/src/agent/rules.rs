//! The rules: what the facts of one component now allow. Each rule stands here once.

use super::{ComponentState, LoanState, TaskState, Turn, component::Run};
use crate::{BindingId, ComponentId, Fact, Notice, Operation, Work};

impl Turn<'_> {
    /// Looks at one component and does what its facts allow.
    pub(super) fn advance(&mut self, id: ComponentId) {
        let Some(component) = self.agent.components.get(&id) else { return };
        match component.state {
            ComponentState::Stopped => self.while_stopped(id),
            ComponentState::Started => self.while_started(id),
            ComponentState::Starting => self.while_starting(id),
            // A stop is not interrupted: the rules go on when it has ended.
            ComponentState::Stopping => {}
            // It may still be running: nothing it holds can be given back.
            ComponentState::Failed(Operation::Stop) => {}
            ComponentState::Failed(_) => self.while_stopped(id),
        }
    }

    /// Rule C4: not running, it keeps what it holds and gives back at once what is recalled; then it starts, or leaves.
    fn while_stopped(&mut self, id: ComponentId) {
        for binding in self.component(id).holdings.recalled() {
            self.give_back(id, binding);
        }
        let component = self.component(id);
        if component.is_leaving() {
            self.leave(id);
        } else if component.may_start() {
            if let Run::Unconfirmed(serial) = component.run {
                component.run = Run::Of(serial);
                self.put(id, ComponentState::Stopping);
                return self.stop(id);
            }
            component.run = Run::None;
            component.orders.begin_run();
            let bindings = component.holdings.start();
            self.put(id, ComponentState::Starting);
            self.ask(id, Work::Start { bindings });
        } else if component.announced().is_none()
            && component.state == ComponentState::Stopped
            && component.tasks.state == TaskState::None
        {
            self.ask(id, Work::Prepare);
        }
    }

    /// A start is not interrupted: the rules go on when it has ended. But one that is removed need not run into its time limit.
    fn while_starting(&mut self, id: ComponentId) {
        let component = self.component(id);
        if component.is_leaving() && component.tasks.state == TaskState::UnderWay(Operation::Start) {
            self.abort(id);
        }
    }

    /// Running and ready: it lends; or it must stop, and recalls, and stops when every loan is home (rule P4).
    fn while_started(&mut self, id: ComponentId) {
        let component = self.component(id);
        if !component.kind.rebinds {
            // Even while draining: a provider that recalls a loan that is not needed must not wait for this component's clients.
            for binding in component.holdings.dispensable() {
                self.give_back(id, binding);
            }
        } else if component.tasks.state == TaskState::None {
            let dispensable = component.holdings.dispensable();
            if component.wants_rebind(&dispensable) {
                let bindings = component.holdings.begin_rebind(dispensable);
                self.ask(id, Work::Rebind { bindings });
            }
        }
        let component = self.component(id);
        if !component.must_stop() {
            for binding in component.loans.home() {
                self.lend(id, binding);
            }
            return;
        }
        self.recall(id);
        let component = self.component(id);
        if component.loans.all_home() && !component.is_busy() {
            self.put(id, ComponentState::Stopping);
            self.stop(id);
        }
    }

    /// Rule P1: hands out the export's values, unless the client knows them already or the binding is on its way out.
    pub(super) fn bind(&mut self, id: ComponentId, binding: BindingId) {
        let component = self.component(id);
        let Some(edition) = component.offer.edition() else { return };
        let Some(loan) = component.loans.get_mut(binding) else { return };
        let reference = loan.state() == LoanState::Reference;
        let settled = matches!(loan.state(), LoanState::Recalled { .. }) || loan.removing;
        if settled || loan.told == Some(edition) {
            return;
        }
        loan.told = Some(edition);
        let (client_vm, client, import) = (loan.client_vm, loan.client, loan.import.clone());
        let (export, ticket) = (loan.export.clone(), loan.ticket.clone());
        let values = component.values_of(&export, reference);
        self.tell(client_vm, Notice::Bind { binding, client, import, values, ticket });
    }

    /// Rule P2: a loan at home goes out; the client knows the values first.
    fn lend(&mut self, id: ComponentId, binding: BindingId) {
        self.bind(id, binding);
        let loans = &mut self.component(id).loans;
        loans.put(binding, LoanState::Lent);
        let client_vm = loans.get(binding).expect("it was just put").client_vm;
        self.tell(client_vm, Notice::Started { binding });
    }

    /// Rule P3: recalls every loan that is out, once. A component that is removed recalls for good, and also what is at home and
    /// was told of.
    pub(super) fn recall(&mut self, id: ComponentId) {
        let component = self.component(id);
        let last = component.is_leaving();
        let mut open = component.loans.lent();
        if last {
            open.extend(component.loans.home().into_iter().filter(|binding| component.loans.is_told(*binding)));
        }
        for binding in open {
            let loans = &mut self.component(id).loans;
            loans.put(binding, LoanState::Recalled { last });
            let client_vm = loans.get(binding).expect("it was just put").client_vm;
            self.tell(client_vm, Notice::UnbindRequired { binding, last });
        }
    }

    /// Rule P7: removed and stopped, with every loan returned. Clients that only know its values are told, what it holds is given
    /// back, everything is forgotten.
    fn leave(&mut self, id: ComponentId) {
        self.recall(id);
        let component = self.component(id);
        // After a death some loans may still be on their way home.
        let waiting = component.is_busy() || component.tasks.state == TaskState::Pausing(Operation::Purge);
        if !component.loans.all_home() || waiting || component.state == ComponentState::Failed(Operation::Purge) {
            return;
        }
        let loans: Vec<_> =
            component.loans.iter().map(|(binding, loan)| (binding, loan.client_vm, loan.told, loan.state())).collect();
        for (binding, client_vm, told, state) in loans {
            self.drop_loan(id, binding);
            if told.is_some() {
                self.tell(client_vm, Notice::UnbindRequired { binding, last: true });
            } else if state == LoanState::Reference {
                // The manager need not wait for a client that never heard of it.
                self.facts.push(Fact::BindingGone { binding });
            }
        }
        let holdings: Vec<_> =
            self.component(id).holdings.iter().map(|(binding, it)| (binding, it.provider_vm)).collect();
        for (binding, provider_vm) in holdings {
            self.drop_holding(id, binding);
            self.tell(provider_vm, Notice::UnbindConfirmed { binding, last: true });
        }
        let component = self.component(id);
        // What may still be in use is not purged.
        let in_use = matches!(component.run, Run::Unconfirmed(_));
        if component.kind.purges && component.tasks.serial > 0 && !component.tasks.purged && !in_use {
            component.state = ComponentState::Stopped;
            self.ask(id, Work::Purge);
        } else {
            self.agent.components.remove(&id);
            self.agent.down -= 1;
            self.touched.remove(&id);
            self.facts.push(Fact::ComponentGone { component: id });
        }
    }
}
