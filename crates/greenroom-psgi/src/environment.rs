//! PSGI's environment, as the pairs that PROTOCOL.md describes. Source: PSGI 1.1, "The
//! Environment".

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use greenroom_server::{Address, ConnectionInfo, ForwardedFor};
use greenroom_stage::Client;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderName, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderValue, Uri, Version};

/// The server's name where no address says it.
const LOCAL_NAME: &str = "localhost";

/// The scheme of a connection, and the port where no address says another.
type Scheme = (&'static [u8], u16);
const HTTP: Scheme = (b"http", 80);
#[cfg(feature = "tls")]
const HTTPS: Scheme = (b"https", 443);

/// The peer on a Unix socket: it is on this machine.
pub(crate) const LOCAL_PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The part of the environment that all requests of a connection share.
#[derive(Debug)]
pub(crate) struct ConnectionEnvironment {
    pairs: Vec<u8>,
    /// The offset of the pairs about the peer.
    remote_at: usize,
    /// The address of the peer, be it a client or a proxy; `None` if it is unknown.
    peer: Option<IpAddr>,
    /// The client that the server has found, if it is not to be found here.
    client: Option<Client>,
}

impl ConnectionEnvironment {
    pub(crate) fn new(info: &ConnectionInfo) -> Self {
        #[cfg(feature = "tls")]
        let scheme = info.tls.as_ref().map_or(HTTP, |_| HTTPS);
        #[cfg(not(feature = "tls"))]
        let scheme = HTTP;
        let local_name = LOCAL_NAME.to_owned();
        let (name, port) = match &info.local {
            Address::Tcp(address) if address.ip().is_unspecified() => (local_name, address.port()),
            Address::Tcp(address) => (address.ip().to_canonical().to_string(), address.port()),
            Address::Unix(_) => (local_name, scheme.1),
        };
        let peer = Some(info.peer.unwrap_or(LOCAL_PEER));
        let environment = Self::of(scheme, &name, port, peer, None);
        #[cfg(feature = "tls")]
        let environment = environment.over(info.tls.as_deref());
        environment
    }

    /// Tells of the connection's TLS, by the names of Apache's `mod_ssl`.
    #[cfg(feature = "tls")]
    fn over(mut self, tls: Option<&greenroom_server::TlsInfo>) -> Self {
        let Some(tls) = tls else {
            return self;
        };
        let certificate = tls.client_certificate_pem();
        let verified: &[u8] = if certificate.is_some() {
            b"SUCCESS"
        } else {
            b"NONE"
        };
        let mut pairs = Vec::with_capacity(128);
        pair(&mut pairs, b"HTTPS", b"on");
        pair(&mut pairs, b"SSL_PROTOCOL", tls.version().as_bytes());
        let cipher_suite = tls.cipher_suite();
        if !cipher_suite.is_empty() {
            pair(&mut pairs, b"SSL_CIPHER", cipher_suite.as_bytes());
        }
        pair(&mut pairs, b"SSL_CLIENT_VERIFY", verified);
        if let Some(name) = tls.server_name() {
            pair(&mut pairs, b"SSL_TLS_SNI", name.as_bytes());
        }
        if let Some(certificate) = certificate {
            pair(&mut pairs, b"SSL_CLIENT_CERT", certificate.as_bytes());
        }
        // What is about the peer stands last.
        self.pairs
            .splice(self.remote_at..self.remote_at, pairs.iter().copied());
        self.remote_at += pairs.len();
        self
    }

    /// Creates that of a request whose connection is known by the request alone, as behind a
    /// router. The server's name is the one that the client asked for (RFC 3875, section 4.1.14).
    pub(crate) fn of_request(request: &Parts, peer: Option<SocketAddr>, client: Client) -> Self {
        let host = || Authority::try_from(request.headers.get(HOST)?.as_bytes()).ok();
        let authority = request.uri.authority().cloned().or_else(host);
        let name = authority.as_ref().map_or(LOCAL_NAME, Authority::host);
        let port = authority.as_ref().and_then(Authority::port_u16);
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let client = client.is_known().then_some(client);
        #[cfg(feature = "tls")]
        let tls = request
            .extensions
            .get::<std::sync::Arc<greenroom_server::TlsInfo>>();
        #[cfg(feature = "tls")]
        let scheme = tls.map_or(HTTP, |_| HTTPS);
        #[cfg(not(feature = "tls"))]
        let scheme = HTTP;
        let environment = Self::of(scheme, name, port.unwrap_or(scheme.1), peer, client);
        #[cfg(feature = "tls")]
        let environment = environment.over(tls.map(std::sync::Arc::as_ref));
        environment
    }

    fn of(
        (scheme, _): Scheme,
        name: &str,
        port: u16,
        peer: Option<SocketAddr>,
        client: Option<Client>,
    ) -> Self {
        let mut pairs = Vec::with_capacity(128);
        pair(&mut pairs, b"psgi.url_scheme", scheme);
        pair(&mut pairs, b"SERVER_NAME", name.as_bytes());
        pair(&mut pairs, b"SERVER_PORT", port.to_string().as_bytes());
        let remote_at = pairs.len();
        if let Some(peer) = peer {
            append_remote(&mut pairs, peer.ip().to_canonical(), Some(peer.port()));
        }
        Self {
            pairs,
            remote_at,
            peer: peer.map(|peer| peer.ip().to_canonical()),
            client,
        }
    }

    /// Returns the client of this request: the peer, or the one that a trusted proxy names.
    pub(crate) fn client(&self, request: &Parts) -> Client {
        let forwarded = request.extensions.get::<ForwardedFor>();
        let address = forwarded.map(|told| told.ip).or(self.peer);
        let at_address = || address.map_or(Client::UNKNOWN, Client::at);
        self.client.unwrap_or_else(at_address)
    }

    fn append(&self, out: &mut Vec<u8>, request: &Parts) {
        let Some(client) = request.extensions.get::<ForwardedFor>() else {
            return out.extend_from_slice(&self.pairs);
        };
        out.extend_from_slice(&self.pairs[..self.remote_at]);
        append_remote(out, client.ip, client.port);
        if let Some(proxy) = self.peer {
            pair(out, b"greenroom.proxy_addr", proxy.to_string().as_bytes());
        }
    }
}

/// The reasons why a request has no environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("the path must not contain %00")]
    Nul,
}

