//! Settings as data. Each kind of experiment has one table of its settings, which serves for parsing, checks, the commented
//! file of `evoxo new` and the configuration's hash. A struct made from the table is used by the experiment's code.
//!
//! [`settings!`](crate::settings!) declares both at once, and [`choice!`](crate::choice!) declares a setting that is one of
//! several words.

mod list;
mod schema;
mod typed;

pub(crate) use list::setting_text;
pub(crate) use schema::toml_text;
pub use schema::{Condition, Field, Follows, OPEN, PLACES_EXACT, PLACES_FLOAT, Schema, Scope, Shape, Value, Values};
pub use typed::{Choice, FromValue, Typed, WithText, field_name};
