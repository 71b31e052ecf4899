//! Limits on what one peer may use, and rules for who makes room for whom.

pub(crate) mod peers;
pub(crate) mod places;
