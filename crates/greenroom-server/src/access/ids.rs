//! Ids of requests.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use http::header::{Entry, HeaderMap, HeaderName};
use http::{HeaderValue, Request};

use super::sampling::mixed;
use crate::proxies::Sender;

/// The longest id that is taken over from a trusted proxy, in bytes.
pub const REQUEST_ID_BYTES_MAX: usize = 128;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, in its extensions if the server gives ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// Returns the id: visible ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// The ids that a loop gives: 32 hexadecimal digits, the first half of which is the loop's own.
/// They are no secrets, and tell no order.
#[derive(Debug)]
pub(super) struct Ids {
    of_loop: u64,
    next: Cell<u64>,
}

impl Default for Ids {
    fn default() -> Self {
        let random = || RandomState::new().hash_one(());
        Self {
            of_loop: random(),
            next: Cell::new(random()),
        }
    }
}

impl Ids {
    /// Gives a request its id: that of a trusted proxy, if it has one that can be logged, else a
    /// new one. The application sees it in the field and in the extensions.
    pub(super) fn give<B>(&self, request: &mut Request<B>, sender: Sender) -> HeaderValue {
        let theirs = request.headers().get(X_REQUEST_ID);
        let theirs = theirs.filter(|id| sender == Sender::TrustedProxy && is_fit(id.as_bytes()));
        let id = theirs.cloned().unwrap_or_else(|| self.new_id());
        request.headers_mut().insert(X_REQUEST_ID, id.clone());
        request.extensions_mut().insert(RequestId(id.clone()));
        id
    }

    /// Returns an id of a trace: 16 bytes.
    pub(super) fn trace_id(&self) -> u128 {
        (u128::from(self.of_loop) << 64) | u128::from(self.span_id())
    }

    /// Returns an id of a span: 8 bytes, not all of them zero.
    pub(super) fn span_id(&self) -> u64 {
        self.draw().max(1)
    }

    fn draw(&self) -> u64 {
        let next = self.next.get().wrapping_add(1);
        self.next.set(next);
        mixed(next)
    }

    fn new_id(&self) -> HeaderValue {
        let id = format!("{:016x}{:016x}", self.of_loop, self.draw());
        HeaderValue::try_from(id).expect("hexadecimal digits are allowed")
    }
}

fn is_fit(id: &[u8]) -> bool {
    (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

/// Tells a client the id, unless the application says something.
pub(super) fn tell(id: &HeaderValue, headers: &mut HeaderMap) {
    if let Entry::Vacant(entry) = headers.entry(X_REQUEST_ID) {
        entry.insert(id.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(sender: Sender, theirs: &str) -> (String, Request<()>) {
        let mut request = Request::new(());
        let value = HeaderValue::try_from(theirs).expect(theirs);
        request.headers_mut().insert(X_REQUEST_ID, value);
        let id = Ids::default().give(&mut request, sender);
        (id.to_str().expect("visible").to_owned(), request)
    }

    #[test]
    fn only_trusted_proxies_bring_an_id_and_only_one_that_can_be_logged() {
        let (id, _) = given(Sender::TrustedProxy, "7b0b-1");
        assert_eq!(id, "7b0b-1");
        let long = "a".repeat(REQUEST_ID_BYTES_MAX + 1);
        for (sender, theirs) in [
            (Sender::Client, "7b0b-1"),
            (Sender::TrustedProxy, ""),
            (Sender::TrustedProxy, "a b"),
            (Sender::TrustedProxy, &long),
        ] {
            let (id, request) = given(sender, theirs);
            assert_eq!(id.len(), 32, "{theirs}");
            assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
            assert_eq!(
                request.headers()[X_REQUEST_ID],
                id,
                "the application sees ours"
            );
            let extension = request.extensions().get::<RequestId>();
            assert_eq!(extension.map(RequestId::as_str), Some(id.as_str()));
        }
    }

    #[test]
    fn ids_differ() {
        let ids = Ids::default();
        let some: std::collections::HashSet<_> = (0..10_000).map(|_| ids.new_id()).collect();
        assert_eq!(some.len(), 10_000);
        assert_ne!(ids.of_loop, Ids::default().of_loop);
    }
}
