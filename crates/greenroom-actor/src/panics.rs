//! Panics of users' code outside of handlers: destructors, wakers, `Clone`, `Display`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The payload of a panic, which is a user's value. If its destructor panics in turn, the second
/// payload is leaked: nobody could drop it for sure.
pub(crate) struct Panic(Option<Box<dyn Any + Send>>);

impl Panic {
    /// Returns the text of the panic.
    pub(crate) fn text(&self) -> &str {
        let payload = self.0.as_deref();
        let text = payload.and_then(|payload| payload.downcast_ref::<&str>().copied());
        let owned = payload.and_then(|payload| payload.downcast_ref::<String>());
        text.or(owned.map(String::as_str))
            .unwrap_or("a panic without text")
    }
}

impl From<Box<dyn Any + Send>> for Panic {
    fn from(payload: Box<dyn Any + Send>) -> Self {
        Self(Some(payload))
    }
}

impl Drop for Panic {
    fn drop(&mut self) {
        let payload = self.0.take();
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(second);
        }
    }
}

/// Calls a function, and returns its panic as an error.
pub(crate) fn catch<R>(call: impl FnOnce() -> R) -> Result<R, Panic> {
    catch_unwind(AssertUnwindSafe(call)).map_err(Panic::from)
}

/// Calls users' code where no handler runs. Its panic is logged, and goes no further: it would take
/// others along, such as the worker or the watchdog.
pub(crate) fn contain(what: &'static str, call: impl FnOnce()) {
    if let Err(panic) = catch(call) {
        let panic = panic.text();
        // The log may be the one that panics.
        drop(catch(|| {
            tracing::error!(
                target: "greenroom::actor",
                what,
                panic,
                "a panic outside of handlers"
            );
        }));
    }
}
