//! The name that a client asks for. rustls tells it to the resolver of certificates and, of an
//! unbuffered connection, to nobody else. The resolver is asked while the session takes a step, so
//! it leaves the name on the thread, and the session takes it from there behind the step.

use std::cell::RefCell;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

thread_local! {
    static NAME: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A resolver that leaves the name that was asked for.
#[derive(Debug)]
pub(super) struct Noting(pub(super) Arc<dyn ResolvesServerCert>);

impl ResolvesServerCert for Noting {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        NAME.set(hello.server_name().map(str::to_owned));
        self.0.resolve(hello)
    }
}

/// Takes the name that the resolver has left, if it was asked.
pub(super) fn take() -> Option<String> {
    NAME.take()
}
