use std::sync::Arc;

use axum::extract::multipart::Field;
use axum::extract::{Path, Request, State};
use tempfile::TempPath;

use super::albums::{Texts, show_trouble};
use super::form::{Trouble, id, see};
use super::render::PageResult;
use crate::api::spool::{Pace, refused, spool, text};
use crate::auth::{Viewer, check_csrf};
use crate::images::io_failure;
use crate::model::TextError;
use crate::service::{self, Upload};
use crate::{App, Failure};

/// The fields of an album's upload form.
#[derive(Default)]
struct Sent {
    file: Option<Arc<TempPath>>,
    caption: String,
    alt: String,
}

/// Takes a picture from a browser without scripts. The form's token comes before the file, so that
/// nothing is kept of a request from another site's page.
pub(super) async fn receive(
    State(app): State<App>,
    viewer: Viewer,
    Path(album): Path<String>,
    request: Request,
) -> PageResult {
    let album = id(&album, "album")?;
    app.limits.upload(viewer.author.id)?;
    // Checked before the file is received.
    service::check_room(&app, viewer.author.id, album).await?;
    let sent = read(&app, &viewer, request).await?;
    let texts = Texts {
        caption: sent.caption.clone(),
        alt: sent.alt.clone(),
    };
    match add(&app, &viewer, album, sent).await {
        Ok(()) => Ok(see(&format!("/albums/{album}"))),
        Err(failure) => {
            let trouble = Trouble::of(failure)?.about("picture");
            show_trouble(&app, &viewer, album, trouble, texts).await
        }
    }
}

async fn add(
    app: &App,
    viewer: &Viewer,
    album: crate::model::Id,
    sent: Sent,
) -> Result<(), Failure> {
    let file = sent.file.ok_or_else(|| TextError {
        field: "picture",
        rule: "choose a picture".to_owned(),
    })?;
    let (caption, alt) = (sent.caption, sent.alt);
    let upload = Upload { file, caption, alt };
    service::upload(app, &viewer.author, album, vec![upload]).await?;
    Ok(())
}

async fn read(app: &App, viewer: &Viewer, request: Request) -> Result<Sent, Failure> {
    let pace = Pace::default();
    let mut form = pace.form(request).await?;
    let mut sent = Sent::default();
    let mut is_ours = false;
    loop {
        pace.expect_head();
        let Some(part) = form.next_field().await.map_err(|error| refused(&error))? else {
            break;
        };
        pace.expect_content();
        match part.name() {
            Some("csrf") => {
                check_csrf(viewer, &text(part, "csrf").await?)?;
                is_ours = true;
            }
            Some("caption") if is_ours => sent.caption = text(part, "caption").await?,
            Some("alt") if is_ours => sent.alt = text(part, "alt").await?,
            Some("picture") if is_ours => sent.file = keep(app, part).await?,
            _ => {}
        }
    }
    if is_ours {
        Ok(sent)
    } else {
        check_csrf(viewer, "").map(|()| sent)
    }
}

/// Stores the file. A browser sends an empty one where none was chosen.
async fn keep(app: &App, part: Field<'_>) -> Result<Option<Arc<TempPath>>, Failure> {
    let file = spool(&app.files, part, app.settings.pictures.bytes_max).await?;
    let metadata = tokio::fs::metadata(&*file).await.map_err(io_failure)?;
    Ok((metadata.len() > 0).then_some(file))
}
