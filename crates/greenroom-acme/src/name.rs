//! Names that a certificate can be ordered for.

use std::net::IpAddr;

/// The longest name, in bytes (RFC 1035, 2.3.4, without the root's length byte).
const NAME_BYTES_MAX: usize = 253;

/// The longest label of a name, in bytes (RFC 1035, 2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// The reason for which no certificate can be ordered for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// An IP address.
    #[error("it is an address; certificates are ordered for names")]
    Address,
    /// A name with `*`.
    #[error("wildcards need the challenge DNS-01, which is not supported; list the names")]
    Wildcard,
    /// Letters outside ASCII.
    #[error("letters outside ASCII must be written in Punycode, as `xn--…`")]
    NotAscii,
    /// Another name that is no host's.
    #[error(
        "it is no name of a host: labels of letters, digits and inner hyphens, at most 63 bytes \
         each and 253 together, with dots between them"
    )]
    Malformed,
}

/// Parses the name of a host, and returns it in lower case.
pub(crate) fn parse(text: &str) -> Result<String, NameError> {
    if text.parse::<IpAddr>().is_ok() || text.starts_with('[') {
        return Err(NameError::Address);
    }
    if text.contains('*') {
        return Err(NameError::Wildcard);
    }
    if !text.is_ascii() {
        return Err(NameError::NotAscii);
    }
    if text.len() > NAME_BYTES_MAX || !text.split('.').all(is_label) {
        return Err(NameError::Malformed);
    }
    Ok(text.to_ascii_lowercase())
}

fn is_label(label: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(is_inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_taken_in_lower_case() {
        for (text, name) in [
            ("example.org", "example.org"),
            ("WWW.Example.org", "www.example.org"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("a-b.1.example", "a-b.1.example"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(name));
        }
    }

    #[test]
    fn what_is_no_name_is_refused_with_its_reason() {
        let long_label = format!("{}.org", "a".repeat(64));
        let long_name = "a.".repeat(127) + "org";
        for (text, error) in [
            ("192.0.2.1", NameError::Address),
            ("2001:db8::1", NameError::Address),
            ("[2001:db8::1]", NameError::Address),
            ("*.example.org", NameError::Wildcard),
            ("bücher.example", NameError::NotAscii),
            ("", NameError::Malformed),
            ("example.org.", NameError::Malformed),
            ("a..b", NameError::Malformed),
            ("-a.example", NameError::Malformed),
            ("a-.example", NameError::Malformed),
            ("a_b.example", NameError::Malformed),
            ("example.org:443", NameError::Malformed),
            ("../example", NameError::Malformed),
            (&long_label, NameError::Malformed),
            (&long_name, NameError::Malformed),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }
}
