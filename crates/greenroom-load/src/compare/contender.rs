//! A server to be compared.

use std::str::FromStr;

use crate::plan::{Target, TargetError};

/// A server that is started by a command, and the URL at which it then responds.
///
/// Written `NAME=COMMAND URL`, such as `a=./run-a.sh --port 5001 http://127.0.0.1:5001/`. The
/// command is split into words as a shell does, with quotes and backslashes, and started without a
/// shell: no variables, no pipes (`sh -c '…'` has them).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The program and its arguments; at least the program. It must stay in the foreground.
    pub command: Vec<String>,
    /// The URL of its requests.
    pub target: Target,
}

/// An error in the text of a contender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContenderError {
    /// There is no name.
    #[error("{0:?}: a server is written NAME=COMMAND URL")]
    Form(String),
    /// The name has other characters, or none.
    #[error("{0:?}: a name has letters, digits, '.', '_' and '-' only")]
    Name(String),
    /// A quote is open, or a backslash stands at the end.
    #[error("{0:?}: a quote is not closed")]
    Quotes(String),
    /// Less than two words are there.
    #[error("{0:?}: a command and, as the last word, a URL must follow the name")]
    Words(String),
    /// The last word is no URL.
    #[error("the last word must be the server's URL: {0}")]
    Url(#[from] TargetError),
}

impl FromStr for Contender {
    type Err = ContenderError;

    fn from_str(text: &str) -> Result<Self, ContenderError> {
        let form = || ContenderError::Form(text.to_owned());
        let (name, rest) = text.split_once('=').ok_or_else(form)?;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || !name.bytes().all(allowed) {
            return Err(ContenderError::Name(name.to_owned()));
        }
        let split = shlex::split(rest);
        let mut command = split.ok_or_else(|| ContenderError::Quotes(text.to_owned()))?;
        match command.pop() {
            Some(url) if !command.is_empty() => Ok(Self {
                name: name.to_owned(),
                command,
                target: url.parse()?,
            }),
            _ => Err(ContenderError::Words(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_the_url() {
        let text = r#"a.1=sh -c 'exec ./run "$0"' x\ y http://127.0.0.1:5001/hello?a=b"#;
        let contender: Contender = text.parse().expect("valid");
        assert_eq!(contender.name, "a.1");
        assert_eq!(contender.command, ["sh", "-c", "exec ./run \"$0\"", "x y"]);
        assert_eq!(
            contender.target.to_string(),
            "http://127.0.0.1:5001/hello?a=b"
        );
    }

    #[test]
    fn what_is_no_contender_is_reported_why() {
        for (text, reason) in [
            ("./run http://host/", "NAME=COMMAND URL"),
            ("=./run http://host/", "a name has"),
            ("a b=./run http://host/", "a name has"),
            ("a=./run 'http://host/", "quote"),
            ("a=http://host/", "a command"),
            ("a=", "a command"),
            (
                "a=./run --port 5000",
                "the last word must be the server's URL: \"5000\"",
            ),
        ] {
            let error = text.parse::<Contender>().expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
