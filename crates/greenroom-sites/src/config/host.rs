use std::fmt;
use std::net::Ipv6Addr;

/// The most bytes of a host name, by RFC 1035, section 2.3.4.
const BYTES_MAX: usize = 253;

/// A name of a site, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    /// One name.
    Exact(String),
    /// `*.example.org`: the names with exactly one label before `.example.org`, as in certificates
    /// (RFC 6125, section 6.4.3).
    Wildcard(String),
}

impl Host {
    /// Parses the name of a site.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let allowed = "allowed are names such as example.org, *.example.org, 192.0.2.1 or [::1], \
            without scheme, port and path";
        let name = normal(text);
        let bare = name.strip_prefix("*.").unwrap_or(&name);
        let is_address = address(&name).is_some();
        let is_name = !bare.is_empty() && bare.len() <= BYTES_MAX && bare.split('.').all(is_label);
        if !is_address && !is_name {
            return Err(format!("`{text}` is no host; {allowed}"));
        }
        Ok(match name.strip_prefix('*') {
            Some(suffix) => Self::Wildcard(suffix.to_owned()),
            None => Self::Exact(name),
        })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => out.write_str(name),
            Self::Wildcard(suffix) => write!(out, "*{suffix}"),
        }
    }
}

fn is_label(label: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=63).contains(&label.len()) && label.bytes().all(is_allowed)
}

/// The last labels of names that no public authority gives certificates for: of RFC 2606, 6761,
/// 6762, 7686 and 8375, and the one that is reserved for internal use.
const NOT_PUBLIC: [&str; 8] = [
    "home.arpa",
    "internal",
    "invalid",
    "lan",
    "local",
    "localhost",
    "onion",
    "test",
];

/// Returns true if a host of a site, in lower case, is a name of the public DNS: no wildcard, no
/// address, none of this machine or of a private network. For such a name an authority gives a
/// certificate to whoever has it.
#[must_use]
pub fn is_public_name(host: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| {
        label.bytes().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    let is_reserved = |end: &&str| {
        let before = host.strip_suffix(*end);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    host.contains('.')
        && host.split('.').all(is_label)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
        && !NOT_PUBLIC.iter().any(is_reserved)
}

/// Returns the address of an IPv6 literal, such as `[::1]`.
fn address(host: &str) -> Option<Ipv6Addr> {
    let inner = host.strip_prefix('[')?.strip_suffix(']')?;
    inner.parse().ok()
}

/// Returns a host as hosts are compared: in lower case and without the dot at its end, an IPv6
/// literal in its shortest form (RFC 5952).
pub(crate) fn normal(host: &str) -> String {
    if let Some(address) = address(host) {
        return format!("[{address}]");
    }
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_public_if_others_can_find_them() {
        for host in ["example.org", "xn--bcher-kva.example", "a.local.example"] {
            assert!(is_public_name(host), "{host}");
        }
        for host in [
            "*.example.org",
            "[2001:db8::1]",
            "192.0.2.1",
            "localhost",
            "a.localhost",
            "printer.local",
            "db.internal",
            "router.home.arpa",
            "intranet",
            "a_b.example.org",
            "-a.example.org",
        ] {
            assert!(!is_public_name(host), "{host}");
        }
    }

    #[test]
    fn hosts_are_names_wildcards_and_addresses() {
        let parse = |text| Host::parse(text).map(|host| host.to_string());
        assert_eq!(parse("Example.ORG."), Ok("example.org".to_owned()));
        assert_eq!(parse("*.example.org"), Ok("*.example.org".to_owned()));
        assert_eq!(parse("[::1]"), Ok("[::1]".to_owned()));
        assert_eq!(
            parse("[2001:DB8:0:0::0001]"),
            Ok("[2001:db8::1]".to_owned())
        );
        for text in [
            "", "*", "*.", "a..b", "a b", "http://a", "a:80", "a/b", "*.*.a", "a.*", ".a", "ä.de",
            "[::1", "[a.org]", "*.[::1]", "::1",
        ] {
            assert!(
                parse(text).is_err_and(|error| error.contains("example.org")),
                "{text}"
            );
        }
    }
}
