//! Breaks machines on purpose, for the tests of the properties.
//!
//! A property that never fails may hold, or may not be looked at. So a test replaces the step of a machine by one that goes
//! wrong, and each mode must notice. Every mode steps machines by [`world::step`](crate::world::step), on the thread that
//! asked for the run (an exploration with one thread), so this is the one place to do so. Programs never call it.

use crate::world::{Input, Output, Part};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

/// A step that goes wrong. It must depend on nothing but the part and the input.
pub type Saboteur = Rc<dyn Fn(&mut Part, Input) -> Vec<Output>>;

thread_local! {
    static CURRENT: RefCell<Option<Saboteur>> = const { RefCell::new(None) };
    static UNCOVERED: Cell<bool> = const { Cell::new(false) };
}

/// Whether steps on this thread may be other than the proof for every size covers.
pub(crate) fn may_be_uncovered() -> bool {
    UNCOVERED.get()
}

/// Runs something while steps on this thread may be other than the proof covers. Almost every step that goes wrong is, and what
/// it breaks besides would come too late to be seen.
pub fn uncovered<R>(run: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            UNCOVERED.set(self.0);
        }
    }
    let _restore = Restore(UNCOVERED.replace(true));
    run()
}

/// What replaces the steps of machines on this thread, if anything does.
pub(crate) fn current() -> Option<Saboteur> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs something while the steps of machines on this thread go wrong.
pub fn during<R>(saboteur: Saboteur, run: impl FnOnce() -> R) -> R {
    struct Restore(Option<Saboteur>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restore = Restore(CURRENT.replace(Some(saboteur)));
    run()
}
