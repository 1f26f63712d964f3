//! The limits of a link, and what happens when each is reached. Those on the wire are part of the protocol's version:
//! both sides know them.

use std::time::Duration;

/// Maximum length of a message. `send` refuses a longer one; a peer that sends one is disconnected.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of unacknowledged messages on the way to a peer. The sender waits; a peer that sends more is
/// disconnected. So this also bounds what a slow owner can make its link buffer.
pub const WINDOW_MESSAGES: usize = 256;
/// The same in bytes; a single message may be longer, if it is the only one.
pub const WINDOW_BYTES: usize = 1 << 20;
/// Maximum size of the outbox of one peer, with a small overhead for each message. `send` refuses more.
pub const OUTBOX_BYTES_MAX: usize = 16 << 20;

/// The overhead of a message in the outbox.
pub(super) const MESSAGE_PRICE: usize = 64;
/// Maximum size of a batch for the writer, which then asks for the next.
pub(super) const BATCH_BYTES: usize = 64 << 10;
/// Maximum number of events that the owner has not fetched; the rest waits within the windows above.
pub(super) const INBOX_EVENTS: usize = 256;
/// Capacity of the switchboard's inbox for commands and socket events; senders wait when it is full.
pub(super) const QUEUE: usize = 256;
/// Maximum number of incoming handshakes in progress; further ones are refused and retried.
pub(super) const HANDSHAKES_MAX: usize = 256;
/// Maximum number of join requests in progress; further ones are refused and retried.
pub(super) const APPLICANTS_MAX: usize = 16;
/// How long messages may stay unacknowledged before the last acknowledgement is repeated, which has no effect except
/// that a restarted peer answers it with a reset, and the connection is re-established. Otherwise only the next
/// keep-alive would notice.
pub(super) const NUDGE: Duration = Duration::from_millis(100);
/// Time limit for the hello on a connection.
pub(super) const HELLO_PATIENCE: Duration = Duration::from_secs(5);
