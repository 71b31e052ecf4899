//! Effects of a two-level design from its responses, with intervals that hold for all of them together.
//!
//! With replicas, the error comes from the replicas, as in the textbook analysis of a replicated design whose replicas are
//! blocks (Montgomery, section 7.2). What all treatments of a replica have in common, for example because they share random
//! numbers, is removed, and the remainder is the error. Without replicas, the error comes from the effects themselves (Lenth
//! 1989).

use super::{Alias, Design};
use crate::{
    math::{erfc, exp, ln, mean},
    stats::{fisher_tail, quantile, student_bound, student_tails},
};

/// The probability that any interval in a table misses its effect.
const ERROR: f64 = 0.05;
/// The fewest contrasts for which Lenth's error is computed (his examples have 15; of 3 contrasts, the error would rest on a
/// single number).
const LENTH_CONTRASTS_MIN: usize = 7;
/// Values that are this small compared with the greatest response are rounding errors.
const ROUNDING: f64 = 1e-12;

/// What a contrast estimates, and how well it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The aliases whose sum is estimated. The first one is meant, if the others are 0.
    pub aliases: Vec<Alias>,
    /// The mean response where the first alias is high, minus that where it is low.
    pub estimate: f64,
    /// Half the width of its interval. The intervals of all effects hold together with probability 0.95 (with replicas, by
    /// Bonferroni's correction). `None` if no error is known, or if the replicas show no error at all.
    pub half_width: Option<f64>,
    /// The probability of an effect at least this large if there were none, corrected for the number of effects in the same
    /// way: it is at most 0.05 exactly if the interval excludes 0. If the replicas show no error at all, it is that of the
    /// sign test: the probability that all replicas see the effect on the same side.
    pub p: Option<f64>,
    /// Whether the effect has its own error, because it differs between replicas by more than the common error explains.
    pub own_error: bool,
}

impl Effect {
    /// Whether its interval excludes 0; without an interval, whether chance hardly explains it.
    #[must_use]
    pub fn is_found(&self) -> bool {
        match self.half_width {
            Some(half_width) => self.estimate.abs() > half_width,
            None => self.p.is_some_and(|p| p <= ERROR),
        }
    }
}

/// The source of the error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// The differences between replicas of a treatment.
    Replicas {
        /// The degrees of freedom of the common error. They are not always whole (Satterthwaite 1946), because treatments may
        /// differ in their variances.
        freedom: f64,
    },
    /// The effects themselves: Lenth's pseudo standard error.
    Lenth,
    /// No source: one replica, and too few effects, or effects that are mostly 0.
    Unknown,
}

/// All effects of a design for one set of responses.
#[derive(Clone, Debug, PartialEq)]
pub struct Effects {
    /// The mean of all responses.
    pub mean: f64,
    /// The number of replicas.
    pub replicas: usize,
    /// One for each contrast, in the order of [`Design::aliases`].
    pub effects: Vec<Effect>,
    /// The source of the error.
    pub basis: Basis,
    /// The standard error of an effect (Lenth's pseudo standard error without replicas); 0 if unknown.
    pub standard_error: f64,
}

impl Effects {
    /// The effects of `responses[treatment][replica]`, in standard order. `None` if there are no replicas at all.
    ///
    /// # Panics
    /// If the number of treatments is not the design's, or if treatments have different numbers of replicas.
    #[must_use]
    pub fn of(design: &Design, responses: &[Vec<f64>]) -> Option<Self> {
        assert_eq!(responses.len(), design.treatments(), "one list of responses for each treatment");
        let replicas = responses.first().map_or(0, Vec::len);
        assert!(responses.iter().all(|list| list.len() == replicas), "the same number of replicas for each treatment");
        let greatest = responses.iter().flatten().fold(0.0_f64, |greatest, value| greatest.max(value.abs()));
        let unit = power_of_two(greatest);
        let in_units = |list: &Vec<f64>| list.iter().map(|value| value / unit).collect();
        let found = Self::of_moderate(design, &responses.iter().map(in_units).collect::<Vec<Vec<f64>>>())?;
        Some(found.times(unit))
    }

