//! Compares designs and effects with published examples, and with their definitions.

use proptest::prelude::*;

use super::{Basis, Design, Effects, Word};
use crate::rng::{Generator, Stream, below};

fn design(letters: &str, generators: &[&str]) -> Design {
    let generators: Vec<String> = generators.iter().map(|text| (*text).to_owned()).collect();
    Design::new(&letters.chars().collect::<Vec<char>>(), &generators).unwrap()
}

fn word(letters: &str) -> Word {
    Word::read(letters).unwrap()
}

/// The aliases of each contrast, as "AB + CE".
fn aliases(design: &Design) -> Vec<String> {
    let text = |list: &Vec<super::Alias>| {
        let words = list.iter().map(|it| format!("{}{}", if it.negative { "-" } else { "" }, it.word));
        words.collect::<Vec<String>>().join(" + ")
    };
    design.aliases().iter().map(text).collect()
}

fn effects(design: &Design, responses: &[&[f64]]) -> Effects {
    Effects::of(design, &responses.iter().map(|list| list.to_vec()).collect::<Vec<_>>()).unwrap()
}

#[track_caller]
fn assert_effects(found: &Effects, known: &[(&str, f64)], within: f64) {
    for (name, value) in known {
        let effect = found.effects.iter().find(|effect| effect.aliases[0].word == word(name)).unwrap();
        assert!((effect.estimate - value).abs() <= within, "{name}: {} and {value}", effect.estimate);
    }
}

/// One replica of each treatment.
fn singles(values: &[f64]) -> Vec<Vec<f64>> {
    values.iter().map(|value| vec![*value]).collect()
}

#[test]
fn treatments_are_in_standard_order() {
    let full = design("ABC", &[]);
    let names: Vec<String> = (0..8).map(|treatment| full.treatment(treatment)).collect();
    assert_eq!(names, ["(1)", "a", "b", "ab", "c", "ac", "bc", "abc"]);
    assert_eq!((full.resolution(), full.defining_relation()), (None, None));
    assert_eq!(full.name(), "2^3 full factorial design");
    // Montgomery, table 8.2: the fractions I = ABC and I = -ABC of 2^3.
    let names = |generator: &str| {
        let half = design("ABC", &[generator]);
        (0..4).map(|treatment| half.treatment(treatment)).collect::<Vec<String>>()
    };
    assert_eq!(names("C = AB"), ["c", "a", "b", "abc"]);
    assert_eq!(names("C = -AB"), ["(1)", "ac", "bc", "ab"]);
}

/// Montgomery, table 8.8: the 2^(6-2) design with I = ABCE = BCDF = ADEF.
#[test]
fn aliases_of_a_quarter_fraction() {
    let quarter = design("ABCDEF", &["E = ABC", "F = BCD"]);
    assert_eq!(quarter.defining_relation().unwrap(), "I = ABCE = ADEF = BCDF");
    assert_eq!((quarter.resolution(), quarter.treatments()), (Some(4), 16));
    assert_eq!(quarter.name(), "2^(6-2) fractional factorial design of resolution IV");
    let known = [
        "A",
        "B",
        "C",
        "D",
        "E",
        "F",
        "AB + CE",
        "AC + BE",
        "AD + EF",
        "AE + BC + DF",
        "AF + DE",
        "BD + CF",
        "BF + CD",
        "ABD + ACF + BEF + CDE",
        "ABF + ACD + BDE + CEF",
    ];
    assert_eq!(aliases(&quarter), known);
}

/// Box, Hunter and Hunter, and Montgomery, table 8.14: the saturated 2^(7-4) design.
#[test]
fn aliases_of_a_saturated_design() {
    let saturated = design("ABCDEFG", &["D = AB", "E = AC", "F = BC", "G = ABC"]);
    assert_eq!(saturated.resolution(), Some(3));
    assert_eq!(aliases(&saturated)[0], "A + BD + CE + FG");
    assert_eq!(aliases(&saturated)[6], "G + AF + BE + CD");
    // The fraction with the opposite sign of D: A - BD.
    let folded = design("ABCDEFG", &["D = -AB", "E = AC", "F = BC", "G = ABC"]);
    assert_eq!(aliases(&folded)[0], "A + -BD + CE + FG");
    assert_eq!(folded.generators()[0], "D = -AB");
    // In half of a 2^5 with I = ABCDE, no two effects of one or two factors are aliased: resolution V.
    let half = design("ABCDE", &["E = ABCD"]);
    assert!(aliases(&half).iter().all(|names| !names.contains('+')) && half.resolution() == Some(5));
}

