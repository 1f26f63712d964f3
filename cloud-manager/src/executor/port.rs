//! The connection from the engine to the executor. Nothing here blocks.

use super::{Engine, ExecutorMessage};
use crate::machine::{Effect, LocalEvent, Manager};
use protocol::manager::{Alarm, CloudTask, Health};
use protocol::{ChangeId, Name, VmId};
use ractor::ActorRef;
use runtime::engine::{EffectHandler, Message, Moment};
use runtime::link;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// What is pending when an engine starts, for the first time or after a failure.
pub(crate) struct Resumption {
    pub(super) engine: Engine,
    /// The address at which agents reach the manager.
    pub(super) address: SocketAddr,
    pub(super) tasks: Vec<(CloudTask, Option<String>)>,
    pub(super) alarms: Vec<(Alarm, Moment)>,
    /// Rollouts that are promoted by a timer, with their due times.
    pub(super) promotions: Vec<(Name, ChangeId, Moment)>,
    /// The VMs in the book, with the cloud that creates them.
    pub(super) vms: Vec<(VmId, Health, Option<String>)>,
    pub(super) last_event: u64,
}

/// Hands the engine's effects to the executor.
pub(crate) struct Port {
    executor: ActorRef<ExecutorMessage>,
    /// Receives, once, the address at which agents reach the manager.
    opened: Mutex<Option<oneshot::Sender<SocketAddr>>>,
    /// The timeout for silent VMs that the program was started with.
    suspicion_ms_max: Option<u64>,
}

impl Port {
    /// Sends to this executor; `opened` receives, once, the address at which agents reach the manager.
    pub(crate) fn new(
        executor: ActorRef<ExecutorMessage>,
        opened: oneshot::Sender<SocketAddr>,
        suspicion_ms_max: Option<u64>,
    ) -> Self {
        Self { executor, opened: Mutex::new(Some(opened)), suspicion_ms_max }
    }

    fn send(&self, message: ExecutorMessage) {
        // If the executor has stopped, the program is about to end, and the journal has the rest.
        let _ = self.executor.cast(message);
    }
}

impl EffectHandler<Manager> for Port {
    fn begin(&self, manager: &Manager, address: SocketAddr, engine: Engine) {
        if let Some(opened) = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The receiver is gone if the program has been stopped.
            let _ = opened.send(address);
        }
        if manager.machine().suspicion_ms_max() != self.suspicion_ms_max {
            // If the engine fails before it reads this, its supervisor restarts it, and this is sent again.
            let _ = engine.cast(Message::Happened(LocalEvent::Patience(self.suspicion_ms_max), None));
        }
        let vms = manager.machine().book().vms().filter_map(|vm| Some((vm.id?, vm.health)));
        let resumption = Resumption {
            engine,
            address,
            tasks: manager.tasks().map(|(task, cloud)| (task.clone(), cloud.cloned())).collect(),
            alarms: manager.alarms().collect(),
            promotions: manager.promotions().collect(),
            vms: vms.map(|(vm, health)| (vm, health, manager.cloud_of(vm).cloned())).collect(),
            last_event: manager.last_event(),
        };
        self.send(ExecutorMessage::Resume(Box::new(resumption)));
    }

    fn carry_out(&self, effect: Effect) {
        self.send(ExecutorMessage::CarryOut(effect));
    }

    fn notice(&self, connection: link::Event) {
        self.send(ExecutorMessage::Connection(connection));
    }
}
