use std::error::Error;
use std::{io, iter};

use hyper_util::client::legacy;

use crate::status::UpstreamFailures;

/// The reason why a request failed at an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Connect,
    ConnectTimeout,
    ResponseHeadTimeout,
    ResponseHead,
    ResponseBody,
    Status,
}

impl Failure {
    /// Returns the failure of a request without a response.
    pub(crate) fn of(error: &legacy::Error) -> Self {
        if !error.is_connect() {
            return Self::ResponseHead;
        }
        let first: &(dyn Error + 'static) = error;
        let is_timeout = |error: &(dyn Error + 'static)| {
            let error = error.downcast_ref::<io::Error>();
            error.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
        };
        if iter::successors(Some(first), |&error| error.source()).any(is_timeout) {
            Self::ConnectTimeout
        } else {
            Self::Connect
        }
    }

    /// Returns `true` if the upstream has not got the request.
    pub(crate) fn is_before_request(self) -> bool {
        matches!(self, Self::Connect | Self::ConnectTimeout)
    }

    /// Returns the label in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::ResponseHeadTimeout => "response_head_timeout",
            Self::ResponseHead => "response_head",
            Self::ResponseBody => "response_body",
            Self::Status => "status",
        }
    }

    /// Returns the counter of such failures.
    pub(super) fn count(self, counts: &mut UpstreamFailures) -> &mut u64 {
        match self {
            Self::Connect => &mut counts.connect,
            Self::ConnectTimeout => &mut counts.connect_timeout,
            Self::ResponseHeadTimeout => &mut counts.response_head_timeout,
            Self::ResponseHead => &mut counts.response_head,
            Self::ResponseBody => &mut counts.response_body,
            Self::Status => &mut counts.status,
        }
    }

    /// Returns what an operator can do.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::Connect => "is it running, and are its address and its certificate right?",
            Self::ConnectTimeout => {
                "is it reachable, and not overloaded? Raise connect_timeout if it is far away"
            }
            Self::ResponseHeadTimeout => {
                "is it overloaded? Raise response_head_timeout if it is slow"
            }
            Self::ResponseHead => {
                "does it crash, or close idle connections sooner than idle_timeout?"
            }
            Self::ResponseBody => "does it crash? Raise body_idle_timeout if it pauses for longer",
            Self::Status => "see its own log",
        }
    }
}

/// Returns an error with its causes, as one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(Some(error), |&error| error.source());
    let mut texts: Vec<_> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}
