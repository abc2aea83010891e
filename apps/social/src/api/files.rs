use axum::body::Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use crate::auth::Caller;
use crate::files::Size;
use crate::model::{Id, Media, Picture};
use crate::service;
use crate::{App, Failure, Problem};

/// The caching of sizes for everybody: a picture's files never change.
const FOR_ALL: &str = "public, max-age=31536000, s-maxage=300, immutable";
/// The caching of originals: nobody finds them in the browser after their owner has logged out.
const FOR_OWNER: &str = "no-store";

/// Returns a file of a picture. The smaller sizes are for everybody, the original is for its owner:
/// it contains what the camera wrote.
#[utoipa::path(
    get, path = "/files/{id}/{size}", tag = "pictures",
    params(("id" = Id, Path), ("size" = String, Path, description = "`small` (200 pixels), \
        `medium` (800), `large` (2048) or `original`")),
    security((), ("session" = []), ("signature" = [])),
    responses(
        (status = 200, description = "JPEG; the original as it was uploaded", body = Vec<u8>,
            content_type = "image/jpeg"),
        (status = 304, description = "It is what `If-None-Match` says"),
        (status = 403, description = "The original of somebody else's picture", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn file(
    State(app): State<App>,
    Path((id, size)): Path<(Id, String)>,
    mut parts: Parts,
) -> Result<Response, Failure> {
    let size = Size::ALL.into_iter().find(|known| known.name() == size);
    let size = size.ok_or(Failure::NotFound("size"))?;
    let picture = service::find_picture(&app, id).await?;
    if size == Size::Original {
        check_owner(&app, &picture, &mut parts).await?;
    }
    let tag = format!("\"{id}-{}\"", size.name());
    let cached = match size {
        Size::Original => FOR_OWNER,
        _ => FOR_ALL,
    };
    let unchanging = [(ETAG, tag.as_str()), (CACHE_CONTROL, cached)];
    if is_known(&parts.headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, unchanging).into_response());
    }
    let content = app.files.read(id, size).await?;
    let content = content.ok_or(Failure::NotFound("file"))?;
    let length = [(CONTENT_LENGTH, content.length)].map(|(name, value)| (name, value.to_string()));
    let media_type = [(CONTENT_TYPE, media(&picture, size).content_type())];
    let body = Body::from_stream(content.stream);
    Ok((unchanging, media_type, length, body).into_response())
}

async fn check_owner(app: &App, picture: &Picture, parts: &mut Parts) -> Result<(), Failure> {
    let Caller(author) = Caller::from_request_parts(parts, app).await?;
    if author.id == picture.owner.id {
        return Ok(());
    }
    Err(Failure::Forbidden("only its owner gets the original"))
}

fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(IF_NONE_MATCH).iter();
    let mut tags = lines.flat_map(|line| line.to_str().unwrap_or_default().split(','));
    tags.any(|known| known.trim().trim_start_matches("W/") == tag)
}

fn media(picture: &Picture, size: Size) -> Media {
    match size {
        Size::Original => picture.media,
        _ => Media::Jpeg,
    }
}
