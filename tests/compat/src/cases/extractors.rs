use std::fmt::Debug;
use std::net::SocketAddr;

use axum::body::Bytes;
use axum::extract::{
    ConnectInfo, Extension, Form, Json, MatchedPath, NestedPath, OriginalUri, Path, Query,
    RawPathParams, RawQuery, Request, State,
};
use axum::http::{HeaderMap, Method, Uri, Version};
use axum::routing::{any, get as on_get, post};
use axum::{Router, body};
use serde::Deserialize;
use serde_json::Value;

use crate::harness::{App, Case, Rig, ask, get};

pub(crate) fn cases() -> Vec<Case> {
    [paths_and_queries(), contents(), surroundings()]
        .into_iter()
        .flatten()
        .collect()
}

fn paths_and_queries() -> Vec<Case> {
    vec![
        Case::asking(
            "extractors/path",
            App::Router(path),
            [
                "/users/7/posts/hello",
                "/users/7/posts/a%20b%2Fc",
                "/users/7/posts/caf%C3%A9",
                "/users/7/posts/%FF",
                "/users/-1/posts/hello",
                "/users/99999999999/posts/x",
                "/users//posts/x",
                "/raw/a%20b/c",
                "/rest/a/b%20c/d",
                "/rest/",
            ]
            .map(get),
        ),
        Case::asking(
            "extractors/query",
            App::Router(query),
            [
                "/?page=2",
                "/?page=2&word=a+b%2Bc",
                "/?page=2&page=3",
                "/?page=x",
                "/?word=x",
                "/?page=2&unknown=1",
                "/?&&page=2&",
                "/?page=2&word=",
                "/?page=2&word=%FF",
                "/",
                "/?",
                "/raw?a=b&c=%20+",
                "/raw?",
                "/raw",
            ]
            .map(get),
        ),
    ]
}

#[derive(Debug, Deserialize)]
struct Page {
    page: u32,
    word: Option<String>,
}

fn shown(value: impl Debug) -> String {
    format!("{value:?}")
}

fn path(_: Rig) -> Router {
    Router::new()
        .route(
            "/users/{id}/posts/{slug}",
            on_get(|Path((id, slug)): Path<(u32, String)>| async move { format!("{id} {slug}") }),
        )
        .route(
            "/raw/{one}/{two}",
            on_get(|params: RawPathParams| async move { shown(params.iter().collect::<Vec<_>>()) }),
        )
        .route(
            "/rest/{*rest}",
            on_get(|Path(rest): Path<String>| async move { rest }),
        )
}

fn query(_: Rig) -> Router {
    Router::new()
        .route(
            "/",
            on_get(|Query(Page { page, word }): Query<Page>| async move { shown((page, word)) }),
        )
        .route(
            "/raw",
            on_get(|RawQuery(query): RawQuery| async move { shown(query) }),
        )
}

