//! What every kind must keep: its promises, and pinned signatures.

mod small;

use evoxo_common::{
    experiment::{Change, Config, Replica},
    local, promises,
    settings::{Scope, Value},
};
use evoxo_experiments::registry;
use small::SMALL;

#[test]
fn every_kind_keeps_its_promises() {
    for file in SMALL {
        let _ = promises::check(&registry(), file);
    }
}

/// Where a setting says that more of it only makes a run longer, what a shorter run has computed goes on to the same end.
#[test]
fn shorter_runs_go_on_to_the_same_end() {
    let mut kinds = std::collections::BTreeSet::new();
    for file in SMALL {
        let parse = |overrides: &[(String, String)]| {
            Config::parse(&registry(), "t", file, overrides).unwrap_or_else(|problems| panic!("{problems}"))
        };
        let short = parse(&[]);
        let settings = &short.arms[0].settings;
        let Some((field, value)) = settings.iter().find(|(field, _)| field.scope == Scope::Length) else { continue };
        let Value::Integer(value) = value else { panic!("{} is no whole number", field.name) };
        let long = parse(&[(field.name.into(), (2 * value).to_string())]);
        assert_eq!(short.change_from(&short), Change::None);
        assert!(matches!(long.change_from(&short), Change::Longer(_)));
        assert!(matches!(short.change_from(&long), Change::Other(_)));
        let expected = local::run(&long).unwrap();
        for (short, expected) in local::run(&short).unwrap().into_iter().zip(expected) {
            let mut replica = Replica::restore(&long, &Replica::lengthened(&long, short.save()).unwrap()).unwrap();
            while local::step(&mut replica).unwrap() {}
            assert_eq!(replica.digest(), expected.digest(), "{file}");
            assert_eq!(replica.history(), expected.history(), "{file}");
            // Their rounds may have ended at other places, but not the last one.
            let end = |replica: &Replica| replica.links().last().map(|link| (link.rows, link.digest));
            assert_eq!(end(&replica), end(&expected), "{file}");
        }
        kinds.insert(short.kind.name);
    }
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["dispatch", "invincible", "league", "menace", "rules", "ternary"]
    );
}

/// A change of these keeps workers of earlier builds out, and changes what runs compute.
#[test]
fn what_this_build_computes_is_pinned() {
    let registry = registry();
    let lines: Vec<String> =
        registry.kinds().iter().map(|kind| format!("{} {}", kind.name, registry.signature(kind))).collect();
    insta::assert_snapshot!(lines.join("\n"));
}
