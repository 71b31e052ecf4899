//! The real program on a real port: what it does for people and workers, and what strangers can do to it.

#![allow(clippy::unwrap_used, reason = "all of this crate is tests, helpers included")]

mod process;
mod services;
mod strangers;
mod support;
