use askama::Template;
use axum::Form;
use axum::extract::{Path, Query, State};
use bytesize::ByteSize;
use serde::Deserialize;

use super::form::{Position, Press, Trouble, id, see};
use super::render::{PageResult, blank_picture, page, page_with};
use super::shell::Shell;
use crate::auth::{Viewer, check_csrf};
use crate::model::{Album, Id};
use crate::service::{self, Page, PictureView, Storage};
use crate::{App, Failure};

/// Pictures of one page.
const PICTURES: u32 = 24;

#[derive(Template)]
#[template(path = "pages/album_new.html")]
struct NewAlbumPage {
    shell: Shell,
    trouble: Trouble,
    title: String,
}

pub(super) async fn show_new(_: Viewer, shell: Shell) -> PageResult {
    page(&NewAlbumPage {
        shell,
        trouble: Trouble::default(),
        title: String::new(),
    })
}

/// The form of a new album.
#[derive(Deserialize)]
pub(super) struct NewAlbum {
    csrf: String,
    title: String,
}

pub(super) async fn create(
    State(app): State<App>,
    viewer: Viewer,
    Form(new): Form<NewAlbum>,
) -> PageResult {
    check_csrf(&viewer, &new.csrf)?;
    match service::create_album(&app, viewer.author.clone(), &new.title).await {
        Ok(album) => Ok(see(&format!("/albums/{}", album.id))),
        Err(failure) => {
            let trouble = Trouble::of(failure)?;
            let shell = Shell::of(&app, Some(&viewer), "/albums/new").await?;
            let title = new.title;
            page_with(
                trouble.status(),
                &NewAlbumPage {
                    shell,
                    trouble,
                    title,
                },
            )
        }
    }
}

#[derive(Template)]
#[template(path = "pages/album.html")]
struct AlbumPage {
    is_mine: bool,
    shell: Shell,
    album: Album,
    page: Page,
    trouble: Trouble,
    texts: Texts,
    bytes_max: u64,
    bytes_max_words: String,
    /// Shown to the owner only.
    room: Option<Quota>,
    blank: [PictureView; 1],
}

/// The texts entered for a picture.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) caption: String,
    pub(super) alt: String,
}

/// The owner's use of the quota, in words.
struct Quota {
    pictures: u64,
    pictures_max: u64,
    bytes: String,
    bytes_max: String,
}

impl Quota {
    fn of(storage: Storage) -> Self {
        Self {
            pictures: storage.pictures,
            pictures_max: storage.pictures_max,
            bytes: ByteSize(storage.bytes).to_string(),
            bytes_max: ByteSize(storage.bytes_max).to_string(),
        }
    }
}

pub(super) async fn show(
    State(app): State<App>,
    shell: Shell,
    Path(album): Path<String>,
    Query(position): Query<Position>,
) -> PageResult {
    let album = id(&album, "album")?;
    let before = position.before();
    page(
        &load(
            &app,
            shell,
            album,
            before,
            Trouble::default(),
            Texts::default(),
        )
        .await?,
    )
}

/// Shows the album again, with the reason for which a picture could not be added.
pub(super) async fn show_trouble(
    app: &App,
    viewer: &Viewer,
    album: Id,
    trouble: Trouble,
    texts: Texts,
) -> PageResult {
    let shell = Shell::of(app, Some(viewer), &format!("/albums/{album}")).await?;
    let status = trouble.status();
    page_with(
        status,
        &load(app, shell, album, None, trouble, texts).await?,
    )
}

async fn load(
    app: &App,
    shell: Shell,
    album: Id,
    before: Option<Id>,
    trouble: Trouble,
    texts: Texts,
) -> Result<AlbumPage, Failure> {
    let album = service::album(app, album).await?;
    let bytes_max = app.settings.pictures.bytes_max;
    let is_mine = shell.is(album.owner.id);
    let room = if is_mine {
        Some(Quota::of(service::storage(app, album.owner.id).await?))
    } else {
        None
    };
    Ok(AlbumPage {
        page: service::of_album(app, shell.viewer_id(), album.id, before, PICTURES).await?,
        is_mine,
        shell,
        album,
        trouble,
        texts,
        bytes_max: bytes_max.as_u64(),
        bytes_max_words: bytes_max.to_string(),
        room,
        blank: [blank_picture()],
    })
}

pub(super) async fn delete(
    State(app): State<App>,
    viewer: Viewer,
    Path(album): Path<String>,
    Form(press): Form<Press>,
) -> PageResult {
    press.check(&viewer)?;
    service::delete_album(&app, viewer.author.id, id(&album, "album")?).await?;
    Ok(see(&format!("/users/{}", viewer.author.name)))
}
