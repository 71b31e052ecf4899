//! Experiment files of the kinds that come with evoxo: mistakes are reported, and templates are valid.

mod files;

use evoxo_common::{
    experiment::{Config, FILE_BYTES_MAX, Kind, REPLICAS_MAX, short_template, small, template},
    local,
};
use evoxo_experiments::registry;
use files::{parse, problems};
use proptest::prelude::*;

/// The value of an arm's setting, in the form that a file has.
fn setting(config: &Config, arm: usize, name: &str) -> String {
    let mut settings = config.arms[arm].settings.iter();
    settings.find(|(field, _)| field.name == name).expect("a setting of this name").1.to_string()
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_places() {
    let text = r#"experiment = "invincible"
sead = 3
replicas = 0

[settings]
populaton = 10
fathers = 0
penalty = -1
fitness = "exakt"
games = true

[arms."a"]
sidde = "X"
[arms."b"]
side = "Z"
population = 5
fathers = 6
"#;
    insta::assert_snapshot!(problems(text, &[]));
}

/// All spellings of numbers that TOML allows are read.
#[test]
fn numbers_are_read_however_toml_spells_them() {
    let text = "experiment = \"invincible\"\nseed = 0x10\nreplicas = 0b11\n[settings]\npopulation = 1_0\nfathers = 0o7\npenalty = 65e-1\n";
    let plain = "experiment = \"invincible\"\nseed = 16\nreplicas = 3\n[settings]\npopulation = 10\nfathers = 7\npenalty = 6.5\n";
    assert_eq!(parse(text, &[]).unwrap(), parse(plain, &[]).unwrap());
}

/// How many bytes of states stay is part of the file, and not of what is computed.
#[test]
fn states_that_stay_change_no_hash() {
    let config = |keep: &str| parse(&format!("experiment = \"invincible\"\n{keep}"), &[]);
    let plain = config("").unwrap();
    for (keep, bytes) in [("keep = \"64 MiB\"", 64 << 20), ("keep = \"1.5GiB\"", 3 << 29), ("keep = 1000", 1000)] {
        let kept = config(keep).unwrap();
        assert_eq!((kept.keep, kept.hash()), (bytes, plain.hash()));
        assert_eq!(parse(&kept.to_toml(), &[]).unwrap(), kept);
    }
    assert_eq!(config("keep = 0").unwrap(), plain);
    for wrong in ["keep = \"many\"", "keep = -1", "keep = true", "keep = \"9 parsecs\""] {
        let sentence = "x.toml:2: keep must be a size like \"64 MiB\", or 0";
        assert_eq!(problems(&format!("experiment = \"invincible\"\n{wrong}"), &[]), sentence);
    }
}

/// A setting that has no effect where it is given is allowed. A note says so, once for all arms concerned.
#[test]
fn settings_without_effect_are_noted() {
    let idle = |text: &str, overrides: &[(&str, &str)]| {
        let overrides: Vec<_> = overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Config::idle(&registry(), &format!("experiment = {text}"), &overrides, &[])
    };
    let sweeps = "\"nndtf\"\n[settings]\nsweeps = 10\n[arms.a]\n";
    assert_eq!(
        idle(sweeps, &[]),
        ["arm \"a\": `sweeps` has no effect with coupling = \"static\""],
        "at its default too"
    );
    let mixed = format!("{sweeps}[arms.b]\ncoupling = \"final\"\n");
    assert_eq!(idle(&mixed, &[]), [""; 0], "one of the arms needs the setting");
    let rival = "\"nndtf\"\n[settings]\ncrossover = 0.5\n[arms.a]\nnetwork = \"traditional\"\ncoupling = \"final\"\nsweeps = 3\n[arms.b]\n";
    assert_eq!(
        idle(rival, &[]),
        [
            "in all arms: `crossover` has no effect with algorithm = \"improved\"",
            "arm \"a\": `coupling` has no effect with network = \"traditional\"",
            "arm \"a\": `sweeps` has no effect with network = \"traditional\"",
        ]
    );
    for (text, says) in [
        ("\"td3d\"\n[settings]\nalpha_end = 0.1", "`alpha_end` has no effect with schedule = \"constant\""),
        ("\"rules\"\n[settings]\ncluster = 0.1", "`cluster` has no effect with mutations = \"independent\""),
        ("\"rules\"\n[settings]\nrigged_share = 0.1", "`rigged_share` has no effect with generator = \"random\""),
        (
            "\"evolve\"\n[settings]\nalgorithm = \"ga\"\ncovariance = \"full\"",
            "`covariance` has no effect with algorithm = \"ga\"",
        ),
        ("\"league\"\n[settings]\npairs = 3", "`pairs` has no effect with game = \"tic-tac-toe\""),
        (
            "\"ternary\"\n[settings]\ncrossover = \"none\"\ncrossover_rate = 1",
            "`crossover_rate` has no effect with crossover = \"none\"",
        ),
    ] {
        assert_eq!(idle(text, &[]), [format!("arm \"main\": {says}")]);
    }
    assert_eq!(
        idle("\"invincible\"", &[("fitness", "exact"), ("games", "9")]).len(),
        1,
        "typed settings are checked too"
    );
    // A stored configuration gives every setting, so nothing is noted again.
    for kind in registry().kinds() {
        let schema = kind.schema;
        for (field, condition) in schema.fields().iter().flat_map(|it| it.applies.iter().map(move |of| (it, of))) {
            let other = schema.fields().iter().find(|other| other.name == condition.setting).expect("a setting");
            let good = condition.values.iter().all(|value| other.read(value).is_ok());
            assert!(good && other.name != field.name, "{} {}", kind.name, field.name);
        }
    }
}

#[test]
fn each_mistake_has_a_message() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("", &[]),
        ("experiment = \"invincibel\"", &[]),
        ("experiment = ", &[]),
        ("experiment = \"invincible\"\nseed = 1\nseed = 2", &[]),
        ("experiment = \"invincible\"\nseed = 1.5\nreplicas = 10001", &[]),
        ("experiment = \"invincible\"\nsettings = 1\n[arms]\na = 2", &[]),
        ("experiment = \"invincible\"\n[arms.\"\"]", &[]),
        ("experiment = \"invincible\"", &[("penalti", "1"), ("seed", "x"), ("arms.main.side", "X")]),
        ("experiment = \"invincible\"", &[("penalty", "6.5000001")]),
        ("experiment = \"invincible\"\n[arms.O]\nside = \"O\"", &[("arms.O.side", "Q"), ("arms.0.side", "X")]),
        ("experiment = \"invincible\"\n[settings]\npopulation = 0x1", &[]),
        ("{\"experiment\": \"invincible\"}", &[]),
        ("experiment = \"rules\"\n[settings]\nweak = true\nweak_weight = 0.5", &[]),
        ("experiment = \"rules\"\n[arms.a]\n[arms.b]\n[arms.c]\nagents = 4", &[("agents", "41")]),
        ("experiment = \"rules\"\n[settings]\nagents = 41\n[arms.a]\n[arms.b]\n[arms.c]\nagents = 4", &[]),
        ("experiment = \"ternary\"\n[settings]\nopponents = 0\n[arms.a]\nrandom_games = 0\n[arms.b]\nelite = 101", &[]),
        ("experiment = \"ternary\"\n[arms.a]\nelite = 101\n[arms.b]\nelite = 101", &[]),
        (
            "experiment = \"rules\"\na = 1\nb = 1\nc = 1\nd = 1\ne = 1\nf = 1\ng = 1\nh = 1\ni = 1\nj = 1\nk = 1\nl = 1",
            &[],
        ),
    ];
    let messages: Vec<String> = cases.iter().map(|(text, overrides)| problems(text, overrides)).collect();
    insta::assert_snapshot!(messages.join("\n\n"));
    assert!(problems(&" ".repeat(FILE_BYTES_MAX + 1), &[]).contains("bytes"));
}

