//! Who may speak as whom.
//!
//! The manager is a small certificate authority, like the office that issues the badges of one building. A newcomer
//! shows an invitation (a one-time token), gets a badge that is good for a day, and has it renewed while it works
//! there; whoever is forgotten gets no new one and is turned away at every door. The invitation also says what the
//! office's seal looks like, so that the newcomer cannot be fooled by a false office.
//!
//! | file | holds |
//! |---|---|
//! | `authority` | the manager's side: tokens, certificates, revocation, tickets |
//! | `token` | invitations and the book in which they are kept |
//! | `certificate` | what a certificate says, read back from its bytes |
//! | `credentials` | a peer's own key and certificate |
//! | `ticket` | small signed statements of the manager |
//! | `tls` | all of that as settings for rustls |
//! | `join` | joining and renewing over QUIC |
//!
//! Which peer gets which number is decided elsewhere; time is always a parameter.

mod authority;
mod certificate;
mod credentials;
pub(crate) mod join;
#[cfg(test)]
mod tests;
mod ticket;
pub(crate) mod tls;
mod token;

pub use authority::{Applicant, Authority, CERTIFICATE_LIFETIME_S, Signer};
pub(crate) use certificate::host_name;
pub use certificate::{Certified, Fingerprint};
pub use credentials::Identity;
pub use join::{Grant, IdentityCall, IdentityRequest, JoinRequest, join, renew};
pub use ticket::Ticket;
pub use token::{JoinRefusal, JoinToken};
