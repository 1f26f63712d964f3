//! Waiting for a file descriptor of the kernel to become readable.

use std::{io, os::fd::OwnedFd};
use tokio::io::{Interest, unix::AsyncFd};

/// A descriptor that can be awaited until it is readable. Tokio deprecates this way of registering, because a custom
/// type could return a descriptor that it does not own; the replacement is unsafe, which this project does without. An
/// [`OwnedFd`] always returns its own.
#[allow(deprecated)]
pub(super) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}
