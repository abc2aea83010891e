use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{Multipart, Path, State};
use tempfile::TempPath;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::albums::show_trouble;
use super::form::{Trouble, id, see};
use super::render::Answer;
use crate::auth::{Viewer, check_csrf};
use crate::images::io_failure;
use crate::model::TextError;
use crate::service::{self, Upload};
use crate::{App, Failure};

/// What the form of an album has sent.
#[derive(Default)]
struct Sent {
    file: Option<TempPath>,
    caption: String,
}

/// Takes a picture from a browser without scripts. The form's token stands before the file, so that nothing is kept of what
/// somebody else's page sends.
pub(super) async fn receive(
    State(app): State<App>,
    viewer: Viewer,
    Path(album): Path<String>,
    multipart: Multipart,
) -> Answer {
    let album = id(&album, "album")?;
    app.limits.upload(viewer.author.id)?;
    let sent = read(&app, &viewer, multipart).await?;
    let caption = sent.caption.clone();
    match add(&app, &viewer, album, sent).await {
        Ok(()) => Ok(see(&format!("/albums/{album}"))),
        Err(failure) => {
            let trouble = Trouble::of(failure)?.about("picture");
            show_trouble(&app, &viewer, album, trouble, caption).await
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
    let caption = sent.caption;
    service::upload(app, &viewer.author, album, vec![Upload { file, caption }]).await?;
    Ok(())
}

async fn read(app: &App, viewer: &Viewer, mut multipart: Multipart) -> Result<Sent, Failure> {
    let mut sent = Sent::default();
    let mut is_ours = false;
    while let Some(field) = multipart
        .next_field()
        .await
        .map_err(|error| malformed(&error))?
    {
        match field.name() {
            Some("csrf") => {
                check_csrf(
                    viewer,
                    &field.text().await.map_err(|error| malformed(&error))?,
                )?;
                is_ours = true;
            }
            Some("caption") => {
                sent.caption = field.text().await.map_err(|error| malformed(&error))?;
            }
            Some("picture") if is_ours => sent.file = keep(app, field).await?,
            _ => {}
        }
    }
    if is_ours {
        Ok(sent)
    } else {
        check_csrf(viewer, "").map(|()| sent)
    }
}

/// A browser sends an empty file where none was chosen.
async fn keep(app: &App, mut field: Field<'_>) -> Result<Option<TempPath>, Failure> {
    let (file, path) = app.files.spool().map_err(io_failure)?.into_parts();
    let mut file = File::from_std(file);
    let mut bytes = 0;
    while let Some(chunk) = field.chunk().await.map_err(|error| malformed(&error))? {
        bytes += chunk.len() as u64;
        if bytes > app.settings.pictures.bytes_max.as_u64() {
            let most = app.settings.pictures.bytes_max;
            return Err(Failure::TooLarge(format!("a picture may have {most}")));
        }
        file.write_all(&chunk).await.map_err(io_failure)?;
    }
    file.flush().await.map_err(io_failure)?;
    Ok((bytes > 0).then_some(path))
}

fn malformed(error: &MultipartError) -> Failure {
    match error.status() {
        http::StatusCode::PAYLOAD_TOO_LARGE => {
            Failure::TooLarge("the picture is too large".to_owned())
        }
        _ => Failure::Malformed(error.body_text()),
    }
}
