use askama::Template;
use axum::Form;
use axum::extract::State;
use serde::Deserialize;

use super::form::see;
use super::render::{PageResult, page};
use super::shell::Shell;
use crate::App;
use crate::auth::{Viewer, check_csrf};
use crate::service::{self, Bell};

#[derive(Template)]
#[template(path = "pages/bell.html")]
struct BellPage {
    shell: Shell,
    bell: Bell,
}

pub(super) async fn show(State(app): State<App>, viewer: Viewer, shell: Shell) -> PageResult {
    let bell = service::bell(&app, viewer.author.id).await?;
    page(&BellPage { shell, bell })
}

/// The position up to which the list was seen.
#[derive(Deserialize)]
pub(super) struct Seen {
    csrf: String,
    seen: u64,
}

pub(super) async fn mark_seen(
    State(app): State<App>,
    viewer: Viewer,
    Form(form): Form<Seen>,
) -> PageResult {
    check_csrf(&viewer, &form.csrf)?;
    service::see_bell(&app, viewer.author.id, form.seen).await?;
    Ok(see("/bell"))
}