#[test]
fn an_arm_overrides_the_common_settings_and_they_override_the_defaults() {
    let text = "experiment = \"invincible\"\n[settings]\npenalty = 1\n[arms.z]\npenalty = 6.5\n[arms.a]\n";
    let config = parse(text, &[("games", "7")]).unwrap();
    let names: Vec<&str> = config.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["z", "a"], "in the order of the file");
    assert_eq!([0, 1].map(|arm| setting(&config, arm, "penalty")), ["6.5", "1"]);
    assert_eq!(["games", "population"].map(|name| setting(&config, 1, name)), ["7", "1000"]);
}

#[test]
fn an_override_replaces_the_file_and_one_of_an_arm_replaces_one_of_all() {
    let text = "experiment = \"invincible\"\n[arms.z]\npenalty = 6.5\n[arms.a]\npenalty = 1\n";
    let config = parse(text, &[("arms.z.penalty", "7"), ("penalty", "3")]).unwrap();
    assert_eq!([0, 1].map(|arm| setting(&config, arm, "penalty")), ["7", "3"]);
}

/// An override for all arms makes the arms' names misleading if they differ in it.
#[test]
fn overrides_of_an_arms_settings_are_reported() {
    let text =
        "experiment = \"ternary\"\n[arms.long]\nalphabet = 9\n[arms.b]\nalphabet = \"3\"\n[arms.c]\nalphabet = \"9\"";
    let of = |key: &str, value: &str, arms: &[String]| {
        Config::overruled(&registry(), text, &[(key.into(), value.into())], arms)
    };
    let reported = |key: &str, value: &str| of(key, value, &[]).join("\n");
    assert!(
        reported("alphabet", "3").starts_with("--set alphabet overrides what arms \"long\", \"c\" say"),
        "{}",
        reported("alphabet", "3")
    );
    assert!(reported("alphabet", "\"9\"").starts_with("--set alphabet overrides what arm \"b\" says"));
    assert!(of("alphabet", "3", &["c".into()])[0].contains("what arm \"c\" says"));
    assert!(of("alphabet", "3", &["b".into()]).is_empty());
    assert_eq!((reported("seed", "3"), reported("arms.b.alphabet", "9"), reported("elite", "9")), Default::default());
}

