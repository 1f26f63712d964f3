//! Identity: how peers prove who they are.
//!
//! The manager is a small certificate authority. A new peer presents a one-time join token, gets a short-lived
//! certificate, and renews it in time; a revoked peer gets no new one, and every peer refuses it. The token also
//! contains the fingerprint of the authority, so that the peer cannot be deceived by another one.
//!
//! | file | holds |
//! |---|---|
//! | `authority` | the manager's side: tokens, certificates, revocation, tickets |
//! | `token` | join tokens and the file in which they are stored |
//! | `certificate` | the contents of a certificate, decoded |
//! | `credentials` | a peer's own key and certificate |
//! | `ticket` | small signed statements of the manager |
//! | `tls` | all of that as configuration for rustls |
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
