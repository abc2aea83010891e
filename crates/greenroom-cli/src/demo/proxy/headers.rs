//! Selection of the header fields that a relay passes on (RFC 9110, sections 7.6.1 and 7.6.3).

use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};

/// Fields that concern one connection only, whether or not `Connection` names them.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Fields of the client's request that describe its target or its body, neither of which goes on.
const OF_THIS_REQUEST: [HeaderName; 4] = [CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST];

const OURSELVES: HeaderValue = HeaderValue::from_static("1.1 greenroom");

/// Turns the fields of a client's request into those of the request to the upstream.
pub(super) fn make_upstream(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers);
    for name in &OF_THIS_REQUEST {
        headers.remove(name);
    }
    headers.append(VIA, OURSELVES);
}

/// Turns the fields of the upstream's response into those of the response to the client.
pub(super) fn make_downstream(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers);
    headers.append(VIA, OURSELVES);
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    for name in named_by_connection(headers) {
        headers.remove(name);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(CONNECTION).into_iter();
    let names = values.filter_map(|value| value.to_str().ok());
    let names = names.flat_map(|value| value.split(','));
    names.filter_map(|name| name.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = fields.iter();
        fields
            .map(|(name, value)| {
                let name = HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            })
            .collect()
    }

    #[test]
    fn rfc9110_7_6_1_fields_named_by_connection_stay_here() {
        let mut headers = headers(&[
            ("connection", "close, X-Private"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("accept", "*/*"),
        ]);
        make_upstream(&mut headers);
        let names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(headers.contains_key("accept") && headers.contains_key("via"));
    }

    #[test]
    fn host_and_length_of_the_client_are_not_the_upstreams() {
        let mut headers = headers(&[("host", "here"), ("content-length", "5")]);
        make_upstream(&mut headers);
        assert_eq!(headers.len(), 1);
        assert_eq!(headers["via"], "1.1 greenroom");
    }

    #[test]
    fn length_of_the_response_goes_on() {
        let mut headers = headers(&[("content-length", "5"), ("transfer-encoding", "chunked")]);
        make_downstream(&mut headers);
        assert_eq!(headers["content-length"], "5");
        assert!(!headers.contains_key("transfer-encoding"));
    }
}
