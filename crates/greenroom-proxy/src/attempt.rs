//! The span of a request to an upstream, by OpenTelemetry's semantic conventions for HTTP clients.

use greenroom_timing::{OpenSpan, Span, SpanKind, Timing, known_method};
use http::header::HeaderName;
use http::uri::{Authority, Scheme};
use http::{Extensions, HeaderMap, HeaderValue, StatusCode};

use crate::exchange::Outgoing;
use crate::upstream::Permit;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A request to one upstream, from the choice of it to the end of the response's body; its span, if
/// the request's trace is sampled.
pub(crate) struct Attempt(Option<OpenSpan>);

/// Returns the span of the request that has these extensions, if its trace is sampled.
pub(crate) fn parent(extensions: &Extensions) -> Option<Span> {
    if !Span::is_used() {
        return None;
    }
    extensions.get::<Timing>()?.span().cloned()
}

impl Attempt {
    /// Begins the attempt of this number, from 0.
    pub(crate) fn begin(
        parent: Option<&Span>,
        outgoing: &Outgoing,
        permit: &Permit,
        number: u32,
    ) -> Self {
        let method = outgoing.method.as_str();
        let known = known_method(method);
        let name = known.unwrap_or("HTTP");
        let begin = |parent: &Span| parent.begin(SpanKind::Client, name.to_owned());
        let Some(mut span) = parent.and_then(begin) else {
            return Self(None);
        };
        span.attribute("http.request.method", known.unwrap_or("_OTHER"));
        if known.is_none() {
            span.attribute("http.request.method_original", method.to_owned());
        }
        tell_address(&mut span, permit);
        // Without the query, which may hold secrets.
        let (scheme, authority) = (permit.scheme(), permit.authority());
        let path = outgoing.path.path();
        span.attribute("url.full", format!("{scheme}://{authority}{path}"));
        if number > 0 {
            span.attribute("http.request.resend_count", i64::from(number));
        }
        // Unless there is a word of another outcome: the client leaves, and all is dropped.
        span.outcome(Some("cancelled".into()));
        Self(Some(span))
    }

    /// Names the span as parent of the upstream's.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        let Some(span) = &self.0 else {
            return;
        };
        if let Ok(parent) = HeaderValue::try_from(span.span().traceparent()) {
            headers.insert(TRACEPARENT, parent);
        }
    }

    /// Notes the head of a response.
    pub(crate) fn responded(&mut self, status: StatusCode) {
        let Some(span) = &mut self.0 else {
            return;
        };
        span.attribute("http.response.status_code", status.as_u16());
        let waited = span.elapsed();
        span.event("response head", waited, waited);
        let is_error = status.is_client_error() || status.is_server_error();
        span.outcome(is_error.then(|| status.as_str().to_owned().into()));
    }

    /// Notes that there is no response, or no whole one.
    pub(crate) fn failed(&mut self, reason: &'static str) {
        if let Some(span) = &mut self.0 {
            span.outcome(Some(reason.into()));
        }
    }
}

fn tell_address(span: &mut OpenSpan, permit: &Permit) {
    if let Some(path) = permit.name().strip_prefix("unix:") {
        span.attribute("network.transport", "unix");
        span.attribute("server.address", path.to_owned());
        return;
    }
    let authority = permit.authority();
    let host = authority.host();
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    span.attribute("server.address", bare.unwrap_or(host).to_owned());
    span.attribute("server.port", port(permit.scheme(), authority));
}

/// Returns the port of an upstream, which is its scheme's unless it is named (RFC 9110, 4.2).
fn port(scheme: &Scheme, authority: &Authority) -> u16 {
    let of_scheme = if *scheme == Scheme::HTTPS { 443 } else { 80 };
    authority.port_u16().unwrap_or(of_scheme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::UpstreamAddress;

    #[test]
    fn rfc9110_4_2_the_port_is_that_of_the_scheme_unless_it_is_named() {
        for (upstream, expected) in [
            ("http://api.example", 80),
            ("http://[::1]:9000", 9000),
            ("https://api.example", 443),
            ("https://10.0.0.5:8443", 8443),
        ] {
            let address: UpstreamAddress = upstream.parse().expect("an address");
            let port = port(&address.scheme(), &address.authority());
            assert_eq!(port, expected, "{upstream}");
        }
    }
}
