//! Listening sockets of this machine, and the processes that hold them, from `/proc`.
//!
//! The kernel lists each listening socket with an inode number (`/proc/net/tcp`, `/proc/net/tcp6`), and each process
//! with its open files, sockets by the same number (`/proc/PID/fd`). To whom a process belongs is for `owner` to know.

use super::process;
use std::{
    collections::BTreeSet,
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    path::PathBuf,
};

/// The kernel's number for a socket that listens.
const LISTENING: &str = "0A";

/// A listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListeningSocket {
    address: SocketAddr,
    /// The user that opened it.
    pub(super) user: u32,
    /// The kernel's number of the socket.
    pub(super) inode: u64,
}

/// A descriptor of a process that holds a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// The process.
    pub(super) pid: i32,
    path: PathBuf,
    inode: u64,
}

impl Descriptor {
    /// Whether the process still holds that socket by that descriptor.
    pub(super) fn is_valid(&self) -> bool {
        inode_of(&self.path) == Some(self.inode)
    }
}

/// Whether an address is one of this machine's own: only those can be bound.
pub(super) fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// The sockets that accept connections to this address: those that listen exactly there, or else those that listen on
/// every address. There are several if they share the port.
pub(super) fn listening_at(target: SocketAddr) -> Vec<ListeningSocket> {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let text: Vec<String> = tables.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let sockets: Vec<_> = text.iter().flat_map(|text| text.lines()).filter_map(parse).collect();
    most_specific(&sockets, target)
}

fn most_specific(sockets: &[ListeningSocket], target: SocketAddr) -> Vec<ListeningSocket> {
    let target = SocketAddr::new(target.ip().to_canonical(), target.port());
    let on_port = || sockets.iter().filter(|socket| socket.address.port() == target.port());
    let exact: Vec<_> = on_port().filter(|socket| socket.address.ip() == target.ip()).copied().collect();
    if !exact.is_empty() {
        return exact;
    }
    // A socket on every IPv6 address usually accepts IPv4 too; the reverse is never so.
    let covers = |ip: IpAddr| ip.is_unspecified() && (ip.is_ipv6() || target.is_ipv4());
    on_port().filter(|socket| covers(socket.address.ip())).copied().collect()
}

/// The descriptors by which processes hold one of these sockets. `Err` names a process whose descriptors cannot be read;
/// processes that have ended hold nothing.
pub(super) fn descriptors(pid: i32, sockets: &[ListeningSocket]) -> io::Result<Option<Descriptor>> {
    let inodes: BTreeSet<u64> = sockets.iter().map(|socket| socket.inode).collect();
    let entries = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
        Err(_) => return Ok(None),
    };
    let mut paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.find_map(|path| {
        let inode = inode_of(&path).filter(|inode| inodes.contains(inode))?;
        Some(Descriptor { pid, path, inode })
    }))
}

/// All descriptors of this machine's processes for these sockets, as far as they can be read.
pub(super) fn holders(sockets: &[ListeningSocket]) -> Vec<Descriptor> {
    process::all().into_iter().filter_map(|pid| descriptors(pid, sockets).ok().flatten()).collect()
}

/// The inode number of the socket that a descriptor refers to.
fn inode_of(descriptor: &std::path::Path) -> Option<u64> {
    let target = fs::read_link(descriptor).ok()?;
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// One line of the kernel's tables, if it is a listening socket.
fn parse(line: &str) -> Option<ListeningSocket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, local, _, state, _, _, _, user, _, inode, ..] = fields[..] else { return None };
    if state != LISTENING {
        return None;
    }
    let (address, port) = local.split_once(':')?;
    let address = SocketAddr::new(parse_address(address)?, u16::from_str_radix(port, 16).ok()?);
    Some(ListeningSocket { address, user: user.parse().ok()?, inode: inode.parse().ok()? })
}

/// Addresses are written as words of 32 bits, each in the byte order of the machine.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |from: usize| Some(u32::from_str_radix(text.get(from..from + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn socket(address: &str, inode: u64) -> ListeningSocket {
        ListeningSocket { address: address.parse().unwrap(), user: 0, inode }
    }

    #[test]
    fn a_socket_of_this_process_is_found_with_its_holder() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            // The machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let mut target = listener.local_addr().unwrap();
            if target.ip().is_unspecified() {
                target.set_ip(if target.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
            }
            let sockets = listening_at(target);
            assert_eq!(sockets.len(), 1, "{address}");
            let me = i32::try_from(std::process::id()).unwrap();
            let held = descriptors(me, &sockets).unwrap().unwrap();
            assert!(held.is_valid() && holders(&sockets).contains(&held));
            drop(listener);
            assert!(!held.is_valid() && listening_at(target).is_empty());
        }
    }

    #[test]
    fn the_socket_at_the_very_address_is_the_one_that_answers() {
        let sockets = [
            socket("0.0.0.0:80", 1),
            socket("127.0.0.1:80", 2),
            socket("[::]:81", 3),
            socket("10.0.0.1:82", 4),
            socket("[::1]:83", 5),
            socket("0.0.0.0:83", 6),
        ];
        let inodes = |target: &str| -> Vec<u64> {
            most_specific(&sockets, target.parse().unwrap()).iter().map(|socket| socket.inode).collect()
        };
        assert_eq!(inodes("127.0.0.1:80"), [2]);
        assert_eq!(inodes("10.0.0.1:80"), [1]);
        assert_eq!(inodes("127.0.0.1:81"), [3]);
        assert_eq!(inodes("127.0.0.1:82"), [0; 0]);
        assert_eq!(inodes("[::1]:83"), [5]);
        assert_eq!(inodes("[::2]:83"), [0; 0]);
        assert_eq!(inodes("[::ffff:127.0.0.1]:80"), [2]);
    }

    #[test]
    fn lines_of_the_kernel_are_read_and_others_left_alone() {
        let line =
            "   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  33        0 4711 1 0 100";
        let read = parse(line).unwrap();
        assert_eq!((read.address, read.user, read.inode), ("0.0.0.0:8080".parse().unwrap(), 33, 4711));
        assert_eq!(parse(&line.replace(" 0A ", " 01 ")), None);
        for garbage in ["", "sl local_address rem_address st", &line[..40], &line.replace("1F90", "x")] {
            assert_eq!(parse(garbage), None);
        }
        assert!(is_local(Ipv4Addr::LOCALHOST.into()) && !is_local(Ipv4Addr::new(192, 0, 2, 1).into()));
    }
}