/// Montgomery, example 6.2: filtration rate of a chemical product, an unreplicated 2^4; and its analysis by Lenth's method.
#[test]
fn filtration_rate() {
    let rates = [45., 71., 48., 65., 68., 60., 80., 65., 43., 100., 45., 104., 75., 86., 70., 96.];
    let found = Effects::of(&design("ABCD", &[]), &singles(&rates)).unwrap();
    let known = [
        ("A", 21.625),
        ("B", 3.125),
        ("C", 9.875),
        ("D", 14.625),
        ("AB", 0.125),
        ("AC", -18.125),
        ("AD", 16.625),
        ("BC", 2.375),
        ("BD", -0.375),
        ("CD", -1.125),
        ("ABC", 1.875),
        ("ABD", 4.125),
        ("ACD", -1.625),
        ("BCD", -2.625),
        ("ABCD", 1.375),
    ];
    assert_effects(&found, &known, 1e-12);
    assert!((found.mean - 70.0625).abs() < 1e-12);
    assert_eq!((found.basis, found.standard_error), (Basis::Lenth, 2.625));
    // The book has 5.219 from Lenth's table, to four digits.
    let margin = found.effects[0].half_width.unwrap();
    assert!((margin - 5.219 * 2.625).abs() < 0.02, "{margin}");
    let names: Vec<String> =
        found.effects.iter().filter(|it| it.is_found()).map(|it| it.aliases[0].word.to_string()).collect();
    assert_eq!(names, ["A", "D", "AC", "AD"]);
    for effect in &found.effects {
        assert_eq!(effect.is_found(), effect.p.unwrap() < 0.05, "{effect:?}");
    }
    let points = found.half_normal();
    assert_eq!(found.effects[points[14].0].aliases[0].word, word("A"));
    // The upper quantile 1 - 0.5/30 of the normal distribution, and the middle of 15 points: 0.75.
    assert!((points[14].1 - 2.128).abs() < 1e-3 && (points[7].1 - 0.6745).abs() < 1e-4, "{points:?}");
}

/// Montgomery, example 8.4: shrinkage of parts from injection moulding, a 2^(6-2) with I = ABCE = BCDF.
#[test]
fn injection_moulding() {
    let shrinkage = [6., 10., 32., 60., 4., 15., 26., 60., 8., 12., 34., 60., 16., 5., 37., 52.];
    let found = Effects::of(&design("ABCDEF", &["E = ABC", "F = BCD"]), &singles(&shrinkage)).unwrap();
    let known = [
        ("A", 13.875),
        ("B", 35.625),
        ("C", -0.875),
        ("D", 1.375),
        ("E", 0.375),
        ("F", 0.375),
        ("AB", 11.875),
        ("AC", -1.625),
        ("AD", -5.375),
        ("AE", -1.875),
        ("AF", 0.625),
        ("BD", -0.125),
        ("BF", -0.125),
        ("ABD", 0.125),
        ("ABF", -4.875),
    ];
    assert_effects(&found, &known, 1e-12);
    assert_eq!(found.mean, 27.3125);
}

