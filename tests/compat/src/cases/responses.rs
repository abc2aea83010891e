use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, DATE, SERVER, SET_COOKIE, UPGRADE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::routing::any;
use axum::routing::get as on_get;
use hyper::ext::ReasonPhrase;

use crate::harness::Step::{End, Response as Read};
use crate::harness::{App, Case, Rig, ask, get, http10};

pub(crate) fn cases() -> Vec<Case> {
    [fields(), server_owned(), statuses()]
        .into_iter()
        .flatten()
        .collect()
}

fn fields() -> Vec<Case> {
    vec![
        Case::asking(
            "responses/fields",
            App::Router(field),
            [
                "/cookies",
                "/repeated",
                "/empty",
                "/long",
                "/many",
                "/own-date",
                "/server",
            ]
            .map(get),
        ),
        Case::asking("responses/latin-1", App::Router(field), [get("/latin-1")]),
        Case::asking("responses/utf-8", App::Router(field), [get("/utf-8")]),
    ]
}

fn with(name: HeaderName, value: &[u8]) -> HeaderMap {
    let value = HeaderValue::from_bytes(value).unwrap();
    HeaderMap::from_iter([(name, value)])
}

fn field(_: Rig) -> Router {
    let x = || HeaderName::from_static("x-value");
    let cookies = || async {
        let mut fields = with(SET_COOKIE, b"a=1; Path=/");
        fields.append(SET_COOKIE, HeaderValue::from_static("b=2; HttpOnly"));
        fields.append(SET_COOKIE, HeaderValue::from_static("c=3"));
        fields
    };
    let repeated = move || async move {
        let mut fields = with(x(), b"one");
        fields.append(x(), HeaderValue::from_static("two"));
        fields
    };
    let many = || async {
        let name = |number: u32| HeaderName::try_from(format!("x-{number:03}")).unwrap();
        let fields = (0..110).map(|number| (name(number), HeaderValue::from(number)));
        fields.collect::<HeaderMap>()
    };
    Router::new()
        .route("/cookies", on_get(cookies))
        .route("/repeated", on_get(repeated))
        .route("/many", on_get(many))
        .route("/empty", on_get(move || async move { with(x(), b"") }))
        .route(
            "/long",
            on_get(move || async move { with(x(), &[b'a'; 16_384]) }),
        )
        .route(
            "/latin-1",
            on_get(move || async move { with(x(), b"caf\xe9") }),
        )
        .route(
            "/utf-8",
            on_get(move || async move { with(x(), "caf\u{e9}".as_bytes()) }),
        )
        .route(
            "/own-date",
            on_get(|| async { with(DATE, b"Tue, 15 Nov 1994 08:12:31 GMT") }),
        )
        .route("/server", on_get(|| async { with(SERVER, b"mine/1.0") }))
}

/// Fields about things that the server decides.
fn server_owned() -> Vec<Case> {
    let one = |name, target: &str| Case::asking(name, App::Router(owned), [get(target)]);
    vec![
        one("responses/connection-close", "/connection/close"),
        one("responses/connection-keep-alive", "/connection/keep-alive"),
        one("responses/connection-other", "/connection/x-other"),
        one("responses/keep-alive", "/keep-alive"),
        one("responses/transfer-encoding", "/transfer-encoding"),
        one("responses/length-of-a-stream", "/length"),
        one("responses/upgrade-required", "/upgrade"),
        Case::asking(
            "responses/connection-close-http10",
            App::Router(owned),
            [http10("/connection/close", &["Connection: keep-alive"])],
        ),
    ]
}

fn owned(_: Rig) -> Router {
    use axum::extract::Path;
    Router::new()
        .route(
            "/connection/{value}",
            on_get(|Path(value): Path<String>| async move {
                (with(CONNECTION, value.as_bytes()), "hello")
            }),
        )
        .route(
            "/keep-alive",
            on_get(|| async { ([("keep-alive", "timeout=5")], "hello") }),
        )
        .route(
            "/transfer-encoding",
            on_get(|| async { ([("transfer-encoding", "chunked")], "hello") }),
        )
        .route(
            "/length",
            on_get(|| async {
                let parts = ["he", "llo"].map(Ok::<_, std::io::Error>);
                let body = Body::from_stream(futures_util::stream::iter(parts));
                (with(CONTENT_LENGTH, b"5"), body)
            }),
        )
        .route(
            "/upgrade",
            on_get(|| async {
                (
                    StatusCode::UPGRADE_REQUIRED,
                    with(UPGRADE, b"websocket"),
                    "no",
                )
            }),
        )
}

fn statuses() -> Vec<Case> {
    let one = |name, target: &str| Case::asking(name, App::Router(status), [get(target)]);
    let to_head = |name, target: &str| {
        Case::asking(
            name,
            App::Router(status),
            [ask(&format!("HEAD {target}"), &[], "")],
        )
    };
    vec![
        Case::asking(
            "responses/statuses",
            App::Router(status),
            [
                "/201/x", "/206/x", "/301/x", "/401/x", "/418/x", "/500/x", "/503/x",
            ]
            .map(get),
        ),
        one("responses/200-empty", "/200"),
        one("responses/204", "/204"),
        one("responses/204-with-body", "/204/text"),
        one("responses/205", "/205"),
        one("responses/205-with-body", "/205/text"),
        one("responses/304", "/304"),
        one("responses/304-with-body", "/304/text"),
        one("responses/304-with-length", "/304-with-length"),
        one("responses/unregistered-status", "/299/text"),
        one("responses/highest-status", "/999/text"),
        one("responses/informational-status", "/103/text"),
        one("responses/reason-phrase", "/reason"),
        one("responses/empty-reason-phrase", "/empty-reason"),
        to_head("responses/head-of-text", "/200/text"),
        to_head("responses/head-of-empty", "/200"),
        to_head("responses/head-of-204", "/204"),
        to_head("responses/head-of-304", "/304"),
        to_head("responses/head-of-304-with-length", "/304-with-length"),
        to_head("responses/head-of-404", "/nothing/at/all"),
        Case::steps(
            "responses/304-and-then-200",
            App::Router(status),
            vec![get("/304"), Read, get("/200/text"), Read, End],
        ),
    ]
}

fn status(_: Rig) -> Router {
    use axum::extract::Path;
    let of = |status: u16, text: String| {
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        response
            .headers_mut()
            .insert("etag", HeaderValue::from_static("\"v1\""));
        response
    };
    let reason = |text: &'static str| {
        let mut response = Response::new(Body::from("hello"));
        let phrase = ReasonPhrase::try_from(text.as_bytes()).unwrap();
        response.extensions_mut().insert(phrase);
        response
    };
    Router::new()
        .route(
            "/{status}",
            any(move |Path(status): Path<u16>| async move { of(status, String::new()) }),
        )
        .route(
            "/{status}/{text}",
            any(move |Path((status, text)): Path<(u16, String)>| async move { of(status, text) }),
        )
        .route(
            "/304-with-length",
            any(|| async { (StatusCode::NOT_MODIFIED, with(CONTENT_LENGTH, b"1234")) }),
        )
        .route("/reason", any(move || async move { reason("Quite Fine") }))
        .route("/empty-reason", any(move || async move { reason("") }))
}
