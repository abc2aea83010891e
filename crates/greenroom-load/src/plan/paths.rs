//! Many paths of one server, from a file.

use std::io::{self, BufRead, Read as _};

use super::{Target, TargetError};

/// Paths of one server that take turns, each once before any again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// All paths, concatenated.
    text: String,
    /// The end of each path in the text.
    ends: Vec<usize>,
    /// The path of each turn.
    turns: Vec<u32>,
}

/// An error in a file of URLs.
#[derive(Debug, thiserror::Error)]
pub enum PathsError {
    /// A line is no URL.
    #[error("line {line}: {source}")]
    Url {
        /// Its number, from 1.
        line: usize,
        /// The URL's error.
        source: TargetError,
    },
    /// A line's URL has another scheme or authority than the first.
    #[error(
        "line {line}: {url} is of another server than {first}: all URLs of a file have the same \
        scheme, host and port"
    )]
    OtherServer {
        /// Its number, from 1.
        line: usize,
        /// Its URL.
        url: String,
        /// The first URL of the file.
        first: String,
    },
    /// A line is too long.
    #[error("line {line} is longer than {} bytes", Paths::LINE_BYTES_MAX)]
    LongLine {
        /// Its number, from 1.
        line: usize,
    },
    /// There are too many lines.
    #[error(
        "line {line}: a file has at most {} turns, one for each URL or as many as its weight",
        Paths::TURNS_MAX
    )]
    TooMany {
        /// The number of the first line that is too many, from 1.
        line: usize,
    },
    /// A line cannot be read, or is not UTF-8.
    #[error("line {line}: {source}")]
    Read {
        /// Its number, from 1.
        line: usize,
        /// The system's error.
        source: io::Error,
    },
    /// No line has a URL.
    #[error("it has no URL")]
    Empty,
}

impl Paths {
    /// The most turns, which are as many as URLs where none has a weight.
    pub const TURNS_MAX: usize = 1_000_000;
    /// The longest line, in bytes.
    pub const LINE_BYTES_MAX: usize = 64 * 1024;

    /// Reads URLs, one per line; empty lines and those that begin with `#` are skipped. The first
    /// URL is returned too.
    ///
    /// A line `weight=3 http://host/path` has three turns, one after the other.
    ///
    /// # Errors
    /// [`PathsError`] with the number of the line that is wrong.
    pub fn read(mut input: impl BufRead) -> Result<(Target, Self), PathsError> {
        let mut first: Option<Target> = None;
        let mut paths = Self {
            text: String::new(),
            ends: Vec::new(),
            turns: Vec::new(),
        };
        let mut text = String::new();
        for line in 1.. {
            if !read_line(&mut input, line, &mut text)? {
                break;
            }
            let url = text.trim();
            if url.is_empty() || url.starts_with('#') {
                continue;
            }
            let target: Target = url
                .parse()
                .map_err(|source| PathsError::Url { line, source })?;
            let first = first.get_or_insert_with(|| target.clone());
            check_server(first, &target, line)?;
            paths.push(&target, line)?;
        }
        let first = first.ok_or(PathsError::Empty)?;
        paths.text.shrink_to_fit();
        paths.ends.shrink_to_fit();
        paths.turns.shrink_to_fit();
        Ok((first, paths))
    }

    fn push(&mut self, target: &Target, line: usize) -> Result<(), PathsError> {
        let weight = usize::try_from(target.weight).unwrap_or(usize::MAX);
        let path = u32::try_from(self.ends.len()).map_err(|_| PathsError::TooMany { line })?;
        if weight > Self::TURNS_MAX - self.turns.len() {
            return Err(PathsError::TooMany { line });
        }
        self.text.push_str(&target.path);
        self.ends.push(self.text.len());
        self.turns.extend(std::iter::repeat_n(path, weight));
        Ok(())
    }

    /// Returns the number of turns; at least one.
    #[must_use]
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// Returns the number of paths; at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the path of a turn, counted from 0.
    ///
    /// # Panics
    /// If there is no such turn.
    #[must_use]
    pub fn of_turn(&self, turn: usize) -> &str {
        let path = usize::try_from(self.turns[turn]).unwrap_or(usize::MAX);
        let begin = path.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[path]]
    }
}

/// Reads another line; false at the end.
fn read_line(input: &mut impl BufRead, line: usize, text: &mut String) -> Result<bool, PathsError> {
    text.clear();
    let read = input
        .take(Paths::LINE_BYTES_MAX as u64 + 1)
        .read_line(text)
        .map_err(|source| PathsError::Read { line, source })?;
    if read > Paths::LINE_BYTES_MAX {
        return Err(PathsError::LongLine { line });
    }
    Ok(read > 0)
}

fn check_server(first: &Target, target: &Target, line: usize) -> Result<(), PathsError> {
    if target.scheme == first.scheme && target.authority == first.authority {
        return Ok(());
    }
    Err(PathsError::OtherServer {
        line,
        url: target.to_string(),
        first: first.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        let refused = Paths::read(text.as_bytes());
        refused.expect_err("it is wrong").to_string()
    }

    #[test]
    fn lines_take_their_turns_in_order() {
        let text = "# likes\nhttp://h:1/a?x=1\n\n  weight=2 http://h:1  \r\nhttp://h:1/c";
        let (first, paths) = Paths::read(text.as_bytes()).expect("a good file");
        assert_eq!(first.to_string(), "http://h:1/a?x=1");
        let turns: Vec<&str> = (0..paths.turns()).map(|turn| paths.of_turn(turn)).collect();
        assert_eq!(turns, ["/a?x=1", "/", "/", "/c"]);
        assert_eq!(paths.count(), 3);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        for (text, told) in [
            ("http://h/\nh/b\n", "line 2: \"h/b\": a URL begins with"),
            ("\nweight=0 http://h/\n", "line 2: "),
            ("http://h/\n#\nhttp://other/\n", "line 3: http://other/"),
            ("http://h/\nhttps://h/\n", "line 2: https://h/"),
            ("", "no URL"),
            ("# nothing\n\n", "no URL"),
        ] {
            let message = error_of(text);
            assert!(message.contains(told), "{text:?}: {message}");
        }
        let not_text = Paths::read(&b"http://h/\n\xff\n"[..]).expect_err("no text");
        assert!(not_text.to_string().starts_with("line 2: "), "{not_text}");
    }

    #[test]
    fn limits_are_reported() {
        let long = format!(
            "http://h/\nhttp://h/{}\n",
            "x".repeat(Paths::LINE_BYTES_MAX)
        );
        assert!(error_of(&long).starts_with("line 2 is longer than 65536 bytes"));
        let most = "weight=1000 http://h/\n".repeat(1000);
        let (_, paths) = Paths::read(most.as_bytes()).expect("just as many as allowed");
        assert_eq!(paths.turns(), Paths::TURNS_MAX);
        let message = error_of(&format!("{most}http://h/\n"));
        assert!(message.starts_with("line 1001: ") && message.contains("1000000"));
    }
}