/// Checks that this request has an environment.
///
/// A NUL cannot be represented, as it ends each string of a pair.
pub(crate) fn check(uri: &Uri) -> Result<(), Unfit> {
    let mut encoded = memchr::memchr_iter(b'%', uri.path().as_bytes());
    if encoded.any(|at| uri.path()[at..].starts_with("%00")) {
        return Err(Unfit::Nul);
    }
    Ok(())
}

/// Appends the environment of a request. The first `script_bytes` of its path are `SCRIPT_NAME`;
/// `body_bytes` is `None` if the length of its body is unknown or it has none.
pub(crate) fn append(
    out: &mut Vec<u8>,
    request: &Parts,
    connection: &ConnectionEnvironment,
    script_bytes: usize,
    body_bytes: Option<u64>,
) {
    connection.append(out, request);
    let path = request.uri.path();
    let (script, rest) = path.as_bytes().split_at(script_bytes);
    pair(out, b"REQUEST_METHOD", request.method.as_str().as_bytes());
    pair(out, b"SERVER_PROTOCOL", protocol(request.version));
    pair(out, b"REQUEST_URI", target(&request.uri).as_bytes());
    out.extend_from_slice(b"SCRIPT_NAME\0");
    append_decoded(out, script);
    out.extend_from_slice(b"\0PATH_INFO\0");
    // `OPTIONS *` has no path.
    if path != "*" {
        append_decoded(out, rest);
    }
    out.push(0);
    pair(
        out,
        b"QUERY_STRING",
        request.uri.query().unwrap_or("").as_bytes(),
    );
    if let Some(bytes) = body_bytes {
        pair(out, b"CONTENT_LENGTH", bytes.to_string().as_bytes());
    }
    append_headers(out, request);
    // The last pair has no NUL behind it.
    out.pop();
}

fn append_remote(out: &mut Vec<u8>, ip: IpAddr, port: Option<u16>) {
    pair(out, b"REMOTE_ADDR", ip.to_string().as_bytes());
    if let Some(port) = port {
        pair(out, b"REMOTE_PORT", port.to_string().as_bytes());
    }
}

/// Returns `true` if a request for this path goes to the application mounted here.
pub(crate) fn is_below(mount: &str, path: &str) -> bool {
    let rest = path.strip_prefix(mount);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || mount.is_empty())
}

fn pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.push(0);
    out.extend_from_slice(value);
    out.push(0);
}

