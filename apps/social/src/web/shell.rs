use axum::extract::FromRequestParts;
use futures_util::future::try_join;
use http::request::Parts;
use jiff::Timestamp;

use super::statics;
use crate::auth::{MaybeViewer, Viewer, mask_csrf};
use crate::model::{Comment, Id, Picture, User, topic};
use crate::{App, Failure};

/// Number of colours of the circles that stand for people; `people.js` and the style sheet know
/// them too.
const TINTS: u32 = 6;

/// The frame of all pages, and their formatting of names and times: an extractor.
#[derive(Debug)]
pub(super) struct Shell {
    /// The user who views the page.
    pub(super) viewer: Option<Me>,
    /// The CSRF token for forms and scripts; empty if nobody is logged in.
    pub(super) csrf: String,
    /// Address prefix of style sheet, scripts and icon.
    pub(super) assets: &'static str,
    /// Path of this page, with its query.
    pub(super) path: String,
}

/// The user who views a page.
#[derive(Debug)]
pub(super) struct Me {
    pub(super) id: Id,
    pub(super) name: String,
    /// The end of the bell's log.
    pub(super) bell_seq: u64,
    /// The position up to which they have seen it.
    pub(super) bell_seen: u64,
}

impl Me {
    pub(super) fn unseen(&self) -> u64 {
        self.bell_seq.saturating_sub(self.bell_seen)
    }
}

impl FromRequestParts<App> for Shell {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let MaybeViewer(viewer) = MaybeViewer::from_request_parts(parts, app).await?;
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        Self::of(app, viewer.as_ref(), path).await
    }
}

impl Shell {
    /// Makes the frame of a page that responds to a form: `path` is that of the form's page.
    pub(super) async fn of(
        app: &App,
        viewer: Option<&Viewer>,
        path: &str,
    ) -> Result<Self, Failure> {
        let Some(viewer) = viewer else {
            return Ok(Self::anonymous(path));
        };
        let id = viewer.author.id;
        let topics = [topic::bell(id)];
        let (user, heads) = try_join(app.store.user(id), app.store.heads(&topics)).await?;
        let head = heads.get(&topics[0]).copied().unwrap_or_default();
        let me = |user: User| Me {
            id,
            name: user.name,
            bell_seq: head.seq,
            bell_seen: user.bell_seen,
        };
        Ok(Self {
            viewer: user.map(me),
            csrf: mask_csrf(&viewer.csrf),
            ..Self::anonymous(path)
        })
    }

    /// Makes the frame of a page that shows nothing of its viewer.
    pub(super) fn anonymous(path: &str) -> Self {
        Self {
            viewer: None,
            csrf: String::new(),
            assets: statics::base(),
            path: path.to_owned(),
        }
    }

    pub(super) fn viewer_id(&self) -> Option<Id> {
        self.viewer.as_ref().map(|me| me.id)
    }

    pub(super) fn is(&self, user: Id) -> bool {
        self.viewer_id() == Some(user)
    }

    pub(super) fn is_at_profile(&self) -> bool {
        let is_of = |me: &Me| self.path.strip_prefix("/users/") == Some(me.name.as_str());
        self.viewer.as_ref().is_some_and(is_of)
    }

    pub(super) fn bell_seen(&self) -> u64 {
        self.viewer.as_ref().map_or(0, |me| me.bell_seen)
    }

    pub(super) fn may_delete(&self, comment: &Comment, picture: &Picture) -> bool {
        self.is(comment.author.id) || self.is(picture.owner.id)
    }

    /// Formats a time for readers without scripts; scripts show it in the reader's language and
    /// time zone.
    #[expect(
        clippy::unused_self,
        reason = "templates call methods of what they have"
    )]
    pub(super) fn date(&self, at: &Timestamp) -> String {
        at.strftime("%-d %b %Y, %H:%M UTC").to_string()
    }

    #[expect(
        clippy::unused_self,
        reason = "templates call methods of what they have"
    )]
    pub(super) fn initial(&self, name: &str) -> String {
        let first = name.chars().next();
        first
            .map(|first| first.to_ascii_uppercase().to_string())
            .unwrap_or_default()
    }

    #[expect(
        clippy::unused_self,
        reason = "templates call methods of what they have"
    )]
    pub(super) fn tint(&self, name: &str) -> u32 {
        name.bytes().map(u32::from).sum::<u32>() % TINTS
    }

    #[expect(
        clippy::unused_self,
        reason = "templates call methods of what they have"
    )]
    pub(super) fn alt(&self, picture: &Picture) -> String {
        match (picture.alt.as_str(), picture.caption.as_str()) {
            ("", "") => format!("Picture by {}", picture.owner.name),
            ("", caption) => caption.to_owned(),
            (alt, _) => alt.to_owned(),
        }
    }

    /// Returns the title of a picture's page.
    #[expect(
        clippy::unused_self,
        reason = "templates call methods of what they have"
    )]
    pub(super) fn title(&self, picture: &Picture) -> String {
        match picture.caption.as_str() {
            "" => format!("Picture by {}", picture.owner.name),
            caption => caption.to_owned(),
        }
    }
}
