use std::collections::BTreeMap;

use serde::Deserialize;

/// The longest message of a client, in bytes.
pub(super) const COMMAND_BYTES_MAX: usize = 16 * 1024;
/// The largest distinct position, which is the largest exact integer of JavaScript; larger ones are
/// taken for it.
const POSITION_MAX: u64 = (1 << 53) - 1;

/// A message of a client.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Command {
    #[serde(default)]
    pub(super) unwatch: Vec<String>,
    /// The number of the last event that it has seen, by topic; `None`: from now on.
    #[serde(default)]
    pub(super) watch: BTreeMap<String, Option<u64>>,
}

impl Command {
    /// Parses a message from its JSON.
    ///
    /// # Errors
    /// The fault, and its line and column.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let mut command: Self = serde_json::from_str(text)?;
        for position in command.watch.values_mut().flatten() {
            *position = POSITION_MAX.min(*position);
        }
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_numbers_or_null() {
        let command = Command::parse(r#"{"watch":{"/a":17,"/b":null,"/c":18446744073709551615}}"#);
        let watch = command.expect("it is a command").watch;
        assert_eq!(watch["/a"], Some(17));
        assert_eq!(watch["/b"], None);
        assert_eq!(watch["/c"], Some(POSITION_MAX));
    }

    #[test]
    fn what_is_no_command_is_said() {
        for text in [
            "",
            "{",
            "[7]",
            "7",
            r#"{"watch":{"/a":-1}}"#,
            r#"{"watch":["/a"]}"#,
            r#"{"wotch":{}}"#,
        ] {
            assert!(Command::parse(text).is_err(), "{text}");
        }
    }
}
