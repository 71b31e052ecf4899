//! The findings of a screen in sentences: the factors and interactions whose effects chance hardly explains.

use serde_json::Value;

use super::{
    Config, Goal,
    screen_report::{effect_name, estimate},
    screen_responses::{response_text, responses_of_result, screened},
};
use crate::screen::{Basis, Effect};

/// A sentence names at most this many effects.
const NAMED_MAX: usize = 4;

/// Which settings move the response; `None` without a screen, or if the result lacks responses of some treatments.
#[must_use]
pub(crate) fn screen_sentences(config: &Config, result: &Value) -> Option<String> {
    let screen = config.screen.as_ref()?;
    let arms = screened(screen, responses_of_result(screen, &result["screen"])?);
    let response = response_text(config, screen);
    let wanted = if screen.goal == Goal::Maximize { "more" } else { "less" };
    let of_arm = |arm: &super::screen_responses::Screened<'_>| {
        let place = if screen.arms.len() > 1 { format!("In arm {:?}", arm.arm) } else { "Here".into() };
        let Some(effects) = arm.effects.as_ref().filter(|effects| effects.basis != Basis::Unknown) else {
            return format!("{place} the replicas are too few to tell effects from chance.");
        };
        let all = effects.effects.len();
        let mut found: Vec<&Effect> = effects.effects.iter().filter(|effect| effect.is_found()).collect();
        found.sort_by(|one, other| other.estimate.abs().total_cmp(&one.estimate.abs()));
        let named = found.iter().take(NAMED_MAX).map(|effect| {
            let name = effect_name(screen, effect.aliases[0].word);
            let factor = screen.factors.iter().find(|factor| factor.letter == effect.aliases[0].word);
            let levels = factor.map(|factor| format!(" from {} to {}", factor.level(0), factor.level(1)));
            format!("{name}{} by {}", levels.unwrap_or_default(), estimate(effect).short())
        });
        let named: Vec<String> = named.collect();
        let more = found.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(", and {more} more effects") } else { String::new() };
        match found.len() {
            0 => format!("{place} each of {all} effects may be chance (all tested together, P > 0.05)."),
            count => format!(
                "{place} {count} of {all} effects are hardly chance (95 % intervals that hold for all together): {}{more}.",
                named.join(", ")
            ),
        }
    };
    let said: Vec<String> = arms.iter().map(of_arm).collect();
    Some(format!("Which settings move {response} ({wanted} is better)? {}", said.join(" ")))
}
