//! Why the manager says no. A refused change has changed nothing.

use crate::{ChangeId, Name, Wire, bounds};
use serde::{Deserialize, Serialize};

/// One reason to refuse a change; the operator gets all of them at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// No VM of that name.
    #[error("vm {vm:?} does not exist (add it first, or check the name)")]
    UnknownVm {
        /// The name given.
        vm: Name,
    },
    /// No component of that name.
    #[error("component {component:?} does not exist (add it first, or check the name)")]
    UnknownComponent {
        /// The name given.
        component: Name,
    },
    /// No such import.
    #[error("component {component:?} has no import {import:?} (it has: {known})")]
    UnknownImport {
        /// The client.
        component: Name,
        /// The name given.
        import: Name,
        /// The imports there are.
        known: String,
    },
    /// No such export.
    #[error("component {component:?} has no export {export:?} (it has: {known})")]
    UnknownExport {
        /// The provider.
        component: Name,
        /// The name given.
        export: Name,
        /// The exports there are.
        known: String,
    },
    /// No such binding.
    #[error("binding {wire} does not exist")]
    UnknownBinding {
        /// The binding given.
        wire: Wire,
    },
    /// The name is taken.
    #[error("vm {vm:?} exists already (choose another name, or remove it in the same change)")]
    DuplicateVm {
        /// The name given.
        vm: Name,
    },
    /// The name is taken.
    #[error("component {component:?} exists already (choose another name, or remove it in the same change)")]
    DuplicateComponent {
        /// The name given.
        component: Name,
    },
    /// An import can be bound to one provider once.
    #[error("import {}.{} is bound to {:?} already (an import is bound to a provider once)", wire.client, wire.import, wire.provider)]
    DuplicateBinding {
        /// The binding given.
        wire: Wire,
    },
    /// The ports do not fit.
    #[error("binding {wire}: the import takes an export named {takes:?}, not {:?}", wire.export)]
    PortsDiffer {
        /// The binding given.
        wire: Wire,
        /// What the import takes.
        takes: Name,
    },
    /// A component cannot be its own provider.
    #[error("binding {wire}: a component cannot be bound to itself")]
    BoundToItself {
        /// The binding given.
        wire: Wire,
    },
    /// Strong imports form a cycle, so none of these could ever start first.
    #[error("strong imports form a cycle: {} (make one of them weak, or a value import{})", cycle.iter().map(Name::as_str).collect::<Vec<_>>().join(" → "), if *.removing { "; part of it is still being removed: try again when that is done" } else { "" })]
    Cycle {
        /// The components in order, the first again at the end.
        cycle: Vec<Name>,
        /// Whether a binding that is still being removed is part of it.
        removing: bool,
    },
    /// Too many clients for one export.
    #[error("export {provider}.{export} takes at most {capacity} clients and would have {clients}")]
    CapacityExceeded {
        /// The provider.
        provider: Name,
        /// Its export.
        export: Name,
        /// What it takes.
        capacity: u32,
        /// What it would have.
        clients: u32,
    },
    /// An import has fewer providers than it needs.
    #[error(
        "import {component}.{import} needs {needed} and would be bound to {bound} (bind it, make it weak 0, or say incomplete)"
    )]
    TooFewProviders {
        /// The client.
        component: Name,
        /// Its import.
        import: Name,
        /// What it needs.
        needed: u32,
        /// What it would have.
        bound: u32,
    },
    /// A strong import of nothing is no import.
    #[error("import {component}.{import} is {sort} with number 0 (use at least 1, or weak 0 for an optional import)")]
    NeedsNothing {
        /// The client.
        component: Name,
        /// Its import.
        import: Name,
        /// Strong or value.
        sort: String,
    },
    /// The same thing is removed, or restarted and removed, in one change.
    #[error("{what} is removed twice, or removed and changed, in one change")]
    RemovedTwice {
        /// What.
        what: String,
    },
    /// The VM is lost; nothing can be ordered there.
    #[error("vm {vm:?} is lost (add another one, and place its components there)")]
    VmLost {
        /// The VM.
        vm: Name,
    },
    /// The change is larger than the bound.
    #[error("the change has {edits} edits (at most {})", bounds::WISHES_MAX)]
    TooManyWishes {
        /// How many.
        edits: usize,
    },
    /// The VM would have more components than the bound.
    #[error("vm {vm:?} would have more than {} components", bounds::COMPONENTS_PER_VM_MAX)]
    TooManyComponents {
        /// The VM.
        vm: Name,
    },
    /// The recipe is longer than the bound.
    #[error("the recipe of component {component:?} is longer than {} bytes", bounds::RECIPE_BYTES_MAX)]
    RecipeTooLong {
        /// The component.
        component: Name,
    },
    /// It has more imports, exports and values than the bound.
    #[error("component {component:?} has more than {} imports, exports and values", bounds::KIND_NAMES_MAX)]
    TooManyNames {
        /// The component.
        component: Name,
    },
    /// There is nothing to try again.
    #[error("component {component:?} has no failed operation to retry or skip")]
    NothingFailed {
        /// The component.
        component: Name,
    },
    /// Each of these would restart when the one before has come back with other values, and would come back with others.
    #[error("these would restart each other without end, each with new values from the next: {} (give one of them a `rebind`, or values that are chosen once{})", cycle.iter().map(Name::as_str).collect::<Vec<_>>().join(" → "), if *.removing { "; part of it is still being removed: try again when that is done" } else { "" })]
    EndlessRestarts {
        /// The components in order, the first again at the end.
        cycle: Vec<Name>,
        /// Whether a binding that is still being removed is part of it.
        removing: bool,
    },
    /// There is no change of that number.
    #[error("{change} does not exist (check the number)")]
    UnknownChange {
        /// The number given.
        change: ChangeId,
    },
    /// A change that is done cannot be cancelled.
    #[error("{change} is done (ask for the opposite change to take it back)")]
    ChangeIsDone {
        /// The change.
        change: ChangeId,
    },
    /// The change is one that cannot be taken back.
    #[error("{change} cannot be cancelled: it retries or skips an operation, or forgets a lost vm")]
    NothingToCancel {
        /// The change.
        change: ChangeId,
    },
    /// A later change builds on what this one has still to add or set.
    #[error("{change} cannot be cancelled: {later} builds on it (cancel {later} first)")]
    NeededLater {
        /// The change to be cancelled.
        change: ChangeId,
        /// The change that builds on it.
        later: ChangeId,
    },
    /// Another change has put a component on a VM that would go.
    #[error("vm {vm:?} cannot be removed again: component {component:?} of another change is there (remove it first)")]
    VmInUse {
        /// The VM.
        vm: Name,
        /// What is there.
        component: Name,
    },
    /// A VM that is being destroyed cannot be kept.
    #[error("vm {vm:?} is being destroyed and cannot be kept (wait until that is done, and add it again)")]
    VmIsGoing {
        /// The VM.
        vm: Name,
    },
}
