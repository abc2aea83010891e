use http::HeaderMap;
use http::request::Parts;
use sfv::{BareItem, Dictionary, FieldType, InnerList, Item, ListEntry, Parser, StringRef};

use super::Error;
use crate::model::Id;

const INPUT: &str = "signature-input";
const SIGNATURE: &str = "signature";
const DIGEST: &str = "content-digest";

/// The components that a signature must cover, sorted.
const COMPONENTS: [&str; 4] = ["@method", "@path", "@query", DIGEST];
/// The parameters that it must have, sorted.
const PARAMETERS: [&str; 4] = ["alg", "created", "keyid", "nonce"];
const ALGORITHM: &str = "hmac-sha256";
/// The allowed lengths of a nonce, in characters.
const NONCE_LENGTHS: std::ops::RangeInclusive<usize> = 8..=64;

/// A well-formed signature that is not yet verified.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Signature {
    /// The signature base (RFC 9421, section 2.5).
    pub(super) base: String,
    /// The claimed HMAC-SHA256 of the base.
    pub(super) tag: Vec<u8>,
    pub(super) key: Id,
    /// Seconds since 1970.
    pub(super) created: i64,
    pub(super) nonce: String,
}

/// Returns `true` if the request claims to be signed.
pub(super) fn is_signed(headers: &HeaderMap) -> bool {
    headers.contains_key(INPUT) || headers.contains_key(SIGNATURE)
}

pub(super) fn parse(parts: &Parts) -> Result<Signature, Error> {
    let (label, input) = only(dictionary(&parts.headers, INPUT)?)?;
    let (signed_label, tag) = only(dictionary(&parts.headers, SIGNATURE)?)?;
    if label != signed_label {
        return Err(Error::Label);
    }
    let ListEntry::InnerList(input) = input else {
        return Err(Error::Malformed(INPUT));
    };
    let ListEntry::Item(Item {
        bare_item: BareItem::ByteSequence(tag),
        ..
    }) = tag
    else {
        return Err(Error::Malformed(SIGNATURE));
    };
    check_components(&input)?;
    let (key, created, nonce) = parameters(&input)?;
    Ok(Signature {
        base: base(parts, &input)?,
        tag,
        key,
        created,
        nonce,
    })
}

fn dictionary(headers: &HeaderMap, name: &'static str) -> Result<Dictionary, Error> {
    let value = combined(headers, name)?;
    let parsed = Parser::new(&value).parse();
    parsed.map_err(|_| Error::Malformed(name))
}

/// Returns all lines of a header field as one value (RFC 9110, section 5.2).
pub(super) fn combined(headers: &HeaderMap, name: &'static str) -> Result<String, Error> {
    let lines = headers.get_all(name).iter();
    let texts: Result<Vec<_>, _> = lines.map(|line| line.to_str().map(str::trim)).collect();
    let texts = texts.map_err(|_| Error::Malformed(name))?;
    if texts.is_empty() {
        return Err(Error::Missing(name));
    }
    Ok(texts.join(", "))
}

fn only(dictionary: Dictionary) -> Result<(String, ListEntry), Error> {
    let mut entries = dictionary.into_iter();
    match (entries.next(), entries.next()) {
        (Some((label, entry)), None) => Ok((label.as_str().to_owned(), entry)),
        _ => Err(Error::Label),
    }
}

/// Checks that all components are covered: in any order, each once, without parameters.
fn check_components(input: &InnerList) -> Result<(), Error> {
    let mut covered = Vec::new();
    for item in &input.items {
        match component(item) {
            Some(name) if item.params.is_empty() => covered.push(name),
            _ => return Err(Error::Components),
        }
    }
    covered.sort_unstable();
    if covered != COMPONENTS {
        return Err(Error::Components);
    }
    Ok(())
}

fn component(item: &Item) -> Option<&str> {
    Some(item.bare_item.as_string()?.as_str())
}

fn parameters(input: &InnerList) -> Result<(Id, i64, String), Error> {
    let mut names: Vec<&str> = input.params.keys().map(|key| key.as_str()).collect();
    names.sort_unstable();
    if names != PARAMETERS {
        return Err(Error::Parameters);
    }
    let text = |name: &str| {
        let value = input.params.get(name).and_then(BareItem::as_string);
        value.map(StringRef::as_str).ok_or(Error::Parameters)
    };
    if text("alg")? != ALGORITHM {
        return Err(Error::Parameters);
    }
    let created = input.params.get("created").and_then(BareItem::as_integer);
    let created = created.ok_or(Error::Parameters)?.into();
    let nonce = text("nonce")?.to_owned();
    if !NONCE_LENGTHS.contains(&nonce.len()) {
        return Err(Error::Nonce);
    }
    // A malformed identifier fails like one of no key, so the response tells nothing more.
    let key = text("keyid")?.parse().map_err(|_| Error::Wrong)?;
    Ok((key, created, nonce))
}

