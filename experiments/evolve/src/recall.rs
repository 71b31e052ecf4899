//! The names of evaluations: everything that the value of a candidate depends on. A coordinator that knows the value of a name
//! recalls it instead of having it computed again.

use std::sync::LazyLock;

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    task::{Recallable, TaskKind},
};
use prost::Message as _;

use super::{
    activity::Activity,
    genome::Genome,
    messages::{self, Item},
    notation::Notation,
    settings::{NoiseName, RecallName, Settings},
    task::Evaluate,
};

/// What this build computes for fixed candidates. Another build may compute other values.
static BEHAVIOUR: LazyLock<Digest> = LazyLock::new(|| const { &TaskKind::of::<Evaluate>() }.signature());

/// Names the evaluations of a search.
pub(super) struct Names {
    problem: Digest,
    /// Whether a value depends on the candidate's seed.
    by_seed: bool,
    /// The search space, if its candidates have parts that may not be there.
    space: Option<(Genome, Vec<Notation>, Activity)>,
}

impl Names {
    /// The names of a search with these settings, if its values are worth recalling. The signature in the settings must be that
    /// of the program or of the module.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        let is_worth = match settings.recall {
            RecallName::Auto => settings.built_in().is_none(),
            RecallName::Yes => true,
            RecallName::No => false,
        };
        // A file that says "no" may only mean that the answer is not to be confirmed.
        let is_denied = settings.noise == NoiseName::No && settings.recall != RecallName::Yes;
        let by_seed = settings.is_noisy() || is_denied;
        is_worth.then(|| {
            let problem = settings.built_in().map(|problem| problem.name);
            let code = (problem, &settings.signature, &settings.answers, settings.fuel, settings.on_failure);
            let candidates = (settings.genome().parts, settings.notations());
            let values = (settings.counts(), settings.objectives(), settings.is_noisy());
            let activity = settings.activity();
            let mut said = format!("{code:?} {candidates:?} {values:?}");
            if !activity.is_total() {
                said += &format!(" {activity:?}");
            }
            let space = (!activity.is_total()).then(|| (settings.genome(), settings.notations(), activity));
            Self { problem: Digest::of_pieces([&BEHAVIOUR.0, said.as_bytes()]), by_seed, space }
        })
    }

    /// A candidate as its problem gets it, without the genes of parts that are not there.
    fn called(&self, message: &messages::Candidate) -> messages::Candidate {
        let mut called = message.clone();
        if let Some((genome, notations, activity)) = &self.space
            && let Ok(candidate) = genome.candidate(message)
        {
            for (genes, is_there) in called.parts.iter_mut().zip(activity.parts(&candidate, notations)) {
                if !is_there {
                    *genes = messages::Genes::default();
                }
            }
        }
        called
    }

    /// The names of the evaluations of a task with these shared bytes.
    pub(super) fn recallable(&self, items: &[Item], shared: &Bytes) -> Recallable {
        // A candidate without genes is made from its number and from what the task shares.
        let is_made = items.iter().any(|item| item.candidate.is_none());
        let made_from = if is_made { Digest::of(shared).0.to_vec() } else { Vec::new() };
        let name = |item: &Item| {
            let seed = if self.by_seed { item.seed } else { 0 };
            let genes = match &item.candidate {
                Some(candidate) => self.called(candidate).encode_to_vec(),
                None => [made_from.as_slice(), &item.number.to_le_bytes()].concat(),
            };
            let is_made = [u8::from(item.candidate.is_none())];
            Digest::of_pieces([&self.problem.0[..], &is_made, &genes, &seed.to_le_bytes()])
        };
        let unnamed = |item: &Item| if self.by_seed { 0 } else { item.seed };
        let (parts, seeds) = items.iter().map(|item| (name(item), unnamed(item))).unzip();
        Recallable { problem: self.problem, parts, seeds }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use evoxo_common::experiment::Replica;

    use super::*;
    use crate::testing::parse;

    /// A task is the sum of its parts, and parts with the same name have the same output, in whatever search they are.
    #[test]
    fn equal_names_have_equal_outputs() {
        let mut known = BTreeMap::<Digest, Bytes>::new();
        let mut again = 0;
        for settings in [
            "problem = \"onemax\"\nlength = 8\nslice = 3",
            "problem = \"onemax\"\nlength = 8\nwindow = 4",
            "problem = \"onemax\"\nlength = 8\nalgorithm = \"random\"\nslice = 7",
            "algorithm = \"ga\"\nproblem = \"noisy-sphere\"\nlength = 2\nslice = 6\nconfirmations = 3",
            "problem = \"ellipsoid\"\nlength = 3\nalgorithm = \"openai-es\"\nslice = 4",
            "problem = \"tsp\"\nlength = 6\npopulation = 20",
        ] {
            let config = parse(&format!(
                "experiment = \"evolve\"\nreplicas = 1\n[settings]\nrecall = \"yes\"\nevaluations = 150\n{settings}\n"
            ));
            let mut replica = Replica::start(&config, &config.arms[0], 0);
            while !replica.is_finished() {
                let tasks = replica.plan(0..replica.needed());
                let outputs: Vec<Bytes> = tasks.iter().map(|task| task.run().unwrap()).collect();
                for (task, output) in tasks.iter().zip(&outputs) {
                    let names = &task.recallable.as_ref().expect("the file wants its evaluations recalled").parts;
                    let parts = task.kind.divided(output);
                    assert_eq!((parts.concat(), parts.len()), (output.to_vec(), names.len()), "{settings}");
                    let last = parts.len() - 1;
                    assert_eq!(task.only(&[last]).run().as_ref(), Ok(&parts[last]), "{settings}");
                    for (name, part) in names.iter().zip(parts) {
                        again += usize::from(known.contains_key(name));
                        assert_eq!(*known.entry(*name).or_insert_with(|| part.clone()), part, "{settings}");
                    }
                }
                replica.absorb(&outputs);
            }
        }
        assert!(again > 100, "only {again} evaluations were known");
    }

    #[test]
    fn a_name_says_what_a_value_depends_on() {
        let names = |settings: &str| {
            let text = format!("experiment = \"evolve\"\n[settings]\n{settings}\n");
            Names::of(&Settings::of(&parse(&text).arms[0].settings))
        };
        let of = |settings: &str| names(settings).expect("its values are recalled").problem;
        let program = "objectives = \"min f\"\n[[settings.genome]]\nname = \"x\"\ntype = \"bits\"\nlength = 5";
        let known = |more: &str| format!("problem = \"program:x\"\n{more}\n{program}");
        let signed = |digit: &str| known(&format!("signature = \"{}\"", digit.repeat(64)));
        let first = of(&signed("a"));
        assert_ne!(first, of(&signed("b")), "another version of the program");
        assert_ne!(first, of(&signed("a").replace("length = 5", "length = 6")));
        assert_ne!(first, of(&format!("algorithm = \"nsga2\"\n{}", signed("a").replace("min f", "min f, min g"))));
        let other = format!("evaluations = 77\nalgorithm = \"random\"\ntimeout = 3\n{}", signed("a"));
        assert_eq!(first, of(&other), "another search of the same problem");
        assert!(names("problem = \"onemax\"").is_none() && names("problem = \"onemax\"\nrecall = \"yes\"").is_some());
        assert!(names(&known("recall = \"no\"")).is_none());
        let by_seed = |more: &str| names(&known(more)).expect("its values are recalled").by_seed;
        assert_eq!(
            ["", "noise = \"yes\"", "noise = \"no\"", "noise = \"no\"\nrecall = \"yes\""].map(by_seed),
            [false, true, true, false]
        );
    }
}
