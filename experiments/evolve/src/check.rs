//! What `evoxo check` tries a program with: fixed candidates of its genome. A program must always answer the same.

use evoxo_common::{
    experiment::{Answer, Answers},
    rng::Stream,
    settings::Values,
    task::{Programs, Refusal},
};
use rand_core::Rng as _;
use serde_json::{Value, json};

use super::{
    genome::{Candidate, Genes, Genome, Part, Type},
    messages::{self, AskOutput, Evaluation},
    program::{Asked, Question},
    settings::{SCHEMA, Settings},
    task::form,
};

/// A place between the bounds of a genome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Low,
    High,
    Middle,
}

/// The first candidates, described in words; the others are random.
const PLACES: [(Place, &str); 3] =
    [(Place::Low, "all genes low"), (Place::High, "all genes high"), (Place::Middle, "all genes in the middle")];

/// The settings of a file that says only that the problem is this program.
pub(super) fn arm(name: &str) -> Values {
    SCHEMA.defaults().with("problem", &format!("program:{name}"))
}

/// What [`answers`] asks an arm's program.
pub(super) fn questions(values: &Values) -> String {
    let settings = Settings::of(values);
    if settings.algorithm.asks {
        return values.to_text();
    }
    format!("{:?}", (settings.asked(), settings.genome(), settings.notations(), settings.counts(), settings.activity()))
}

/// The answers of an arm's program to the candidates with these numbers, requested together in this order.
pub(super) fn answers(values: &Values, numbers: &[usize], programs: &mut dyn Programs) -> Answers {
    let settings = Settings::of(values);
    let asked = settings.asked().ok_or_else(|| Refusal("no program is asked".into()))?;
    let name = asked.as_str();
    if settings.algorithm.asks {
        let mut asked = Asked { name, programs };
        return numbers.iter().map(|number| batches(&mut asked, &settings, *number)).collect();
    }
    let (genome, notations) = (settings.genome(), settings.notations());
    let drawn = |number: &usize| {
        let mut rng = Stream::root(0).text("evolve").text("check").word(*number as u64).rng();
        let seed = rng.next_u64();
        let (candidate, what) = match PLACES.get(*number) {
            Some((place, what)) => (at(&genome, *place), *what),
            None => (genome.random(&mut rng), "random genes"),
        };
        (format!("check-{number}"), seed, candidate, what)
    };
    let drawn: Vec<(String, u64, Candidate, &str)> = numbers.iter().map(drawn).collect();
    let questions: Vec<Question<'_>> =
        drawn.iter().map(|(id, seed, candidate, _)| Question { id, seed: *seed, candidate }).collect();
    let within_ms = settings.timeout.saturating_mul(1000 * numbers.len() as u64);
    let answers = Asked { name, programs }.evaluate(&form(&settings, &genome, &notations), &questions, within_ms)?;
    let answer = |(answer, (.., what)): (Evaluation, &(_, _, _, &'static str))| Answer { what, said: said(answer) };
    Ok(answers.into_iter().zip(&drawn).map(answer).collect())
}

/// The first batches of an algorithm, with its states.
fn batches(asked: &mut Asked<'_>, settings: &Settings, number: usize) -> Result<Answer, Refusal> {
    let (genome, notations) = (settings.genome(), settings.notations());
    let genes = |message: &messages::Candidate| -> Result<Vec<Value>, Refusal> {
        let candidate = genome.candidate(message).map_err(Refusal)?;
        Ok(candidate.parts.iter().zip(&notations).map(|(genes, notation)| notation.json(genes)).collect())
    };
    let batch = |AskOutput { state, candidates }: AskOutput| -> Result<Value, Refusal> {
        Ok(json!({"batch": candidates.iter().map(genes).collect::<Result<Vec<_>, Refusal>>()?, "state": state}))
    };
    let said =
        asked.conversation(settings, number as u64)?.into_iter().map(batch).collect::<Result<Vec<Value>, Refusal>>()?;
    Ok(Answer { what: "batches of the algorithm", said: Ok(json!(said).to_string()) })
}

/// The numbers of an answer with full precision, or why there are none.
fn said(answer: Evaluation) -> Result<String, String> {
    let Evaluation { objectives, constraints, measures, failure } = answer;
    if !failure.is_empty() {
        return Err(failure);
    }
    let mut said = json!({"f": objectives});
    for (key, numbers) in [("g", constraints), ("m", measures)] {
        if !numbers.is_empty() {
            said[key] = numbers.into();
        }
    }
    Ok(said.to_string())
}

fn at(genome: &Genome, place: Place) -> Candidate {
    Candidate { parts: genome.parts.iter().map(|part| genes(part, place)).collect() }
}

fn genes(part: &Part, place: Place) -> Genes {
    let all = 0..part.length;
    match (part.of, place) {
        (_, Place::Middle) => part.middle(),
        (Type::Real { low, .. }, Place::Low) => Genes::Real(vec![low; part.length]),
        (Type::Real { high, .. }, Place::High) => Genes::Real(vec![high; part.length]),
        (Type::Integer { low, .. }, Place::Low) => Genes::Integer(vec![low; part.length]),
        (Type::Integer { high, .. }, Place::High) => Genes::Integer(vec![high; part.length]),
        (Type::Bits, end) => Genes::Bits(vec![end == Place::High; part.length]),
        (Type::Permutation, Place::Low) => Genes::Permutation(all.map(|gene| gene as u32).collect()),
        (Type::Permutation, Place::High) => Genes::Permutation(all.rev().map(|gene| gene as u32).collect()),
        (Type::Symbols { .. }, Place::Low) => Genes::Symbols(vec![0; part.length]),
        (Type::Symbols { alphabet }, Place::High) => Genes::Symbols(vec![alphabet - 1; part.length]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the types of genes are, the places are candidates, and no two of them are equal.
    #[test]
    fn places_are_different_candidates() {
        let types = [
            Type::Real { low: -5.0, high: 10.0 },
            Type::Integer { low: -3, high: 4 },
            Type::Bits,
            Type::Permutation,
            Type::Symbols { alphabet: 4 },
        ];
        for of in types {
            let genome = Genome { parts: vec![Part { name: "x".into(), length: 5, of }], bounded: true };
            let all = PLACES.map(|(place, _)| at(&genome, place));
            for (index, candidate) in all.iter().enumerate() {
                assert_eq!(genome.candidate(&candidate.message()).as_ref(), Ok(candidate), "{of:?}");
                assert!(!all[..index].contains(candidate), "{of:?}");
            }
        }
    }
}
