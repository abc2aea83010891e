//! RFC 9113, 8.3, and RFC 9114, 4.2 and 4.3: requests over HTTP/2 and HTTP/3, already parsed.

use greenroom_http::{Limits, Reason, check_http2};
use http::header::HOST;
use http::{HeaderName, HeaderValue, Request, Version};

fn request(method: &str, uri: &str, fields: &[(&str, &str)]) -> Request<()> {
    let request = Request::builder().method(method).uri(uri);
    let mut request = request
        .version(Version::HTTP_2)
        .body(())
        .expect("the request is valid");
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("it is a name");
        let value = HeaderValue::from_str(value).expect("it is a value");
        request.headers_mut().append(name, value);
    }
    request
}

fn checked(mut request: Request<()>) -> Result<Option<String>, Reason> {
    check_http2(&mut request, false, &Limits::default()).map_err(|rejected| rejected.reason)?;
    let host = request.headers().get(HOST);
    Ok(host.map(|host| host.to_str().expect("it is text").to_owned()))
}

fn get(uri: &str, fields: &[(&str, &str)]) -> Result<Option<String>, Reason> {
    checked(request("GET", uri, fields))
}

const URI: &str = "https://example.org/path?query";

#[test]
fn rfc9113_8_3_1_host_reads_as_authority_or_disagrees() {
    assert_eq!(get(URI, &[]), Ok(None));
    for host in ["example.org", "EXAMPLE.org", "example.org:443"] {
        assert_eq!(
            get(URI, &[("host", host)]),
            Ok(Some("example.org".to_owned()))
        );
    }
    let only_host = get("/path", &[("host", "a.example")]);
    assert_eq!(only_host, Ok(Some("a.example".to_owned())));
    for host in ["evil.example", "example.org:80", "example.org.evil"] {
        assert_eq!(get(URI, &[("host", host)]), Err(Reason::HostDisagrees));
    }
    assert_eq!(get("/path", &[]), Err(Reason::HostMissing));
    let two = [("host", "example.org"), ("host", "example.org")];
    assert_eq!(get(URI, &two), Err(Reason::HostRepeated));
    assert_eq!(get(URI, &[("host", "a b")]), Err(Reason::Host));
}

#[test]
fn rfc9113_8_3_1_authority_is_a_host_with_an_optional_port() {
    for authority in ["user@example.org", "a,b", "a:b@c"] {
        let uri = format!("http://{authority}/");
        assert_eq!(get(&uri, &[]), Err(Reason::Target), "{authority}");
    }
    for authority in ["[::1]:80", "127.0.0.1", "a:1"] {
        assert_eq!(get(&format!("http://{authority}/"), &[]), Ok(None));
    }
}

#[test]
fn rfc9113_8_5_connect_has_a_port_and_no_body() {
    let connect = |uri, fields: &[_]| checked(request("CONNECT", uri, fields));
    assert_eq!(connect("example.org:443", &[]), Ok(None));
    assert_eq!(connect("example.org", &[]), Err(Reason::Target));
    let with_body = connect("example.org:443", &[("content-length", "1")]);
    assert_eq!(with_body, Err(Reason::Connect));
    let evil = connect("example.org:443", &[("host", "evil.example:443")]);
    assert_eq!(evil, Err(Reason::HostDisagrees));
}

#[test]
fn rfc8441_4_extended_connect_has_a_path_and_needs_no_port() {
    let mut socket = request("CONNECT", "http://example.org/socket", &[]);
    let limits = Limits::default();
    assert_eq!(check_http2(&mut socket, true, &limits), Ok(()));
    let refused = check_http2(&mut socket, false, &limits);
    assert_eq!(refused.expect_err("it is no tunnel").reason, Reason::Target);
}

#[test]
fn rfc9110_fields_are_held_to_the_rules_for_http_1_1() {
    let two_lengths = [("content-length", "3"), ("content-length", "3")];
    assert_eq!(get(URI, &two_lengths), Err(Reason::ContentLengthRepeated));
    assert_eq!(
        get(URI, &[("content-length", "+3")]),
        Err(Reason::ContentLength)
    );
    assert_eq!(get(URI, &[("expect", "more")]), Err(Reason::Expectation));
    assert_eq!(get(URI, &[("expect", "100-continue")]), Ok(None));
    let chunked = get(URI, &[("transfer-encoding", "chunked")]);
    assert_eq!(chunked, Err(Reason::TransferEncoding));
}

#[test]
fn lengths_are_limited() {
    let path = |bytes: usize| format!("http://a/{}", "p".repeat(bytes - 1));
    assert_eq!(get(&path(8_192), &[]), Ok(None));
    assert_eq!(get(&path(8_193), &[]), Err(Reason::TargetTooLong));
    let method = "M".repeat(33);
    assert_eq!(
        checked(request(&method, URI, &[])),
        Err(Reason::MethodTooLong)
    );
    let fields = [("x", "y"); 101];
    assert_eq!(get(URI, &fields[..100]), Ok(None));
    assert_eq!(get(URI, &fields), Err(Reason::TooManyFields));
}

#[test]
fn rfc9114_4_3_1_a_request_over_http3_is_held_to_the_same_rules() {
    let get = |uri, fields: &[_]| {
        let mut request = request("GET", uri, fields);
        *request.version_mut() = Version::HTTP_3;
        checked(request)
    };
    let host = get(URI, &[("host", "example.org:443")]);
    assert_eq!(host, Ok(Some("example.org".to_owned())));
    assert_eq!(get(URI, &[]), Ok(None));
    let other = get(URI, &[("host", "evil.example")]);
    assert_eq!(other, Err(Reason::HostDisagrees));
    assert_eq!(get("/path", &[]), Err(Reason::HostMissing));
}

#[test]
fn rfc9114_4_2_a_request_over_http3_has_no_field_of_connections() {
    let get = |name, value| {
        let mut request = request("GET", URI, &[(name, value)]);
        *request.version_mut() = Version::HTTP_3;
        checked(request)
    };
    for (name, value) in [
        ("connection", "te"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "websocket"),
        ("te", "gzip"),
    ] {
        assert_eq!(get(name, value), Err(Reason::ConnectionField), "{name}");
    }
    assert_eq!(get("te", "trailers"), Ok(None));
}
