//! The group `images`: processes that compute on the pictures which others were sent. What goes
//! between them is the picture's identifier; its files are in the storage that all of them share.

use std::time::Duration;

use greenroom::actor::{Actor, ActorSystem, Context, Mailbox, Overflow, ReplyTo, messages};
use greenroom::cluster::{Cluster, Publication, PublishSettings, Remote, RemoteError};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::{Images, PLACE, QUEUE};
use crate::Failure;
use crate::config::PictureSettings;
use crate::files::Files;
use crate::model::{Id, Media};

/// The name of the group.
const GROUP: &str = "images";
/// The dispatcher of the actor.
const DISPATCHER: &str = "actors";
/// The time that a picture may take beside its wait for a thread: it is read, computed on, and
/// three files are stored.
const WORK_MAX: Duration = Duration::from_secs(12);
/// The time after which to retry if no process took a picture, or the one that had it died.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A picture whose smaller sizes are stored.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Resized {
    /// The kind of the file, by its content.
    pub media: Media,
    /// In pixels, upright.
    pub width: u32,
    /// In pixels, upright.
    pub height: u32,
}

/// The reason why a picture was not resized, as it goes from process to process.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Refusal {
    /// [`Failure::Unsupported`].
    Unsupported(String),
    /// [`Failure::TooLarge`].
    TooLarge(String),
    /// [`Failure::Unavailable`]: the stage has too much to do.
    Overloaded {
        /// The seconds to wait before a retry.
        retry_after: u64,
    },
    /// [`Failure::Unavailable`]: a file could not be read or stored.
    NoFiles {
        /// The seconds to wait before a retry.
        retry_after: u64,
    },
    /// [`Failure::Internal`]; the process that has it logged it.
    Internal,
}

/// The member of the group: an actor that has its stage compute.
pub(crate) struct Resizer {
    images: Images,
    files: Files,
    under_way: JoinSet<()>,
}

impl Actor for Resizer {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(1_024).overflow(Overflow::Refuse)
    }

    /// Finishes what is under way, so that an orderly shutdown fails no upload.
    async fn stopped(&mut self, _: &mut Context<Self>) {
        while self.under_way.join_next().await.is_some() {}
    }
}

#[messages(remote = "images.v1")]
impl Resizer {
    /// Makes the smaller sizes of a picture, whose original is in the shared files, beside it. The
    /// stage is shared out among owners.
    #[message]
    fn resize(&mut self, picture: Id, owner: Id, reply: ReplyTo<Result<Resized, Refusal>>) {
        while self.under_way.try_join_next().is_some() {}
        let (images, files) = (self.images.clone(), self.files.clone());
        self.under_way.spawn(async move {
            let resized = resize(&images, &files, picture, owner).await;
            reply.send(resized.map_err(|failure| Refusal::of(picture, failure)));
        });
    }
}

async fn resize(
    images: &Images,
    files: &Files,
    picture: Id,
    owner: Id,
) -> Result<Resized, Failure> {
    let original = files.original(picture).await?;
    let processed = images.process(owner, original.path().to_owned()).await?;
    files.store_smaller(picture, &processed).await?;
    Ok(Resized {
        media: processed.media,
        width: processed.width,
        height: processed.height,
    })
}

/// Makes this process a member of the group.
///
/// # Errors
/// Fails if there is no dispatcher `actors`, and as [`Cluster::publish`] does.
pub(crate) fn publish(
    cluster: &Cluster,
    system: &ActorSystem,
    images: &Images,
    files: &Files,
    settings: &PictureSettings,
) -> anyhow::Result<Publication> {
    let (of_stage, files) = (images.clone(), files.clone());
    let make = move || Resizer {
        images: of_stage.clone(),
        files: files.clone(),
        under_way: JoinSet::new(),
    };
    let actor = system.build(make).name("resizer").dispatcher(DISPATCHER);
    let actor = actor.spawn()?;
    let images = images.clone();
    // Whom the stage would reject is sent to another member, as long as there is one.
    let publishing = PublishSettings::default()
        .in_flight_max(settings.threads.saturating_add(settings.queue_max))
        .reported_wait(move || images.predicted_wait());
    Ok(cluster.publish_with(GROUP, &actor, publishing)?)
}

/// The group, for those who send it pictures; cheap to clone.
#[derive(Clone, Debug)]
pub struct Resizers {
    group: Remote<Resizer>,
    timeout: Duration,
}

impl Resizers {
    /// Returns the group, which need not have a member yet.
    ///
    /// # Errors
    /// Never: the group's name is allowed.
    pub fn new(cluster: &Cluster, settings: &PictureSettings) -> anyhow::Result<Self> {
        Ok(Self {
            group: cluster.actor(GROUP)?,
            timeout: settings.queue_wait_max.saturating_add(WORK_MAX),
        })
    }

    /// Has the smaller sizes of a picture made by the member with the shortest wait. Its original
    /// must be in the shared files; the smaller sizes are there afterwards.
    ///
    /// # Errors
    /// Those of [`Images::process`], and [`Failure::Unavailable`] if no process takes pictures, or
    /// the one that had this one died.
    pub async fn resize(&self, picture: Id, owner: Id) -> Result<Resized, Failure> {
        let asked = self.group.resize(picture, owner).timeout(self.timeout);
        match asked.ask().await {
            Ok(Ok(resized)) => Ok(resized),
            Ok(Err(refusal)) => Err(refusal.into()),
            Err(error) => Err(unhandled(error)),
        }
    }
}

/// Converts the error of a picture of which nobody told what became of it.
fn unhandled(error: RemoteError) -> Failure {
    match error {
        RemoteError::NoSuch { .. } | RemoteError::Late { .. } | RemoteError::Lost { .. } => {
            Failure::Unavailable {
                what: QUEUE,
                retry_after: RETRY_AFTER,
                source: Some(error.into()),
            }
        }
        RemoteError::Refused { retry_after, .. } => Failure::Unavailable {
            what: QUEUE,
            retry_after: retry_after.unwrap_or(RETRY_AFTER),
            source: Some(error.into()),
        },
        error => Failure::internal(error),
    }
}

impl Refusal {
    /// Takes a failure apart, for another process. What that one will not know is logged here.
    fn of(picture: Id, failure: Failure) -> Self {
        match failure {
            Failure::Unsupported(text) => return Self::Unsupported(text),
            Failure::TooLarge(text) => return Self::TooLarge(text),
            _ => {}
        }
        tracing::warn!(%picture, "a picture is not resized");
        failure.log();
        match failure {
            Failure::Unavailable {
                what, retry_after, ..
            } => {
                let retry_after = retry_after.as_secs();
                if what == PLACE {
                    Self::NoFiles { retry_after }
                } else {
                    Self::Overloaded { retry_after }
                }
            }
            _ => Self::Internal,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let unavailable = |what, seconds| Self::Unavailable {
            what,
            retry_after: Duration::from_secs(seconds),
            source: None,
        };
        match refusal {
            Refusal::Unsupported(text) => Self::Unsupported(text),
            Refusal::TooLarge(text) => Self::TooLarge(text),
            Refusal::Overloaded { retry_after } => unavailable(QUEUE, retry_after),
            Refusal::NoFiles { retry_after } => unavailable(PLACE, retry_after),
            Refusal::Internal => Self::internal("the process that has the picture logged it"),
        }
    }
}
