//! `evoxo report --html` of every committed result, and of a run with malicious names. The report is one file that is well
//! formed, fetches nothing, runs only its own script, and says how to compute the run again.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use evoxo_tests::{
    programs::{program, workspace},
    reproduction::results,
};

/// Elements that have no end tag.
const VOID: [&str; 2] = ["meta", "br"];
/// The most bytes of such a file, so that it can be sent by mail.
const BYTES_MAX: usize = 4 << 20;

fn evoxo(arguments: &[&str], directory: &Path) {
    let output = Command::new(program("evoxo")).args(arguments).current_dir(directory).output().expect("evoxo starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn html_of(result: &Path) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    evoxo(&["report", result.to_str().expect("text"), "--html", "report.html"], directory.path());
    fs::read_to_string(directory.path().join("report.html")).expect("the report")
}

/// The names of elements in order, each with its attributes. Fails unless all are closed in the right order.
fn elements(html: &str) -> Vec<(String, String)> {
    let (mut open, mut found): (Vec<String>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    let mut rest = html.strip_prefix("<!doctype html>\n").expect("a document");
    while let Some(begin) = rest.find('<') {
        let end = begin + rest[begin..].find('>').expect("a tag ends");
        let tag = &rest[begin + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "before {}", &rest[..rest.len().min(80)]);
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let name = name.trim_end_matches('/');
        found.push((name.to_owned(), attributes.to_owned()));
        // The content of these elements is not markup.
        if matches!(name, "script" | "style") {
            rest = &rest[rest.find(&format!("</{name}>")).expect("it ends") + name.len() + 3..];
        } else if !VOID.contains(&name) && !tag.ends_with('/') {
            open.push(name.to_owned());
        }
    }
    assert_eq!(open, Vec::<String>::new());
    found
}

/// Checks that apply to every report.
fn check(name: &str, html: &str) {
    assert!(html.len() < BYTES_MAX, "{name} has {} bytes", html.len());
    let elements = elements(html);
    let of = |tag: &str| elements.iter().filter(|(name, _)| name == tag).collect::<Vec<_>>();
    assert_eq!((of("h1").len(), of("main").len(), of("style").len()), (1, 1, 1), "{name}");
    assert!(!of("table").is_empty() && of("table").len() == of("caption").len(), "{name} has tables with captions");
    let scripts: Vec<&str> = of("script").iter().map(|(_, attributes)| attributes.as_str()).collect();
    let data = "type=\"application/json\"";
    assert!(scripts.iter().filter(|attributes| **attributes != data).eq([&""]), "{name}: {scripts:?}");
    for word in ["default-src 'none'", "script-src 'sha256-", "base-uri 'none'"] {
        assert!(html.contains(word), "{name} allows too much");
    }
    for (tag, attributes) in &elements {
        let bad = [" src=", " onclick=", " onload=", " onerror=", " style="].iter().find(|bad| {
            // Text in quotes is harmless.
            let outside: String = format!(" {attributes}").split('"').step_by(2).collect();
            outside.contains(*bad)
        });
        assert_eq!(bad, None, "{name}: <{tag} {attributes}>");
        let href = attributes.split("href=\"").nth(1);
        assert!(href.is_none_or(|href| href.starts_with('#')), "{name}: <{tag} {attributes}>");
    }
    let foreign = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!foreign.contains("@import") && !foreign.contains("url(http"), "{name} fetches something");
    let ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let unique: BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{name} has an id twice");
    for (_, attributes) in of("a") {
        let target = attributes.trim_start_matches("href=\"#").trim_end_matches('"');
        assert!(ids.contains(&target), "{name}: the target {target} does not exist");
    }
    assert!(html.contains("Compare its digest with this one") && html.contains("again.toml"), "{name}");
}

#[test]
fn every_committed_result_is_a_self_contained_page() {
    let results = results();
    assert!(results.len() > 20, "only {} results", results.len());
    for result in results {
        let name = result.display().to_string();
        let html = html_of(&result);
        check(&name, &html);
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&result).expect("a result")).expect("JSON");
        assert!(html.contains(json["digest"].as_str().expect("a digest")), "{name} has no digest");
    }
}

