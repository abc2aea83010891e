//! Proxies in front of the server: which are trusted, and what they tell of their clients.

mod header;
mod trusted;

pub use header::{ForwardedFor, ForwardedHeader};
pub(crate) use trusted::Sender;
pub use trusted::{FORWARDED_ENTRIES_MAX, TrustedProxies, TrustedProxy, TrustedProxyError};
