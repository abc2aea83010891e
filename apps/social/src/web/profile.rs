use askama::Template;
use axum::extract::{Path, Query, State};
use futures_util::future::try_join;

use super::form::Position;
use super::render::{PageResult, page};
use super::shell::Shell;
use crate::App;
use crate::model::{Album, User};
use crate::service::{self, Page};

/// Pictures of one page.
const PICTURES: u32 = 24;

#[derive(Template)]
#[template(path = "pages/profile.html")]
struct Profile {
    is_me: bool,
    shell: Shell,
    user: User,
    albums: Vec<Album>,
    page: Page,
}

pub(super) async fn show(
    State(app): State<App>,
    shell: Shell,
    Path(name): Path<String>,
    Query(position): Query<Position>,
) -> PageResult {
    let user = service::user(&app, &name).await?;
    let viewer = shell.viewer_id();
    let pictures = service::of_user(&app, viewer, user.id, position.before(), PICTURES);
    let (albums, pictures) = try_join(service::albums(&app, user.id), pictures).await?;
    page(&Profile {
        is_me: shell.is(user.id),
        shell,
        user,
        albums,
        page: pictures,
    })
}
