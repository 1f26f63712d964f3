//! Starting real programs for measurements: a manager, agents on this machine, and a way to ask and to wait; and curves.

pub mod curves;
pub mod site;
