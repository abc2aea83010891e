//! The address that `/proxy` relays.

use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;

const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// An `http://` URL and the time-out for it.
#[derive(Clone, Debug)]
pub struct Upstream {
    uri: Uri,
    timeout: Duration,
}

/// A text that is not an upstream's URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The text is no URL at all.
    #[error("{0}; an absolute URL such as http://127.0.0.1:8080/path is needed")]
    Malformed(#[from] http::uri::InvalidUri),
    /// The URL does not begin with `http://`.
    #[error("the URL must begin with http:// (https is not spoken to upstreams)")]
    NotHttp,
    /// The URL has a user name or password before the host.
    #[error("the URL must not contain a user name or password")]
    WithCredentials,
}

impl Upstream {
    /// Sets the longest wait for the upstream to connect and begin its response, and again between
    /// two chunks of the response's body. Default: 10 s.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn uri(&self) -> Uri {
        self.uri.clone()
    }
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let uri: Uri = text.parse()?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(UpstreamError::NotHttp);
        }
        if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
            return Err(UpstreamError::WithCredentials);
        }
        Ok(Self {
            uri,
            timeout: TIMEOUT_DEFAULT,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_urls_are_upstreams() {
        let refused = |text: &str| text.parse::<Upstream>().expect_err(text).to_string();
        assert!("http://127.0.0.1:8080/a?b=c".parse::<Upstream>().is_ok());
        assert!("http://[::1]:8080".parse::<Upstream>().is_ok());
        assert!(refused("https://127.0.0.1/").contains("http://"));
        assert!(refused("127.0.0.1:8080").contains("http://"));
        assert!(refused("/path").contains("http://"));
        assert!(refused("http://me:secret@127.0.0.1/").contains("password"));
        assert!(refused("http://a b/").contains("http://127.0.0.1:8080"));
    }
}
