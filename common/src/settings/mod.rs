//! Settings as data: one table for each kind of experiment drives parsing, checking, the commented file of `evoxo new` and
//! the configuration's hash; one struct made from it is what the experiment's code reads.
//!
//! [`settings!`](crate::settings!) declares both at once, and [`choice!`](crate::choice!) a setting that is one of some
//! words.

mod schema;
mod typed;

pub(crate) use schema::toml_text;
pub use schema::{Field, Schema, Scope, Shape, Value, Values};
pub use typed::{Choice, FromValue};
