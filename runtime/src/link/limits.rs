//! The bounds of a link, and what happens when each is reached. Those of the wire are part of the protocol's version:
//! both sides know them, so neither has to ask.

use std::time::Duration;

/// The longest message. `send` refuses a longer one; a peer that sends one is cut off.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Messages on the way to a peer that it has not acknowledged. The sender waits; a peer that sends more is cut off.
/// So this is also what a slow owner can make its link hold.
pub const WINDOW_MESSAGES: usize = 256;
/// The same in bytes; a single message may be longer than this, alone.
pub const WINDOW_BYTES: usize = 1 << 20;
/// Unacknowledged messages kept for one peer, with a small price for each. `send` refuses more.
pub const OUTBOX_BYTES_MAX: usize = 16 << 20;

/// What a message costs in the outbox besides its bytes.
pub(super) const MESSAGE_PRICE: usize = 64;
/// What goes to the writer at once; it then asks for more.
pub(super) const BATCH_BYTES: usize = 64 << 10;
/// Events the owner has not fetched yet; the rest waits within the windows above.
pub(super) const INBOX_EVENTS: usize = 256;
/// Commands and happenings on their way to the switchboard; whoever has one more waits.
pub(super) const QUEUE: usize = 256;
/// Handshakes under way from outside; one more is turned away and tries again.
pub(super) const HANDSHAKES_MAX: usize = 256;
/// Newcomers at the desk; one more is turned away and tries again.
pub(super) const APPLICANTS_MAX: usize = 16;
/// How long messages may stay unacknowledged before something is said again, small and of no effect: a peer that was
/// restarted answers it with a reset, and the connection is made anew. Without it only the next keep-alive would tell.
pub(super) const NUDGE: Duration = Duration::from_millis(100);
/// How long a connection may take to say who it is before it is dropped.
pub(super) const HELLO_PATIENCE: Duration = Duration::from_secs(5);
