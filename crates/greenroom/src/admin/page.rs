use askama::Template;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::response::{Html, IntoResponse, Response};

use super::view::{Block, View};

type File = ([(HeaderName, &'static str); 1], &'static str);

#[derive(Template)]
#[template(path = "operators.html")]
struct Page<'a> {
    view: &'a View,
}

#[derive(Template)]
#[template(path = "outcome.html")]
struct Outcome<'a> {
    said: &'a str,
}

pub(super) fn render(view: &View) -> Response {
    respond(&Page { view })
}

/// Returns the page that tells the outcome of an action.
pub(super) fn outcome(said: &str) -> Response {
    respond(&Outcome { said })
}

fn respond(page: &impl Template) -> Response {
    match page.render() {
        Ok(page) => Html(page).into_response(),
        Err(error) => {
            tracing::error!(%error, "the operators' page could not be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

pub(super) async fn style() -> File {
    let text = include_str!("../../templates/operators.css");
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], text)
}

pub(super) async fn script() -> File {
    let text = include_str!("../../templates/operators.js");
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], text)
}

pub(super) async fn icon() -> File {
    let text = include_str!("../../templates/icon.svg");
    ([(CONTENT_TYPE, "image/svg+xml")], text)
}
