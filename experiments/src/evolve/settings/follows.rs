//! Settings that follow from others where a file leaves them open: the algorithm, and defaults that depend on it.

use evoxo_common::settings::Follows;

use super::{
    super::algorithm::{AUTO, Asked, SETTING},
    Settings,
};

impl Settings {
    /// What follows from these settings. Nothing does while the problem is not known: a program may still have to say what its
    /// genome is and whether its values have noise.
    pub(super) fn follows(&self) -> Vec<Follows> {
        if self.unsigned() || !self.problems_of_problem().is_empty() || self.genome().valid().is_err() {
            return Vec::new();
        }
        let genome = self.genome();
        let asked = Asked {
            genome: &genome,
            objectives: self.objectives().len(),
            has_grid: self.measure_count() > 0 && self.axes().len() == self.measure_count(),
            is_noisy: self.is_noisy(),
            has_window: self.window > 0,
            evaluations: self.evaluations,
        };
        let chosen = (self.algorithm == AUTO).then(|| asked.choice());
        let algorithm = chosen.as_ref().map_or(self.algorithm, |(algorithm, _)| *algorithm);
        let usual = (algorithm.defaults)(&genome).iter();
        let usual = usual.map(|(setting, value)| Follows {
            setting,
            value,
            why: format!("that is the default of {}", algorithm.name),
        });
        let chosen = chosen.map(|(algorithm, why)| Follows { setting: SETTING, value: algorithm.name, why });
        chosen.into_iter().chain(usual).collect()
    }
}
