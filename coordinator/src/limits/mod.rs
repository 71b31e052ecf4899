//! Limits of what one peer may use, and who makes room for whom.

pub(crate) mod peers;
pub(crate) mod places;
