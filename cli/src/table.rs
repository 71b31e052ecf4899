//! Tables that fit a terminal: less important columns are left out, and long names are cut.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A column is never cut to less than this width.
const CUT_MIN: usize = 8;
/// Before a name is cut to less than this width, less important columns are left out.
const READABLE: usize = 14;
/// The space between two columns.
const GAP: usize = 2;

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    /// Columns with the highest rank are left out first; columns with rank 0 always stay.
    rank: u8,
    right: bool,
    /// Whether the column's texts may be cut.
    cut: bool,
}

impl Column {
    /// A column of names, which may be cut.
    pub(crate) const fn text(title: &'static str, rank: u8) -> Self {
        Self { title, rank, right: false, cut: true }
    }

    /// A column of short words, which are not cut.
    pub(crate) const fn word(title: &'static str, rank: u8) -> Self {
        Self { title, rank, right: false, cut: false }
    }

    /// A column of figures.
    pub(crate) const fn figure(title: &'static str, rank: u8) -> Self {
        Self { title, rank, right: true, cut: false }
    }
}

/// The width of the terminal on standard output; `None`, which means no limit, if standard output is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    use std::io::IsTerminal as _;
    std::io::stdout().is_terminal().then(|| crossterm::terminal::size().map_or(80, |(columns, _)| columns.into()))
}

/// The lines of a table, beginning with the titles. No line is wider than `width`. Columns without any text are left out.
pub(crate) fn lines<const N: usize>(columns: &[Column; N], rows: &[[String; N]], width: Option<usize>) -> Vec<String> {
    let width = width.unwrap_or(usize::MAX);
    let titles = columns.map(|column| column.title.to_owned());
    let natural = |place: usize| rows.iter().map(|row| row[place].width()).max().unwrap_or(0);
    let mut shown: Vec<(usize, usize)> = (0..N)
        .map(|place| (place, natural(place)))
        .filter(|(place, widest)| *widest > 0 || columns[*place].rank == 0)
        .map(|(place, widest)| (place, widest.max(titles[place].width())))
        .collect();
    let least = |place: usize, widest: usize| if columns[place].cut { widest.min(READABLE) } else { widest };
    let needed = |shown: &[(usize, usize)]| {
        shown.iter().map(|(place, widest)| least(*place, *widest) + GAP).sum::<usize>().saturating_sub(GAP)
    };
    while needed(&shown) > width {
        let last = shown.iter().map(|(place, _)| columns[*place].rank).max().filter(|rank| *rank > 0);
        let Some(last) = last else { break };
        shown.retain(|(place, _)| columns[*place].rank != last);
    }
    // The widest columns of names are cut first.
    let total =
        |shown: &[(usize, usize)]| (shown.iter().map(|(_, wide)| wide + GAP).sum::<usize>()).saturating_sub(GAP);
    while total(&shown) > width {
        let cut = shown.iter_mut().filter(|(place, wide)| columns[*place].cut && *wide > CUT_MIN);
        let Some((_, widest)) = cut.max_by_key(|(_, wide)| *wide) else { break };
        *widest -= 1;
    }
    std::iter::once(&titles).chain(rows).map(|row| line(columns, row, &shown, width)).collect()
}

fn line<const N: usize>(columns: &[Column; N], row: &[String; N], shown: &[(usize, usize)], width: usize) -> String {
    let cells = shown.iter().map(|(place, wide)| {
        let text = cut(&row[*place], *wide);
        let space = " ".repeat(wide.saturating_sub(text.width()));
        if columns[*place].right { format!("{space}{text}") } else { format!("{text}{space}") }
    });
    let cells: Vec<String> = cells.collect();
    cut(cells.join("  ").trim_end(), width)
}

/// A text of at most this width. A longer text is cut and ends with "…".
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut short, mut used) = (String::new(), 1);
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > width {
            break;
        }
        short.push(character);
    }
    if width > 0 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] =
        [Column::text("name", 0), Column::figure("tasks", 0), Column::text("host", 1), Column::word("build", 2)];

    fn rows() -> Vec<[String; 4]> {
        let row = |name: &str| [name, "12", "lab7.example.org", "0.1.0 (abc)"].map(str::to_owned);
        vec![row("a"), row("a-worker-with-a-long-name"), row("名前の長い計算機です")]
    }

    #[test]
    fn less_important_columns_are_omitted_and_names_cut() {
        let wide = lines(&COLUMNS, &rows(), None);
        assert_eq!(wide[0], "name                       tasks  host              build");
        assert_eq!(wide[2], "a-worker-with-a-long-name     12  lab7.example.org  0.1.0 (abc)");
        assert_eq!(lines(&COLUMNS, &rows(), Some(40))[2], "a-worker-with-a…     12  lab7.example.o…");
        assert_eq!(lines(&COLUMNS, &rows(), Some(20))[2], "a-worker-wit…     12");
    }

    #[test]
    fn no_line_exceeds_the_width() {
        for width in 0..120 {
            for line in lines(&COLUMNS, &rows(), Some(width)) {
                assert!(line.width() <= width, "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn an_empty_column_is_omitted() {
        let rows = [["a", "1", "", ""].map(str::to_owned)];
        assert_eq!(lines(&COLUMNS, &rows, None), ["name  tasks", "a         1"]);
    }
}
