//! Settings that follow from others where a file leaves them open: the algorithm, and defaults that depend on it.

use evoxo_common::settings::Follows;

use super::{
    super::algorithm::{AUTO, Situation},
    Settings,
};

impl Settings {
    /// What follows from these settings. Nothing does while the problem is not known: a program may still have to say what its
    /// genome is and whether its values have noise.
    pub(super) fn follows(&self) -> Vec<Follows> {
        if self.unsigned() || !self.problems_of_problem().is_empty() || self.genome().valid().is_err() {
            return Vec::new();
        }
        let situation = Situation {
            given: self.given(),
            // With a wrong number of axes too: the check of `map-elites` says so.
            has_grid: self.measure_count() > 0 && !self.axes().is_empty(),
        };
        let (algorithm, mut follows) =
            if self.algorithm == AUTO { situation.follows() } else { (self.algorithm, Vec::new()) };
        follows.extend((algorithm.defaults)(&situation.given.genome).iter().map(|(setting, value)| Follows {
            setting,
            value,
            why: format!("that is the default of {}", algorithm.name),
        }));
        follows
    }
}

#[cfg(test)]
mod tests {
    use evoxo_common::experiment::Config;

    use super::*;
    use crate::{
        registry,
        testing::{digest, parse, problems, run},
    };

    /// The algorithm of the file's first arm, and the notices on what follows.
    fn chosen(settings: &str) -> (&'static str, String) {
        let text = format!("experiment = \"evolve\"\nreplicas = 1\n[settings]\n{settings}\n");
        let config = parse(&text);
        let notices = Config::follows(&registry(), &text, &[], &[]).join("\n");
        assert_eq!(parse(&config.to_toml()), config, "the written configuration has the choice");
        (Settings::of(&config.arms[0].settings).algorithm.name, notices)
    }

