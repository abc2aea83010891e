use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::Path;

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::{self, FilterType};
use image::metadata::Orientation;
use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, Rgb, RgbImage,
};

use super::color::to_srgb;
use super::head::Head;
use crate::files::Size;
use crate::model::Media;

/// JPEG quality of the smaller sizes, from 1 to 100.
const QUALITY: u8 = 82;
/// What a decoder may allocate for each pixel that is allowed, in bytes: 8 for the widest kind of pixel, and as much again for its own use.
const BYTES_PER_PIXEL: u64 = 16;
/// What the decoder of PNG may allocate beside the pixels, in bytes. Profiles and texts are compressed there, up to 1,000 to 1.
const METADATA_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The longest edge, in pixels: as many as JPEG and GIF can tell. A decoder of PNG allocates whole rows.
const EDGE_MAX: u32 = 65_535;

/// A picture that was looked at, and its smaller sizes as JPEG: upright, and without what a camera writes into its files.
#[derive(Clone, Debug)]
pub struct Processed {
    /// By content.
    pub media: Media,
    /// Pixels, upright.
    pub width: u32,
    /// Pixels, upright.
    pub height: u32,
    /// Small, medium and large.
    pub smaller: [(Size, Bytes); 3],
}

/// Why a file is not taken as a picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// By its content.
    #[error("the file is no picture: GIF, JPEG, PNG and WebP are taken")]
    Unknown,
    /// It begins like a picture.
    #[error("the picture cannot be read: {0}")]
    Damaged(ImageError),
    /// By its structure, before it was decoded.
    #[error("the picture cannot be read: {0}")]
    Malformed(&'static str),
    /// It begins like a picture, and has no end.
    #[error("the file is cut off: its end is missing; upload it again as a whole")]
    Truncated,
    /// A profile, or other texts that are compressed.
    #[error("the picture has more in it beside the pixels than is read: at most 4 MiB")]
    TooMuchMetadata,
    /// By what its head says, before it was decoded.
    #[error(
        "the picture has {width} x {height} pixels; {pixels_max} in all are allowed, and {EDGE_MAX} along an edge"
    )]
    TooManyPixels {
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
        /// Pixels in all.
        pixels_max: u64,
    },
    /// Our file, our fault.
    #[error("a file cannot be read")]
    Read(#[source] io::Error),
    /// Our fault too.
    #[error("a smaller size cannot be made")]
    Encode(#[source] ImageError),
}

/// Looks at a file without decoding anything, and gives the number of its pixels.
pub(super) fn look(path: &Path, pixels_max: u64) -> Result<u64, PictureError> {
    let (_, head) = open(path, pixels_max)?;
    Ok(head.pixels())
}

/// Computes for some hundred milliseconds.
pub(super) fn process(path: &Path, pixels_max: u64) -> Result<Processed, PictureError> {
    let decoded = decode(path, pixels_max)?;
    let (mut width, mut height) = (decoded.picture.width(), decoded.picture.height());
    // Fewer pixels are cheaper to convert and to turn.
    let large = shrink(decoded.picture, edge(Size::Large));
    let mut large = to_srgb(large, decoded.profile.as_deref());
    large.apply_orientation(decoded.orientation);
    if is_turned(decoded.orientation) {
        (width, height) = (height, width);
    }
    let large = flatten(large);
    let medium = shrink_finely(&large, edge(Size::Medium));
    let small = shrink_finely(&medium, edge(Size::Small));
    let smaller = [
        (Size::Small, encode(&small)?),
        (Size::Medium, encode(&medium)?),
        (Size::Large, encode(&large)?),
    ];
    Ok(Processed {
        media: decoded.media,
        width,
        height,
        smaller,
    })
}

/// Whether width and height change places.
fn is_turned(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    )
}

/// The longest edge in pixels.
fn edge(size: Size) -> u32 {
    match size {
        Size::Small => 200,
        Size::Medium => 800,
        Size::Large | Size::Original => 2048,
    }
}

/// As it lies in the file, and what tells how it is to be shown.
struct Decoded {
    media: Media,
    picture: DynamicImage,
    orientation: Orientation,
    profile: Option<Vec<u8>>,
}

