use std::any::Any;
use std::sync::Arc;

use http::HeaderValue;
use http::header::{ALT_SVC, Entry, HeaderMap};

use crate::access::Telling;
use crate::challenges::Challenges;
use crate::listen::Security;
use crate::rejection::Rejections;
use crate::{Limits, TrustedProxies};

/// Settings that all loops of a server share.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent settings, not a state"
)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    /// The beginning of the loops' names, unless it is the usual one.
    pub(crate) loops_named: Option<&'static str>,
    pub(crate) telling: Telling,
    pub(crate) request_metrics: bool,
    pub(crate) half_close: bool,
    pub(crate) shutdown_on_signals: bool,
    pub(crate) trusted_proxies: TrustedProxies,
    /// A value that the server's owner attached, for its handlers to find.
    pub(crate) attached: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) rejections: Rejections,
    /// HTTP/3 is served, too.
    #[cfg(feature = "http3")]
    pub(crate) http3: bool,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::Tls>,
    pub(crate) challenges: Challenges,
    /// Responses over TLS tell clients to use nothing else.
    pub(crate) is_strict: bool,
    /// The field by which clients learn of HTTP/3 (RFC 7838, 3), if it is served.
    pub(crate) alternative: Option<HeaderValue>,
    /// The port to which clients without TLS are sent on, if there is one.
    pub(crate) https_port: Option<u16>,
}

/// The kinds of addresses to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// With TLS, if the server has it.
    Default,
    /// The same, and proxies announce their clients there.
    Proxied,
    /// Without TLS.
    Plain,
    /// Without TLS, and clients are sent on to where there is.
    Redirecting,
}

const SPEAKS: &[(Speaks, &str)] = &[
    (Speaks::Default, "default"),
    (Speaks::Proxied, "proxied"),
    (Speaks::Plain, "plain"),
    (Speaks::Redirecting, "redirecting"),
];

impl Speaks {
    /// Returns the name by which the next version knows it.
    pub(crate) fn name(self) -> &'static str {
        let known = SPEAKS.iter().find(|(speaks, _)| *speaks == self);
        known.map_or("", |(_, name)| name)
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let known = SPEAKS.iter().find(|(_, known)| *known == name);
        known.map(|(speaks, _)| *speaks)
    }
}

impl Settings {
    /// Returns the name of a loop, and of its thread if it has one of its own.
    pub(crate) fn loop_name(&self, index: usize) -> String {
        format!("{}-{index}", self.loops_named.unwrap_or("loop"))
    }

    /// Returns true if clients of HTTP/2 may open web sockets. Those without TLS are no browsers,
    /// and know of themselves how.
    #[cfg_attr(
        not(feature = "tls"),
        expect(clippy::unused_self, reason = "the settings of TLS are among them")
    )]
    pub(crate) fn takes_websockets_over_http2(&self, is_tls: bool) -> bool {
        #[cfg(feature = "tls")]
        if let Some(tls) = self.tls.as_ref().filter(|_| is_tls) {
            return tls.takes_websockets_over_http2();
        }
        !is_tls
    }

    /// Tells clients of HTTP/3, unless the application says something.
    pub(crate) fn tell_http3(&self, headers: &mut HeaderMap) {
        if let Some(alternative) = &self.alternative
            && let Entry::Vacant(entry) = headers.entry(ALT_SVC)
        {
            entry.insert(alternative.clone());
        }
    }

    #[cfg_attr(
        not(feature = "tls"),
        expect(clippy::unused_self, reason = "the settings of TLS are among them")
    )]
    pub(crate) fn security(&self, speaks: Speaks) -> Security {
        match speaks {
            #[cfg(feature = "tls")]
            Speaks::Default | Speaks::Proxied if self.tls.is_some() => Security::Tls,
            Speaks::Default | Speaks::Proxied | Speaks::Plain => Security::None,
            Speaks::Redirecting => Security::Redirected,
        }
    }
}
