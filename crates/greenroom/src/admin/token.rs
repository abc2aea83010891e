use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use subtle::ConstantTimeEq;

/// The least number of characters of a token.
const CHARACTERS_MIN: usize = 16;
/// The largest number of characters of a token.
const CHARACTERS_MAX: usize = 1024;

/// The secret by which operators take actions at the [admin
/// address](crate::ServerBuilder::admin_token): 16 to 1,024 visible characters of ASCII. It is
/// compared in a time that depends on its length only, and `Debug` does not show it.
#[derive(Clone)]
pub struct AdminToken(Arc<str>);

/// A token cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminTokenError {
    /// It is too short, too long, or has other characters.
    #[error(
        "the token must be {CHARACTERS_MIN} to {CHARACTERS_MAX} visible characters of ASCII, such \
         as `openssl rand -hex 32` prints"
    )]
    Shape,
    /// Its file cannot be read.
    #[error("the token's file {} cannot be read: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl AdminToken {
    /// Takes a text for a token.
    ///
    /// # Errors
    ///
    /// [`AdminTokenError::Shape`].
    pub fn new(text: &str) -> Result<Self, AdminTokenError> {
        let has_length = (CHARACTERS_MIN..=CHARACTERS_MAX).contains(&text.len());
        if has_length && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text.into()));
        }
        Err(AdminTokenError::Shape)
    }

    /// Reads a token from a file, without the space around it.
    ///
    /// # Errors
    ///
    /// [`AdminTokenError`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, AdminTokenError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(|source| AdminTokenError::File {
            path: path.to_owned(),
            source,
        })?;
        Self::new(text.trim())
    }

    pub(super) fn is(&self, told: &str) -> bool {
        self.0.as_bytes().ct_eq(told.as_bytes()).into()
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("AdminToken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_and_visible() {
        for wrong in [
            "",
            "fifteen-letters",
            "sixteen letters!",
            "sechzehn-zeichen-ä",
        ] {
            assert!(AdminToken::new(wrong).is_err(), "{wrong}");
        }
        assert!(AdminToken::new(&"x".repeat(CHARACTERS_MAX + 1)).is_err());
        let token = AdminToken::new("sixteen-letters!").expect("it is long enough");
        assert!(token.is("sixteen-letters!"));
        assert!(!token.is("sixteen-letters?") && !token.is("") && !token.is("sixteen-letters!!"));
        assert_eq!(format!("{token:?}"), "AdminToken");
    }
}