/// The front page links to every report, and the reports are those that `report --html` makes.
#[test]
fn a_gallery_has_a_page_for_each_run() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let names = ["td3d/result-best", "rules/result-best", "ternary/result-screen", "invincible/result-all"];
    let paths = names.map(|name| workspace().join(format!("docs/reproduction/{name}.json")));
    let paths = paths.each_ref().map(|path| path.to_str().expect("text"));
    evoxo(&[&["gallery"], &paths[..], &["--out", "pages", "--title", "<b>"]].concat(), directory.path());
    let read = |name: &str| fs::read_to_string(directory.path().join("pages").join(name)).expect("a page");
    let html = read("index.html");
    let elements = elements(&html);
    let of = |tag: &str| elements.iter().filter(|(name, _)| name == tag).map(|(_, it)| it.as_str()).collect::<Vec<_>>();
    let files =
        ["invincible-all", "rules-best", "td3d-best", "ternary-screen"].map(|name| format!("reports/{name}.html"));
    let mut found: Vec<&str> =
        of("a").into_iter().filter_map(|it| it.strip_prefix("href=\"")?.strip_suffix('"')).collect();
    found.retain(|target| !target.starts_with('#'));
    found.sort_unstable();
    assert_eq!(found, files);
    assert_eq!((of("svg").len(), of("h2").len(), of("script").len()), (4, 4, 0), "each run has a picture");
    assert!(html.contains("default-src 'none'") && html.contains("<h1>&lt;b&gt;</h1>"), "{}", &html[..2000]);
    for (path, file) in [(paths[0], &files[2]), (paths[3], &files[0])] {
        assert_eq!(read(file), html_of(Path::new(path)));
    }
}

/// A result that cannot be read is named and left out, and the others have their pages.
#[test]
fn a_gallery_omits_unreadable_runs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let good = workspace().join("docs/reproduction/rules/result-best.json");
    fs::write(directory.path().join("cut.json"), "{").expect("a file");
    let make = |runs: &[&Path]| {
        let mut command = Command::new(program("evoxo"));
        command.arg("gallery").args(runs).args(["--out", "pages"]).current_dir(directory.path());
        let output = command.output().expect("evoxo starts");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let (status, said) = make(&[Path::new("nowhere"), &good, Path::new("cut.json")]);
    assert_eq!((status, said.matches("left out: ").count()), (Some(1), 2), "{said}");
    assert!(said.contains("nowhere") && said.contains("cut.json"), "{said}");
    assert!(
        directory.path().join("pages/index.html").exists()
            && directory.path().join("pages/reports/rules-best.html").exists()
    );
    let (status, said) = make(&[Path::new("cut.json")]);
    assert!(status == Some(1) && said.contains("none of these"), "{said}");
}

/// A run's directory also has champions and a conclusion in numbers. Names are treated as text, whatever they contain.
#[test]
fn malicious_names_are_shown_as_text() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("harm.toml");
    let bad = "</script><script>alert(1)</script>";
    let arms = format!("[arms.\"{bad}\"]\nmutation = 0.1\n[arms.'\"onload=\"x\"']\nmutation = 0.2\n");
    let settings = "[settings]\nagents = 12\nrules = 30\ncycles = 9\n";
    fs::write(&file, format!("experiment = \"rules\"\nreplicas = 3\n{settings}{arms}")).expect("a file");
    evoxo(&["run", "harm.toml", "--out", "out", "--workers", "0"], directory.path());
    let html = html_of(&directory.path().join("out"));
    check("harm", &html);
    assert!(html.contains("&lt;/script&gt;&lt;script&gt;alert(1)") && !html.contains("<script>alert"));
    assert!(html.contains("\\u003c/script>"), "in data too");
    assert!(
        html.contains("Is the best agent of another arm stronger") && html.contains("Welch's test"),
        "no conclusion"
    );
    assert_eq!(html.matches("<article").count(), 2, "each arm has a champion");
    assert!(html.contains("class=\"board\""), "champions are drawn as boards");
    // Reading the run's directory again gives the same report.
    assert_eq!(html, html_of(&directory.path().join("out/result.json")));
}
