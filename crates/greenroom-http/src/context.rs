use std::mem;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use http::{Extensions, HeaderMap, HeaderValue};

use crate::{DateCache, Limits, RequestHead};

/// Heads up to this size share an arena; a larger one gets an allocation of its own.
const ARENA_HEAD_MAX: usize = 2_048;
/// A request that waits long pins the arena that its head is in, so an arena is small.
const ARENA_BYTES: usize = 8_192;
/// Emptied header maps, and as many emptied extensions and heads, kept for the next requests of the
/// same loop.
const SPARE_MAPS_MAX: usize = 64;
/// A map that grew beyond this many fields is given back to the allocator.
const SPARE_MAP_FIELDS_MAX: usize = 32;

/// The longest `Host` that is remembered: that of the longest name (RFC 1035, 3.1), with a port.
const KNOWN_HOST_BYTES_MAX: usize = 255 + ":65535".len();

/// State shared by the connections of one loop: limits, the cached date, and recycled memory.
#[derive(Debug)]
pub struct Context {
    /// Limits on heads and framing.
    pub limits: Limits,
    /// The `Date` of every response. The context's owner refreshes it.
    pub date: DateCache,
    arena: BytesMut,
    known_host: Option<HeaderValue>,
    spare_maps: Vec<HeaderMap>,
    spare_extensions: Vec<Extensions>,
    #[expect(clippy::vec_box, reason = "their places are what is kept")]
    spare_heads: Vec<Box<RequestHead>>,
}

impl Context {
    /// Creates a context with these limits and the date at `now`.
    #[must_use]
    pub fn new(limits: Limits, now: SystemTime) -> Self {
        Self {
            limits,
            date: DateCache::new(now),
            arena: BytesMut::new(),
            known_host: None,
            spare_maps: Vec::new(),
            spare_extensions: Vec::new(),
            spare_heads: Vec::new(),
        }
    }

    /// Takes back a header map that is no longer needed, so that the next head is parsed into it
    /// without an allocation.
    pub fn recycle(&mut self, mut map: HeaderMap<HeaderValue>) {
        let worth_keeping = (1..=SPARE_MAP_FIELDS_MAX).contains(&map.capacity());
        if worth_keeping && self.spare_maps.len() < SPARE_MAPS_MAX {
            map.clear();
            self.spare_maps.push(map);
        }
    }

    /// Takes back extensions that are no longer needed, and forgets what is in them. Those that
    /// hold something have allocated a table for it, which the next requests get.
    #[inline]
    pub fn recycle_extensions(&mut self, mut extensions: Extensions) {
        if !extensions.is_empty() && self.spare_extensions.len() < SPARE_MAPS_MAX {
            extensions.clear();
            self.spare_extensions.push(extensions);
        }
    }

    /// Takes back a head whose request and target were taken out of it, so that the next one is
    /// built in its place. What is left in it stays until then.
    pub fn recycle_head(&mut self, head: Box<RequestHead>) {
        if self.spare_heads.len() < SPARE_MAPS_MAX {
            self.spare_heads.push(head);
        }
    }

    /// Returns a head to build one in, with recycled memory for fields and extensions.
    pub(crate) fn head(&mut self) -> Box<RequestHead> {
        let spare = self.spare_heads.pop();
        let mut head = spare.unwrap_or_else(|| Box::new(RequestHead::blank()));
        replace(head.request.headers_mut(), self.spare_maps.pop());
        let extensions = head.request.extensions_mut();
        let spare = self.spare_extensions.pop();
        if spare.is_some() || !extensions.is_empty() {
            *extensions = spare.unwrap_or_default();
        }
        head
    }

    /// Returns the last `Host` that was found well-formed: most requests of a loop name the same.
    pub(crate) fn known_host(&self) -> Option<&HeaderValue> {
        self.known_host.as_ref()
    }

    /// Remembers a `Host` that was found well-formed, in place of the [known](Self::known_host).
    pub(crate) fn know_host(&mut self, host: Option<&[u8]>) {
        let Some(host) = host.filter(|host| host.len() <= KNOWN_HOST_BYTES_MAX) else {
            return;
        };
        self.known_host = HeaderValue::from_bytes(host).ok();
    }

    pub(crate) fn copy(&mut self, head: &[u8]) -> Bytes {
        if head.len() > ARENA_HEAD_MAX {
            return Bytes::copy_from_slice(head);
        }
        if self.arena.capacity() < head.len() && !self.arena.try_reclaim(head.len()) {
            self.arena = BytesMut::with_capacity(ARENA_BYTES);
        }
        self.arena.extend_from_slice(head);
        self.arena.split().freeze()
    }
}

/// Puts an empty map in the place of another, which is mostly one that never had memory: its
/// destructor would take longer than all the rest.
fn replace(map: &mut HeaderMap, by: Option<HeaderMap>) {
    let never_used = map.capacity() == 0;
    match (never_used, by) {
        (true, Some(by)) => mem::forget(mem::replace(map, by)),
        (true, None) => {}
        (false, by) => *map = by.unwrap_or_default(),
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new(Limits::default(), SystemTime::now())
    }
}
