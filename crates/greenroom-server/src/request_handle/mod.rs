//! Access to a connection for the handlers of its requests, on any thread.

mod current;
mod line;

use std::any::Any;
use std::sync::Arc;

use http::{Extensions, HeaderMap, StatusCode};

pub(crate) use current::during;
pub(crate) use line::{Lent, Line};

use crate::{Draining, FieldNames, InformationalError};

/// A handle to the connection that a request came on, usable from any thread and for any time:
/// informational responses ahead of its own, and the [notice](Draining) that the server drains.
///
/// A request does not carry one, because most handlers need none: it is made when it is [asked
/// for](Self::current), on the loop. `greenroom` puts it into the extensions of requests that go to
/// a stage. A middleware that gives requests to a task of its own must do so too.
///
/// One costs an allocation, which goes with the last of its connection; each further one an atomic
/// increment and a lock that nobody contends for.
#[derive(Clone, Debug)]
pub struct RequestHandle {
    line: Arc<Line>,
    request: u64,
}

impl RequestHandle {
    /// Returns the handle of the request whose service is called, or whose handler is polled, by
    /// its connection on this thread. `None` anywhere else: in a spawned task, on a stage, in the
    /// body of a response.
    #[must_use]
    pub fn current() -> Option<Self> {
        let line = current::line()?;
        let request = line.request();
        Some(Self { line, request })
    }

    /// Returns the handle in a request's extensions, or else the [current](Self::current) one.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<Self> {
        extensions.get::<Self>().cloned().or_else(Self::current)
    }

    /// Sends an informational response, such as `103 Early Hints` (RFC 9110, 15.2; RFC 8297), ahead
    /// of the response proper: as soon as the connection gets its turn on its loop. Fields that
    /// frame content or concern the connection are left out.
    ///
    /// # Errors
    ///
    /// [`InformationalError::Status`] unless `status` is from 102 to 199.
    /// [`InformationalError::Now`] once the response has begun or the request is over, for a client
    /// of HTTP/1.0 (which knows no such responses), over HTTP/2, and for a request that asks for an
    /// upgrade. [`InformationalError::TooMuch`] while 64 KiB of them wait for the client.
    pub fn send_informational(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), InformationalError> {
        self.line.send(self.request, status, headers, None)
    }

    /// Sends an informational response with the fields' names as `names` spell them.
    ///
    /// # Errors
    ///
    /// As [`send_informational`](Self::send_informational).
    pub fn send_informational_spelled(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        names: &FieldNames,
    ) -> Result<(), InformationalError> {
        self.line.send(self.request, status, headers, Some(names))
    }

    /// Returns the notice that the server drains.
    ///
    /// A handler that asks for it on a request that opens a WebSocket closes that itself when the
    /// notice comes, with the code of its choice: the server does not, as it does for all others
    /// (1001).
    #[must_use]
    pub fn draining(&self) -> Draining {
        self.line.notice()
    }

    /// Returns the value that is [attached](crate::Server::attach) to the server of the request.
    #[must_use]
    pub fn attached(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.line.attached()
    }
}
