//! Names of groups, kinds of actors, messages and entities.

use std::convert::Infallible;
use std::fmt;

use thiserror::Error;

/// The longest name of a group, a kind of actor, or a message, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// The longest id of an entity, in bytes.
pub const ENTITY_ID_BYTES_MAX: usize = 256;
/// The longest id of a durable message, in bytes.
pub const MESSAGE_ID_BYTES_MAX: usize = 128;

/// A name that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{what} `{name}` cannot be used: {allowed}")]
pub struct NameError {
    what: &'static str,
    name: String,
    allowed: &'static str,
}

impl From<Infallible> for NameError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

const ONE_TOKEN: &str = "1 to 64 bytes of `a-z`, `A-Z`, `0-9`, `-` and `_` are allowed";
const TOKENS: &str =
    "1 to 64 bytes of `a-z`, `A-Z`, `0-9`, `-`, `_`, and `.` between them are allowed";

/// Checks a name that is one token of a subject.
pub(crate) fn check_token(what: &'static str, name: &str) -> Result<(), NameError> {
    check(what, name, is_token(name), ONE_TOKEN)
}

/// Checks the name of a kind of actor, such as `mailer.v1`.
pub(crate) fn check_kind(name: &str) -> Result<(), NameError> {
    let is_valid = name.split('.').all(is_token);
    check("the kind of actor", name, is_valid, TOKENS)
}

/// Checks the id of a durable message: any text that is not empty, and not too long.
pub(crate) fn check_message_id(id: &str) -> Result<(), NameError> {
    let is_valid = (1..=MESSAGE_ID_BYTES_MAX).contains(&id.len());
    require(
        is_valid,
        "the id of a message",
        id,
        "1 to 128 bytes are allowed",
    )
}

/// Returns a text as it stands in keys and headers: itself, if it has only plain characters, or
/// else `=` and its bytes as hexadecimal digits.
pub(crate) fn encoded(text: &str) -> String {
    if text.bytes().all(is_plain) {
        return text.to_owned();
    }
    let mut encoded = String::with_capacity(1 + 2 * text.len());
    encoded.push('=');
    for byte in text.bytes() {
        use fmt::Write as _;
        let _ = write!(encoded, "{byte:02x}");
    }
    encoded
}

/// Reads what [`encoded`] returned. `None` for anything else.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let Some(digits) = text.strip_prefix('=') else {
        return text.bytes().all(is_plain).then(|| text.to_owned());
    };
    let digits = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    let bytes = digits.collect::<Option<Vec<u8>>>()?;
    let decoded = String::from_utf8(bytes).ok()?;
    (encoded(&decoded) == text).then_some(decoded)
}

fn check(
    what: &'static str,
    name: &str,
    is_valid: bool,
    allowed: &'static str,
) -> Result<(), NameError> {
    require(
        is_valid && name.len() <= NAME_BYTES_MAX,
        what,
        name,
        allowed,
    )
}

fn require(
    is_valid: bool,
    what: &'static str,
    name: &str,
    allowed: &'static str,
) -> Result<(), NameError> {
    if is_valid {
        return Ok(());
    }
    let name = name.chars().take(NAME_BYTES_MAX).collect();
    Err(NameError {
        what,
        name,
        allowed,
    })
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// The id of an entity among those of its kind: 1 to 256 bytes of UTF-8.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityId(Box<str>);

impl EntityId {
    /// Creates the id.
    ///
    /// # Errors
    /// The text is empty, or longer than [`ENTITY_ID_BYTES_MAX`].
    pub fn new(id: impl Into<Box<str>>) -> Result<Self, NameError> {
        let id = id.into();
        let is_valid = (1..=ENTITY_ID_BYTES_MAX).contains(&id.len());
        require(
            is_valid,
            "the id of an entity",
            &id,
            "1 to 256 bytes are allowed",
        )?;
        Ok(Self(id))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id as it stands in keys and headers.
    pub(crate) fn encoded(&self) -> String {
        encoded(&self.0)
    }

    /// Reads what [`encoded`](Self::encoded) returned. `None` for anything else.
    pub(crate) fn decoded(text: &str) -> Option<Self> {
        Self::new(decoded(text)?).ok()
    }
}

impl fmt::Debug for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<u64> for EntityId {
    fn from(id: u64) -> Self {
        Self(id.to_string().into())
    }
}

impl TryFrom<&str> for EntityId {
    type Error = NameError;

    fn try_from(id: &str) -> Result<Self, NameError> {
        Self::new(id)
    }
}

impl TryFrom<String> for EntityId {
    type Error = NameError;

    fn try_from(id: String) -> Result<Self, NameError> {
        Self::new(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens_of_subjects() {
        assert!(check_token("the group", "mailer-2_x").is_ok());
        assert!(check_kind("mailer.v1").is_ok());
        for bad in ["", "a b", "a.b", "a*", ">", "ä", &"x".repeat(65)] {
            assert!(check_token("the group", bad).is_err(), "{bad}");
        }
        for bad in ["", ".v1", "mailer.", "mailer..v1", "mailer.*"] {
            assert!(check_kind(bad).is_err(), "{bad}");
        }
        let error = check_token("the group", "a b");
        let error = error.expect_err("it has a space").to_string();
        assert!(
            error.starts_with("the group `a b` cannot be used"),
            "{error}"
        );
    }

    #[test]
    fn an_id_of_any_text_is_encoded_and_read_back() {
        for id in ["42", "a-b_C", "ada@example.org", "=", "=3d", "ä ö\n", "."] {
            let id = EntityId::new(id).expect("it is short");
            assert_eq!(EntityId::decoded(&id.encoded()), Some(id));
        }
        assert_eq!(EntityId::new("42").expect("short").encoded(), "42");
        for bad in ["", "a.b", "=", "=3", "=zz", "=3432", "=ff"] {
            assert_eq!(EntityId::decoded(bad), None, "{bad}");
        }
        assert!(EntityId::new("").is_err());
        assert!(EntityId::new("x".repeat(257)).is_err());
    }

    #[test]
    fn an_id_of_a_message_is_neither_empty_nor_long() {
        assert!(check_message_id("a\nb").is_ok());
        assert!(check_message_id(&"x".repeat(MESSAGE_ID_BYTES_MAX)).is_ok());
        for bad in ["", &"x".repeat(MESSAGE_ID_BYTES_MAX + 1)] {
            let error = check_message_id(bad).expect_err("it is no id").to_string();
            assert!(error.ends_with("1 to 128 bytes are allowed"), "{error}");
        }
    }
}
