use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::routing::get;

use super::render::{PageResult, page};
use super::shell::Shell;
use crate::App;
use crate::api::{Operation, operations};

/// The API's documentation, as a page.
#[derive(Template)]
#[template(path = "pages/api.html")]
struct ApiPage {
    shell: Shell,
    about: &'static str,
    operations: Arc<Vec<Operation>>,
}

/// Splits a text with code in backticks into pieces, each with `true` for code.
fn spans(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let parts = text.split('`').enumerate();
    parts.map(|(index, part)| (index % 2 == 1, part))
}

pub(super) fn router(app: &App) -> Router<App> {
    let operations = Arc::new(operations(app));
    let show = async move |shell: Shell| show(shell, operations);
    Router::new().route("/api", get(show))
}

fn show(shell: Shell, operations: Arc<Vec<Operation>>) -> PageResult {
    page(&ApiPage {
        shell,
        about: crate::api::ABOUT,
        operations,
    })
}