/// A setting that hardly does anything in combination with the others is noted, with its arms, but not rejected: some files
/// that come with evoxo have such arms.
#[test]
fn settings_with_little_effect_are_reported() {
    let head = "experiment = \"rules\"\nreplicas = 2\n[settings]\nagents = 4\nrules = 3\ncycles = 1\n";
    let rigged = "[arms.a]\n[arms.b]\ngenerator = \"rigged\"\nrepeated = \"replace\"\n";
    assert_eq!(parse(&(head.to_owned() + rigged), &[]).unwrap().notes(), [""; 0]);
    let text = head.to_owned() + rigged + "[arms.c]\nrepeated = \"replace\"\n";
    let config = parse(&text, &[]).unwrap();
    let says = "repeated = \"replace\" hardly ever changes anything without generator = \"rigged\": random rules are hardly \
        ever the same";
    assert_eq!(config.notes(), [format!("arm \"c\": {says}")]);
    let told = |value: &str| parse(&text, &[("repeated", "replace"), ("generator", value)]).unwrap().notes();
    assert_eq!((told("random"), told("rigged")), (vec![format!("in all arms: {says}")], Vec::new()));
    // The report has the note too.
    let report = config.report(&local::run(&config).unwrap());
    assert!(report.notes.contains(&config.notes()[0]), "{:?}", report.notes);
}

