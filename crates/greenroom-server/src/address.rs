use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// An address to listen on: an IP address with a port, or a Unix socket.
///
/// ```
/// use greenroom_server::Address;
///
/// assert!("127.0.0.1:5000".parse::<Address>().is_ok());
/// assert!("[::1]:5000".parse::<Address>().is_ok());
/// assert!("unix:/run/greenroom.sock".parse::<Address>().is_ok());
/// let error = "localhost".parse::<Address>().unwrap_err();
/// assert!(error.to_string().contains("`localhost`"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address and a port; port 0 is a free one, chosen by the system.
    Tcp(SocketAddr),
    /// The path of a Unix socket. A socket file that nobody listens on is replaced, and the file
    /// is removed when the server ends.
    Unix(PathBuf),
}

/// A text that is not an [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no address to listen on: allowed are 127.0.0.1:5000, [::1]:5000 \
     and unix:/path/to.sock"
)]
pub struct AddressError {
    text: String,
}

impl Address {
    /// The URL of what is served there by HTTP; `None` for a Unix socket.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        match self {
            Self::Tcp(socket) => Some(format!("http://{socket}")),
            Self::Unix(_) => None,
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError {
            text: text.to_owned(),
        };
        match text.strip_prefix("unix:") {
            Some("") => Err(error()),
            Some(path) => Ok(Self::Unix(PathBuf::from(path))),
            None => text.parse().map(Self::Tcp).map_err(|_| error()),
        }
    }
}

impl TryFrom<&str> for Address {
    type Error = AddressError;

    fn try_from(text: &str) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<Infallible> for AddressError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(out),
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}
