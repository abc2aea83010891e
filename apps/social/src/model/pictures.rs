use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Author, Id};

/// An album of pictures.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Album {
    /// The identifier, which never changes.
    pub id: Id,
    /// The user who may add pictures and delete it.
    pub owner: Author,
    /// The title; 1 to 100 characters.
    pub title: String,
    /// The time of its creation.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// A picture, whose identifier names its files.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Picture {
    /// The identifier, which never changes; later pictures sort behind earlier ones.
    pub id: Id,
    /// The album that it is in.
    pub album: Id,
    /// The user who uploaded it: the album's owner.
    pub owner: Author,
    /// The caption; up to 500 characters.
    pub caption: String,
    /// A text for readers who cannot see it; up to 500 characters, empty if its owner has given
    /// none.
    #[serde(default)]
    pub alt: String,
    /// The kind of the uploaded file, by its content.
    pub media: Media,
    /// In pixels, upright.
    pub width: u32,
    /// In pixels, upright.
    pub height: u32,
    /// The size of the uploaded file.
    pub bytes: u64,
    /// The time of the upload.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// The storage that a user's uploads take, without those that are deleted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StorageUsed {
    /// The number of pictures.
    pub pictures: u64,
    /// The size of the uploaded files, together.
    pub bytes: u64,
}

/// The kinds of files that are accepted as pictures.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Media {
    /// image/gif; of an animation the first picture.
    Gif,
    /// image/jpeg
    Jpeg,
    /// image/png
    Png,
    /// image/webp
    Webp,
}

impl Media {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Gif, Self::Jpeg, Self::Png, Self::Webp];

    /// Returns the name in JSON and in file extensions, such as `jpeg`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gif => "gif",
            Self::Jpeg => "jpeg",
            Self::Png => "png",
            Self::Webp => "webp",
        }
    }

    /// Returns the media type (RFC 9110), such as `image/jpeg`.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Gif => "image/gif",
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Webp => "image/webp",
        }
    }
}

/// A comment on a picture.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Comment {
    /// The identifier, which never changes; later comments sort behind earlier ones.
    pub id: Id,
    /// The picture that it is on.
    pub picture: Id,
    /// The author.
    pub author: Author,
    /// The text; 1 to 1,000 characters.
    pub text: String,
    /// The time at which it was written.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}