#[test]
fn templates_are_valid_and_pinned() {
    for kind in registry().kinds() {
        let text = template(kind, &kind.schema.defaults());
        let config = parse(&text, &[]).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!((config.kind, config.arms.len()), (*kind, 1));
        insta::assert_snapshot!(format!("template_{}", kind.name), text);
        // The short file is the same configuration, and about a screen.
        let short = short_template(kind, &kind.schema.defaults());
        let again = parse(&short, &[]).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(again.hash(), config.hash(), "{}", kind.name);
        assert!(short.lines().count() <= 50 && short.lines().all(|line| line.len() <= 120), "{short}");
    }
}

#[test]
fn the_hash_covers_results_and_not_how_they_are_computed() {
    let parse = |text: &str, overrides: &[(&str, &str)]| parse(text, overrides).unwrap().hash();
    let text = "experiment = \"invincible\"\n";
    assert_eq!(parse(text, &[]), parse(text, &[("replicas", "3"), ("slice", "17")]));
    assert_ne!(parse(text, &[]), parse(text, &[("seed", "2")]));
    assert_ne!(parse(text, &[]), parse(text, &[("penalty", "2")]));
    assert_ne!(parse(text, &[]), parse(&(text.to_owned() + "[arms.other]"), &[]));
    insta::assert_snapshot!(parse(text, &[]).to_string());
}

/// If a kind gains a setting, or a setting loses its scope `addition`, existing runs must keep their names. The hash of every
/// kind's default settings is therefore pinned. It covers the settings of all algorithms of `evolve`.
#[test]
fn every_kind_keeps_the_name_of_its_defaults() {
    let name = |kind: &&'static Kind| {
        // The algorithm that fits the default problem may become another one.
        let overrides = [("algorithm", "ga")].iter().filter(|(name, _)| kind.schema.chooser == Some(name));
        let config = parse(&template(kind, &kind.schema.defaults()), &overrides.copied().collect::<Vec<_>>());
        format!("{} {}", kind.name, config.unwrap_or_else(|problems| panic!("{problems}")).hash())
    };
    let names: Vec<String> = registry().kinds().iter().map(name).collect();
    insta::assert_snapshot!(names.join("\n"));
}

/// New settings do not change the hashes of the committed results.
#[allow(clippy::disallowed_methods, reason = "the engine has no files, but its tests have")]
#[test]
fn committed_results_keep_their_names() {
    let pages = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reproduction");
    let kinds = std::fs::read_dir(pages).expect("the pages").flatten().filter(|entry| entry.path().is_dir());
    let files = kinds.flat_map(|kind| std::fs::read_dir(kind.path()).expect("a directory").flatten());
    let results = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let (mut count, mut renamed) = (0, Vec::new());
    for path in results {
        let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let result = small::whole(result).unwrap();
        let config = Config::of_result(&registry(), &result).unwrap();
        if config.hash().to_string() != result["config_hash"] {
            renamed.push(path.display().to_string());
        }
        count += 1;
    }
    assert_eq!(renamed, [""; 0]);
    assert!(count >= 20, "only {count} committed results");
}

/// A text as a TOML string.
fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

proptest! {
    #[test]
    fn a_resolved_file_reads_back(
        seed in 0..=u64::MAX >> 1, replicas in 1..=REPLICAS_MAX, penalty in 0..2_000_000_u32,
        names in prop::collection::btree_set("[ -~]{1,64}", 1..5),
    ) {
        let mut text = format!("experiment = \"invincible\"\nseed = {seed}\nreplicas = {replicas}\n");
        for name in &names {
            text += &format!("[arms.{}]\npenalty = {}.{:06}\n", toml_text(name), penalty / 1_000_000, penalty % 1_000_000);
        }
        let config = parse(&text, &[]).unwrap();
        prop_assert_eq!(parse(&config.to_toml(), &[]).unwrap(), config);
    }

    #[test]
    fn no_text_makes_it_panic(text: String, key: String, value: String) {
        drop(parse(&text, &[(&key, &value)]));
    }
}