fn protocol(version: Version) -> &'static [u8] {
    match version {
        Version::HTTP_10 => b"HTTP/1.0",
        Version::HTTP_2 => b"HTTP/2.0",
        Version::HTTP_3 => b"HTTP/3.0",
        _ => b"HTTP/1.1",
    }
}

fn target(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |target| target.as_str())
}

/// Appends a path without its percent-encoding; a `%` without two digits stays as it is.
fn append_decoded(out: &mut Vec<u8>, mut path: &[u8]) {
    while let Some(at) = memchr::memchr(b'%', path) {
        out.extend_from_slice(&path[..at]);
        let digits = path.get(at + 1..at + 3).and_then(decoded);
        out.push(digits.unwrap_or(b'%'));
        path = &path[at + if digits.is_some() { 3 } else { 1 }..];
    }
    out.extend_from_slice(path);
}

fn decoded(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let value = digit(digits[0])? * 16 + digit(digits[1])?;
    u8::try_from(value).ok()
}

/// Appends the header fields; those of one name as one, as RFC 9110, section 5.2 allows.
fn append_headers(out: &mut Vec<u8>, request: &Parts) {
    let mut before: Option<&HeaderName> = None;
    for (name, value) in &request.headers {
        if before == Some(name) {
            out.pop();
            out.extend_from_slice(separator(name));
            out.extend_from_slice(value.as_bytes());
            out.push(0);
        } else if append_header(out, name, value) {
            before = Some(name);
        } else {
            before = None;
        }
    }
    if let Some(authority) = request.uri.authority()
        && !request.headers.contains_key(HOST)
    {
        pair(out, b"HTTP_HOST", authority.as_str().as_bytes());
    }
}

fn separator(name: &HeaderName) -> &'static [u8] {
    if name == COOKIE { b"; " } else { b", " }
}

