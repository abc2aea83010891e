//! Processing of pictures, on a stage of its own, of two threads by default, so that everything
//! else goes on. (The thesis' programs 4.3 and 4.4: a dispatcher for image processing.)

mod color;
mod group;
mod head;
mod process;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use greenroom::{Client, Stage, StageError};

use crate::Failure;
use crate::config::PictureSettings;
use crate::model::Id;
pub(crate) use group::publish;
pub use group::{Resized, Resizers};
pub use process::{PictureError, Processed};

/// The stated cost of a pixel, so that pictures are charged in proportion; the stage learns how
/// fast the machine is.
const NANOS_PER_PIXEL: u64 = 25;
/// The stated cost of each picture besides, however small it is.
const LEAST: Duration = Duration::from_millis(1);

/// The noun phrase for the stage's queue.
const QUEUE: &str = "a place in the queue of pictures";
/// The noun phrase for the storage of files.
const PLACE: &str = "the place for files";

/// The way of a process' own uploads.
#[derive(Clone, Debug)]
pub enum Workplace {
    /// The stage of this process.
    Here(Images),
    /// The stages of other processes.
    Elsewhere(Resizers),
}

/// A stage for pictures; cheap to clone.
#[derive(Clone, Debug)]
pub struct Images {
    stage: Stage,
    pixels_max: u64,
}

impl Images {
    /// Creates the stage `pictures`.
    ///
    /// # Errors
    /// Fails if the settings ask for no threads.
    pub fn new(settings: &PictureSettings) -> anyhow::Result<Self> {
        let stage = Stage::builder("pictures")
            .threads(1..=settings.threads)
            .blocking_threads_max(settings.threads)
            .queue_max(settings.queue_max)
            .queue_wait_max(settings.queue_wait_max)
            .build()
            .context("`pictures` cannot be as the settings say")?;
        let pixels_max = settings.pixels_max;
        Ok(Self { stage, pixels_max })
    }

    /// Detects the kind of a file by its content, and makes its three smaller sizes. A file of too
    /// many pixels is rejected before anything is decoded.
    ///
    /// Owners share the stage by the time that their pictures take. A picture is charged by its
    /// pixels when it begins, so an owner who brings many large ones keeps nobody waiting behind
    /// more than the first, and the predicted wait counts them.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] and [`Failure::TooLarge`] by the fault of the file,
    /// [`Failure::Unavailable`] if too many pictures wait.
    pub async fn process(&self, owner: Id, file: PathBuf) -> Result<Processed, Failure> {
        let pixels_max = self.pixels_max;
        let path = file.clone();
        // The head is read before the picture queues, since the number of pixels is its stated
        // cost.
        let look = tokio::task::spawn_blocking(move || process::look(&path, pixels_max));
        let pixels = look.await.map_err(Failure::internal)??;
        let owner = Client::named(&format!("user {owner}"));
        let work = move || process::process(&file, pixels_max);
        let work = owner.within(|| self.stage.run_stating(cost(pixels), work));
        match work.await {
            Ok(Ok(processed)) => Ok(processed),
            Ok(Err(error)) => Err(error.into()),
            Err(error) => Err(overloaded(error)),
        }
    }
}

impl Images {
    /// Predicts the wait of a picture that comes last.
    fn predicted_wait(&self) -> Duration {
        self.stage.predicted_wait()
    }
}

fn cost(pixels: u64) -> Duration {
    LEAST + Duration::from_nanos(pixels.saturating_mul(NANOS_PER_PIXEL))
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

/// Converts an error of a file of this server: mostly the disk is full.
pub(crate) fn io_failure(error: io::Error) -> Failure {
    Failure::Unavailable {
        what: PLACE,
        retry_after: Duration::from_secs(5),
        source: Some(error.into()),
    }
}

fn overloaded(error: StageError) -> Failure {
    Failure::of_stage(error, QUEUE)
}
