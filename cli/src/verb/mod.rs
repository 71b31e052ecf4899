//! One file per verb.

pub(crate) mod access;
pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod best;
pub(crate) mod completions;
pub(crate) mod drain;
pub(crate) mod engine;
pub(crate) mod fetch;
pub(crate) mod gallery;
pub(crate) mod imitate;
pub(crate) mod index;
pub(crate) mod r#match;
pub(crate) mod new;
pub(crate) mod optimum;
pub(crate) mod order;
pub(crate) mod play;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod submit;
pub(crate) mod top;
pub(crate) mod verify;
pub(crate) mod watch;
pub(crate) mod workers;
