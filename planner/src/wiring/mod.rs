//! Who uses whom: bindings for components that have their places.
pub(crate) mod flow;
