use http::HeaderMap;
use sfv::{BareItem, Dictionary, Item, ListEntry, Parser};
use sha2::{Digest, Sha256};

use super::Error;
use super::parse::combined;

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

pub(super) fn is_of(expected: &[u8], body: &[u8]) -> bool {
    Sha256::digest(body).as_slice() == expected
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
    #[test]
    fn the_example_of_the_rfc() {
        let value = "sha-512=:AAAA:, sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";
        let digest = digest_of(value).expect("it is well-formed");
        assert!(is_of(&digest, b"{\"hello\": \"world\"}\n"));
        assert!(!is_of(&digest, b"{\"hello\": \"world\"}"));
    }

    #[test]
    fn no_digest_that_we_know() {
        for value in ["sha-512=:AAAA:", "sha-256=1", "sha-256", "", "sha-256=:=:="] {
            assert_eq!(digest_of(value), Err(Error::Malformed(HEADER)), "{value}");
        }
        assert_eq!(expected(&HeaderMap::new()), Err(Error::Missing(HEADER)));
    }
}