    /// The chosen algorithm, the types of the genome's parts with their lengths, and other settings.
    type Row<'a> = (&'a str, &'a [(&'a str, usize)], &'a str);

    /// A module with parts of these types and lengths, each from -5 to 5, and these settings.
    fn genome(parts: &[(&str, usize)], settings: &str) -> String {
        let part = |(number, (of, length)): (usize, &(&str, usize))| {
            let bounds = if ["real", "integer"].contains(of) { "low = -5\nhigh = 5\n" } else { "" };
            format!("[[genome]]\nname = \"p{number}\"\ntype = \"{of}\"\nlength = {length}\n{bounds}")
        };
        let parts: String = parts.iter().enumerate().map(part).collect();
        format!("problem = \"wasm:m.wasm\"\nobjectives = \"min f\"\n{settings}\n{parts}")
    }

    #[test]
    fn every_row_of_the_rule() {
        let (real, whole, bits) = (("real", 10), ("integer", 10), ("bits", 10));
        let rows: &[Row<'_>] = &[
            ("nsga3", &[real], "objectives = \"min a, min b, min c\""),
            ("nsga3", &[bits], "objectives = \"min a, min b, max c, min d, min e\""),
            ("nsga2", &[real], "objectives = \"min a, min b\""),
            ("map-elites", &[real], "measures = 1\ngrid = [{ low = 0, high = 1 }]"),
            ("cma-es", &[real], "measures = 1"),
            ("ga", &[real], "window = 4"),
            ("ga", &[("permutation", 10)], ""),
            ("ga", &[real, ("permutation", 10)], "noise = \"yes\""),
            ("ga", &[bits], ""),
            ("ga", &[bits], "noise = \"yes\""),
            ("cma-es", &[real], "noise = \"yes\"\nevaluations = 1000000000"),
            ("cma-es", &[whole], "noise = \"yes\"\nevaluations = 1000000000"),
            ("cma-es", &[real], "evaluations = 1"),
            ("cma-es", &[real], "evaluations = 19999"),
            ("l-shade", &[real], "evaluations = 20000"),
            ("l-shade", &[real], "evaluations = 1000000000"),
            ("cma-es", &[("real", 1)], "evaluations = 199"),
            ("l-shade", &[("real", 1)], "evaluations = 200"),
            ("cma-es", &[("real", 5), ("integer", 5)], "evaluations = 4999"),
            ("l-shade", &[("real", 5), ("integer", 5)], "evaluations = 5000"),
            ("cma-es", &[whole], "evaluations = 10000"),
            ("cma-es", &[("integer", 21)], "evaluations = 20999"),
            ("ga", &[("integer", 21)], "evaluations = 21000"),
            ("ga", &[whole], "evaluations = 10000\ncovariance = \"separable\""),
            ("ga", &[whole, bits], "evaluations = 20000"),
            ("cma-es", &[real, bits], "evaluations = 1000000000"),
            ("cma-es", &[("real", 1000)], "constraints = 3\nevaluations = 1000000"),
            ("cma-es", &[("real", 100_000)], ""),
        ];
        for (expected, parts, settings) in rows {
            let mut text = genome(parts, settings);
            if settings.starts_with("objectives") {
                text = text.replace("objectives = \"min f\"\n", "");
            }
            let (algorithm, notices) = chosen(&text);
            assert_eq!(algorithm, *expected, "{parts:?} {settings}");
            let begins = format!("arm \"main\": algorithm = \"{expected}\", because ");
            assert!(notices.starts_with(&begins), "{parts:?} {settings}: {notices}");
        }
    }

    #[test]
    fn a_notice_says_why() {
        let notices = |settings: &str| chosen(settings).1;
        assert_eq!(
            notices("evaluations = 2000"),
            "arm \"main\": algorithm = \"cma-es\", because genes are real numbers, and there are 2000 evaluations for 10 genes\n\
             arm \"main\": model = \"quadratic\", because there are 10 genes, none of them a bit, and values have no \
             noise"
        );
        assert_eq!(notices("evaluations = 2000\nmodel = \"none\"").lines().count(), 1);
        assert!(!notices("length = 21").contains("model"));
        for other in ["covariance = \"separable\"", "population = 2000", "noise = \"yes\""] {
            let (algorithm, notices) = chosen(&genome(&[("real", 10)], other));
            assert!(algorithm == "cma-es" && !notices.contains("model"), "{notices}");
        }
        assert!(!chosen(&genome(&[("real", 5), ("bits", 5)], "")).1.contains("model"));
        assert_eq!(
            notices("problem = \"noisy-sphere\"\nalgorithm = \"auto\""),
            "arm \"main\": algorithm = \"cma-es\", because genes are real numbers, and values have noise"
        );
        assert_eq!(chosen("problem = \"arm\"").0, "map-elites");
        assert_eq!(notices("algorithm = \"ga\""), "");
        let large = notices("length = 300");
        assert!(large.ends_with("\narm \"main\": covariance = \"limited\", because there are 300 genes"), "{large}");
        assert_eq!(chosen("length = 300\ncovariance = \"full\"").1.lines().count(), 1);
        // A gene with equal bounds is fixed, and counts for nothing.
        let fixed =
            genome(&[("real", 4), ("permutation", 4)], "").replace("length = 4\nlow = -5", "length = 4\nlow = 5");
        assert_eq!(chosen(&fixed).0, "ga");
        assert_eq!(chosen(&genome(&[("real", 4)], "").replace("low = -5", "low = 5")).0, "ga");
    }

    /// The search is that of a file that names the algorithm.
    #[test]
    fn a_file_without_algorithm_is_the_file_with_the_chosen_one() {
        for (settings, name) in [
            ("evaluations = 300", "cma-es"),
            ("length = 2\nevaluations = 900", "l-shade"),
            ("problem = \"onemax\"\nevaluations = 200", "ga"),
            ("problem = \"noisy-sphere\"\nlength = 3\nevaluations = 90\nconfirmations = 2", "cma-es"),
            ("problem = \"zdt1\"\nlength = 4\nevaluations = 90\npopulation = 20", "nsga2"),
            ("problem = \"dtlz2\"\nlength = 4\nevaluations = 90\npopulation = 20", "nsga3"),
        ] {
            let file =
                |more: &str| parse(&format!("experiment = \"evolve\"\nreplicas = 2\n[settings]\n{settings}\n{more}"));
            let named = match name {
                "cma-es" if !settings.contains("noisy") => "cma-es\"\nmodel = \"quadratic",
                other => other,
            };
            let (open, named) = (file(""), file(&format!("algorithm = \"{named}\"\n")));
            assert_eq!((open.hash(), &open), (named.hash(), &file("algorithm = \"auto\"\n")), "{settings}");
            assert_eq!(digest(&run(&open)), digest(&run(&named)), "{settings}");
        }
    }

    /// Until a program says what its genome is, nothing is chosen; a screen needs the algorithm in its file.
    #[test]
    fn open_settings_wait_for_the_program() {
        assert_eq!(
            chosen("problem = \"program:p\"\nobjectives = \"min f\"\n[[genome]]\nlength = 3"),
            ("auto", String::new())
        );
        // The fork is checked before the program is known.
        let fork = "[[fork]]\nat = 3\n[fork.settings]\nmutations = 2";
        let file = format!("problem = \"program:p\"\nobjectives = \"min f\"\n[[genome]]\nlength = 3\n{fork}");
        assert_eq!(chosen(&file).0, "auto");
        let screen = "experiment = \"evolve\"\n[screen]\n[screen.factors]\nA.sigma = [0.1, 0.2]\n";
        let said = problems(screen).to_string();
        assert!(
            said.contains("a screen cannot leave algorithm open: set algorithm = \"cma-es\", because genes"),
            "{said}"
        );
        let said = problems("experiment = \"evolve\"\n[settings]\nislands = 4\n").to_string();
        assert!(said.contains("islands"), "{said}");
    }

    /// The defaults of the paper hold for real genes, unless the file has its own. A stored configuration has all settings.
    #[test]
    fn nsga3_has_its_own_defaults() {
        let operators = |text: &str| {
            let settings = parse(&format!("experiment = \"evolve\"\n[settings]\n{text}\n")).arms[0].settings.to_text();
            ["crossover = ", "crossover_eta = "].map(|name| {
                let line = settings.lines().find(|line| line.starts_with(name)).expect("a setting");
                line[name.len()..].to_owned()
            })
        };
        assert_eq!(operators("problem = \"dtlz2\""), ["1", "30"]);
        assert_eq!(operators("problem = \"dtlz2\"\nalgorithm = \"nsga3\"\ncrossover = 0.9"), ["0.9", "30"]);
        assert_eq!(operators("problem = \"dtlz2\"\nalgorithm = \"nsga2\""), ["0.9", "15"]);
        assert_eq!(operators("problem = \"zdt5\"\nalgorithm = \"nsga3\""), ["0.9", "15"]);
    }
}
