use axum::Json;
use axum::extract::multipart::Field;
use axum::extract::{Path, Request, State};
use bytesize::ByteSize;
use http::StatusCode;
use utoipa::ToSchema;

use super::spool::{Pace, refused, spool, text};
use crate::auth::Caller;
use crate::config::PictureSettings;
use crate::model::{Id, TextError};
use crate::service::{self, PictureView, Upload};
use crate::{App, Failure, Problem};

/// The form of an upload.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "for the description only: the parts are read one by one"
)]
pub(super) struct Pictures {
    /// GIF, JPEG, PNG or WebP, by content.
    #[schema(value_type = Vec<String>, format = Binary)]
    picture: Vec<Vec<u8>>,
    /// After a picture: its caption, up to 500 characters.
    caption: Vec<String>,
    /// After a picture: a text for readers who cannot see it, up to 500 characters.
    alt: Vec<String>,
}

/// Returns the largest total size of the pictures of one request.
pub(super) fn bytes_max(settings: &PictureSettings) -> ByteSize {
    let pictures = u64::try_from(settings.per_request_max).unwrap_or(u64::MAX);
    ByteSize(settings.bytes_max.as_u64().saturating_mul(pictures))
}

/// Adds pictures to an album: they are processed in parallel, and all of them are added or none.
/// (The thesis' program 4.2.)
#[utoipa::path(
    post, path = "/api/albums/{id}/pictures", tag = "pictures", params(("id" = Id, Path)),
    request_body(content = Pictures, content_type = "multipart/form-data"),
    security(("session" = [], "csrf" = []), ("signature" = [])),
    responses(
        (status = 201, body = Vec<PictureView>),
        (status = 403, description = "The album is somebody else's", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 413,
            description = "Too many pictures, too many bytes or too many pixels, or no room for \
            them; a signed request has at most the bytes of one picture",
            body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "No picture, by content", body = Problem,
            content_type = "application/problem+json"),
        (status = 422, description = "A part or a caption is not allowed", body = Problem,
            content_type = "application/problem+json"),
        (status = 429,
            description = "Too many uploads, or another signed upload of this user is under way",
            body = Problem, content_type = "application/problem+json"),
        (status = 503,
            description = "Too many pictures wait, or too many signed uploads are under way",
            body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn upload(
    State(app): State<App>,
    Caller(author): Caller,
    Path(album): Path<Id>,
    request: Request,
) -> Result<(StatusCode, Json<Vec<PictureView>>), Failure> {
    app.limits.upload(author.id)?;
    // Checked first, so that no body is received in vain.
    service::check_room(&app, author.id, album).await?;
    let uploads = receive(&app, request).await?;
    let views = service::upload(&app, &author, album, uploads).await?;
    Ok((StatusCode::CREATED, Json(views)))
}

async fn receive(app: &App, request: Request) -> Result<Vec<Upload>, Failure> {
    let pace = Pace::default();
    let mut form = pace.form(request).await?;
    let mut uploads: Vec<Upload> = Vec::new();
    let mut texts = Texts::default();
    loop {
        pace.expect_head();
        let Some(part) = form.next_field().await.map_err(|error| refused(&error))? else {
            break;
        };
        pace.expect_content();
        match (part.name(), uploads.last_mut()) {
            (Some("picture"), _) => {
                uploads.push(picture(app, part, uploads.len()).await?);
                texts = Texts::default();
            }
            (Some("caption"), Some(upload)) if !texts.has_caption => {
                upload.caption = text(part, "caption").await?;
                texts.has_caption = true;
            }
            (Some("alt"), Some(upload)) if !texts.has_alt => {
                upload.alt = text(part, "alt").await?;
                texts.has_alt = true;
            }
            _ => {
                return Err(wrong_part(
                    "each part is a `picture`, or the `caption` or the `alt` of the one before it",
                )
                .into());
            }
        }
    }
    if uploads.is_empty() {
        return Err(wrong_part("at least one is needed").into());
    }
    Ok(uploads)
}

/// The texts that followed a picture.
#[derive(Default)]
struct Texts {
    has_caption: bool,
    has_alt: bool,
}

async fn picture(app: &App, part: Field<'_>, before: usize) -> Result<Upload, Failure> {
    let PictureSettings {
        per_request_max,
        bytes_max,
        ..
    } = app.settings.pictures;
    if before >= per_request_max {
        let text = format!("a request has at most {per_request_max} pictures");
        return Err(Failure::TooLarge(text));
    }
    Ok(Upload {
        file: spool(&app.files, part, bytes_max).await?,
        caption: String::new(),
        alt: String::new(),
    })
}

fn wrong_part(rule: &str) -> TextError {
    TextError {
        field: "picture",
        rule: rule.to_owned(),
    }
}
