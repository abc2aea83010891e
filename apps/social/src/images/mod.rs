//! What computes on pictures: on a stage of its own, of at most two threads, so that the rest goes on. (The
//! thesis' programs 4.3 and 4.4: a dispatcher for image processing.)

mod color;
mod head;
mod process;

use std::io;
use std::path::PathBuf;

use anyhow::Context;
use greenroom::{Client, Stage, StageError};

use crate::Failure;
use crate::config::PictureSettings;
use crate::model::Author;
use crate::turns::Turns;
pub use process::{PictureError, Processed};

/// A turn is counted in so many pixels.
const UNIT: u64 = 1_000;

/// A stage for pictures; cheap to clone.
#[derive(Clone, Debug)]
pub struct Images {
    stage: Stage,
    turns: Turns,
    pixels_max: u64,
}

impl Images {
    /// Makes the stage `pictures`.
    ///
    /// # Errors
    /// If the settings ask for no threads.
    pub fn new(settings: &PictureSettings) -> anyhow::Result<Self> {
        let stage = Stage::builder("pictures")
            .threads(1..=settings.threads)
            .blocking_threads_max(settings.threads)
            .queue_max(settings.queue_max)
            .queue_wait_max(settings.queue_wait_max)
            .build()
            .context("`pictures` cannot be as the settings say")?;
        let pixels_max = settings.pixels_max;
        Ok(Self {
            stage,
            turns: Turns::new(
                units(pixels_max),
                settings.queue_max,
                settings.queue_wait_max,
            ),
            pixels_max,
        })
    }

    /// Finds out what the file is by its content, and makes its three smaller sizes. A file of too many pixels is refused
    /// before anything is decoded.
    ///
    /// Owners share the stage by the time that their pictures take, and none has more under way than the pixels that one
    /// picture may have: who brings six large ones has them done one after the other, while others' are done beside them.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] and [`Failure::TooLarge`] as the file deserves, [`Failure::Unavailable`] if too many
    /// pictures wait.
    pub async fn process(&self, owner: &Author, file: PathBuf) -> Result<Processed, Failure> {
        let pixels_max = self.pixels_max;
        let path = file.clone();
        let look = tokio::task::spawn_blocking(move || process::look(&path, pixels_max));
        let pixels = look.await.map_err(Failure::internal)??;
        let _turn = self.turns.take(owner.id, units(pixels)).await?;
        let owner = Client::named(&format!("user {}", owner.id));
        let work = owner.within(|| self.stage.run(move || process::process(&file, pixels_max)));
        match work.await {
            Ok(Ok(processed)) => Ok(processed),
            Ok(Err(error)) => Err(error.into()),
            Err(error) => Err(overloaded(error)),
        }
    }
}

fn units(pixels: u64) -> u32 {
    u32::try_from(pixels.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

impl From<PictureError> for Failure {
    fn from(error: PictureError) -> Self {
        match error {
            PictureError::Unknown
            | PictureError::Damaged(_)
            | PictureError::Malformed(_)
            | PictureError::Truncated => Self::Unsupported(error.to_string()),
            PictureError::TooManyPixels { .. } | PictureError::TooMuchMetadata => {
                Self::TooLarge(error.to_string())
            }
            PictureError::Read(error) => io_failure(error),
            PictureError::Encode(error) => Self::internal(error),
        }
    }
}

/// A file of ours cannot be read or written: the disk is full, mostly.
pub(crate) fn io_failure(error: io::Error) -> Failure {
    Failure::Unavailable {
        what: "the place for files",
        retry_after: std::time::Duration::from_secs(5),
        source: Some(error.into()),
    }
}

fn overloaded(error: StageError) -> Failure {
    match error {
        StageError::Rejected(rejected) => Failure::Unavailable {
            what: "a place in the queue of pictures",
            retry_after: std::time::Duration::from_secs(rejected.retry_after),
            source: Some(rejected.into()),
        },
        StageError::Panicked(panicked) => Failure::internal(panicked),
    }
}
