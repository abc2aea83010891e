use std::sync::Arc;

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;
use jiff::Timestamp;

use crate::Failure;
use crate::model::{Author, Comment, Id, Media, Picture};
use crate::service::PictureView;

/// The result of a page's handler.
pub(super) type PageResult = Result<Response, Failure>;

pub(super) fn page(template: &impl Template) -> PageResult {
    page_with(StatusCode::OK, template)
}

pub(super) fn page_with(status: StatusCode, template: &impl Template) -> PageResult {
    let text = template.render().map_err(Failure::internal)?;
    Ok((status, Html(text)).into_response())
}

/// A template that scripts fill in when a new picture comes; they look for its identifier of zeros.
pub(super) fn blank_picture() -> PictureView {
    let nobody = Id::from_bytes([0; 16]);
    PictureView {
        picture: Arc::new(Picture {
            id: nobody,
            album: nobody,
            owner: blank_author(),
            caption: String::new(),
            alt: String::new(),
            media: Media::Jpeg,
            width: 1,
            height: 1,
            bytes: 0,
            created_at: Timestamp::UNIX_EPOCH,
        }),
        likes: 0,
        likes_seq: 0,
        comments: 0,
        comments_seq: 0,
        liked: false,
    }
}

/// A template that scripts fill in when a new comment comes.
pub(super) fn blank_comment() -> Comment {
    let nobody = Id::from_bytes([0; 16]);
    Comment {
        id: nobody,
        picture: nobody,
        author: blank_author(),
        text: String::new(),
        created_at: Timestamp::UNIX_EPOCH,
    }
}

fn blank_author() -> Author {
    Author {
        id: Id::from_bytes([0; 16]),
        name: String::new(),
    }
}