fn decode(path: &Path, pixels_max: u64) -> Result<Decoded, PictureError> {
    let (file, Head { media, .. }) = open(path, pixels_max)?;
    let mut reader = ImageReader::with_format(file, format(media));
    reader.limits(limits(media, pixels_max));
    let mut decoder = reader.into_decoder().map_err(refused)?;
    // A decoder may read the size elsewhere than it was looked for.
    let (width, height) = decoder.dimensions();
    check_size(width, height, pixels_max)?;
    Ok(Decoded {
        media,
        orientation: decoder.orientation().unwrap_or(Orientation::NoTransforms),
        profile: decoder.icc_profile().ok().flatten(),
        picture: DynamicImage::from_decoder(decoder).map_err(refused)?,
    })
}

/// A file whose head was looked at, from its beginning.
fn open(path: &Path, pixels_max: u64) -> Result<(BufReader<File>, Head), PictureError> {
    let file = File::open(path).map_err(PictureError::Read)?;
    let length = file.metadata().map_err(PictureError::Read)?.len();
    let mut file = BufReader::new(file);
    let head = Head::read(&mut file, length)?;
    check_size(head.width, head.height, pixels_max)?;
    file.rewind().map_err(PictureError::Read)?;
    Ok((file, head))
}

fn check_size(width: u32, height: u32, pixels_max: u64) -> Result<(), PictureError> {
    let is_small = u64::from(width) * u64::from(height) <= pixels_max;
    if is_small && width.max(height) <= EDGE_MAX {
        return Ok(());
    }
    Err(PictureError::TooManyPixels {
        width,
        height,
        pixels_max,
    })
}

/// They are given to a decoder before it reads.
fn limits(media: Media, pixels_max: u64) -> Limits {
    let mut limits = Limits::default();
    limits.max_image_width = Some(EDGE_MAX);
    limits.max_image_height = Some(EDGE_MAX);
    limits.max_alloc = Some(match media {
        Media::Png => METADATA_BYTES_MAX,
        Media::Gif | Media::Jpeg | Media::Webp => pixels_max.saturating_mul(BYTES_PER_PIXEL),
    });
    limits
}

fn refused(error: ImageError) -> PictureError {
    match error {
        ImageError::Limits(_) => PictureError::TooMuchMetadata,
        error => PictureError::Damaged(error),
    }
}

fn format(media: Media) -> ImageFormat {
    match media {
        Media::Gif => ImageFormat::Gif,
        Media::Jpeg => ImageFormat::Jpeg,
        Media::Png => ImageFormat::Png,
        Media::Webp => ImageFormat::WebP,
    }
}

/// Fast and rough, for the step that sees all pixels.
fn shrink(picture: DynamicImage, edge: u32) -> DynamicImage {
    if picture.width().max(picture.height()) <= edge {
        return picture;
    }
    picture.thumbnail(edge, edge)
}

fn shrink_finely(picture: &RgbImage, edge: u32) -> RgbImage {
    let longest = picture.width().max(picture.height());
    if longest <= edge {
        return picture.clone();
    }
    let scaled = |length: u32| {
        let length = u64::from(length) * u64::from(edge) / u64::from(longest);
        u32::try_from(length).map_or(1, |length| length.max(1))
    };
    imageops::resize(
        picture,
        scaled(picture.width()),
        scaled(picture.height()),
        FilterType::CatmullRom,
    )
}

/// JPEG knows no transparency: what shines through is white.
fn flatten(picture: DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.into_rgb8();
    }
    let picture = picture.into_rgba8();
    let mut flat = RgbImage::new(picture.width(), picture.height());
    for (from, to) in picture.pixels().zip(flat.pixels_mut()) {
        let [red, green, blue, alpha] = from.0;
        let over_white = |part: u8| {
            let sum = u32::from(part) * u32::from(alpha) + 255 * (255 - u32::from(alpha));
            u8::try_from(sum / 255).unwrap_or(u8::MAX)
        };
        *to = Rgb([over_white(red), over_white(green), over_white(blue)]);
    }
    flat
}

fn encode(picture: &RgbImage) -> Result<Bytes, PictureError> {
    let mut jpeg = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut jpeg, QUALITY);
    picture
        .write_with_encoder(encoder)
        .map_err(PictureError::Encode)?;
    Ok(jpeg.into())
}

#[cfg(test)]
mod tests;
