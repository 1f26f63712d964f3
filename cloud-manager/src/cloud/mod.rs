//! Creates VMs. There is one cloud so far, [`LocalCloud`]: agents as processes on this machine. A VM without a cloud is
//! any machine whose agent joins by itself.

mod local;

pub(crate) use local::LocalCloud;
