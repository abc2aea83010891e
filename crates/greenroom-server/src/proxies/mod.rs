//! Proxies in front of the server: which are trusted, and what they tell of their clients.

mod header;
mod protocol;
mod trusted;

pub use header::{ForwardedFor, ForwardedHeader};
pub use protocol::PROXY_HEADER_BYTES_MAX;
pub(crate) use protocol::{Announced, HeaderFault, read as read_proxy_header};
pub(crate) use trusted::Sender;
pub use trusted::{FORWARDED_ENTRIES_MAX, TrustedProxies, TrustedProxy, TrustedProxyError};