/// Appends a header field and returns `true`, unless it must not reach the application: one whose
/// name could be taken for another's (`X_A` for `X-A`), one that programs take for their own
/// setting (`HTTP_PROXY`), and those that the server has handled.
fn append_header(out: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) -> bool {
    if name == CONTENT_TYPE {
        pair(out, b"CONTENT_TYPE", value.as_bytes());
        return true;
    }
    let name_bytes = name.as_str().as_bytes();
    let is_dealt_with = name == CONTENT_LENGTH || name == TRANSFER_ENCODING;
    if is_dealt_with || name_bytes == b"proxy" || name_bytes.contains(&b'_') {
        return false;
    }
    out.extend_from_slice(b"HTTP_");
    out.extend(name_bytes.iter().map(|&byte| match byte {
        b'-' => b'_',
        letter => letter.to_ascii_uppercase(),
    }));
    out.push(0);
    out.extend_from_slice(value.as_bytes());
    out.push(0);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn environment(request: Request<()>, mount: &str, body: Option<u64>) -> String {
        let (parts, ()) = request.into_parts();
        let peer = SocketAddr::from(([192, 0, 2, 7], 40_000));
        let local = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 5000)));
        let info = ConnectionInfo::new(Some(peer), local);
        let mut out = Vec::new();
        append(
            &mut out,
            &parts,
            &ConnectionEnvironment::new(&info),
            mount.len(),
            body,
        );
        String::from_utf8(out)
            .expect("the test's requests are text")
            .replace('\0', "|")
    }

    #[test]
    fn behind_a_trusted_proxy_the_client_is_remote() {
        let port = |port| ForwardedFor {
            ip: [203, 0, 113, 7].into(),
            port,
        };
        for (forwarded, told) in [
            (
                port(None),
                "|REMOTE_ADDR|203.0.113.7|greenroom.proxy_addr|192.0.2.7|REQUEST_METHOD|",
            ),
            (
                port(Some(80)),
                "|REMOTE_ADDR|203.0.113.7|REMOTE_PORT|80|greenroom.proxy_addr|",
            ),
        ] {
            let request = Request::get("/").extension(forwarded).body(());
            let environment = environment(request.expect("it is valid"), "", None);
            assert!(environment.contains(told), "{environment}");
        }
    }

    fn with_headers(headers: &[(&str, &str)]) -> String {
        let mut request = Request::get("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        environment(
            request.body(()).expect("the test's headers are valid"),
            "",
            None,
        )
    }

    #[test]
    fn every_string_of_the_environment_is_there() {
        let request = Request::post("/a%20b/c?x=%41&y").header("host", "example.org");
        let request = request.body(()).expect("it is valid");
        assert_eq!(
            environment(request, "", Some(12)),
            "psgi.url_scheme|http|SERVER_NAME|127.0.0.1|SERVER_PORT|5000|REMOTE_ADDR|192.0.2.7|\
             REMOTE_PORT|40000|REQUEST_METHOD|POST|SERVER_PROTOCOL|HTTP/1.1|\
             REQUEST_URI|/a%20b/c?x=%41&y|SCRIPT_NAME||PATH_INFO|/a b/c|QUERY_STRING|x=%41&y|\
             CONTENT_LENGTH|12|HTTP_HOST|example.org"
        );
    }

    #[test]
    fn text_that_is_not_encoded_is_told_as_it_came() {
        let request = Request::get("/caf\u{e9}/%C3%A9?q=\u{e9}")
            .body(())
            .expect("it is valid");
        let told = environment(request, "", None) + "|";
        for pair in [
            "|REQUEST_URI|/caf\u{e9}/%C3%A9?q=\u{e9}|",
            "|PATH_INFO|/caf\u{e9}/\u{e9}|",
            "|QUERY_STRING|q=\u{e9}|",
        ] {
            assert!(told.contains(pair), "{told}");
        }
    }

    #[test]
    fn a_mounted_application_sees_where_it_is() {
        let request = Request::get("/shop/cart").body(()).expect("it is valid");
        let told = environment(request, "/shop", None);
        assert!(
            told.contains("|SCRIPT_NAME|/shop|PATH_INFO|/cart|"),
            "{told}"
        );
    }

    #[test]
    fn behind_a_router_the_server_is_the_one_that_was_asked_for() {
        let asked = |uri: &str, host: &str| {
            let request = Request::get(uri).header(HOST, host).body(());
            let (parts, ()) = request.expect("it is valid").into_parts();
            let connection = ConnectionEnvironment::of_request(&parts, None, Client::UNKNOWN);
            let mut out = Vec::new();
            append(&mut out, &parts, &connection, 0, None);
            String::from_utf8(out)
                .expect("it is text")
                .replace('\0', "|")
        };
        for (uri, host, name, port) in [
            ("/", "example.org:5000", "example.org", 5000),
            ("/", "[::1]", "::1", 80),
            ("/", "no host", "localhost", 80),
            ("http://example.com/", "", "example.com", 80),
        ] {
            let told = asked(uri, host);
            let expected = format!("|SERVER_NAME|{name}|SERVER_PORT|{port}|REQUEST_METHOD|");
            assert!(told.contains(&expected), "{told}");
            assert!(!told.contains("REMOTE_"), "its peer is unknown: {told}");
        }
    }

    #[test]
    fn what_is_no_encoding_stays() {
        let mut out = Vec::new();
        append_decoded(&mut out, b"/%zz/%4/%41%");
        assert_eq!(out, b"/%zz/%4/A%");
    }

    #[test]
    fn headers_of_one_name_become_one() {
        let told = with_headers(&[
            ("x-a", "1"),
            ("cookie", "a=1"),
            ("x-a", "2"),
            ("cookie", "b=2"),
        ]);
        assert!(told.contains("HTTP_X_A|1, 2"), "{told}");
        assert!(told.contains("HTTP_COOKIE|a=1; b=2"), "{told}");
    }

    #[test]
    fn nothing_is_smuggled() {
        let told = with_headers(&[
            ("x_forwarded_for", "evil"),
            ("proxy", "http://evil"),
            ("content-length", "7"),
            ("transfer-encoding", "chunked"),
            ("x-forwarded-for", "good"),
        ]);
        assert!(told.ends_with("HTTP_X_FORWARDED_FOR|good"), "{told}");
        for hidden in ["evil", "HTTP_PROXY", "CONTENT_LENGTH", "TRANSFER_ENCODING"] {
            assert!(!told.contains(hidden), "{told}");
        }
    }

    #[test]
    fn an_encoded_nul_has_no_environment() {
        assert_eq!(check(&Uri::from_static("/a%00b")), Err(Unfit::Nul));
        assert_eq!(check(&Uri::from_static("/a%2500b?x=%00")), Ok(()));
    }

    #[test]
    fn mounts_are_prefixes_of_whole_segments() {
        assert!(is_below("/shop", "/shop") && is_below("/shop", "/shop/x") && is_below("", "/x"));
        assert!(!is_below("/shop", "/shopping") && !is_below("/shop", "/"));
    }
}