fn base(parts: &Parts, input: &InnerList) -> Result<String, Error> {
    let mut lines = Vec::new();
    for name in input.items.iter().filter_map(component) {
        let value = match name {
            "@method" => parts.method.to_string(),
            "@path" => parts.uri.path().to_owned(),
            "@query" => format!("?{}", parts.uri.query().unwrap_or_default()),
            _ => combined(&parts.headers, DIGEST)?,
        };
        lines.push(format!("\"{name}\": {value}"));
    }
    let parameters = vec![ListEntry::InnerList(input.clone())].serialize();
    let parameters = parameters.ok_or(Error::Components)?;
    lines.push(format!("\"@signature-params\": {parameters}"));
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const KEY: &str = "0198c0ffee007abc8def0123456789ab";
    const COVERED: &str = r#"("@method" "@path" "@query" "content-digest")"#;

    fn parts(input: &str, signature: &str) -> Parts {
        let request = Request::post("/api/albums?a=1&b=%20")
            .header("Signature-Input", input)
            .header("Signature", signature)
            .header("Content-Digest", "sha-256=:AAAA:")
            .body(())
            .expect("a request");
        request.into_parts().0
    }

    fn parameters_of(created: &str, nonce: &str, alg: &str) -> String {
        format!(r#";created={created};nonce="{nonce}";keyid="{KEY}";alg="{alg}""#)
    }

    fn good() -> String {
        parameters_of("1700000000", "12345678", ALGORITHM)
    }

    fn error(input: &str, signature: &str) -> Error {
        parse(&parts(input, signature)).expect_err("it is not as it must be")
    }

    #[test]
    fn the_signature_base_is_that_of_the_rfc() {
        let input = format!("any={COVERED}{}", good());
        let signature = parse(&parts(&input, "any=:AQID:")).expect("it is well-formed");
        let expected = format!(
            "\"@method\": POST\n\"@path\": /api/albums\n\"@query\": ?a=1&b=%20\n\
             \"content-digest\": sha-256=:AAAA:\n\"@signature-params\": {COVERED}{}",
            good()
        );
        assert_eq!(signature.base, expected);
        assert_eq!(signature.tag, [1, 2, 3]);
        assert_eq!(
            (signature.created, signature.nonce.as_str()),
            (1_700_000_000, "12345678")
        );
        assert_eq!(signature.key.to_string(), KEY);
    }

    #[test]
    fn components_come_in_the_order_of_the_signer() {
        let input = format!(
            r#"a=("content-digest" "@query" "@path" "@method"){}"#,
            good()
        );
        let signature = parse(&parts(&input, "a=:AQID:")).expect("it is well-formed");
        assert!(
            signature.base.starts_with("\"content-digest\""),
            "{}",
            signature.base
        );
    }

    #[test]
    fn what_is_not_covered_or_not_known_is_refused() {
        for covered in [
            r#"("@method" "@path" "@query")"#,
            r#"("@method" "@path" "@query" "@query")"#,
            r#"("@method" "@path" "@query" "content-digest" "date")"#,
            r#"("@method" "@path" "@query" "content-digest";sf)"#,
            "(1 2 3 4)",
            "()",
        ] {
            let input = format!("a={covered}{}", good());
            assert_eq!(error(&input, "a=:AQID:"), Error::Components, "{covered}");
        }
    }

    #[test]
    fn parameters_are_all_there_and_no_others() {
        let expires = format!("{};expires=1700000001", good());
        let without_key = r#";created=1;nonce="12345678";alg="hmac-sha256""#;
        let text = parameters_of("\"1700000000\"", "12345678", ALGORITHM);
        let other = parameters_of("1", "12345678", "ed25519");
        for parameters in [&expires, without_key, &text, &other, ""] {
            let input = format!("a={COVERED}{parameters}");
            assert_eq!(error(&input, "a=:AQID:"), Error::Parameters, "{parameters}");
        }
        for nonce in ["1234567", &"1".repeat(65)] {
            let input = format!("a={COVERED}{}", parameters_of("1", nonce, ALGORITHM));
            assert_eq!(error(&input, "a=:AQID:"), Error::Nonce, "{nonce}");
        }
    }

    #[test]
    fn one_signature_of_one_label() {
        let one = format!("a={COVERED}{}", good());
        assert_eq!(error(&one, "b=:AQID:"), Error::Label);
        assert_eq!(error(&one, "a=:AQID:, b=:AQID:"), Error::Label);
        assert_eq!(
            error(&format!("{one}, b={COVERED}"), "a=:AQID:"),
            Error::Label
        );
        assert_eq!(error("a", "a=:AQID:"), Error::Malformed(INPUT));
        assert_eq!(error(&one, "a=1"), Error::Malformed(SIGNATURE));
        assert_eq!(error("=", "a=1"), Error::Malformed(INPUT));
    }
}
