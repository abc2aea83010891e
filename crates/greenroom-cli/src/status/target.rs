use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// An admin server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A name or an IP address, and a port.
    Tcp {
        authority: String,
    },
    Unix(PathBuf),
}

const ALLOWED: &str = "allowed are 127.0.0.1:5001, [::1]:5001, localhost:5001, :5001, \
    http://127.0.0.1:5001/ and unix:/path/to.sock";

const HTTP_PORT: u16 = 80;

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("https://") {
            return Err("the admin server speaks no TLS: use http://".to_owned());
        }
        if let Some(path) = text
            .strip_prefix("unix:")
            .or(text.starts_with('/').then_some(text))
        {
            return match path {
                "" => Err(ALLOWED.to_owned()),
                path => Ok(Self::Unix(path.into())),
            };
        }
        let (authority, default) = match text.strip_prefix("http://") {
            Some(rest) => (rest.split('/').next().unwrap_or_default(), Some(HTTP_PORT)),
            None => (text, None),
        };
        let authority = with_port(authority, default).ok_or_else(|| ALLOWED.to_owned())?;
        Ok(Self::Tcp { authority })
    }
}

fn with_port(authority: &str, default: Option<u16>) -> Option<String> {
    // Also the name or address alone is one, which has no port.
    let parsed: http::uri::Authority = match authority.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}").parse().ok()?,
        None => authority.parse().ok()?,
    };
    let is_plain = !parsed.as_str().contains('@') && !parsed.host().is_empty();
    let port = parsed.port_u16().or(default).filter(|port| *port > 0)?;
    is_plain.then(|| format!("{}:{port}", parsed.host()))
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { authority } => write!(out, "http://{authority}"),
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_urls_are_taken() {
        for (text, expected) in [
            ("127.0.0.1:5001", "http://127.0.0.1:5001"),
            ("[::1]:5001", "http://[::1]:5001"),
            ("localhost:5001", "http://localhost:5001"),
            (":5001", "http://127.0.0.1:5001"),
            (
                "http://127.0.0.1:5001/greenroom/status",
                "http://127.0.0.1:5001",
            ),
            ("http://admin.test", "http://admin.test:80"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
            ("/run/a.sock", "unix:/run/a.sock"),
        ] {
            let parsed: Result<Target, String> = text.parse();
            assert_eq!(
                parsed.map(|target| target.to_string()),
                Ok(expected.to_owned())
            );
        }
        for wrong in [
            "",
            "5001",
            "localhost",
            ":",
            ":http",
            "unix:",
            "a b:1",
            "u@h:1",
            "h:0",
        ] {
            let parsed: Result<Target, String> = wrong.parse();
            assert!(
                parsed.is_err_and(|error| error.contains("[::1]:5001")),
                "{wrong}"
            );
        }
        let parsed: Result<Target, String> = "https://127.0.0.1:5001".parse();
        assert!(parsed.is_err_and(|error| error.contains("http://")));
    }
}