    /// The same for responses of at most 2, whose fourth powers cannot overflow.
    fn of_moderate(design: &Design, responses: &[Vec<f64>]) -> Option<Self> {
        let replicas = responses.first().map_or(0, Vec::len);
        let means: Vec<f64> = responses.iter().filter_map(|list| mean(list)).collect();
        let all = mean(&means)?;
        let greatest = responses.iter().flatten().fold(0.0_f64, |greatest, value| greatest.max(value.abs()));
        let effect = |aliases: Vec<Alias>| {
            let estimate = contrast(design, &aliases, &means);
            let estimate = if estimate.abs() <= ROUNDING * greatest { 0.0 } else { estimate };
            Effect { aliases, estimate, half_width: None, p: None, own_error: false }
        };
        let effects: Vec<Effect> = design.aliases().into_iter().map(effect).collect();
        let mut found = Self { mean: all, replicas, effects, basis: Basis::Unknown, standard_error: 0.0 };
        match replicas {
            1 => found.judge_by_lenth(),
            _ => found.judge_by_replicas(design, responses, &means, ROUNDING * greatest),
        }
        Some(found)
    }

    /// The effects of responses that are this many times as large.
    fn times(mut self, unit: f64) -> Self {
        let scale = |value: &mut f64| *value = (*value * unit).clamp(f64::MIN, f64::MAX);
        scale(&mut self.mean);
        scale(&mut self.standard_error);
        for effect in &mut self.effects {
            scale(&mut effect.estimate);
            if let Some(half_width) = &mut effect.half_width {
                scale(half_width);
            }
        }
        self
    }

    /// Errors of at most `rounding` count as no error.
    fn judge_by_replicas(&mut self, design: &Design, responses: &[Vec<f64>], means: &[f64], rounding: f64) {
        let (treatments, replicas) = (responses.len() as f64, self.replicas as f64);
        let of_replica = |replica: usize| responses.iter().map(|list| list[replica]).sum::<f64>() / treatments;
        let blocks: Vec<f64> = (0..self.replicas).map(of_replica).collect();
        let rest = |(list, own): (&Vec<f64>, &f64)| {
            let each = list.iter().zip(&blocks).map(|(value, block)| value - own - block + self.mean);
            each.map(|rest| rest * rest).sum::<f64>()
        };
        let squares: Vec<f64> = responses.iter().zip(means).map(rest).collect();
        let (sum, fourth) = squares.iter().fold((0.0, 0.0), |(sum, fourth), it| (sum + it, fourth + it * it));
        let most = (treatments - 1.0) * (replicas - 1.0);
        let freedom = if fourth > 0.0 { (sum * sum * (replicas - 1.0) / fourth).min(most) } else { most };
        let variance = 4.0 * sum / most / (treatments * replicas);
        self.basis = Basis::Replicas { freedom };
        self.standard_error = variance.sqrt();
        let questions = self.effects.len() as f64;
        for effect in &mut self.effects {
            let one = |replica: usize| {
                let responses: Vec<f64> = responses.iter().map(|list| list[replica]).collect();
                contrast(design, &effect.aliases, &responses)
            };
            let each: Vec<f64> = (0..self.replicas).map(one).collect();
            let middle = each.iter().sum::<f64>() / replicas;
            let squares: f64 = each.iter().map(|value| (value - middle) * (value - middle)).sum();
            let own = squares / (replicas - 1.0) / replicas;
            // Replicas that share random numbers may each see an effect differently: then the common error is too small.
            let chance = if variance > 0.0 { fisher_tail(own / variance, replicas - 1.0, freedom) } else { 1.0 };
            effect.own_error = chance * questions <= ERROR;
            let (variance, freedom) = if effect.own_error { (own, replicas - 1.0) } else { (variance, freedom) };
            let error = variance.sqrt();
            // If replicas agree, the influence of chance cannot be measured; but the agreement of all replicas says
            // something.
            let tails = match error <= rounding {
                true if effect.estimate == 0.0 => 1.0,
                true => (1..self.replicas).map(|_| 0.5).product(),
                false => student_tails(effect.estimate / error, freedom),
            };
            effect.half_width = (error > rounding).then(|| student_bound(freedom, ERROR / questions) * error);
            effect.p = Some((questions * tails).min(1.0));
        }
    }

