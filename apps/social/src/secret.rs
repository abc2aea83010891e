//! Random tokens, of which only a digest is stored.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The length of 32 bytes in base64url without padding.
const TOKEN_LENGTH: usize = 43;

/// Returns 32 random bytes in base64url.
pub(crate) fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// Returns the key that a token is stored under: its SHA-256 in hexadecimal digits. `None` if the
/// text cannot be a token.
pub(crate) fn hash(token: &str) -> Option<String> {
    (token.len() == TOKEN_LENGTH).then(|| hex::encode(Sha256::digest(token)))
}
