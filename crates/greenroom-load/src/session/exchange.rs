//! A request in flight.

use std::cell::Cell;
use std::rc::Rc;

use tokio::time::Instant;

use crate::record::{FirstResponse, ResponseRecord};

/// A request that was sent, or whose connection is being made. Times are nanoseconds since the run
/// began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    /// Number of its target.
    pub(super) endpoint: usize,
    pub(super) intended: u64,
    /// The time at which it was sent, or its connecting began.
    pub(super) begun: u64,
    /// The time at which it fails.
    pub(super) deadline: Instant,
    /// The duration of connecting, if it is the first of its connection.
    pub(super) connect: Option<u64>,
}

/// The measurements of its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) status: u16,
    pub(super) sent: u64,
    pub(super) first_byte: u64,
    pub(super) done: u64,
    pub(super) body_bytes: u64,
}

impl Exchange {
    pub(super) fn response(&self, received: &Received) -> ResponseRecord {
        ResponseRecord {
            status: received.status,
            intended: self.intended,
            sent: received.sent,
            first_byte: received.first_byte,
            done: received.done,
            connect: self.connect,
            body_bytes: received.body_bytes,
        }
    }
}

/// A response that is kept, as the first of its stream. While one is being received no other is
/// kept, so that memory is bounded; one that fails makes way for the next.
#[derive(Debug)]
pub(super) struct Sample {
    response: FirstResponse,
    claim: Rc<Cell<bool>>,
}

impl Sample {
    /// Begins a sample; `None` while another one is being received.
    pub(super) fn begin(
        claim: &Rc<Cell<bool>>,
        head: Vec<u8>,
        tls: Option<String>,
    ) -> Option<Self> {
        (!claim.replace(true)).then(|| Self {
            response: FirstResponse {
                head,
                tls,
                ..FirstResponse::default()
            },
            claim: Rc::clone(claim),
        })
    }

    /// Adds a chunk of the body.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let space = FirstResponse::BODY_BYTES_MAX - self.response.body.len();
        self.response
            .body
            .extend_from_slice(&chunk[..chunk.len().min(space)]);
        self.response.body_bytes += chunk.len() as u64;
    }

    /// Ends the sample of a whole response.
    pub(super) fn finish(mut self) -> FirstResponse {
        std::mem::take(&mut self.response)
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        self.claim.set(false);
    }
}
