//! The rules of reconfiguration.
