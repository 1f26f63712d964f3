//! What machines say to each other: orders, reports, notices; and what an agent asks of its host.

use crate::{BindingId, ComponentId, ComponentState, Kind, Name, Operation, OrderNumber, Values, VmId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Manager to agent: one numbered instruction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Order {
    /// Rising on each link; what the order creates is named by it.
    pub number: OrderNumber,
    /// What to do.
    pub instruction: Instruction,
}

/// What an order says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Instruction {
    /// Here is a new component, named by this order; start it when its imports allow.
    AddComponent {
        /// What people call it.
        name: Name,
        /// What it is.
        kind: Arc<Kind>,
    },
    /// Stop the component when every loan is home, then forget it.
    RemoveComponent {
        /// Which one.
        component: ComponentId,
    },
    /// Stop the component when every loan is home, then start it again.
    RestartComponent {
        /// Which one.
        component: ComponentId,
    },
    /// The operator asks to retry the failed operation.
    RetryComponent {
        /// Which one.
        component: ComponentId,
    },
    /// The operator marks the failed operation as done.
    SkipComponent {
        /// Which one.
        component: ComponentId,
    },
    /// The import now needs this number of providers: a component that runs with fewer must stop.
    SetNeed {
        /// The client.
        component: ComponentId,
        /// Its import.
        import: Name,
        /// The number to need.
        number: u32,
    },
    /// To the provider's agent only: lend this export to that client; the binding is named by this order.
    AddBinding {
        /// The component that lends.
        provider: ComponentId,
        /// The export it lends.
        export: Name,
        /// The component that borrows.
        client: ComponentId,
        /// Where the client lives.
        client_vm: VmId,
        /// The client's import.
        import: Name,
        /// Whether the client needs only the values, so that its provider never waits for it.
        value: bool,
        /// The manager's signature over this binding, to be shown to the client's agent.
        ticket: Ticket,
    },
    /// To the provider's agent only: take this binding back for good.
    RemoveBinding {
        /// Which one.
        binding: BindingId,
    },
    /// That VM is lost or destroyed: loans to it are home, loans from it are gone.
    ForgetVm {
        /// Which one.
        vm: VmId,
    },
    /// Do nothing but answer, so that all said before has been heard.
    RollCall,
}

/// A signature that the protocol carries without reading; the runtime makes it and checks it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket(pub Vec<u8>);

/// Agent to manager: the answer to every order up to a number, with what has become true since the last report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Report {
    /// The last order that the agent has carried into its books.
    pub through: OrderNumber,
    /// What has become true.
    pub facts: Vec<Fact>,
}

/// One thing that has become true on a VM.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fact {
    /// The component is now in this condition.
    ComponentIs {
        /// Which one.
        component: ComponentId,
        /// How it is.
        condition: Condition,
    },
    /// The client on this VM may now use the binding, or may no longer count on it.
    BindingHeld {
        /// Which one.
        binding: BindingId,
        /// Whether it is held and not recalled.
        held: bool,
    },
    /// An operation has failed for good; manual action is required.
    OperationFailed {
        /// Of which component.
        component: ComponentId,
        /// Which operation.
        operation: Operation,
        /// The end of its output.
        detail: Arc<str>,
    },
    /// The component is removed, stopped and forgotten.
    ComponentGone {
        /// Which one.
        component: ComponentId,
    },
    /// The binding is removed and no client holds it.
    BindingGone {
        /// Which one.
        binding: BindingId,
    },
    /// The VM as a whole is now in this state.
    VmIs {
        /// Which state.
        state: VmState,
    },
    /// The component waits for loans that it has recalled for now, or for a rebind that leaves out what was lost, or it has died
    /// and is not steady again; or no longer.
    /// While it does, neither it nor its clients have come to rest.
    Pending {
        /// Which one.
        component: ComponentId,
        /// Whether it does.
        pending: bool,
    },
    /// The client on this VM no longer uses a value that was withdrawn; its provider did not wait for that.
    ValueWithdrawn {
        /// The binding.
        binding: BindingId,
    },
}

