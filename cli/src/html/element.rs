//! HTML in which text is always escaped: the name of an arm, or a card, cannot add markup.

use std::fmt::Write as _;

/// A piece of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Html(String);

/// Elements without an end tag.
const VOID: [&str; 2] = ["meta", "br"];

impl Html {
    /// A text.
    pub(super) fn text(text: &str) -> Self {
        Self(escape(text))
    }

    /// Trusted markup: the pictures of [`evoxo_common::plot`], and the page's own style and script.
    pub(super) fn of_markup(markup: impl Into<String>) -> Self {
        Self(markup.into())
    }

    /// Pieces one after another.
    pub(super) fn all(pieces: impl IntoIterator<Item = Self>) -> Self {
        Self(pieces.into_iter().map(|piece| piece.0).collect())
    }

    /// An element with attributes and content.
    pub(super) fn of(tag: &str, attributes: &[(&str, &str)], content: impl Into<Self>) -> Self {
        let mut html = format!("<{tag}");
        for (name, value) in attributes {
            // Writing to a string cannot fail.
            let _ = write!(html, " {name}=\"{}\"", escape(value));
        }
        html.push('>');
        if !VOID.contains(&tag) {
            let _ = write!(html, "{}</{tag}>", content.into().0);
        }
        Self(html)
    }

    /// An element with a class.
    pub(super) fn classed(tag: &str, class: &str, content: impl Into<Self>) -> Self {
        Self::of(tag, &[("class", class)], content)
    }

    /// The finished text.
    pub(super) fn into_string(self) -> String {
        self.0
    }
}

impl From<&str> for Html {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Html {
    fn from(text: String) -> Self {
        Self::text(&text)
    }
}

impl<const N: usize> From<[Html; N]> for Html {
    fn from(pieces: [Html; N]) -> Self {
        Self::all(pieces)
    }
}

impl From<Vec<Html>> for Html {
    fn from(pieces: Vec<Html>) -> Self {
        Self::all(pieces)
    }
}

/// A text as it stands in HTML, or in another kind of XML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Characters that HTML does not allow, even escaped.
            letter if letter.is_control() && !matches!(letter, '\n' | '\t') => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_are_escaped() {
        let html = Html::of("p", &[("title", "\"><script>")], [Html::text("a & <b>\0"), Html::of("br", &[], "")]);
        let escaped = "<p title=\"&quot;&gt;&lt;script&gt;\">a &amp; &lt;b&gt;\u{fffd}<br></p>";
        assert_eq!(html.into_string(), escaped);
    }
}
