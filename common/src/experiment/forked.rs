//! Makes the configuration of a run that forks from another one.

use super::{
    Arm, Config, Problem, Problems, Registry,
    fork::{Earlier, Fork},
    fork_file::refusal,
};
use crate::settings::Scope;

impl Config {
    /// The configuration of a run that does the same as this one until the end of round `at`, and from then on has these
    /// settings. `overrides` are pairs of key and value: the name of a setting (for all arms), `arms.NAME.SETTING`, `keep` or
    /// `replicas`. It keeps no states unless that says so. Settings that only make a run longer ([`Scope::Length`]) count for the whole run. Without a change, this is
    /// the same configuration.
    ///
    /// # Errors
    /// All problems at once, for example a setting that cannot change after a round.
    pub fn forked(&self, registry: &Registry, at: u64, overrides: &[(String, String)]) -> Result<Self, Problems> {
        let name = "the forked run";
        let later = Self::parse(registry, name, &Self { keep: 0, ..self.clone() }.to_toml(), overrides)?;
        let problems = self.cannot_fork(&later, at);
        if !problems.is_empty() {
            let problem = |sentence: String| Problem { line: None, sentence, typed: true };
            return Err(Problems { file: name.into(), list: problems.into_iter().map(problem).collect() });
        }
        let mut forked = Self { forks: self.forks.clone(), ..later };
        let last = forked.forks.pop_if(|fork| fork.at == at);
        let arms = self.arms.iter().zip(&forked.arms).map(|(before, after)| {
            let known = last.iter().flat_map(|fork| &fork.arms).find(|(name, _)| *name == before.name);
            (before.name.clone(), earlier(before, after, known.map_or(&[], |(_, known)| known)))
        });
        let arms: Vec<(String, Vec<Earlier>)> = arms.filter(|(_, earlier)| !earlier.is_empty()).collect();
        if !arms.is_empty() {
            forked.forks.push(Fork { at, arms });
        }
        Self::parse(registry, name, &forked.to_toml(), &[])
    }

    /// The reasons why a run with this configuration cannot have the other settings after this round.
    fn cannot_fork(&self, later: &Self, at: u64) -> Vec<String> {
        let mut problems = Vec::new();
        if (self.seed, &self.ends, self.kind) != (later.seed, &later.ends, later.kind) {
            problems.push("only settings and replicas can change in a fork: leave out other keys of --set".into());
        }
        if self.screen.is_some() {
            problems.push("a screen cannot fork: its arms are treatments from the beginning".into());
        }
        if let Some(last) = self.forks.last().filter(|last| last.at > at) {
            let last = last.at;
            problems.push(format!(
                "the run changes its settings after round {last}: fork after that round, or fork the run from which it forks"
            ));
        }
        for (before, after) in self.arms.iter().zip(&later.arms) {
            for ((field, old), (_, new)) in before.settings.iter().zip(after.settings.iter()) {
                match (self.kind.depends_on_length)(&after.settings) {
                    _ if old == new => {}
                    Some(why) if field.scope == Scope::Length => {
                        problems.push(format!("{} cannot change in a fork, because {why}", field.name));
                    }
                    None if field.scope == Scope::Length => {}
                    _ => problems.extend(refusal(self.kind, field)),
                }
            }
            let rounds =
                self.stages(before).iter().map(|(_, arm)| (self.kind.rounds)(&arm.settings)).max().unwrap_or(0);
            let rounds = rounds.max((self.kind.rounds)(&after.settings));
            if !(1..rounds).contains(&at) {
                let sentence = format!(
                    "a replica of arm {:?} has {rounds} rounds, so it cannot fork after round {at}",
                    after.name
                );
                problems.push(if rounds > 1 { format!("{sentence}: give 1 to {}", rounds - 1) } else { sentence });
            }
        }
        problems.sort();
        problems.dedup();
        problems
    }
}

