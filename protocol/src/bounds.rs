//! Every bound of the protocol, and what happens when it is reached.

/// Bytes of one name. A longer one is not a name: [`crate::Name::new`] says so.
pub const NAME_BYTES_MAX: usize = 128;

/// Bytes of one encoded message. A longer one is refused by [`crate::wire`], on the way out and on the way in.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Bytes of one value. A component that hands out a longer one has failed its operation.
pub const VALUE_BYTES_MAX: usize = 1 << 16;

/// Bytes of a component's recipe. The manager refuses a change with a longer one.
pub const RECIPE_BYTES_MAX: usize = 1 << 18;

/// Names of imports, exports and values of one component, all together; with the recipe they fit into one message. The
/// manager refuses a change with more.
pub const KIND_NAMES_MAX: usize = 2_000;

/// Components on one VM. The manager refuses the change that would add one more.
pub const COMPONENTS_PER_VM_MAX: usize = 20_000;

/// Facts in one report, so that it fits into one message whatever they are. An agent tells more in several reports.
pub const FACTS_PER_REPORT_MAX: usize = 32_000;

/// Wishes in one change. The manager refuses a larger change.
pub const WISHES_MAX: usize = 4_000_000;
