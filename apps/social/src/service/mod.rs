//! The operations of users, for the pages and the API alike. Each change is stored together with
//! its effects, then sent to the feed and to the actors of the outbox.

mod albums;
mod bell;
mod browsers;
mod comments;
mod credentials;
mod keys;
mod likes;
mod pages;
mod people;
mod pictures;
mod storage;
mod timeline;
mod upload;

pub use albums::{album, album_to_fill, albums, create_album, delete_album};
pub use bell::{Bell, BellEntry, bell, see_bell};
pub use browsers::{add_browser, browsers, remove_browser};
pub use comments::{CommentPage, comment, comments, delete_comment};
pub use credentials::{
    ask_for_email, ask_for_reset, confirm_email, delete_account, end_sessions, find_ticket,
    reset_password, set_password,
};
pub use keys::{create_key, delete_key, keys};
pub use likes::{LikeView, set_like};
pub use pages::{PAGE_MAX, Page, PictureView, of_album, of_user, one};
pub use people::{NewUser, authenticate, change_user, register, user};
pub(crate) use people::{author_key, generation_key, reach_key};
pub use pictures::{delete_picture, describe_picture, find_picture, share};
pub use storage::{Storage, storage};
pub use timeline::{timeline, timeline_json};
pub use upload::{Upload, check_room, upload};

use jiff::Timestamp;

use crate::App;
use crate::model::{Event, TaskKind};

/// Returns the time to the millisecond, the precision of every storage: a response shows the same
/// value as a later read.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// Publishes events to the feed, on all replicas.
async fn publish(app: &App, events: &[Event]) {
    if !events.is_empty() {
        app.feed.publish(events).await;
    }
}

fn wake(app: &App, kinds: &[TaskKind]) {
    for kind in kinds {
        app.outbox.wake(*kind);
    }
}
