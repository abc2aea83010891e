use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Author, Id};

/// Pictures that belong together.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Album {
    /// Never changes.
    pub id: Id,
    /// Who may add pictures and delete it.
    pub owner: Author,
    /// 1 to 100 characters.
    pub title: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// A picture; its files are found by its identifier.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Picture {
    /// Never changes; later pictures sort behind earlier ones.
    pub id: Id,
    /// The album that it is in.
    pub album: Id,
    /// Who uploaded it: the album's owner.
    pub owner: Author,
    /// Up to 500 characters.
    pub caption: String,
    /// What it shows, in words, for who cannot see it; up to 500 characters, and none if its owner has said nothing.
    #[serde(default)]
    pub alt: String,
    /// What the uploaded file is, by its content.
    pub media: Media,
    /// Pixels, upright.
    pub width: u32,
    /// Pixels, upright.
    pub height: u32,
    /// Of the uploaded file.
    pub bytes: u64,
    /// When it was uploaded.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// What a user's pictures take, as they were uploaded; those that are deleted are not counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StorageUsed {
    /// How many there are.
    pub pictures: u64,
    /// Of the uploaded files, together.
    pub bytes: u64,
}

/// Kinds of files that are taken as pictures.
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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Gif, Self::Jpeg, Self::Png, Self::Webp];

    /// As in JSON and in the ends of file names: `jpeg`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gif => "gif",
            Self::Jpeg => "jpeg",
            Self::Png => "png",
            Self::Webp => "webp",
        }
    }

    /// The media type of RFC 9110: `image/jpeg`.
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

/// What somebody says about a picture.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Comment {
    /// Never changes; later comments sort behind earlier ones.
    pub id: Id,
    /// What it is about.
    pub picture: Id,
    /// Who says it.
    pub author: Author,
    /// 1 to 1,000 characters.
    pub text: String,
    /// When it was said.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}