/// How a component is, as far as the manager needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Condition {
    /// Its state.
    pub state: ComponentState,
    /// The latest order to add or restart it that the present run fulfils.
    pub since: OrderNumber,
}

/// The state of a VM as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum VmState {
    /// It has no component.
    Empty,
    /// All its components are started.
    Started,
    /// At least one of its components is not started.
    Stopped,
}

/// Agent to agent, about one binding, on the ordered link between the two VMs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Notice {
    /// Provider to client: here is the export and how to reach it.
    Bind {
        /// The binding.
        binding: BindingId,
        /// The client component.
        client: ComponentId,
        /// Its import.
        import: Name,
        /// How to reach the export.
        values: Values,
        /// The manager's word that this binding exists.
        ticket: Ticket,
    },
    /// Provider to client: the loan; you may use it.
    Started {
        /// The binding.
        binding: BindingId,
    },
    /// Provider to client: give it back.
    UnbindRequired {
        /// The binding.
        binding: BindingId,
        /// For good: forget it afterwards.
        last: bool,
    },
    /// Client to provider: it is back.
    UnbindConfirmed {
        /// The binding.
        binding: BindingId,
        /// I have forgotten it.
        last: bool,
    },
}

impl Notice {
    /// The binding it is about.
    pub fn binding(&self) -> BindingId {
        match self {
            Self::Bind { binding, .. }
            | Self::Started { binding }
            | Self::UnbindRequired { binding, .. }
            | Self::UnbindConfirmed { binding, .. } => *binding,
        }
    }
}

/// Agent to host: one task for one component. The host carries out one task of a component at a time; asked again after
/// a crash, it must not do the work twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostTask {
    /// For which component.
    pub component: ComponentId,
    /// Which task of this component; the outcome carries it back.
    pub serial: u64,
    /// What people call the component.
    pub name: Name,
    /// What the component is.
    pub kind: Arc<Kind>,
    /// What to do.
    pub work: Work,
}

/// What a task asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Work {
    /// Install it and announce its values.
    Prepare,
    /// Configure it with these bindings, start it, and wait until it is ready.
    Start {
        /// What it may use.
        bindings: Vec<HeldBinding>,
    },
    /// While it runs, let it use these bindings and no others.
    Rebind {
        /// What it may use.
        bindings: Vec<HeldBinding>,
    },
    /// Stop it; nothing of it is left running.
    Stop,
    /// Remove what was installed.
    Purge,
    /// End the start that has this task's own serial number early, as failed; nothing of it is left running. If that start
    /// has ended already, there is nothing to do. The outcome of the start is the only answer.
    Abort,
}

impl Work {
    /// The operation that this work is.
    pub fn operation(&self) -> Operation {
        match self {
            Self::Prepare => Operation::Prepare,
            Self::Start { .. } | Self::Abort => Operation::Start,
            Self::Rebind { .. } => Operation::Rebind,
            Self::Stop => Operation::Stop,
            Self::Purge => Operation::Purge,
        }
    }
}

/// A binding that a component may use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HeldBinding {
    /// The import it serves.
    pub import: Name,
    /// Which binding.
    pub binding: BindingId,
    /// How to reach the provider.
    pub values: Values,
}

/// Host to agent: how a task ended, or that a started component died.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HostOutcome {
    /// The task is done. `Prepare` and `Start` hand out values: those named here replace those known before.
    Done {
        /// Whose task.
        component: ComponentId,
        /// Which task.
        serial: u64,
        /// What it handed out.
        values: Values,
    },
    /// The task has failed, and nothing of it is left running (unless it was to stop something).
    Failed {
        /// Whose task.
        component: ComponentId,
        /// Which task.
        serial: u64,
        /// The end of its output.
        detail: Arc<str>,
    },
    /// The component that this start task started has ended by itself.
    Died {
        /// Which component.
        component: ComponentId,
        /// The start task.
        serial: u64,
        /// How it ended.
        detail: Arc<str>,
    },
}
