use std::fmt;

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
        let allowed = "allowed are names such as example.org, *.example.org or 192.0.2.1, without \
            scheme, port and path";
        let name = normal(text);
        let bare = name.strip_prefix("*.").unwrap_or(&name);
        let is_address = bare.starts_with('[') && bare.ends_with(']') && !name.starts_with('*');
        let is_name = !bare.is_empty() && bare.len() <= BYTES_MAX && bare.split('.').all(is_label);
        if !is_address && !is_name {
            return Err(format!("`{text}` is no host; {allowed}"));
        }
        Ok(match name.strip_prefix('*') {
            Some(suffix) => Self::Wildcard(suffix.to_owned()),
            None => Self::Exact(name),
        })
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Exact(name) | Self::Wildcard(name) => name,
        }
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

/// Returns a host in lower case and without the dot at its end.
fn normal(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_wildcards_and_addresses() {
        let parse = |text| Host::parse(text).map(|host| host.to_string());
        assert_eq!(parse("Example.ORG."), Ok("example.org".to_owned()));
        assert_eq!(parse("*.example.org"), Ok("*.example.org".to_owned()));
        assert_eq!(parse("[::1]"), Ok("[::1]".to_owned()));
        for text in [
            "", "*", "*.", "a..b", "a b", "http://a", "a:80", "a/b", "*.*.a", "a.*", ".a", "ä.de",
        ] {
            assert!(
                parse(text).is_err_and(|error| error.contains("example.org")),
                "{text}"
            );
        }
    }
}
