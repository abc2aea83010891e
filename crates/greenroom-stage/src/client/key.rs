use std::fmt;
use std::sync::Arc;

use http::request::Parts;

use super::Client;

/// Who a client is, by its request: what a stage is fair between. Without one it is the address that
/// the request came from.
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

/// Tells from a request whose it is.
pub type KeyOfClient = dyn Fn(&Parts) -> Option<Client> + Send + Sync;

impl ClientKey {
    /// Asks this function; where it says nothing, the client is the address that the request came
    /// from. It is called where the request came in, on a loop, so it should return at once. What it
    /// believes a client can choose: a name that was not verified lets a flood pretend to be many.
    pub fn from_fn(key: impl Fn(&Parts) -> Option<Client> + Send + Sync + 'static) -> Self {
        Self(Arc::new(key))
    }

    /// Whose request this is; `None` where nothing is known but who is connected.
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
