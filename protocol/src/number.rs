//! Numbers: who is who, for ever.
//!
//! The manager numbers its orders 1, 2, 3, … and whatever an order creates is named by that order's number. A number is
//! never used again, so it is at once an identity and a date: comparing it with the last order an agent has seen tells
//! "not yet known" from "gone".

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }
    };
}

number!(
    /// The place of an order in the manager's one sequence.
    OrderNumber, "order "
);
number!(
    /// A VM, named by the order that created it. A machine that comes back empty is a new VM with a new number.
    VmId, "vm#"
);
number!(
    /// A component, named by the order that added it.
    ComponentId, "component#"
);
number!(
    /// A binding, named by the order that added it.
    BindingId, "binding#"
);
number!(
    /// A change, in the order in which the operator asked.
    ChangeId, "change "
);

impl OrderNumber {
    /// Before the first order.
    pub const NONE: Self = Self(0);
}