/// The earlier values of the settings that change in an arm. `known` are earlier values of a change after the same round.
fn earlier(before: &Arm, after: &Arm, known: &[Earlier]) -> Vec<Earlier> {
    let pairs = before.settings.iter().zip(after.settings.iter());
    let changing =
        pairs.filter(|((field, _), _)| field.scope != Scope::Length).filter_map(|((field, old), (_, new))| {
            let known = known.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value);
            let first = known.unwrap_or(old);
            (first != new).then(|| (field.name, first.clone()))
        });
    changing.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiment::{Change, Replica, ResultDigest},
        local, testing,
    };

    fn text(config: &str) -> Config {
        testing::config(&format!("[settings]\nrounds = 6\n{config}"))
    }

    fn forked(config: &Config, at: u64, overrides: &[(&str, &str)]) -> Result<Config, String> {
        let overrides: Vec<(String, String)> =
            overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        config.forked(&testing::registry(), at, &overrides).map_err(|problems| problems.to_string())
    }

    fn run(config: &Config) -> Vec<Replica> {
        local::run(config).expect("tasks that can be computed")
    }

    fn digest(config: &Config) -> ResultDigest {
        ResultDigest::of_run(run(config).iter().map(Replica::digest))
    }

    #[test]
    fn a_fork_begins_with_its_past() {
        let before = text("tasks = 4");
        let fork = forked(&before, 2, &[("tasks", "9")]).unwrap();
        for (replica, past) in run(&fork).iter().zip(run(&before)) {
            assert_eq!(replica.history()[..2], past.history()[..2]);
            assert_ne!(replica.history()[2], past.history()[2]);
            assert_eq!(replica.links()[..2], past.links()[..2]);
            assert_ne!(replica.links()[2], past.links()[2]);
        }
        // Rounds after the fork are those of the later settings.
        let gains = |config: &Config| -> Vec<f64> {
            let replica = run(config).swap_remove(0);
            let sums = replica.history().iter().map(|row| row[0]);
            sums.clone().zip([0.0].into_iter().chain(sums)).map(|(sum, before)| sum - before).collect()
        };
        assert_eq!(gains(&fork)[2..], gains(&text("tasks = 9"))[2..]);
        assert_eq!(run(&fork)[0].rounds(), 6);
    }

    #[test]
    fn a_fork_without_a_change_is_the_run_itself() {
        let before = text("tasks = 4");
        for overrides in [&[][..], &[("tasks", "4")]] {
            let same = forked(&before, 2, overrides).unwrap();
            assert_eq!((&same, same.hash(), digest(&same)), (&before, before.hash(), digest(&before)));
        }
        // A fork that is undone after the same round is none.
        let fork = forked(&before, 2, &[("tasks", "9")]).unwrap();
        assert_ne!(fork.hash(), before.hash());
        assert_eq!(forked(&fork, 2, &[("tasks", "4")]).unwrap(), before);
        // A later fork may go back to the first settings.
        let back = forked(&fork, 4, &[("tasks", "4")]).unwrap();
        assert_eq!(back.forks_text().len(), 2);
        assert_eq!(run(&back)[0].history()[..4], run(&fork)[0].history()[..4]);
        let other = forked(&fork, 2, &[("tasks", "5")]).unwrap();
        assert_eq!(other, forked(&before, 2, &[("tasks", "5")]).unwrap());
    }

    #[test]
    fn a_fork_is_its_file() {
        let before = text("tasks = 4\n[arms.a]\n[arms.b]\ntasks = 3");
        let fork = forked(&before, 2, &[("arms.b.tasks", "9")]).unwrap();
        let again = forked(&fork, 4, &[("tasks", "1"), ("replicas", "3")]).unwrap();
        for config in [&fork, &again] {
            let toml = config.to_toml();
            let read = Config::parse(&testing::registry(), "t", &toml, &[]).unwrap();
            assert_eq!((&read, read.hash()), (config, config.hash()), "{toml}");
            let result = config.report(&run(config)).json;
            let head = format!("experiment = \"sums\"\nseed = {}\nreplicas = {}", config.seed, config.replicas);
            let mut result = result;
            result["experiment"] = "sums".into();
            result["seed"] = config.seed.into();
            result["replicas"] = config.replicas.into();
            assert_eq!(Config::of_result(&testing::registry(), &result).as_ref(), Ok(config), "{head}");
        }
        let notes = [
            "After round 2, tasks changes from 3 to 9 (arm \"b\").",
            "After round 4, tasks changes from 4 to 1 (arm \"a\").",
            "After round 4, tasks changes from 9 to 1 (arm \"b\").",
        ];
        assert_eq!(again.forks_text(), notes);
        assert_eq!(again.report(&run(&again)).notes, notes);
        let by_hand = "tasks = 1\n[arms.a]\n[arms.b]\n[[fork]]\nat = 2\n[fork.arms.b]\ntasks = 3\n\
            [[fork]]\nat = 4\n[fork.settings]\ntasks = 4\n[fork.arms.b]\ntasks = 9\n";
        assert_eq!(text(by_hand).hash(), again.hash());
        // The past of each is the run from which it forks.
        let more = Config { replicas: again.replicas, ..fork.clone() };
        assert_eq!([fork.past(), again.past(), before.past()], [Some((2, before.clone())), Some((4, more)), None]);
        let kept = forked(&before, 2, &[("arms.b.tasks", "9"), ("keep", "1 MiB")]).unwrap();
        assert_eq!((kept.keep, kept.hash()), (1 << 20, fork.hash()));
        assert_eq!(forked(&kept, 4, &[("tasks", "1")]).unwrap().keep, 0);
        assert_eq!(again.change_from(&fork), Change::Other("the tables [[fork]] differ".into()));
    }

    /// A state is the same before and after it is saved, also exactly at the fork, and a longer run continues.
    #[test]
    fn forks_are_restored_and_lengthened() {
        let fork = forked(&text("tasks = 4"), 3, &[("tasks", "9")]).unwrap();
        let whole = run(&fork).swap_remove(0);
        let mut replica = Replica::start(&fork, &fork.arms[0], 0);
        while local::step(&mut replica).unwrap() {
            let restored = Replica::restore(&fork, &replica.save()).unwrap();
            assert_eq!(restored.save(), replica.save());
            assert_eq!(restored.tasks(), replica.tasks());
            replica = restored;
        }
        assert_eq!(replica.save(), whole.save());
        let _ = crate::promises::check(&testing::registry(), &fork.to_toml());
    }

    #[test]
    fn mistakes_have_messages() {
        let fork = forked(&text("tasks = 4"), 3, &[("tasks", "9")]).unwrap();
        for (at, overrides, sentence) in [
            (2, ("rounds", "7"), "rounds cannot change after a round; these settings of sums can: tasks"),
            (2, ("task", "7"), "unknown setting \"task\""),
            (2, ("seed", "7"), "only settings and replicas can change in a fork"),
            (2, ("tasks", "7"), "the run changes its settings after round 3: fork after that round"),
            (6, ("tasks", "7"), "a replica of arm \"main\" has 6 rounds, so it cannot fork after round 6: give 1 to 5"),
            (0, ("tasks", "7"), "so it cannot fork after round 0"),
        ] {
            let why = forked(&fork, at, &[overrides]).unwrap_err();
            assert!(why.contains(sentence), "{why}");
        }
        let in_file = |fork: &str| {
            let text = format!("experiment = \"sums\"\n[settings]\nrounds = 6\n{fork}\n");
            Config::parse(&testing::registry(), "t", &text, &[]).expect_err(fork).to_string()
        };
        for (fork, sentence) in [
            ("[fork]\nat = 2", "t:4: fork must be a list of tables: write [[fork]]"),
            ("[[fork]]", "[[fork]] has no round: give at = ROUND"),
            ("[[fork]]\nat = 0", "t:5: at must be the number of a round, 1 or more"),
            ("[[fork]]\nat = 1\nto = 2", "t:6: unknown key \"to\" in [[fork]]"),
            ("[[fork]]\nat = 1\nsettings = 2", "t:6: settings and arms of [[fork]] must be tables"),
            ("[[fork]]\nat = 1\n[fork.arms]\nmain = 2", "an arm of [[fork]] must be a table of settings"),
            ("[[fork]]\nat = 1\n[fork.settings]\nslice = 2", "t:7: slice cannot change after a round"),
            (
                "[[fork]]\nat = 1\n[fork.settings]\ntask = 2",
                "t:7: unknown setting \"task\" in [[fork]]; did you mean \"tasks\"?",
            ),
            (
                "[[fork]]\nat = 1\n[fork.settings]\ntasks = 0",
                "t:7: tasks is 0, but must be a whole number from 1 to 100",
            ),
            ("[[fork]]\nat = 1\n[fork.arms.b]\ntasks = 2", "[[fork]] names no arm: \"b\""),
            (
                "[[fork]]\nat = 6\n[fork.settings]\ntasks = 2",
                "t:4: at is 6, but a replica of arm \"main\" has only 6 rounds",
            ),
            ("[[fork]]\nat = 2\n[[fork]]\nat = 2", "t:4: at is 2: the tables [[fork]] must be in the order of rounds"),
            ("[screen.factors]\nA.tasks = [1, 2]\n[[fork]]\nat = 2", "a screen has no [[fork]]"),
        ] {
            assert!(in_file(fork).contains(sentence), "{fork}: {}", in_file(fork));
        }
        let many = (1..=9).map(|at| format!("[[fork]]\nat = {at}\n")).collect::<String>();
        assert!(in_file(&many).contains("more than 8 tables [[fork]]"));
    }
}