/// Box, Hunter and Hunter, chapter 6: the reactor example, a 2^5, and half of it with the generator 5 = 1234.
#[test]
fn reactor() {
    let percent = [
        61., 53., 63., 61., 53., 56., 54., 61., 69., 61., 94., 93., 66., 60., 95., 98., 56., 63., 70., 65., 59., 55.,
        67., 65., 44., 45., 78., 77., 49., 42., 81., 82.,
    ];
    let (full, half) = (design("ABCDE", &[]), design("ABCDE", &["E = ABCD"]));
    let found = Effects::of(&full, &singles(&percent)).unwrap();
    let known = [
        ("A", -1.375),
        ("B", 19.5),
        ("C", -0.625),
        ("D", 10.75),
        ("E", -6.25),
        ("AB", 1.375),
        ("BD", 13.25),
        ("DE", -11.0),
        ("BE", 2.0),
        ("CD", 2.125),
    ];
    assert_effects(&found, &known, 1e-12);
    assert_eq!(found.mean, 65.5);
    let place = |treatment: usize| (0..32).find(|other| full.treatment(*other) == half.treatment(treatment)).unwrap();
    let chosen: Vec<f64> = (0..16).map(|treatment| percent[place(treatment)]).collect();
    let found = Effects::of(&half, &singles(&chosen)).unwrap();
    let known = [
        ("A", -2.0),
        ("B", 20.5),
        ("C", 0.0),
        ("D", 12.25),
        ("E", -6.25),
        ("AB", 1.5),
        ("AC", 0.5),
        ("AD", -0.75),
        ("AE", 1.25),
        ("BC", 1.5),
        ("BD", 10.75),
        ("BE", 1.25),
        ("CD", 0.25),
        ("CE", 2.25),
        ("DE", -9.5),
    ];
    assert_effects(&found, &known, 1e-12);
    assert_eq!(found.mean, 65.25);
}

/// Montgomery, examples 6.2.1 and 7.1: yield of a chemical process, a 2^2 with three replicas as blocks; the residual sum of
/// squares is 24.84 with 6 degrees of freedom.
#[test]
fn replicas_as_blocks() {
    let found = effects(&design("AB", &[]), &[&[28., 25., 27.], &[36., 32., 32.], &[18., 19., 23.], &[31., 30., 29.]]);
    assert_effects(&found, &[("A", 8.33), ("B", -5.0), ("AB", 1.67)], 0.005);
    let residual = found.standard_error * found.standard_error * 12.0 / 4.0 * 6.0;
    assert!((residual - 24.84).abs() < 0.01, "{residual}");
    assert!(found.effects[0].is_found() && found.effects[1].is_found() && !found.effects[2].is_found());
    // What all treatments of a replica have in common is not an error.
    let shifted =
        effects(&design("AB", &[]), &[&[28., 125., 27.], &[36., 132., 32.], &[18., 119., 23.], &[31., 130., 29.]]);
    assert!((shifted.standard_error - found.standard_error).abs() < 1e-12);
}

#[test]
fn replicas_that_disagree_on_an_effect_widen_its_interval() {
    // A is +10 in one replica, -10 in the next, and so on; the other effects have little noise.
    let value = |treatment: usize, replica: usize| {
        let sign = if (treatment + replica).is_multiple_of(2) { 5.0 } else { -5.0 };
        sign + ((treatment * 7 + replica * 3) % 5) as f64 / 10.0
    };
    let responses: Vec<Vec<f64>> = (0..16).map(|treatment| (0..6).map(|it| value(treatment, it)).collect()).collect();
    let found = Effects::of(&design("ABCD", &[]), &responses).unwrap();
    assert!(found.effects[0].own_error && !found.effects[0].is_found(), "{:?}", found.effects[0]);
    assert!(found.effects[0].half_width > found.effects[1].half_width);
    assert!(found.effects[1..].iter().all(|effect| !effect.own_error));
}

/// If replicas show no error, chance cannot be measured; all that remains is that all replicas agree.
#[test]
fn replicas_that_agree_to_the_last_digit_give_no_interval() {
    let full = design("A", &[]);
    let of = |replicas: usize| effects(&full, &[&vec![0.1; replicas], &vec![0.3; replicas]]).effects.remove(0);
    for (replicas, p) in [(2, 0.5), (5, 0.0625), (6, 0.03125)] {
        let effect = of(replicas);
        assert_eq!((effect.half_width, effect.p, effect.is_found()), (None, Some(p), replicas == 6));
    }
    let nothing = effects(&full, &[&[0.1; 9], &[0.1; 9]]).effects.remove(0);
    assert_eq!((nothing.half_width, nothing.p, nothing.is_found()), (None, Some(1.0), false));
}

