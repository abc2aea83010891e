use bytes::Bytes;
use http::HeaderMap;
use sfv::{BareItem, Dictionary, Item, ListEntry, Parser};
use sha2::{Digest, Sha256};
use tokio::task::{JoinError, spawn_blocking};

use super::Error;
use super::parse::combined;

/// Bytes that are hashed where the request is handled: some tens of microseconds.
const SHORT_BYTES: usize = 16 * 1_024;
const HEADER: &str = "content-digest";

/// Returns the SHA-256 that `Content-Digest` claims of the body (RFC 9530).
pub(super) fn expected(headers: &HeaderMap) -> Result<Vec<u8>, Error> {
    let value = combined(headers, HEADER)?;
    let digests: Dictionary = Parser::new(&value)
        .parse()
        .map_err(|_| Error::Malformed(HEADER))?;
    match digests.get("sha-256") {
        Some(ListEntry::Item(Item {
            bare_item: BareItem::ByteSequence(digest),
            ..
        })) => Ok(digest.clone()),
        _ => Err(Error::Malformed(HEADER)),
    }
}

/// Tells whether a digest is that of the body, whose hashing holds up no other request however long
/// it is.
pub(super) async fn is_of(expected: Vec<u8>, body: Bytes) -> Result<bool, JoinError> {
    let is_short = body.len() <= SHORT_BYTES;
    let is_of = move || Sha256::digest(body).as_slice() == expected;
    if is_short {
        return Ok(is_of());
    }
    spawn_blocking(is_of).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(value: &'static str) -> Result<Vec<u8>, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, value.parse().expect("a value"));
        expected(&headers)
    }

    /// RFC 9530, appendix D: the digest of `{"hello": "world"}` and a line end.
    #[tokio::test]
    async fn the_example_of_the_rfc() {
        let value = "sha-512=:AAAA:, sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";
        let digest = digest_of(value).expect("it is well-formed");
        let is_of = async |body: &'static [u8]| {
            let is_of = is_of(digest.clone(), Bytes::from_static(body)).await;
            is_of.expect("nothing panics")
        };
        assert!(is_of(b"{\"hello\": \"world\"}\n").await);
        assert!(!is_of(b"{\"hello\": \"world\"}").await);
    }

    #[test]
    fn no_digest_that_we_know() {
        for value in ["sha-512=:AAAA:", "sha-256=1", "sha-256", "", "sha-256=:=:="] {
            assert_eq!(digest_of(value), Err(Error::Malformed(HEADER)), "{value}");
        }
        assert_eq!(expected(&HeaderMap::new()), Err(Error::Missing(HEADER)));
    }
}
