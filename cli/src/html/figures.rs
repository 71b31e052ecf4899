//! The figures of a run, as tiles below its conclusion.

use evoxo_common::{
    conclusion::{extent, state},
    text::thousands,
};

use super::{Told, element::Html};

/// The figures of a run, as a list.
pub(super) fn figures(told: &Told<'_>) -> Html {
    let (config, result) = (told.config, told.result);
    let mut pairs = vec![
        ("State", state(result).to_owned()),
        ("Extent", extent(config)),
        ("Rounds", result["rounds"].as_u64().map(thousands).unwrap_or_default()),
        ("Seed", config.seed.to_string()),
        ("Computed in", result["provenance"]["seconds"].as_f64().map(duration).unwrap_or_default()),
    ];
    if let Some(digest) = result["digest"].as_str() {
        pairs.push(("Digest", digest.chars().take(16).collect::<String>() + "…"));
    }
    let pair =
        |(name, value): (&str, String)| Html::of("div", &[], [Html::of("dt", &[], name), Html::of("dd", &[], value)]);
    let known = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    Html::classed("dl", "tiles", known.map(pair).collect::<Vec<_>>())
}

/// "1 h 3 min", "2 min 5 s", "3.2 s".
fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!([0.25, 59.6, 61.0, 7380.0].map(duration), ["0.2 s", "1 min 0 s", "1 min 1 s", "2 h 3 min"]);
    }
}
