//! `/`: the page, and the echo form of the tutorial, whose response takes two seconds of waiting.

use std::time::Duration;

use askama::Template;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderName};
use axum::response::Html;
use serde::Deserialize;

const DELAY: Duration = Duration::from_secs(2);

/// The page's policy: it may load nothing but its own style sheet and icon. Should escaping ever
/// fail, an injected script still does not run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

#[derive(Deserialize)]
pub(super) struct Form {
    #[serde(default)]
    field: String,
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    said: &'a str,
}

type PageResponse = ([(HeaderName, &'static str); 1], Html<String>);

/// Renders the page only after the wait, so that a waiting request holds its word and a timer.
pub(super) async fn page(Query(form): Query<Form>) -> Result<PageResponse, StatusCode> {
    if !form.field.is_empty() {
        tokio::time::sleep(DELAY).await;
    }
    match (Page { said: &form.field }).render() {
        Ok(page) => Ok(([(CONTENT_SECURITY_POLICY, POLICY)], Html(page))),
        Err(error) => {
            tracing::error!(%error, "the page could not be rendered");
            Err(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}
