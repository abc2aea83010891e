use askama::Template;
use axum::Form;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use url::Url;

use super::form::{Position, Press, Trouble, id, see};
use super::render::{PageResult, blank_comment, page, page_with};
use super::shell::Shell;
use crate::auth::{Viewer, check_csrf};
use crate::model::{Comment, Id};
use crate::service::{self, CommentPage, PictureView};
use crate::{App, Failure};

/// Comments of one page.
const COMMENTS: u32 = 60;

#[derive(Template)]
#[template(path = "pages/picture.html")]
struct PicturePage {
    is_mine: bool,
    can_share: bool,
    shell: Shell,
    view: PictureView,
    comments: CommentPage,
    trouble: Trouble,
    text: String,
    blank: [Comment; 1],
}

pub(super) async fn show(
    State(app): State<App>,
    shell: Shell,
    Path(picture): Path<String>,
    Query(position): Query<Position>,
) -> PageResult {
    let picture = id(&picture, "picture")?;
    page(&load(&app, shell, picture, position.after()).await?)
}

async fn load(app: &App, shell: Shell, id: Id, after: Option<Id>) -> Result<PicturePage, Failure> {
    let picture = service::find_picture(app, id).await?;
    // Read before the comments: one that comes in between is delivered once more, and recognised by
    // its identifier.
    let view = service::one(app, shell.viewer_id(), picture).await?;
    Ok(PicturePage {
        comments: service::comments(app, id, after, COMMENTS).await?,
        is_mine: shell.is(view.picture.owner.id),
        can_share: app.share.is_some(),
        shell,
        view,
        trouble: Trouble::default(),
        text: String::new(),
        blank: [blank_comment()],
    })
}

/// The form of the like button.
#[derive(Deserialize)]
pub(super) struct Like {
    csrf: String,
    liked: bool,
    #[serde(default)]
    next: String,
}

pub(super) async fn like(
    State(app): State<App>,
    viewer: Viewer,
    Path(picture): Path<String>,
    Form(like): Form<Like>,
) -> PageResult {
    check_csrf(&viewer, &like.csrf)?;
    let picture = id(&picture, "picture")?;
    service::set_like(&app, &viewer.author, picture, like.liked).await?;
    Ok(see(&format!("{}#picture-{picture}", like.next)))
}

/// The form of a comment.
#[derive(Deserialize)]
pub(super) struct CommentForm {
    csrf: String,
    text: String,
}

pub(super) async fn comment(
    State(app): State<App>,
    viewer: Viewer,
    Path(picture): Path<String>,
    Form(comment_form): Form<CommentForm>,
) -> PageResult {
    check_csrf(&viewer, &comment_form.csrf)?;
    let picture = id(&picture, "picture")?;
    match service::comment(&app, &viewer.author, picture, &comment_form.text).await {
        Ok(comment) => see_comment(&app, picture, comment.id).await,
        Err(failure) => {
            let trouble = Trouble::of(failure)?;
            let shell = Shell::of(&app, Some(&viewer), &format!("/pictures/{picture}")).await?;
            let again = PicturePage {
                trouble,
                text: comment_form.text,
                ..load(&app, shell, picture, None).await?
            };
            page_with(again.trouble.status(), &again)
        }
    }
}

/// Redirects to the picture's page that has the comment: the first one, or that which begins with
/// it.
async fn see_comment(app: &App, picture: Id, comment: Id) -> PageResult {
    // The comment is stored: a storage that fails now must not have it sent again.
    let first = service::comments(app, picture, None, COMMENTS).await;
    let is_there = first.is_ok_and(|first| first.comments.iter().any(|it| it.id == comment));
    let query = if is_there {
        String::new()
    } else {
        format!("?comment={comment}")
    };
    let place = format!("/pictures/{picture}{query}#comment-{comment}");
    Ok(see(&place))
}

/// The form of a picture's description.
#[derive(Deserialize)]
pub(super) struct Description {
    csrf: String,
    alt: String,
}

pub(super) async fn describe(
    State(app): State<App>,
    viewer: Viewer,
    Path(picture): Path<String>,
    Form(description): Form<Description>,
) -> PageResult {
    check_csrf(&viewer, &description.csrf)?;
    let picture = id(&picture, "picture")?;
    service::describe_picture(&app, viewer.author.id, picture, &description.alt).await?;
    Ok(see(&format!("/pictures/{picture}")))
}

#[derive(Template)]
#[template(path = "pages/shared.html")]
struct SharedPage {
    shell: Shell,
    picture: Id,
    link: Url,
}

pub(super) async fn share(
    State(app): State<App>,
    viewer: Viewer,
    Path(picture): Path<String>,
    Form(press): Form<Press>,
) -> PageResult {
    press.check(&viewer)?;
    let picture = id(&picture, "picture")?;
    let link = service::share(&app, picture).await?;
    let shell = Shell::of(&app, Some(&viewer), &format!("/pictures/{picture}")).await?;
    page(&SharedPage {
        shell,
        picture,
        link,
    })
}

pub(super) async fn delete(
    State(app): State<App>,
    viewer: Viewer,
    Path(picture): Path<String>,
    Form(press): Form<Press>,
) -> PageResult {
    press.check(&viewer)?;
    let picture = service::find_picture(&app, id(&picture, "picture")?).await?;
    service::delete_picture(&app, viewer.author.id, picture.id).await?;
    Ok(see(&format!("/albums/{}", picture.album)))
}

pub(super) async fn delete_comment(
    State(app): State<App>,
    viewer: Viewer,
    Path(comment): Path<String>,
    Form(press): Form<Press>,
) -> PageResult {
    press.check(&viewer)?;
    service::delete_comment(&app, viewer.author.id, id(&comment, "comment")?).await?;
    Ok(see(press.next()))
}
