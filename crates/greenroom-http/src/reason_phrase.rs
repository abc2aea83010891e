use bytes::Bytes;

/// A reason phrase (RFC 9112, 4). Among the extensions of a response, it is sent instead of the
/// registered one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonPhrase(Bytes);

impl ReasonPhrase {
    /// Creates a phrase of these bytes. Returns `None` if one of them is not allowed there: a
    /// control character other than the tabulator.
    #[must_use]
    pub fn new(phrase: Bytes) -> Option<Self> {
        let allowed = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
        phrase.iter().all(allowed).then_some(Self(phrase))
    }

    /// Returns the bytes of the phrase.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
