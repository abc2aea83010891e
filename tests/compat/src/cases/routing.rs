use axum::Router;
use axum::extract::OriginalUri;
use axum::http::{Method, StatusCode};
use axum::response::{Html, IntoResponse, NoContent, Redirect};
use axum::routing::{any, get as on_get, method_routing, post};
use tower::service_fn;

use crate::harness::{App, Case, Rig, ask, get};

pub(crate) fn cases() -> Vec<Case> {
    [matching(), methods(), fallbacks()]
        .into_iter()
        .flatten()
        .collect()
}

fn matching() -> Vec<Case> {
    vec![
        Case::asking(
            "routing/nested",
            App::Router(nested),
            [
                "/",
                "/api",
                "/api/",
                "/api/users/7",
                "/api/users/7/",
                "/api/deep/er",
                "/service/anything/below?x=1",
                "/service",
                "/merged",
                "/one-service",
                "/nothing",
            ]
            .map(get),
        ),
        Case::apart(
            "routing/percent-encoding",
            App::Router(nested),
            [
                "/m%65rged",
                "/caf%C3%A9",
                "/caf%c3%a9",
                "/a%2Fb",
                "/%",
                "/%zz",
                "/api%2Fusers/7",
            ]
            .map(get),
        ),
        Case::asking(
            "routing/kinds-of-responses",
            App::Router(kinds),
            [
                "/html",
                "/redirect",
                "/see-other",
                "/tuple",
                "/no-content",
                "/error",
                "/unit",
            ]
            .map(get),
        ),
    ]
}

fn nested(_: Rig) -> Router {
    let deep = Router::new().route("/er", on_get(|| async { "deeper" }));
    let api = Router::new()
        .route("/", on_get(|| async { "api" }))
        .route(
            "/users/{id}",
            on_get(|OriginalUri(uri): OriginalUri| async move { uri.to_string() }),
        )
        .nest("/deep", deep);
    let service = service_fn(|request: axum::extract::Request| async move {
        Ok::<_, std::convert::Infallible>(request.uri().to_string().into_response())
    });
    Router::new()
        .route("/", on_get(|| async { "root" }))
        .route("/caf\u{e9}", on_get(|| async { "coffee" }))
        .route("/caf%C3%A9", on_get(|| async { "encoded coffee" }))
        .nest("/api", api)
        .nest_service("/service", service)
        .route_service("/one-service", service)
        .merge(Router::new().route("/merged", on_get(|| async { "merged" })))
}

fn kinds(_: Rig) -> Router {
    Router::new()
        .route("/html", on_get(|| async { Html("<p>hi</p>") }))
        .route(
            "/redirect",
            on_get(|| async { Redirect::permanent("/html") }),
        )
        .route("/see-other", on_get(|| async { Redirect::to("/html") }))
        .route(
            "/tuple",
            on_get(|| async {
                (
                    StatusCode::CREATED,
                    [("location", "/new"), ("x-a", "b")],
                    "made",
                )
            }),
        )
        .route("/no-content", on_get(|| async { NoContent }))
        .route(
            "/error",
            on_get(|| async { Err::<&str, _>((StatusCode::CONFLICT, "no")) }),
        )
        .route("/unit", on_get(|| async {}))
}

fn methods() -> Vec<Case> {
    vec![
        Case::asking(
            "routing/methods",
            App::Router(by_method),
            [
                ask("HEAD /get", &[], ""),
                ask("HEAD /own-head", &[], ""),
                ask("HEAD /post", &[], ""),
                ask("POST /get", &[], "body"),
                ask("OPTIONS /get", &[], ""),
                ask("OPTIONS /nothing", &[], ""),
                ask("DELETE /both", &[], ""),
                ask("PATCH /any", &[], ""),
                ask("PROPFIND /any", &[], ""),
                ask("PROPFIND /get", &[], ""),
                ask("get /get", &[], ""),
                ask("TRACE /any", &[], ""),
                ask("GET /own-rejection", &[], ""),
            ],
        ),
        Case::asking(
            "routing/method-not-allowed-fallback",
            App::Router(own_rejection),
            [
                ask("POST /get", &[], ""),
                ask("GET /get", &[], ""),
                ask("GET /nothing", &[], ""),
            ],
        ),
        Case::asking(
            "routing/options-of-all",
            App::Router(by_method),
            [ask("OPTIONS *", &[], "")],
        ),
    ]
}

fn by_method(_: Rig) -> Router {
    let head = || async { ([("x-head", "yes"), ("content-length", "7")], ()) };
    Router::new()
        .route("/get", on_get(|| async { "got" }))
        .route(
            "/own-head",
            method_routing::head(head).get(|| async { "1234567" }),
        )
        .route("/post", post(|| async { "posted" }))
        .route(
            "/both",
            on_get(|| async { "got" }).post(|| async { "posted" }),
        )
        .route(
            "/any",
            any(|method: Method| async move { method.to_string() }),
        )
        .route(
            "/own-rejection",
            post(|| async {}).fallback(|| async { (StatusCode::IM_A_TEAPOT, "only by post") }),
        )
}

fn own_rejection(_: Rig) -> Router {
    Router::new()
        .route("/get", on_get(|| async { "got" }))
        .method_not_allowed_fallback(|| async { (StatusCode::METHOD_NOT_ALLOWED, "not so") })
}

fn fallbacks() -> Vec<Case> {
    vec![Case::asking(
        "routing/fallbacks",
        App::Router(fallback),
        [
            get("/nothing?x=1"),
            get("/api/nothing"),
            get("/plain/nothing"),
            ask("POST /nothing", &[], "body"),
            ask("HEAD /nothing", &[], ""),
        ],
    )]
}

fn fallback(_: Rig) -> Router {
    let own = Router::new().fallback(|| async { (StatusCode::NOT_FOUND, "no such api") });
    let plain = Router::new().route("/here", on_get(|| async { "here" }));
    Router::new()
        .nest("/api", own)
        .nest("/plain", plain)
        .fallback(|method: Method, uri: axum::http::Uri| async move {
            (StatusCode::NOT_FOUND, format!("no {method} {uri}"))
        })
}
