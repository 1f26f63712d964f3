//! What letters and marks say, in few words and with the names that people use.

use super::Sort;
use crate::World;
use protocol::{
    BindingId, Change, ComponentId, Edit, Fact, Instruction, Name, Notice, Order, Report, VmId, VmState,
    manager::{CloudTask, News, Request},
};
use std::collections::BTreeMap;

/// The names of everything that was ever spoken of.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    vms: BTreeMap<VmId, Name>,
    components: BTreeMap<ComponentId, Name>,
    /// The client and the provider.
    bindings: BTreeMap<BindingId, (String, String)>,
}

impl Names {
    /// What the manager of a world knows.
    pub(super) fn of(world: &World) -> Self {
        let book = world.manager().book();
        let vms = book.vms().filter_map(|vm| Some((vm.id?, vm.name.clone())));
        let components = book.components().filter_map(|component| Some((component.id?, component.name.clone())));
        let wires =
            book.wires().filter_map(|(wire, id)| Some((id?, (wire.client.to_string(), wire.provider.to_string()))));
        Self { vms: vms.collect(), components: components.collect(), bindings: wires.collect() }
    }

    /// Takes note of what an order creates.
    pub(super) fn learn(&mut self, order: &Order) {
        match &order.instruction {
            Instruction::AddComponent { name, .. } => {
                self.components.insert(ComponentId(order.number.0), name.clone());
            }
            Instruction::AddBinding { provider, client, .. } => {
                let ends = (self.component(*client), self.component(*provider));
                self.bindings.insert(BindingId(order.number.0), ends);
            }
            _ => {}
        }
    }

    /// Takes note of what the cloud is asked for.
    pub(super) fn learn_vm(&mut self, task: &CloudTask) {
        if let CloudTask::Create(id, name) = task {
            self.vms.insert(*id, name.clone());
        }
    }

    pub(super) fn vm(&self, id: VmId) -> String {
        self.vms.get(&id).map_or_else(|| id.to_string(), Name::to_string)
    }

    pub(super) fn component(&self, id: ComponentId) -> String {
        self.components.get(&id).map_or_else(|| id.to_string(), Name::to_string)
    }

    pub(super) fn ends(&self, id: BindingId) -> (String, String) {
        let unknown = || (id.to_string(), id.to_string());
        self.bindings.get(&id).cloned().unwrap_or_else(unknown)
    }

    pub(super) fn order(&self, order: &Order) -> String {
        match &order.instruction {
            Instruction::AddComponent { name, .. } => format!("add {name}"),
            Instruction::RemoveComponent { component } => format!("remove {}", self.component(*component)),
            Instruction::RestartComponent { component } => format!("restart {}", self.component(*component)),
            Instruction::RetryComponent { component } => format!("retry {}", self.component(*component)),
            Instruction::SkipComponent { component } => format!("skip {}", self.component(*component)),
            Instruction::SetNeed { component, import, number } => {
                format!("need {}.{import} {number}", self.component(*component))
            }
            Instruction::AddBinding { provider, client, .. } => {
                format!("bind {} to {}", self.component(*client), self.component(*provider))
            }
            Instruction::RemoveBinding { binding } => {
                let (client, provider) = self.ends(*binding);
                format!("unbind {client} from {provider}")
            }
            Instruction::ForgetVm { vm } => format!("forget {}", self.vm(*vm)),
            Instruction::RollCall => "roll call".into(),
        }
    }

    pub(super) fn report(&self, report: &Report) -> (Sort, String) {
        if report.facts.is_empty() {
            return (Sort::Acknowledgement, format!("acknowledged {}", report.through.0));
        }
        let facts: Vec<String> = report.facts.iter().map(|fact| self.fact(fact)).collect();
        (Sort::Report, facts.join(", "))
    }

