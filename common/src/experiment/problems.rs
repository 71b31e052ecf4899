//! The problems of an experiment file.

/// At most this many problems are reported, because the first ones are often the cause of the others.
const TOLD_MAX: usize = 10;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The line, from 1; `None` if the problem is in an override or concerns the whole file.
    pub line: Option<usize>,
    /// The problem and what to do about it; if it is not in a line, also its place.
    pub sentence: String,
    /// Whether the problem is in an override.
    pub typed: bool,
}

/// All problems of a file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file's name, as it was given.
    pub file: String,
    /// The problems; there is at least one.
    pub list: Vec<Problem>,
}

impl std::fmt::Display for Problems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.list[..self.list.len().min(TOLD_MAX)];
        for (index, problem) in shown.iter().enumerate() {
            let end = if index + 1 < shown.len() { "\n" } else { "" };
            match problem.line {
                Some(line) => write!(f, "{}:{line}: {}{end}", self.file, problem.sentence)?,
                None => write!(f, "{}: {}{end}", self.file, problem.sentence)?,
            }
        }
        match self.list.len() - shown.len() {
            0 => Ok(()),
            rest => write!(f, "\nand {rest} more"),
        }
    }
}

impl std::error::Error for Problems {}
