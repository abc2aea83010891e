use std::error::Error;
use std::net::IpAddr;
use std::{io, iter};

use http::uri::Authority;
use hyper_util::client::legacy;
use rustix::io::Errno;

use crate::status::UpstreamFailures;

/// The reason why a request failed at an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Connect,
    ConnectTimeout,
    /// This machine lacks what a connection takes, whatever the upstream.
    Local,
    ResponseHeadTimeout,
    ResponseHead,
    ResponseBody,
    Status,
}

impl Failure {
    /// Returns the failure of a request without a response to the upstream of this authority.
    pub(crate) fn of(error: &legacy::Error, authority: &Authority) -> Self {
        if !error.is_connect() {
            return Self::ResponseHead;
        }
        let first: &(dyn Error + 'static) = error;
        let causes = iter::successors(Some(first), |&error| error.source());
        let mut causes = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
        let failure = causes.find_map(|error| Self::of_connecting(error, authority));
        failure.unwrap_or(Self::Connect)
    }

    /// Returns the failure that an error of the system tells, if it is more than that there is no
    /// connection.
    fn of_connecting(error: &io::Error, authority: &Authority) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::TimedOut => Some(Self::ConnectTimeout),
            io::ErrorKind::OutOfMemory => Some(Self::Local),
            // No port is left to connect from. Of a name it may be the error of the last of its
            // addresses, such as one of IPv6 where there is none, after others have refused.
            io::ErrorKind::AddrNotAvailable => is_ip(authority).then_some(Self::Local),
            _ => {
                let errno = Errno::from_io_error(error);
                matches!(errno, Some(Errno::MFILE | Errno::NFILE)).then_some(Self::Local)
            }
        }
    }

    /// Returns `true` if the upstream has not got the request.
    pub(crate) fn is_before_request(self) -> bool {
        matches!(self, Self::Connect | Self::ConnectTimeout | Self::Local)
    }

    /// Returns `true` if it tells of the upstream's health.
    pub(super) fn is_of_upstream(self) -> bool {
        self != Self::Local
    }

    /// Returns the label in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::Local => "local",
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
            Self::Local => &mut counts.local,
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
            Self::Local => {
                "this machine has no file, memory or port left for a connection. Raise the limit \
                 of open files (ulimit -n), or keep more connections (idle_max)"
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

/// Returns `true` if the host is an IP address.
fn is_ip(authority: &Authority) -> bool {
    let host = authority.host().trim_matches(['[', ']']);
    host.parse::<IpAddr>().is_ok()
}

/// Returns an error with its causes, as one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(Some(error), |&error| error.source());
    let mut texts: Vec<_> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use bytes::Bytes;
    use http::Uri;
    use http_body_util::Empty;
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;

    use super::super::connect::Stream;
    use super::*;
    use crate::rejection;

    /// Returns the failure of a request if the system says this to the connection.
    async fn failure(upstream: &str, error: Said) -> Failure {
        let connector = tower::service_fn(move |_: Uri| ready(Err::<Stream, _>(error.make())));
        let client = Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(connector);
        let uri: Uri = upstream.parse().expect("a URL");
        let asked = client.get(uri.clone()).await;
        let authority = uri.authority().expect("a host");
        Failure::of(&asked.expect_err("it cannot connect"), authority)
    }

    /// An error of the system, by its number or its kind.
    #[derive(Clone, Copy, Debug)]
    enum Said {
        Number(Errno),
        Kind(io::ErrorKind),
    }

    impl Said {
        fn make(self) -> io::Error {
            match self {
                Self::Number(number) => number.into(),
                Self::Kind(kind) => kind.into(),
            }
        }
    }

    #[tokio::test]
    async fn what_this_machine_lacks_is_503_and_what_the_upstream_does_is_not() {
        let no_address = Said::Kind(io::ErrorKind::AddrNotAvailable);
        let refused = Said::Kind(io::ErrorKind::ConnectionRefused);
        for (upstream, error, expected) in [
            ("http://a", Said::Number(Errno::MFILE), 503),
            ("http://a", Said::Number(Errno::NFILE), 503),
            ("http://a", Said::Kind(io::ErrorKind::OutOfMemory), 503),
            ("http://10.0.0.5", no_address, 503),
            ("http://[::1]:9", no_address, 503),
            ("http://localhost", no_address, 502),
            ("http://10.0.0.5", refused, 502),
            ("http://10.0.0.5", Said::Kind(io::ErrorKind::TimedOut), 504),
        ] {
            let failure = failure(upstream, error).await;
            let told = format!("{upstream}, {error:?}");
            assert_eq!(rejection::failed(failure).status(), expected, "{told}");
            assert!(failure.is_before_request(), "{told}");
        }
    }
}
