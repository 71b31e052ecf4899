//! The page's files, which are part of the program. There is no build step, and nothing is fetched from elsewhere.

use std::sync::LazyLock;

use bytes::Bytes;
use evoxo_common::digest::Digest;

/// A file of the page.
pub(super) struct File {
    /// The path in the file's address.
    path: &'static str,
    /// The file's media type.
    pub(super) media: &'static str,
    /// The file's content.
    pub(super) bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! file {
    ($path:literal, $name:literal, $media:ident) => {
        File { path: $path, media: $media, bytes: include_bytes!(concat!("files/", $name)) }
    };
}

const FILES: [File; 41] = [
    file!("/", "index.html", HTML),
    file!("/files/style.css", "style.css", CSS),
    file!("/files/search.css", "search.css", CSS),
    file!("/files/icon.svg", "icon.svg", SVG),
    file!("/files/app.js", "app.js", SCRIPT),
    file!("/files/feed.js", "feed.js", SCRIPT),
    file!("/files/live.js", "live.js", SCRIPT),
    file!("/files/login.js", "login.js", SCRIPT),
    file!("/files/dom.js", "dom.js", SCRIPT),
    file!("/files/format.js", "format.js", SCRIPT),
    file!("/files/plot.js", "plot.js", SCRIPT),
    file!("/files/chart.js", "chart.js", SCRIPT),
    file!("/files/curves.js", "curves.js", SCRIPT),
    file!("/files/details.js", "details.js", SCRIPT),
    file!("/files/dialog.js", "dialog.js", SCRIPT),
    file!("/files/results.js", "results.js", SCRIPT),
    file!("/files/save.js", "save.js", SCRIPT),
    file!("/files/runs.js", "runs.js", SCRIPT),
    file!("/files/answers.js", "answers.js", SCRIPT),
    file!("/files/sparks.js", "sparks.js", SCRIPT),
    file!("/files/verdicts.js", "verdicts.js", SCRIPT),
    file!("/files/tour.js", "tour.js", SCRIPT),
    file!("/files/run.js", "run.js", SCRIPT),
    file!("/files/compare.js", "compare.js", SCRIPT),
    file!("/files/tasks.js", "tasks.js", SCRIPT),
    file!("/files/workers.js", "workers.js", SCRIPT),
    file!("/files/match.js", "match.js", SCRIPT),
    file!("/files/play.js", "play.js", SCRIPT),
    file!("/files/wall.js", "wall.js", SCRIPT),
    file!("/files/players.js", "players.js", SCRIPT),
    file!("/files/board.js", "board.js", SCRIPT),
    file!("/files/ratings.js", "ratings.js", SCRIPT),
    file!("/files/rack.js", "rack.js", SCRIPT),
    file!("/files/threats.js", "threats.js", SCRIPT),
    file!("/files/analysis.js", "analysis.js", SCRIPT),
    file!("/files/gene.js", "gene.js", SCRIPT),
    file!("/files/candidate.js", "candidate.js", SCRIPT),
    file!("/files/candidates.js", "candidates.js", SCRIPT),
    file!("/files/parallel.js", "parallel.js", SCRIPT),
    file!("/files/boxes.js", "boxes.js", SCRIPT),
    file!("/files/champion.js", "champion.js", SCRIPT),
];

/// The file at a path.
pub(super) fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

impl File {
    /// The file's content.
    pub(super) fn body(&self) -> Bytes {
        Bytes::from_static(self.bytes)
    }
}

/// One tag for all files together, for the header ETag. Browsers use it to ask whether their copies are current.
pub(super) fn tag() -> &'static str {
    static TAG: LazyLock<String> = LazyLock::new(|| {
        let all = Digest::of_pieces(FILES.iter().map(|file| file.bytes));
        format!("\"{}\"", all.short())
    });
    &TAG
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy of `guard` stops a browser from using inline code, inline styles and addresses elsewhere.
    #[test]
    fn the_files_need_nothing_from_other_hosts() {
        let mut bytes = 0;
        for File { path, bytes: content, .. } in &FILES {
            let text = std::str::from_utf8(content).unwrap();
            bytes += text.len();
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for foreign in ["http://", "https://", "innerHTML", "eval(", "style=\"", "onclick=\"", "<script>"] {
                assert!(!text.contains(foreign), "{path} has {foreign}");
            }
            let long = text.lines().find(|line| line.chars().count() > 120);
            assert!(long.is_none() && text.lines().count() <= 500, "{path} is too long: {long:?}");
            assert!(file(path).is_some_and(|file| file.bytes == *content));
        }
        // The limit keeps the page loadable over a slow line: all of it stays smaller than a picture.
        assert!((1000..250_000).contains(&bytes), "the page has {bytes} bytes");
    }
}
