use std::fmt::{self, Debug, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;
use uuid::Uuid;
use uuid::fmt::Simple;

/// An identifier of a user, an album, a picture, a comment or a key: a UUID of version 7 (RFC
/// 9562), written as 32 hexadecimal digits. Identifiers sort by the time of their creation, to the
/// millisecond, on all replicas together.
#[derive(Clone, Copy, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, ToSchema)]
#[serde(try_from = "String")]
#[schema(
    value_type = String,
    pattern = "^[0-9a-f]{32}$",
    example = "0198c0ffee007abc8def0123456789ab"
)]
pub struct Id(Uuid);

impl Id {
    /// Creates an identifier of the present time.
    #[must_use]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// Returns the identifier that sorts right before this one; `None` before the first.
    #[must_use]
    pub fn before(self) -> Option<Self> {
        let before = self.0.as_u128().checked_sub(1)?;
        Some(Self(Uuid::from_u128(before)))
    }

    /// Returns the 16 bytes, in an order that sorts by time.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Creates an identifier from the 16 bytes of [`as_bytes`](Self::as_bytes).
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl Default for Id {
    fn default() -> Self {
        Self::new()
    }
}

impl Display for Id {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0.simple(), formatter)
    }
}

impl Debug for Id {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, formatter)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = [0; Simple::LENGTH];
        serializer.serialize_str(self.0.simple().encode_lower(&mut text))
    }
}

impl FromStr for Id {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        // One spelling only, since topics and cache keys compare identifiers as texts.
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 32 || !text.bytes().all(is_digit) {
            return Err(ParseIdError);
        }
        Uuid::try_parse(text).map(Self).map_err(|_| ParseIdError)
    }
}

impl TryFrom<String> for Id {
    type Error = ParseIdError;

    fn try_from(text: String) -> Result<Self, ParseIdError> {
        text.parse()
    }
}

/// The error of a text that is not an identifier.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an identifier is 32 hexadecimal digits in lower case")]
pub struct ParseIdError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_give_the_same_identifier_back() {
        let id = Id::new();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(Id::from_bytes(*id.as_bytes()), id);
    }

    #[test]
    fn one_way_to_write_it() {
        for text in [
            "",
            "1234",
            "0198C0FFEE007ABC8DEF0123456789AB",
            "0198c0ff-ee00-7abc-8def-0123456789ab",
        ] {
            assert_eq!(text.parse::<Id>(), Err(ParseIdError), "{text}");
        }
    }
}
