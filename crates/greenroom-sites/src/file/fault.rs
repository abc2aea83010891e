use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A fault of a file: where it is, what is wrong, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The fault in words, with the values that are allowed.
    pub message: String,
}

/// All faults of a file, in the order of their lines; or the reason why it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    path: PathBuf,
    faults: Vec<Fault>,
}

impl Faults {
    pub(crate) fn new(path: &Path, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| (fault.line, fault.column));
        faults.dedup();
        Self {
            path: path.to_owned(),
            faults,
        }
    }

    /// Returns the faults; there is at least one.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for Faults {
    /// Writes a line for each fault, as compilers do: `file:line:column: message`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(out, "{end}{}", self.path.display())?;
            // A file that cannot be read has no line.
            if fault.line > 0 {
                write!(out, ":{}:{}", fault.line, fault.column)?;
            }
            write!(out, ": {}", fault.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Returns the line and the column of a byte, both from 1.
pub(super) fn position(text: &str, span: &Range<usize>) -> (usize, usize) {
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let begin = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before[begin..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_in_characters() {
        let text = "a = 1\nä = 2\n";
        assert_eq!(position(text, &(0..1)), (1, 1));
        assert_eq!(position(text, &(4..5)), (1, 5));
        assert_eq!(position(text, &(11..12)), (2, 5));
        assert_eq!(position(text, &(99..99)), (3, 1));
    }
}