#[test]
fn mistakes_have_messages() {
    let wrong = |letters: &str, generators: &[&str]| {
        let generators: Vec<String> = generators.iter().map(|text| (*text).to_owned()).collect();
        let (place, sentence) = Design::new(&letters.chars().collect::<Vec<char>>(), &generators).unwrap_err();
        format!("{place:?}: {sentence}")
    };
    let all = [
        wrong("ABCD", &["D"]),
        wrong("ABCD", &["D = ABCD"]),
        wrong("ABCD", &["D = AAB"]),
        wrong("ABCD", &["D = ABI"]),
        wrong("ABCD", &["D = ABX", "F = AB"]),
        wrong("ABCDE", &["D = AB", "D = AC"]),
        wrong("ABCDE", &["D = AB", "E = BD"]),
        wrong("ABCDE", &["D = AB", "E = AB"]),
        wrong("ABCDE", &["D = A"]),
        wrong("ABCD", &["D = AB", "C = AB"]),
        wrong("ABCDEFGHJK", &[]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

/// Designs with any numbers of factors and generators, whose words are drawn at random.
fn any_design() -> impl Strategy<Value = Design> {
    let generators = prop::collection::vec((1_u32..32, any::<bool>()), 0..6);
    (2_usize..=5, generators).prop_filter_map("confounded", |(bases, words)| {
        let letters: Vec<char> = ('A'..='Z').filter(|letter| *letter != 'I').take(bases + words.len()).collect();
        let generator = |(place, (chosen, negative)): (usize, &(u32, bool))| {
            let word = letters[..bases].iter().enumerate().filter(|(bit, _)| chosen >> bit & 1 == 1);
            let word: String = word.map(|(_, letter)| *letter).collect();
            format!("{} = {}{word}", letters[bases + place], if *negative { "-" } else { "" })
        };
        let generators: Vec<String> = words.iter().enumerate().map(generator).collect();
        Design::new(&letters, &generators).ok()
    })
}

proptest! {
    /// Every factor is high as often as low, also within each level of every other factor; contrasts are orthogonal to one
    /// another.
    #[test]
    fn designs_are_orthogonal(design in any_design()) {
        let column = |word: Word| (0..design.treatments()).map(|it| design.sign(word, it)).collect::<Vec<f64>>();
        let dot = |one: &[f64], two: &[f64]| one.iter().zip(two).map(|(one, two)| one * two).sum::<f64>();
        let contrasts: Vec<Vec<f64>> = design.aliases().iter().map(|list| column(list[0].word)).collect();
        prop_assert_eq!(contrasts.len(), design.treatments() - 1);
        for (place, one) in contrasts.iter().enumerate() {
            prop_assert_eq!(one.iter().sum::<f64>(), 0.0);
            for two in &contrasts[..place] {
                prop_assert_eq!(dot(one, two), 0.0);
            }
        }
        for (place, one) in design.factors().iter().enumerate() {
            for two in &design.factors()[..place] {
                prop_assert_eq!(dot(&column(*one), &column(*two)), 0.0);
            }
        }
    }

    /// Aliased effects have the same column of signs, or the opposite one. Every main effect and pair is listed exactly once,
    /// unless it is the mean.
    #[test]
    fn aliases_are_indistinguishable_effects(design in any_design()) {
        let aliases = design.aliases();
        for list in &aliases {
            for other in list {
                for treatment in 0..design.treatments() {
                    let sign = if other.negative { -1.0 } else { 1.0 };
                    prop_assert_eq!(design.sign(list[0].word, treatment), sign * design.sign(other.word, treatment));
                }
            }
        }
        let named = |length: u32| aliases.iter().flatten().filter(|alias| alias.word.length() == length).count();
        let factors = design.factors().len();
        prop_assert_eq!(named(1), factors);
        prop_assert_eq!(named(2), factors * (factors - 1) / 2);
        let shortest = aliases.iter().filter(|list| list.iter().any(|it| it.word.length() == 1)).all(|list| list.len() == 1);
        prop_assert_eq!(shortest, design.resolution().is_none_or(|resolution| resolution >= 4));
    }

    /// The coefficients of a linear model are found again: half of each effect, and the sum for aliased effects.
    #[test]
    fn a_linear_model_is_recovered(design in any_design(), seed in 0_u64..1000) {
        let mut rng = Stream::root(seed).text("model").rng();
        let mut coefficient = || below(&mut rng, 64) as f64 - 32.0;
        let terms: Vec<(Word, f64)> = design.aliases().iter().flatten().map(|it| (it.word, coefficient())).collect();
        let value = |treatment: usize| 7.0 + terms.iter().map(|(word, size)| size * design.sign(*word, treatment)).sum::<f64>();
        let responses: Vec<f64> = (0..design.treatments()).map(value).collect();
        let found = Effects::of(&design, &singles(&responses)).unwrap();
        prop_assert_eq!(found.mean, 7.0);
        for effect in &found.effects {
            let size = |alias: &super::Alias| {
                let size = terms.iter().find(|(word, _)| *word == alias.word).unwrap().1;
                if alias.negative { -size } else { size }
            };
            let known = 2.0 * effect.aliases.iter().map(size).sum::<f64>();
            prop_assert!((effect.estimate - known).abs() < 1e-9, "{:?}: {known}", effect);
        }
    }
}

/// If all responses are multiplied by a power of two, all effects are multiplied by it, bit for bit, up to the greatest
/// numbers, even if fourth powers would overflow.
#[test]
fn large_responses_have_the_same_effects_as_small_ones() {
    let full = design("ABC", &[]);
    let responses: Vec<Vec<f64>> = (0..8).map(|it| vec![1.5 + f64::from(it), 1.0 + f64::from(it * it)]).collect();
    let times = |factor: f64| -> Vec<Vec<f64>> {
        responses.iter().map(|list| list.iter().map(|value| value * factor).collect()).collect()
    };
    let plain = Effects::of(&full, &responses).unwrap();
    for exponent in [-900, -300, 300, 660, 1000] {
        let factor = f64::from_bits(((1023 + exponent) as u64) << 52);
        let found = Effects::of(&full, &times(factor)).unwrap();
        assert_eq!((found.basis, found.mean), (plain.basis, factor * plain.mean), "{exponent}");
        for (one, other) in found.effects.iter().zip(&plain.effects) {
            assert_eq!((one.p, one.estimate), (other.p, factor * other.estimate), "{exponent}");
            assert_eq!(one.half_width, other.half_width.map(|half_width| factor * half_width), "{exponent}");
        }
    }
    let ends: Vec<Vec<f64>> = (0..8).map(|it| vec![if it % 2 == 0 { f64::MIN } else { f64::MAX }; 2]).collect();
    let found = Effects::of(&full, &ends).unwrap();
    assert!(found.effects.iter().all(|effect| effect.estimate.is_finite() && effect.p.is_some()), "{found:?}");
}

/// Nearly normal with mean 0 and variance 1: the sum of twelve uniform numbers.
fn normal(rng: &mut Generator) -> f64 {
    (0..12).map(|_| below(rng, 1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0
}

/// If nothing has an effect, at most one table in twenty finds one, even if variances differ and replicas have much in
/// common.
#[test]
fn one_table_in_twenty_has_a_false_effect() {
    let (design, mut rng) = (design("ABCDE", &["E = ABCD"]), Stream::root(1).text("nothing").rng());
    for replicas in [2, 4] {
        let mut tables = 0;
        for _ in 0..1000 {
            let common: Vec<f64> = (0..replicas).map(|_| 10.0 * normal(&mut rng)).collect();
            let of_treatment = |treatment: usize| {
                let deviation = if treatment.is_multiple_of(4) { 3.0 } else { 1.0 };
                common.iter().map(|common| common + deviation * normal(&mut rng)).collect::<Vec<f64>>()
            };
            let responses: Vec<Vec<f64>> = (0..16).map(of_treatment).collect();
            let found = Effects::of(&design, &responses).unwrap();
            tables += u32::from(found.effects.iter().any(super::Effect::is_found));
        }
        // At most 50 are expected, with a standard deviation of 7.
        assert!((5..=71).contains(&tables), "{tables} of 1000 with {replicas} replicas");
    }
}
