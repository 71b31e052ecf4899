//! A worker that has sent nothing for too long is lost.

use evoxo_common::time::Millis;

use super::{Act, Look, Rule};
use crate::machine::cause::Cause;

pub(super) struct Silence;

impl Rule for Silence {
    fn tick(&mut self, look: &Look) -> Vec<Act> {
        let limit_ms = look.settings.silence_ms_max;
        let silent = look.sessions.iter().filter(|(_, session)| look.now - session.heard > limit_ms);
        silent.map(|(id, _)| Act::Lose(id, Cause::Silent(limit_ms))).collect()
    }

    fn next_wake(&self, look: &Look) -> Option<Millis> {
        (!look.sessions.is_empty()).then_some(look.now)
    }
}
