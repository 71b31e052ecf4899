"""Builds the documentation as a site: docs/ and the pages that it links to, as one searchable book (`.ci/docs`)."""

import os
import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPOSITORY = re.search(r'^repository = "(.*?)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]

project = "evoxo"
html_title = "evoxo"
extensions = ["myst_parser"]
root_doc = "README"
html_theme = "furo"
html_show_copyright = html_show_sphinx = False
html_theme_options = {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"}
# Headings have the same anchors as on GitHub.
myst_heading_anchors = 6
# Code blocks without a language are output.
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]+)(#[^)\s]*)?\)")
HEADING = re.compile(r"^## (.*)$", re.MULTILINE)


def outside(name, text):
    """Makes links to directories, and to files outside of docs/ such as experiments, point to the repository."""
    here = posixpath.dirname(f"docs/{name}")

    def lead(link):
        start, target, anchor = link[1], link[2], link[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        path = posixpath.normpath(posixpath.join(here, target))
        if not (ROOT / path).exists():
            raise SystemExit(f"docs/{name}.md: {target} does not exist")
        page = path.startswith("docs/") and (ROOT / path).is_file()
        return link[0] if page else f"{start}{REPOSITORY}/blob/main/{path}{anchor})"

    return LINK.sub(lead, text)


def contents(text):
    """The table of contents: the pages that docs/README.md links to, under its headings."""
    parts = HEADING.split(text)[1:]
    trees, known = "", set()
    for heading, part in zip(parts[::2], parts[1::2]):
        pages = [target for _, target, _ in LINK.findall(part) if target.endswith(".md") and not target.startswith("..")]
        pages = [page for page in dict.fromkeys(pages) if page not in known]
        known.update(pages)
        trees += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n" + "\n".join(pages) + "\n```\n"
    return trees


def read(app, name, source):
    text = source[0]
    if name == root_doc:
        text += contents(text)
    else:
        # Pages of an index such as the decisions, and pages in a page's own directory, come below it.
        own = r"[\w/-]+\.md" if posixpath.basename(name) == "README" else posixpath.basename(name) + r"/[\w-]+\.md"
        below = [target for _, target, _ in LINK.findall(text) if re.fullmatch(own, target)]
        text += "\n```{toctree}\n:hidden:\n\n" + "\n".join(dict.fromkeys(below)) + "\n```\n" if below else ""
    source[0] = outside(name, text)


def setup(app):
    app.connect("source-read", read)
