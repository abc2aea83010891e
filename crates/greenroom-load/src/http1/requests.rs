//! The bytes of requests.

use std::borrow::Cow;
use std::sync::Arc;

use crate::plan::{Paths, StreamPlan};
use crate::run::Endpoint;

/// The encoded requests, by the number that the routes give.
#[derive(Debug)]
pub(super) enum Requests {
    /// A request for each target.
    Whole(Vec<Box<[u8]>>),
    /// One request with a varying path.
    ByPath {
        before: String,
        paths: Arc<Paths>,
        after: Vec<u8>,
    },
}

impl Requests {
    /// Encodes the requests of a stream with these endpoints, at least one.
    pub(super) fn new(plan: &StreamPlan, endpoints: &[Endpoint]) -> Self {
        if let Some(paths) = &plan.paths {
            let target = &endpoints[0].target;
            let (before, after) = plan.request.around_path(target, plan.keep_alive);
            return Self::ByPath {
                before,
                paths: Arc::clone(paths),
                after,
            };
        }
        let encode = |endpoint: &Endpoint| plan.request.encode(&endpoint.target, plan.keep_alive);
        let encoded = endpoints.iter().map(encode);
        Self::Whole(encoded.map(Vec::into_boxed_slice).collect())
    }

    /// Returns the bytes of a request.
    pub(super) fn bytes(&self, number: usize) -> Cow<'_, [u8]> {
        match self {
            Self::Whole(requests) => Cow::Borrowed(&requests[number]),
            Self::ByPath {
                before,
                paths,
                after,
            } => {
                let path = paths.of_turn(number);
                Cow::Owned([before.as_bytes(), path.as_bytes(), after].concat())
            }
        }
    }

    /// Returns its length in bytes.
    pub(super) fn length(&self, number: usize) -> usize {
        match self {
            Self::Whole(requests) => requests[number].len(),
            Self::ByPath {
                before,
                paths,
                after,
            } => before.len() + paths.of_turn(number).len() + after.len(),
        }
    }
}
