use std::fmt;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, Scheme};
use serde::{Deserialize, Serialize};

const LONG_PATH: &str = "a socket's path has 1 to 107 bytes";

/// The address of an upstream: `http://host:port` or `https://host:port`, the host being a name or
/// an IP address, or `unix:/path/to.sock`. In a configuration it is such a text.
///
/// ```
/// use greenroom_proxy::UpstreamAddress;
///
/// for text in ["http://[::1]:9000", "http://api", "https://api.example", "unix:/run/api.sock"] {
///     assert_eq!(text.parse::<UpstreamAddress>()?.to_string(), text);
/// }
/// let error = "localhost:9000".parse::<UpstreamAddress>().unwrap_err();
/// assert!(error.to_string().contains("`localhost:9000`"));
/// # Ok::<(), greenroom_proxy::UpstreamAddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UpstreamAddress(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// By `http` or `https`.
    Tcp(Scheme, Authority),
    Unix(PathBuf),
}

/// A text that is no [`UpstreamAddress`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no upstream: {problem}; allowed are http://host:port, such as \
     http://127.0.0.1:9000, http://[::1]:9000 and http://api.internal, https://host:port, and \
     unix:/path/to.sock"
)]
pub struct UpstreamAddressError {
    text: String,
    problem: &'static str,
}

impl UpstreamAddress {
    /// Returns host and port as `Host` names them, or a stand-in for a Unix socket.
    pub(crate) fn authority(&self) -> Authority {
        match &self.0 {
            Kind::Tcp(_, authority) => authority.clone(),
            Kind::Unix(_) => Authority::from_static("localhost"),
        }
    }

    pub(crate) fn scheme(&self) -> Scheme {
        match &self.0 {
            Kind::Tcp(scheme, _) => scheme.clone(),
            Kind::Unix(_) => Scheme::HTTP,
        }
    }

    /// Returns the name or IP address, without brackets, that the certificate of an upstream with
    /// TLS is for.
    pub(crate) fn tls_host(&self) -> Option<&str> {
        match &self.0 {
            Kind::Tcp(scheme, authority) if *scheme == Scheme::HTTPS => {
                Some(authority.host().trim_matches(['[', ']']))
            }
            _ => None,
        }
    }

    /// Returns the address with the path of a Unix socket, if it is relative, below a directory. By
    /// itself such a path is relative to the directory in which the process runs.
    ///
    /// # Errors
    ///
    /// If the path is longer than a socket's can be then.
    pub fn below(self, directory: &Path) -> Result<Self, UpstreamAddressError> {
        let Kind::Unix(path) = &self.0 else {
            return Ok(self);
        };
        let path = directory.join(path);
        match SocketAddr::from_pathname(&path) {
            Ok(_) => Ok(Self(Kind::Unix(path))),
            Err(_) => Err(UpstreamAddressError {
                text: format!("unix:{}", path.display()),
                problem: LONG_PATH,
            }),
        }
    }

    /// Returns the path of a Unix socket.
    pub(crate) fn unix(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Tcp(..) => None,
            Kind::Unix(path) => Some(path),
        }
    }
}

fn parse(text: &str) -> Result<Kind, &'static str> {
    if let Some(path) = text.strip_prefix("unix:") {
        let is_path = !path.is_empty() && SocketAddr::from_pathname(path).is_ok();
        let path = is_path.then(|| Kind::Unix(PathBuf::from(path)));
        return path.ok_or(LONG_PATH);
    }
    let uri: Uri = text.parse().map_err(|_| "it is no URL")?;
    let known = [Scheme::HTTP, Scheme::HTTPS];
    let scheme = uri.scheme().filter(|scheme| known.contains(scheme));
    let scheme = scheme.ok_or("its scheme is neither http nor https")?;
    let has_path = !matches!(uri.path(), "" | "/") || uri.query().is_some();
    if has_path || text.ends_with('/') || text.contains('#') {
        return Err("it has a path; strip_prefix and add_prefix change paths");
    }
    let authority = uri.authority().ok_or("it has no host")?;
    if authority.as_str().contains('@') {
        return Err("it has a user's name");
    }
    let host_bytes = authority.host().len();
    // What is behind the host is a port, or nothing.
    let port = &authority.as_str()[host_bytes..];
    let has_port = port.strip_prefix(':').map(str::parse::<u16>);
    if host_bytes == 0 {
        return Err("it has no host");
    }
    match has_port {
        None | Some(Ok(1..)) => Ok(Kind::Tcp(scheme.clone(), authority.clone())),
        _ => Err("its port is not from 1 to 65535"),
    }
}

impl FromStr for UpstreamAddress {
    type Err = UpstreamAddressError;

    fn from_str(text: &str) -> Result<Self, UpstreamAddressError> {
        parse(text).map(Self).map_err(|problem| {
            let text = text.to_owned();
            UpstreamAddressError { text, problem }
        })
    }
}

impl TryFrom<String> for UpstreamAddress {
    type Error = UpstreamAddressError;

    fn try_from(text: String) -> Result<Self, UpstreamAddressError> {
        text.parse()
    }
}

impl From<UpstreamAddress> for String {
    fn from(address: UpstreamAddress) -> Self {
        address.to_string()
    }
}

impl fmt::Display for UpstreamAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Tcp(scheme, authority) => write!(out, "{scheme}://{authority}"),
            Kind::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_named_with_what_is_wrong() {
        let long = format!("unix:/{}", "a".repeat(107));
        for (text, problem) in [
            ("", "no URL"),
            ("127.0.0.1:9000", "scheme"),
            ("localhost:9000", "scheme"),
            ("https://a:0", "port"),
            ("https://a/base", "path"),
            ("http://", "no URL"),
            ("http://:9000", "no host"),
            ("http://a:0", "port"),
            ("http://a:70000", "port"),
            ("http://a:b", "port"),
            ("http://a/base", "path"),
            ("http://a/", "path"),
            ("http://a?x", "path"),
            ("http://me@a", "user"),
            ("ftp://a", "scheme"),
            ("unix:", "107"),
            (&long, "107"),
        ] {
            let error = text.parse::<UpstreamAddress>().expect_err(text).to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
            assert!(error.contains(problem), "{error}");
        }
    }
}
