use bytesize::ByteSize;
use serde::Serialize;
use utoipa::ToSchema;

use crate::model::{Id, StorageUsed};
use crate::{App, Failure};

/// A user's use of storage, and its quota.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub struct Storage {
    /// Number of pictures.
    pub pictures: u64,
    /// Most pictures allowed.
    pub pictures_max: u64,
    /// Bytes of the uploaded files together. Smaller sizes are not counted, nor is what was
    /// deleted.
    pub bytes: u64,
    /// Most bytes allowed.
    pub bytes_max: u64,
}

/// Returns a user's use of storage.
///
/// # Errors
/// Those of the storage.
pub async fn storage(app: &App, user: Id) -> Result<Storage, Failure> {
    let StorageUsed { pictures, bytes } = app.store.storage_used(user).await?;
    let settings = &app.settings.pictures;
    Ok(Storage {
        pictures,
        pictures_max: settings.per_user_max,
        bytes,
        bytes_max: settings.bytes_per_user_max.as_u64(),
    })
}

impl Storage {
    /// Checks that so many more pictures and bytes fit into the quota.
    ///
    /// # Errors
    /// [`Failure::TooLarge`], which says how much is used.
    pub(super) fn check(&self, pictures: u64, bytes: u64) -> Result<(), Failure> {
        if self.pictures.saturating_add(pictures) > self.pictures_max {
            return Err(Failure::TooLarge(format!(
                "you have {} pictures, and may have {}: delete some first",
                self.pictures, self.pictures_max
            )));
        }
        if self.bytes.saturating_add(bytes) > self.bytes_max {
            return Err(Failure::TooLarge(format!(
                "your pictures take {} of {}, and there is no room for {} more: delete some first",
                ByteSize(self.bytes),
                ByteSize(self.bytes_max),
                ByteSize(bytes)
            )));
        }
        Ok(())
    }
}
