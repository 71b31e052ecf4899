//! Tests of what modules must be, what they get, and that nothing of one candidate is left for the next.

use evoxo_common::{experiment::Replica, promises, ratio::Ratio};

use super::*;
use crate::{
    KIND,
    genome::Genes,
    messages::Evaluation,
    registry,
    testing::{parse, parse_with, problems, run},
};

const ROSEN: &[u8] = include_bytes!("../../../../examples/wasm/rosen.wasm");
const COUNTS: Counts = Counts { objectives: 1, constraints: 0, measures: 0 };
const FUEL: u64 = 100_000;

/// A module with these functions. The whole buffer is at 1024 unless `buffer` says otherwise.
fn module_with(memory: &str, buffer: &str, evaluate: &str, rest: &str) -> Vec<u8> {
    let text = format!(
        "(module (memory (export \"memory\") {memory}) (table 1 funcref) (global $kept (mut i32) (i32.const 0)) {rest}
         (func (export \"evoxo_buffer\") (param i32) (result i32) {buffer})
         (func (export \"evoxo_evaluate\") (param i32 i32 i64) (result i32) {evaluate}))"
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn module(evaluate: &str) -> Vec<u8> {
    module_with("1", "(i32.const 1024)", evaluate, "")
}

fn evaluate(bytes: &[u8], genes: &[f64], counts: Counts) -> Result<Evaluation, String> {
    let genes: Vec<u8> = genes.iter().flat_map(|gene| gene.to_le_bytes()).collect();
    Module::new(bytes)?.evaluate(&genes, 7, FUEL, counts)
}

/// The failure of a candidate, or the sentence of a refusal in brackets.
fn failure(bytes: &[u8]) -> String {
    match evaluate(bytes, &[1.5], COUNTS) {
        Ok(evaluation) => evaluation.failure,
        Err(why) => format!("[{why}]"),
    }
}

/// A changed line here is a change of results.
#[test]
fn the_workload_reaches_every_end() {
    use evoxo_common::task::Compute;
    let (task, shared) = workload();
    let output = crate::task::Evaluate::run(&task, &shared).unwrap();
    let shown = |(mode, it): (usize, &Evaluation)| match it.failure.as_str() {
        "" => format!("{mode}: {:?} {:?} {:?}", it.objectives, it.constraints, it.measures),
        failure => format!("{mode}: {failure}"),
    };
    let shown: Vec<String> = output.evaluations.iter().enumerate().map(shown).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_module_gives_the_same_bits_as_the_built_in_function() {
    use crate::problem;
    let built_in = problem::find("rosenbrock").unwrap();
    let modules =
        [ROSEN, include_bytes!("../../../../examples/wasm/rosen-as.wasm")].map(|bytes| Module::new(bytes).unwrap());
    for length in [2, 3, 10, 30, 100] {
        let genome = (built_in.genome)(length);
        let mut rng = evoxo_common::rng::Stream::root(1).word(length as u64).rng();
        for _ in 0..50 {
            let candidate = genome.random(&mut rng);
            let genes = written(&candidate, &[Notation::Plain], &Activity::default());
            let wanted = (built_in.evaluate)(&candidate);
            for module in &modules {
                let evaluation = module.evaluate(&genes, 0, FUEL, COUNTS).unwrap();
                assert_eq!(evaluation.objectives[0].to_bits(), wanted.objectives[0].to_bits());
            }
        }
    }
}

/// The second candidate gets the memory, the globals and the table of a new instance.
#[test]
fn no_state_is_left_for_the_next_candidate() {
    let bytes = module(
        "(f64.store (local.get 0) (f64.convert_i32_s (i32.add (global.get $kept) (i32.load (i32.const 8)))))
         (global.set $kept (i32.const 1)) (i32.store (i32.const 8) (i32.const 5)) (drop (memory.grow (i32.const 1)))
         (i32.const 1)",
    );
    let module = Module::new(&bytes).unwrap();
    let values: Vec<f64> = (0..3).map(|_| module.evaluate(&[0; 8], 1, FUEL, COUNTS).unwrap().objectives[0]).collect();
    assert_eq!(values, [0.0; 3]);
}

#[test]
fn genes_are_written_part_after_part() {
    let candidate = Candidate {
        parts: vec![
            Genes::Bits(vec![true, false, true]),
            Genes::Permutation(vec![2, 0, 1]),
            Genes::Symbols(vec![3, 0]),
            Genes::Integer(vec![-2]),
            Genes::Real(vec![1.5]),
            Genes::Symbols(vec![1, 0]),
            Genes::Integer(vec![3]),
        ],
    };
    let (half, words) = (Ratio::new(1, 2), ["adam", "sgd"].map(String::from).to_vec());
    let notations = [
        Notation::Plain,
        Notation::Plain,
        Notation::Letters("ACGT".into()),
        Notation::Plain,
        Notation::Plain,
        Notation::Words(words),
        Notation::Steps { low: Ratio::ONE, step: half, whole: false },
    ];
    let bytes = written(&candidate, &notations, &Activity::default());
    let mut wanted =
        vec![1, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, b'T', b'A', 0, 0, 0, 0, 0, 0];
    wanted.extend((-2_i64).to_le_bytes());
    wanted.extend(1.5_f64.to_le_bytes());
    wanted.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    wanted.extend(2.5_f64.to_le_bytes());
    assert_eq!(bytes, wanted);
}

/// The seed arrives, and each number is in its place.
#[test]
fn numbers_are_in_their_documented_places() {
    let bytes = module(
        "(f64.store (local.get 0) (f64.convert_i64_s (local.get 2)))
         (f64.store offset=8 (local.get 0) (f64.convert_i32_s (local.get 1)))
         (f64.store offset=16 (local.get 0) (f64.const -3)) (f64.store offset=24 (local.get 0) (f64.const 0.25))
         (i32.const 4)",
    );
    let counts = Counts { objectives: 2, constraints: 1, measures: 1 };
    let evaluation = evaluate(&bytes, &[1.0, 2.0], counts).unwrap();
    assert_eq!(
        (evaluation.objectives, evaluation.constraints, evaluation.measures),
        (vec![7.0, 16.0], vec![-3.0], vec![0.25])
    );
}

#[test]
fn unusable_modules_are_rejected_with_a_reason() {
    let parse = |text: &str| wat::parse_str(text).unwrap();
    let functions = "(func (export \"evoxo_buffer\") (param i32) (result i32) (i32.const 8))";
    let typed = |memory: &str, evaluate: &str| {
        parse(&format!("(module {memory} {functions} (func (export \"evoxo_evaluate\") {evaluate}))"))
    };
    let memory = "(memory (export \"memory\") 1)";
    let with = |rest: &str| module_with("1", "(i32.const 1024)", "(i32.const 1)", rest);
    let all = [
        b"(module)".to_vec(),
        Vec::new(),
        b"\0asm\x0d\0\x01\0".to_vec(),
        ROSEN[..ROSEN.len() - 20].to_vec(),
        [ROSEN, b"\0"].concat(),
        vec![0; MODULE_BYTES_MAX + 1],
        parse("(module)"),
        parse(&format!("(module {functions})")),
        parse("(module (memory (export \"memory\") 1))"),
        parse(&format!("(module {memory} {functions})")),
        parse(&format!("(module {memory} (global (export \"evoxo_buffer\") i32 (i32.const 1)))")),
        typed("(global (export \"memory\") i32 (i32.const 1))", "(param i32 i32 i64) (result i32) (i32.const 1)"),
        typed(memory, "(param f64) (result f64 i64) (f64.const 1) (i64.const 1)"),
        typed(memory, "(param i32 i32 i64)"),
        typed("(memory (export \"memory\") 1025)", "(param i32 i32 i64) (result i32) (i32.const 1)"),
        typed("(memory (export \"memory\") i64 1)", "(param i32 i32 i64) (result i32) (i32.const 1)"),
        typed("(memory (export \"memory\") 1 1 shared)", "(param i32 i32 i64) (result i32) (i32.const 1)"),
        parse("(module (import \"env\" \"abort\" (func)))"),
        parse("(module (import \"env\" \"memory\" (memory 1)))"),
        with("(memory 1)"),
        with("(func (result i32) (i32.atomic.load (i32.const 0)))"),
        with("(func (result v128) (v128.const i64x2 0 0))"),
        with("(func $f (result i32) (return_call $f))"),
        with(&"(func)".repeat(10_001)),
        with(&format!("(func (param {}))", "i32 ".repeat(1001))),
        with(&format!("(func (local {}))", "i32 ".repeat(1001))),
        with(&format!("(func (local {}))", "i32 ".repeat(1000)).repeat(201)),
    ];
    let shown = |bytes: &Vec<u8>| Module::new(bytes).err().unwrap_or_else(|| "it can be used".into());
    insta::assert_snapshot!(all.iter().map(shown).collect::<Vec<_>>().join("\n"));
}

#[test]
fn missing_values_and_broken_rules_have_a_reason() {
    let store = |number: &str| module(&format!("(f64.store (local.get 0) (f64.const {number})) (i32.const 1)"));
    let buffer = |buffer: &str| module_with("1", buffer, "(i32.const 1)", "");
    let forever = "(loop $l (br $l)) (unreachable)";
    let rest = |memory: &str, rest: &str| module_with(memory, "(i32.const 1024)", "(i32.const 1)", rest);
    let all = [
        store("nan"),
        store("-inf"),
        module("(i32.const 0)"),
        module("(i32.const -2147483648)"),
        module("(i32.const 2)"),
        module("(i32.const 2147483647)"),
        module(forever),
        module("(unreachable)"),
        module("(memory.grow (i32.const 1024))"),
        module("(drop (table.grow 0 (ref.null func) (i32.const 70000))) (i32.const 1)"),
        module("(memory.fill (i32.const 0) (i32.const 1) (i32.const -1)) (i32.const 1)"),
        buffer("(i32.const 0)"),
        buffer("(i32.const 65529)"),
        buffer("(i32.const -8)"),
        buffer(forever),
        // A start function and segments run before the function is called.
        rest("1", &format!("(func $s {forever}) (start $s)")),
        rest("1", "(data (i32.const 65535) \"ab\")"),
        rest("1", "(elem (i32.const 5) $e) (func $e)"),
        rest("1", "(table 70000 funcref)"),
        rest("1", &"(table 1 funcref)".repeat(20)),
        // A memory whose limit the module declares itself can report this to the module.
        module_with("1 2", "(i32.const 1024)", "(i32.sub (memory.grow (i32.const 2)) (i32.const 1))", ""),
    ];
    insta::assert_snapshot!(all.iter().map(|bytes| failure(bytes)).collect::<Vec<_>>().join("\n"));
}

/// Whatever bytes of a module are changed, there is an answer or a sentence.
#[test]
fn damaged_modules_are_harmless() {
    let mut used = 0;
    for place in 0..ROSEN.len() {
        for change in [1, 0x80, 0xff] {
            let mut bytes = ROSEN.to_vec();
            bytes[place] ^= change;
            used += u32::from(evaluate(&bytes, &[0.5; 10], COUNTS).is_ok());
        }
    }
    assert!(used > 50, "{used} could be used");
}

/// Fuel is counted by instruction: it is the same everywhere, and it suffices or not at the same number.
#[test]
fn fuel_is_exact() {
    let module = Module::new(ROSEN).unwrap();
    let enough = |fuel: &u64| module.evaluate(&[0; 240], 0, *fuel, COUNTS).unwrap().failure.is_empty();
    let least = (1..FUEL).collect::<Vec<_>>().partition_point(|fuel| !enough(fuel)) + 1;
    insta::assert_snapshot!(least.to_string(), @"898");
}

const FILE: &str = "experiment = \"evolve\"\nseed = 3\nreplicas = 2\n[settings]\nproblem = \"wasm:rosen.wasm\"\n\
                    objectives = \"min cost\"\nalgorithm = \"ga\"\nevaluations = 130\npopulation = 25\n";
const GENOME: &str = "[[genome]]\nlength = 4\nlow = -5\nhigh = 10\n";

/// The settings that `evoxo` fills in for the first arm, or why it cannot.
fn taken_in(text: &str, bytes: &[u8]) -> Result<String, String> {
    let config = parse(text);
    let said = (KIND.reads.unwrap().settings)(&config.arms[0].settings, bytes).map_err(|why| why.0)?;
    let said: Vec<(&str, &str)> = said.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Ok(parse_with(text, &said).to_toml())
}

#[test]
fn a_search_with_a_module_is_the_search_with_the_function() {
    let text = format!("{FILE}{GENOME}");
    assert_eq!(parse(&text).missing_file().as_deref(), Some("rosen.wasm"));
    let whole = taken_in(&text, ROSEN).unwrap();
    let config = parse(&whole);
    assert_eq!((config.missing_file(), config.programs()), (None, Vec::new()));
    let built_in = FILE.replace("wasm:rosen.wasm", "rosenbrock").replace("objectives = \"min cost\"\n", "length = 4\n");
    assert_eq!(promises::check(&registry(), &whole), promises::check(&registry(), &built_in));
    // The bytes of the module are part of the configuration's hash, and occur once in what tasks share.
    let other = include_bytes!("../../../../examples/wasm/rosen-as.wasm");
    assert_ne!(parse(&taken_in(&text, other).unwrap()).hash(), config.hash());
    let replica = Replica::start(&config, &config.arms[0], 0);
    let tasks = replica.plan(0..replica.tasks());
    assert_eq!(tasks.len(), 3, "ten candidates in a task");
    assert!(tasks[0].shared.ends_with(ROSEN) && tasks[0].shared.len() < ROSEN.len() + 2000);
    assert_eq!(tasks[0].shared.as_ptr(), tasks[1].shared.as_ptr());
}

#[test]
fn failures_are_counted_or_end_the_run() {
    let few = format!("{FILE}fuel = 50\n{GENOME}");
    let counted = format!("{FILE}fuel = 50\non_failure = \"worst\"\n{GENOME}");
    assert_eq!(
        taken_in(&few, ROSEN).unwrap_err(),
        "candidate random has no value: the module used up its fuel, 50; with on_failure = \"worst\" it would count as the worst"
    );
    let replicas = run(&parse(&taken_in(&counted, ROSEN).unwrap()));
    assert!(replicas[0].champion().is_none() && replicas[0].is_finished());
}

#[test]
fn files_that_contradict_their_module_are_rejected() {
    let two = FILE.replace("min cost", "min cost, max gain");
    let all = [
        taken_in(&format!("{}{GENOME}", two.replace("\"ga\"", "\"nsga2\"")), ROSEN),
        taken_in(&format!("{FILE}constraints = 1\n{GENOME}"), ROSEN),
        taken_in(&format!("{FILE}[[genome]]\nlength = 101\n"), ROSEN),
        taken_in(&format!("{FILE}{GENOME}"), b"(module)"),
    ];
    let mut sentences: Vec<String> = all.into_iter().map(|it| it.unwrap_err()).collect();
    let import = encode(&wat::parse_str("(module (import \"env\" \"abort\" (func)))").unwrap());
    let files = [
        FILE.to_owned(),
        format!("{}{GENOME}", FILE.replace("min cost", "")),
        format!("{}{GENOME}", FILE.replace("min cost", "cost")),
        format!("{}{GENOME}", FILE.replace("wasm:rosen.wasm", "wasm:")),
        format!("{FILE}signature = \"ab\"\n{GENOME}"),
        format!("{FILE}module = \"AGFzbQ\"\n{GENOME}"),
        format!("{FILE}module = \"AGFzbR==\"\n{GENOME}"),
        format!("{FILE}module = \"{import}\"\n{GENOME}"),
        "experiment = \"evolve\"\n[settings]\nmodule = \"AGFzbQ==\"\n".to_owned(),
        format!("{FILE}module = \"{}\"\n{GENOME}[arms.a]\n[arms.b]\n[arms.c]\n", "A".repeat(400_000)),
    ];
    sentences.extend(files.iter().map(|text| problems(text).to_string()));
    insta::assert_snapshot!(sentences.join("\n"));
}
