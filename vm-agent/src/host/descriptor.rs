//! Waiting until a file descriptor of the kernel has something to say.

use std::{io, os::fd::OwnedFd};
use tokio::io::{Interest, unix::AsyncFd};

/// A descriptor that can be waited for until it is readable.
///
/// Tokio calls this way of registering deprecated, because a type of one's own could name a descriptor that is not its
/// own; what is to replace it is unsafe, which this project does without. An [`OwnedFd`] always names its own.
#[allow(deprecated)]
pub(super) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}
