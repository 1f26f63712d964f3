//! Free ports, which stay with the component that they were assigned to.
//!
//! A port may be assigned long before its component opens it. So it is not enough that nothing listens there: a name in
//! the kernel's namespace of abstract sockets, which ends with its owner, keeps other agents on this machine from
//! assigning the same port. That namespace belongs to a network namespace, exactly as ports do.

use protocol::Name;
use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, TcpListener},
    os::{linux::net::SocketAddrExt, unix::net},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Number of ports that are tried before giving up.
const ATTEMPTS_MAX: usize = 1_000;

/// The ports that this agent has assigned.
#[derive(Debug)]
pub(super) struct Ports {
    host: IpAddr,
    given: Mutex<BTreeMap<u16, Option<net::UnixDatagram>>>,
}

impl Ports {
    pub(super) fn of(host: IpAddr) -> Self {
        Self { host, given: Mutex::default() }
    }

    /// Assigns a port on which nothing listens and which is not assigned to another component.
    pub(super) fn give(&self) -> io::Result<u16> {
        // Unusable ones stay open for a moment, so that the kernel offers others.
        let mut unusable = Vec::new();
        let mut given = self.given();
        while unusable.len() < ATTEMPTS_MAX {
            let listener = TcpListener::bind((self.host, 0))?;
            let port = listener.local_addr()?.port();
            if !given.contains_key(&port)
                && let Ok(name) = self.reserve(port)
            {
                given.insert(port, name);
                return Ok(port);
            }
            unusable.push(listener);
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "no free port"))
    }

    /// Reserves a port that was assigned before the agent was restarted.
    pub(super) fn keep(&self, port: u16) {
        let name = self.reserve(port).unwrap_or_else(|_| {
            tracing::warn!(port, "another agent on this machine has assigned the same port");
            None
        });
        self.given().insert(port, name);
    }

    /// Frees the port of a purged component.
    pub(super) fn release(&self, port: u16) {
        self.given().remove(&port);
    }

    /// An error if another agent has it; no name if names are unavailable.
    fn reserve(&self, port: u16) -> io::Result<Option<net::UnixDatagram>> {
        let name = net::SocketAddr::from_abstract_name(format!("holdfast port {port} of {}", self.host))?;
        match net::UnixDatagram::bind_addr(&name) {
            Ok(socket) => Ok(Some(socket)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn given(&self) -> MutexGuard<'_, BTreeMap<u16, Option<net::UnixDatagram>>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ports of one component, by the value that asked for each.
#[derive(Clone, Debug)]
pub(super) struct PortBook {
    pub(super) ports: Arc<Ports>,
    pub(super) given: Arc<Mutex<BTreeMap<String, u16>>>,
}

impl PortBook {
    /// What `free_port()` answers while one value is rendered: the same ports each time, in the same order.
    pub(super) fn free_port(&self, value: &Name) -> impl Fn() -> io::Result<u16> + Send + Sync + 'static {
        let (book, key) = (self.clone(), value.as_str().to_owned());
        let asked = Mutex::new(0_u32);
        move || {
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            let key = if *asked == 0 { key.clone() } else { format!("{key}#{asked}") };
            *asked += 1;
            let mut given = book.given.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(port) = given.get(&key) {
                return Ok(*port);
            }
            let port = book.ports.give()?;
            given.insert(key, port);
            Ok(port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, net::Ipv4Addr};

    #[test]
    fn two_agents_on_one_machine_never_give_out_the_same_port() {
        let agents = [(); 4].map(|()| Ports::of(Ipv4Addr::LOCALHOST.into()));
        let given: Vec<u16> = (0..400).map(|round| agents[round % 4].give().unwrap()).collect();
        assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len());
        agents[0].release(given[0]);
        agents[1].keep(given[0]);
        assert!(agents[2].reserve(given[0]).is_err());
    }
}
