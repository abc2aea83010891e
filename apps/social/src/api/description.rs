use std::sync::Arc;

use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use utoipa::openapi::path::{self, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::{Components, Info, License, OpenApi, OpenApiBuilder};

use crate::App;

/// Returns the document without operations.
pub(super) fn head() -> OpenApi {
    let mut info = Info::new("Greenroom social", env!("CARGO_PKG_VERSION"));
    info.description = Some(ABOUT.to_owned());
    info.license = Some(License::new("MIT OR Apache-2.0"));
    let mut components = Components::new();
    for (name, scheme) in schemes() {
        components.add_security_scheme(name, SecurityScheme::ApiKey(scheme));
    }
    OpenApiBuilder::new()
        .info(info)
        .components(Some(components))
        .build()
}

/// The introduction of the document.
pub(crate) const ABOUT: &str = "Albums, pictures, likes, comments, and a live feed. \
    Reading is for everybody; for changes log in (`POST /api/sessions`) or sign each request \
    (`POST /api/me/keys`). Errors are problems (RFC 9457); 429 and 503 say in `Retry-After` when \
    to try again. More in `apps/social/docs/api.md`.";

fn schemes() -> [(&'static str, ApiKey); 3] {
    let header = |name, text| ApiKey::Header(ApiKeyValue::with_description(name, text));
    let session = "The cookie of `POST /api/sessions`.";
    let csrf = "What `POST /api/sessions` gave as `csrf`; needed with the cookie for each change.";
    let signature = "HTTP Message Signatures (RFC 9421) with hmac-sha256, over \"@method\", \
        \"@path\", \"@query\" and \"content-digest\", with created (at most 30 s away), nonce, \
        keyid and alg; with `Signature-Input` and `Content-Digest`. A signed upload is of one \
        picture, and a user has one at a time.";
    [
        (
            "session",
            ApiKey::Cookie(ApiKeyValue::with_description("session", session)),
        ),
        ("csrf", header("X-CSRF-Token", csrf)),
        ("signature", header("Signature", signature)),
    ]
}

/// Returns the route that serves the document.
pub(super) fn router(description: &OpenApi) -> Router<App> {
    let document = Arc::new(description.clone());
    let document = move || async move { Json(&*document).into_response() };
    Router::new().route("/api/openapi.json", get(document))
}

/// An operation, as pages show it.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) summary: String,
}

/// Returns all operations of the document, in the order of their paths.
pub(super) fn operations(description: &OpenApi) -> Vec<Operation> {
    let paths = description.paths.paths.iter();
    paths.flat_map(|(path, item)| lines(path, item)).collect()
}

fn lines(route: &str, item: &PathItem) -> Vec<Operation> {
    let operations: [(&str, &Option<path::Operation>); 5] = [
        ("GET", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("PATCH", &item.patch),
        ("DELETE", &item.delete),
    ];
    let line = |(method, operation): (&'static str, &Option<path::Operation>)| {
        Some(Operation {
            method,
            path: route.to_owned(),
            summary: operation.as_ref()?.summary.clone().unwrap_or_default(),
        })
    };
    operations.into_iter().filter_map(line).collect()
}
