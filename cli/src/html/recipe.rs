//! How to compute a run again, what its result must be, and what computed it.

use serde_json::Value;

use super::{Told, element::Html};
use crate::say::{digest_text, program};

/// An experiment file is shown if it has at most this many bytes.
const CONFIG_BYTES_MAX: usize = 100_000;

/// The digest, the command and the experiment file.
pub(super) fn section(told: &Told<'_>) -> Option<Html> {
    let toml = told.config.to_toml();
    let code = |text: &str| Html::of("code", &[], text);
    let programs = told.config.programs();
    let programs = programs.iter().map(|program| format!(" --program {}=COMMAND", program.name)).collect::<String>();
    let steps = [
        Html::of("li", &[], [Html::text("Save the experiment file as "), code("again.toml"), Html::text(".")]),
        Html::of(
            "li",
            &[],
            [Html::text("Run "), code(&format!("{} run again.toml{programs}", program())), Html::text(".")],
        ),
        Html::of(
            "li",
            &[],
            "Compare its digest with this one: it is the same on every machine, with any number of workers.",
        ),
    ];
    let pair =
        |name: &str, value: &str| Html::of("div", &[], [Html::of("dt", &[], name), Html::of("dd", &[], code(value))]);
    let hash = told.config.hash().to_string();
    let digest = told.result["digest"].as_str().unwrap_or("none: not all replicas are finished");
    let file = match toml.len() <= CONFIG_BYTES_MAX {
        true => details("The experiment file with every setting", pre(&toml)),
        false => Html::of(
            "p",
            &[],
            [Html::text("The experiment file is "), code("config.toml"), Html::text(" of the run's directory.")],
        ),
    };
    let parts = [
        Html::of("ol", &[], steps.into_iter().collect::<Vec<_>>()),
        Html::classed("dl", "codes", [pair("Digest", digest), pair("Configuration", &hash)]),
        Html::classed("p", "soft", digest_text(told.result) + "."),
        file,
    ];
    Some(Html::classed("div", "card", parts))
}

/// A section that the reader can open.
pub(super) fn details(title: &str, content: Html) -> Html {
    Html::of("details", &[], [Html::of("summary", &[], title), content])
}

/// Preformatted text.
pub(super) fn pre(text: &str) -> Html {
    Html::of("pre", &[("tabindex", "0")], text)
}

/// A sentence that says what computed the run.
pub(super) fn provenance(result: &Value) -> String {
    let provenance = &result["provenance"];
    let text = |key: &str| provenance[key].as_str();
    let mut said = vec![format!("Made by evoxo {}", env!("CARGO_PKG_VERSION"))];
    if let (Some(version), Some(commit)) = (text("version"), text("commit")) {
        said.push(format!("computed by evoxo {version} ({commit})"));
    }
    said.extend(
        text("signature").map(|signature| format!("behaviour {}", signature.chars().take(16).collect::<String>())),
    );
    said.join(" · ")
}
