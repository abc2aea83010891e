use std::fmt;
use std::path::PathBuf;

/// The origin of a value that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nothing sets it.
    Default,
    /// A line of the file, from 1.
    File(PathBuf, usize),
    /// An environment variable.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => out.write_str("default"),
            Self::File(path, line) => write!(out, "{}:{line}", path.display()),
            Self::Variable(name) | Self::Flag(name) => out.write_str(name),
        }
    }
}

/// A value that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key with the tables that it is in, such as `site[0].route[2].files.index`.
    pub key: String,
    /// The value as TOML; empty if there is none.
    pub value: String,
    /// Its origin.
    pub origin: Origin,
}
