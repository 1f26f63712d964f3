//! What a run that can rebind was told, and what it was not told yet.
//!
//! A component with a `rebind` operation is told each new set of bindings while it runs, one rebind at a time (rule C5). This is
//! the difference between what it was last told and what it may use; components without `rebind` are left to `told`.

use super::HoldingState;
use crate::{BindingId, ShortSet};
use serde::{Deserialize, Serialize};

/// The difference between what a component was last told and what it may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Rebinding {
    /// Whether the set of bindings that it may use differs from the one that it was last told.
    changed: bool,
    /// What came since the run began, and was not told yet.
    untold: ShortSet<BindingId>,
    /// Those of them that the rebind under way tells.
    offered: ShortSet<BindingId>,
    /// The recalled loans that the rebind under way leaves out.
    let_go: ShortSet<BindingId>,
    /// Whether something that it was told of was lost with its VM, and no rebind has told it so.
    uses_lost: bool,
}

impl Rebinding {
    /// Whether it must be told another set.
    pub(super) fn has_changed(&self) -> bool {
        self.changed
    }

    /// Whether it was told of something that is lost.
    pub(super) fn uses_lost(&self) -> bool {
        self.uses_lost
    }

    /// Whether the rebind under way leaves a recalled loan out.
    pub(super) fn is_let_go(&self, binding: BindingId) -> bool {
        self.let_go.contains(&binding)
    }

    /// Whether the run was not told of a binding that it holds.
    pub(super) fn is_untold(&self, binding: BindingId) -> bool {
        self.untold.contains(&binding)
    }

    /// A start is about to tell all that is held.
    pub(super) fn start(&mut self) {
        self.changed = false;
    }

    /// A run begins or has ended: there is nothing that it was not told. Returns what it was not told before.
    pub(super) fn reset(&mut self) -> ShortSet<BindingId> {
        self.offered = ShortSet::default();
        self.let_go = ShortSet::default();
        self.uses_lost = false;
        std::mem::take(&mut self.untold)
    }

    /// A holding has moved.
    pub(super) fn put(&mut self, binding: BindingId, state: HoldingState, running: bool) {
        match state {
            HoldingState::Bound => self.forget(binding),
            HoldingState::Recalled { .. } => {
                self.forget(binding);
                self.changed = true;
            }
            HoldingState::Held => {
                if running {
                    self.untold.insert(binding);
                }
                self.changed = true;
            }
        }
    }

    /// A holding is no longer there to be told of.
    pub(super) fn forget(&mut self, binding: BindingId) {
        self.untold.remove(&binding);
        self.offered.remove(&binding);
    }

    /// A holding was lost with its provider's VM: there is nothing to give back.
    pub(super) fn lose(&mut self, binding: BindingId, state: HoldingState, running: bool) {
        self.changed |= state == HoldingState::Held;
        self.uses_lost |= running && state != HoldingState::Bound;
        self.let_go.remove(&binding);
    }

    /// A rebind begins: it tells all that is held, and leaves these out.
    pub(super) fn begin(&mut self, let_go: ShortSet<BindingId>) {
        self.changed = false;
        self.let_go = let_go;
        self.offered = self.untold.clone();
    }

    /// The rebind under way is done. Returns what it has told, and what it has left out.
    pub(super) fn succeed(&mut self) -> (ShortSet<BindingId>, ShortSet<BindingId>) {
        let offered = std::mem::take(&mut self.offered);
        for binding in offered.iter() {
            self.untold.remove(binding);
        }
        self.uses_lost &= self.changed;
        (offered, std::mem::take(&mut self.let_go))
    }

    /// The rebind under way has failed: the component was not told, and the next attempt tells the set as it then is.
    pub(super) fn fail(&mut self) {
        self.offered = ShortSet::default();
        self.let_go = ShortSet::default();
        self.changed = true;
    }
}
