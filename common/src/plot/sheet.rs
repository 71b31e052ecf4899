//! What all pictures have in common: their size, their beginning, and texts.

/// Pixels of the picture without its legend, and of the space around the axes.
pub(super) const WIDTH: f64 = 720.0;
pub(super) const HEIGHT: f64 = 418.0;
pub(super) const LEFT: f64 = 76.0;
pub(super) const RIGHT: f64 = 24.0;
pub(super) const TOP: f64 = 50.0;
pub(super) const BOTTOM: f64 = 58.0;

/// The beginning of a picture of this size: its description in words, its background and its title.
pub(super) fn head(title: &str, description: &str, width: f64, height: f64) -> String {
    head_at(LEFT, title, description, width, height)
}

/// The same as [`head`], with the title at this distance from the left edge.
pub(super) fn head_at(left: f64, title: &str, description: &str, width: f64, height: f64) -> String {
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\">\n\
         <title>{title}</title>\n<desc>{}</desc>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"28\" font-size=\"17\" font-weight=\"bold\">{title}</text>\n",
        escape(description)
    )
}

/// The approximate width of a text in pixels.
pub(super) fn text_width(text: &str) -> f64 {
    6.8 * text.chars().count() as f64
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
