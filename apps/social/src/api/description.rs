use std::sync::Arc;

use askama::Template;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use axum::{Json, Router};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::{Components, Info, License, OpenApi, OpenApiBuilder};

use crate::{App, Failure};

/// The document, before there are operations in it.
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

const ABOUT: &str = "Albums, pictures, likes, comments, and a live feed. Reading is for everybody; for changes log in \
    (`POST /api/sessions`) or sign each request (`POST /api/me/keys`). Refusals are problems (RFC 9457); 429 and 503 say in \
    `Retry-After` when to try again. More in `apps/social/docs/api.md`.";

fn schemes() -> [(&'static str, ApiKey); 3] {
    let header = |name, text| ApiKey::Header(ApiKeyValue::with_description(name, text));
    let session = "The cookie of `POST /api/sessions`.";
    let csrf = "What `POST /api/sessions` gave as `csrf`; needed with the cookie for each change.";
    let signature = "HTTP Message Signatures (RFC 9421) with hmac-sha256, over \"@method\", \"@path\", \"@query\" and \
        \"content-digest\", with created (at most 30 s away), nonce, keyid and alg; with `Signature-Input` and `Content-Digest`. \
        A signed upload is of one picture, and a user has one at a time.";
    [
        (
            "session",
            ApiKey::Cookie(ApiKeyValue::with_description("session", session)),
        ),
        ("csrf", header("X-CSRF-Token", csrf)),
        ("signature", header("Signature", signature)),
    ]
}

/// The routes that show it.
pub(super) fn router(description: &OpenApi) -> Router<App> {
    let document = Arc::new(description.clone());
    let operations = Arc::new(Operations::of(description));
    let document = move || async move { Json(&*document).into_response() };
    let page = move || async move {
        let page = operations.render().map_err(Failure::internal)?;
        Ok::<_, Failure>(Html(page))
    };
    Router::new()
        .route("/api/openapi.json", get(document))
        .route("/api", get(page))
}

/// A page for who looks at the API with a browser.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>API of Greenroom social</title>
<h1>API of Greenroom social</h1>
<p>{{ about }}</p>
<p>All of it for programs: <a href="/api/openapi.json">openapi.json</a></p>
<dl>
{% for operation in operations -%}
<dt><code>{{ operation.method }} {{ operation.path }}</code></dt>
<dd>{{ operation.summary }}</dd>
{% endfor -%}
</dl>
</html>
"#
)]
struct Operations {
    about: &'static str,
    operations: Vec<Line>,
}

struct Line {
    method: &'static str,
    path: String,
    summary: String,
}

impl Operations {
    fn of(description: &OpenApi) -> Self {
        let paths = description.paths.paths.iter();
        Self {
            about: ABOUT,
            operations: paths.flat_map(|(path, item)| lines(path, item)).collect(),
        }
    }
}

fn lines(path: &str, item: &PathItem) -> Vec<Line> {
    let operations: [(&str, &Option<Operation>); 5] = [
        ("GET", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("PATCH", &item.patch),
        ("DELETE", &item.delete),
    ];
    let line = |(method, operation): (&'static str, &Option<Operation>)| {
        Some(Line {
            method,
            path: path.to_owned(),
            summary: operation.as_ref()?.summary.clone().unwrap_or_default(),
        })
    };
    operations.into_iter().filter_map(line).collect()
}
