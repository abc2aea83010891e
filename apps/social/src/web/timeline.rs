use askama::Template;
use axum::extract::{Query, State};

use super::form::Position;
use super::render::{PageResult, blank_picture, page};
use super::shell::Shell;
use crate::App;
use crate::service::{self, Page, PictureView};

/// Pictures of one page.
const PICTURES: u32 = 12;

#[derive(Template)]
#[template(path = "pages/timeline.html")]
struct Timeline {
    shell: Shell,
    page: Page,
    is_newest: bool,
    blank: [PictureView; 1],
}

pub(super) async fn show(
    State(app): State<App>,
    shell: Shell,
    Query(position): Query<Position>,
) -> PageResult {
    let before = position.before();
    page(&Timeline {
        page: service::timeline(&app, shell.viewer_id(), before, PICTURES).await?,
        is_newest: before.is_none(),
        blank: [blank_picture()],
        shell,
    })
}
