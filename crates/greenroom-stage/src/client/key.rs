use std::fmt;
use std::sync::Arc;

use http::request::Parts;

use super::Client;

/// A function from a request to its client, the unit of fairness on a stage. Without one the client
/// is the address that the request came from.
///
/// ```
/// use greenroom_stage::{Client, ClientKey, Placement};
///
/// // By an API key; whoever sends none is known by its address.
/// let by_key = ClientKey::from_fn(|parts| {
///     let key = parts.headers.get("x-api-key")?;
///     Some(Client::named(key.to_str().ok()?))
/// });
/// let placement = Placement::auto().client_key(by_key);
/// ```
#[derive(Clone)]
pub struct ClientKey(Arc<KeyOfClient>);

/// The function behind a [`ClientKey`].
pub type KeyOfClient = dyn Fn(&Parts) -> Option<Client> + Send + Sync;

impl ClientKey {
    /// Creates a key from this function; where it returns `None`, the client is the address that
    /// the request came from. It is called on the loop that accepted the request, so it should
    /// return at once. The client controls what the function trusts: a name that was not verified
    /// lets a flood pretend to be many clients.
    pub fn from_fn(key: impl Fn(&Parts) -> Option<Client> + Send + Sync + 'static) -> Self {
        Self(Arc::new(key))
    }

    /// Returns the client of this request; `None` where only the connected address is known.
    #[must_use]
    pub fn client(&self, parts: &Parts) -> Option<Client> {
        (self.0)(parts)
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientKey").finish_non_exhaustive()
    }
}