    fn fact(&self, fact: &Fact) -> String {
        match fact {
            Fact::ComponentIs { component, condition } => format!("{} {}", self.component(*component), condition.state),
            Fact::BindingHeld { binding, held } => {
                let (client, provider) = self.ends(*binding);
                format!("{client} {} {provider}", if *held { "holds" } else { "returned" })
            }
            Fact::OperationFailed { component, operation, .. } => {
                format!("{} cannot {operation}", self.component(*component))
            }
            Fact::ComponentGone { component } => format!("{} gone", self.component(*component)),
            Fact::BindingGone { binding } => {
                let (client, provider) = self.ends(*binding);
                format!("{client} unbound from {provider}")
            }
            Fact::VmIs { state } => format!("VM {}", vm_state(*state)),
            Fact::ValueWithdrawn { binding } => {
                let (client, provider) = self.ends(*binding);
                format!("{client} knows that {provider} is gone")
            }
            Fact::Pending { component, pending: true } => format!("{} is pending", self.component(*component)),
            Fact::Pending { component, pending: false } => format!("{} is at rest", self.component(*component)),
        }
    }

    pub(super) fn notice(&self, notice: &Notice) -> (Sort, String) {
        let (client, provider) = self.ends(notice.binding());
        let for_good = |last: bool| if last { " for good" } else { "" };
        match notice {
            Notice::Bind { .. } => (Sort::Bind, format!("{provider} for {client}")),
            Notice::Started { .. } => (Sort::Lend, format!("lend {provider} to {client}")),
            Notice::UnbindRequired { last, .. } => (Sort::Recall, format!("recall {provider}{}", for_good(*last))),
            Notice::UnbindConfirmed { last, .. } => {
                (Sort::Home, format!("{provider} {}", if *last { "released" } else { "returned" }))
            }
        }
    }

    /// What the operator asks for.
    pub(super) fn request(&self, request: &Request) -> String {
        match request {
            Request::Make(change) => edits(change),
            Request::Retry(component) => format!("retry {component}"),
            Request::Skip(component) => format!("skip {component}"),
            Request::DeclareLost(vm) => format!("{vm} is lost"),
            Request::Cancel(change) => format!("cancel {change}"),
        }
    }

    /// What the operator is told, as far as no arrow says it.
    pub(super) fn news(&self, news: &News) -> Option<String> {
        match news {
            News::Refused(refusals) => {
                let reasons: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                Some(format!("refused: {}", reasons.join("; ")))
            }
            News::ChangeDone(change) => Some(format!("{change} done")),
            News::ChangeCancelled(change) => Some(format!("{change} cancelled")),
            News::VmInstantiated(vm) => Some(format!("{} is there", self.vm(*vm))),
            News::VmNotInstantiated(vm, _) => Some(format!("{} could not be made", self.vm(*vm))),
            News::VmDestroyed(vm) => Some(format!("{} is destroyed", self.vm(*vm))),
            News::VmSuspected(vm) => Some(format!("{} is suspected", self.vm(*vm))),
            News::VmWell(vm) => Some(format!("{} is well", self.vm(*vm))),
            News::Accepted(_)
            | News::Cancelling(..)
            | News::PhasePosted(..)
            | News::PhaseDone(..)
            | News::ComponentIs(..)
            | News::ComponentGone(_)
            | News::OperationFailed(..)
            | News::AttemptFailed(..)
            | News::VmIs(..)
            | News::VmLost(_) => None,
        }
    }
}

fn vm_state(state: VmState) -> &'static str {
    match state {
        VmState::Empty => "empty",
        VmState::Started => "started",
        VmState::Stopped => "stopped",
    }
}

/// A change in a few words: what comes and goes, bindings only if there is nothing else.
fn edits(change: &Change) -> String {
    let wires = |edit: &&Edit| matches!(edit, Edit::AddBinding(_) | Edit::RemoveBinding(_));
    let some = change.edits.iter().any(|edit| !wires(&edit));
    let told = change.edits.iter().filter(|edit| !some || wires(edit) != some).map(|edit| match edit {
        Edit::AddVm { vm } | Edit::AddComponent { component: vm, .. } => format!("+{vm}"),
        Edit::RemoveVm { vm } | Edit::RemoveComponent { component: vm } => format!("-{vm}"),
        Edit::RestartComponent { component } => format!("restart {component}"),
        Edit::SetNeed { component, import, number } => format!("need {component}.{import} {number}"),
        Edit::AddBinding(wire) => format!("bind {} to {}", wire.client, wire.provider),
        Edit::RemoveBinding(wire) => format!("unbind {} from {}", wire.client, wire.provider),
    });
    told.collect::<Vec<_>>().join(" ")
}