    /// Lenth's pseudo standard error and simultaneous margin of error: it assumes that most effects are 0.
    fn judge_by_lenth(&mut self) {
        let count = self.effects.len();
        let sizes: Vec<f64> = self.effects.iter().map(|effect| effect.estimate.abs()).collect();
        if count < LENTH_CONTRASTS_MIN {
            return;
        }
        let first = 1.5 * quantile(&sizes, 0.5);
        let small: Vec<f64> = sizes.into_iter().filter(|size| *size < 2.5 * first).collect();
        if small.is_empty() {
            return;
        }
        let error = 1.5 * quantile(&small, 0.5);
        if error == 0.0 {
            return;
        }
        let freedom = count as f64 / 3.0;
        // Each of `count` independent intervals must hold with this probability, so that all hold with 0.95 (Sidak 1967).
        let tails = 1.0 - power(1.0 - ERROR, 1.0 / count as f64);
        let half_width = student_bound(freedom, tails) * error;
        for effect in &mut self.effects {
            let tails = student_tails(effect.estimate / error, freedom);
            effect.half_width = Some(half_width);
            effect.p = Some(1.0 - power(1.0 - tails, count as f64));
        }
        (self.basis, self.standard_error) = (Basis::Lenth, error);
    }

    /// The effects as points of a half-normal plot (Daniel 1959; Wu and Hamada, section 4.8): the effect's index, its
    /// half-normal quantile, and its size. Sizes ascend.
    #[must_use]
    pub fn half_normal(&self) -> Vec<(usize, f64, f64)> {
        let mut order: Vec<usize> = (0..self.effects.len()).collect();
        let size = |place: usize| self.effects[place].estimate.abs();
        order.sort_by(|one, other| size(*one).total_cmp(&size(*other)));
        let count = order.len() as f64;
        let point = |(rank, place): (usize, usize)| (place, half_normal((rank as f64 + 0.5) / count), size(place));
        order.into_iter().enumerate().map(point).collect()
    }
}

/// A contrast of the responses, one for each treatment: their mean where the first alias is high, minus that where it is low.
fn contrast(design: &Design, aliases: &[Alias], responses: &[f64]) -> f64 {
    let word = aliases[0].word;
    let sum: f64 = responses.iter().enumerate().map(|(treatment, value)| design.sign(word, treatment) * value).sum();
    sum / (responses.len() as f64 / 2.0)
}

/// The greatest power of two that is not above this number, which is at least 0; 1 if the number is too small. Division by it
/// keeps all digits of a number.
fn power_of_two(number: f64) -> f64 {
    if number.is_normal() { f64::from_bits(number.to_bits() & f64::INFINITY.to_bits()) } else { 1.0 }
}

/// A number of at least 0, to the power of another.
fn power(base: f64, exponent: f64) -> f64 {
    if base <= 0.0 { 0.0 } else { exp(exponent * ln(base)) }
}

/// The size that the given share of normally distributed numbers (mean 0, variance 1) does not exceed; the share is at least
/// 0 and less than 1.
fn half_normal(share: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 40.0_f64);
    loop {
        let middle = f64::midpoint(low, high);
        match middle {
            _ if middle <= low || middle >= high => return high,
            _ if 1.0 - erfc(middle / std::f64::consts::SQRT_2) < share => low = middle,
            _ => high = middle,
        }
    }
}