fn contents() -> Vec<Case> {
    let json = &["Content-Type: application/json"][..];
    let form = &["Content-Type: application/x-www-form-urlencoded"][..];
    vec![
        Case::asking(
            "extractors/json",
            App::Router(content),
            [
                ask("POST /json", json, r#"{"page": 1, "word": "caf\u00e9"}"#),
                ask(
                    "POST /json",
                    &["Content-Type: application/vnd.x+json"],
                    r#"{"page": 1}"#,
                ),
                ask("POST /json", &[], r#"{"page": 1}"#),
                ask(
                    "POST /json",
                    &["Content-Type: text/plain"],
                    r#"{"page": 1}"#,
                ),
                ask("POST /json", json, r#"{"page": "#),
                ask("POST /json", json, r#"{"page": "one"}"#),
                ask("POST /json", json, ""),
                ask("POST /value", json, "[1, null, {}] trailing"),
                ask("POST /value", json, "[1, null, {}]"),
            ],
        ),
        Case::asking(
            "extractors/form",
            App::Router(content),
            [
                ask("POST /form", form, "page=1&word=a+b%20c"),
                ask("POST /form", form, "page=one"),
                ask("POST /form", &[], "page=1"),
                ask("POST /form", form, ""),
                ask("GET /form?page=3&word=x", &[], ""),
                ask("GET /form?page=x", &[], ""),
            ],
        ),
        Case::asking(
            "extractors/bytes-and-text",
            App::Router(content),
            [
                ask("POST /bytes", &[], b"\x00\xff\x7f"),
                ask("POST /bytes", &[], ""),
                ask("POST /text", &[], "caf\u{e9}"),
                ask("POST /text", &[], b"\xff\xfe"),
                ask("POST /body", &[], "all of it"),
                ask("POST /optional", json, r#"{"page": 1}"#),
                ask("POST /optional", &[], ""),
            ],
        ),
    ]
}

fn content(_: Rig) -> Router {
    Router::new()
        .route(
            "/json",
            post(|Json(Page { page, word }): Json<Page>| async move { shown((page, word)) }),
        )
        .route(
            "/value",
            post(|Json(value): Json<Value>| async move { Json(value) }),
        )
        .route(
            "/form",
            any(|Form(Page { page, word }): Form<Page>| async move { shown((page, word)) }),
        )
        .route("/bytes", post(|bytes: Bytes| async move { bytes }))
        .route("/text", post(|text: String| async move { text }))
        .route(
            "/body",
            post(|request: Request| async move {
                body::to_bytes(request.into_body(), 1_000).await.unwrap()
            }),
        )
        .route(
            "/optional",
            post(|value: Option<Json<Value>>| async move { shown(value.map(|Json(value)| value)) }),
        )
}

fn surroundings() -> Vec<Case> {
    vec![
        Case::asking(
            "extractors/request",
            App::Router(surrounding),
            [
                ask(
                    "GET /headers",
                    &["X-One: 1", "x-one:  2 ", "X-Empty:", "Cookie: a=b"],
                    "",
                ),
                ask("DELETE /request?x=1", &[], ""),
                get("/outer/inner/7?x=1"),
                get("/state"),
                get("/extension"),
                get("/missing"),
                get("/connect-info"),
            ],
        ),
        Case::asking(
            "extractors/connect-info",
            App::ConnectInfo(surrounding),
            [get("/connect-info"), get("/state")],
        ),
        Case::asking(
            "extractors/normalized-path",
            App::Normalized(surrounding),
            [
                get("/state/"),
                get("/state"),
                get("/outer/inner/7/?x=1"),
                get("/request//"),
            ],
        ),
    ]
}

#[derive(Clone, Debug)]
struct Greeting(&'static str);

#[derive(Clone, Debug)]
struct Missing;

fn surrounding(_: Rig) -> Router {
    let inner = Router::new().route(
        "/inner/{id}",
        on_get(
            |OriginalUri(original): OriginalUri,
             uri: Uri,
             matched: MatchedPath,
             nested: NestedPath| async move {
                format!("{original} {uri} {} {}", matched.as_str(), nested.as_str())
            },
        ),
    );
    Router::new()
        .nest("/outer", inner)
        .route(
            "/headers",
            on_get(|headers: HeaderMap| async move {
                let mut lines: Vec<_> =
                    headers.iter().map(|field| format!("{field:?}\n")).collect();
                lines.sort();
                lines.concat()
            }),
        )
        .route(
            "/request",
            any(|method: Method, uri: Uri, version: Version| async move {
                format!("{method} {uri} {version:?}")
            }),
        )
        .route(
            "/state",
            on_get(|State(Greeting(text)): State<Greeting>| async move { text }),
        )
        .route(
            "/extension",
            on_get(|Extension(Greeting(text)): Extension<Greeting>| async move { text }),
        )
        .route(
            "/missing",
            on_get(|Extension(missing): Extension<Missing>| async move { shown(missing) }),
        )
        .route(
            "/connect-info",
            on_get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
                format!("{} {}", peer.ip(), peer.port() != 0)
            }),
        )
        .layer(Extension(Greeting("from an extension")))
        .with_state(Greeting("from the state"))
}
