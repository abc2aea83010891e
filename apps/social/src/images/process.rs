use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::Path;

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::{self, FilterType};
use image::metadata::Orientation;
use image::{
    ColorType, DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, Rgb,
    RgbImage,
};

use super::color::to_srgb;
use super::head::Head;
use crate::files::Size;
use crate::model::Media;

/// JPEG quality of the smaller sizes, from 1 to 100.
const QUALITY: u8 = 82;
/// The bytes that a decoder may allocate for each allowed pixel: 8 for the widest kind of pixel,
/// and as much again for its own use.
const BYTES_PER_PIXEL: u64 = 16;
/// The bytes that the decoder of PNG may allocate beside the pixels. Profiles and texts are
/// compressed there, up to 1,000 to 1.
const METADATA_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The longest edge in pixels: the largest of JPEG and GIF. A decoder of PNG allocates whole rows.
const EDGE_MAX: u32 = 65_535;

/// The longest buffer of pixels, in bytes, that a thread keeps for its next picture: enough for 16
/// megapixels, as most cameras make them. The C library maps so long a buffer anew each time, and
/// the first touch of each of its pages costs more than to clear it.
const PIXELS_BYTES_KEPT: usize = 48 * 1024 * 1024;

thread_local! {
    /// The pixels of the last picture, whose place is used again.
    static PIXELS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A processed picture, with its smaller sizes as JPEG: upright, and without the metadata that
/// cameras write.
#[derive(Clone, Debug)]
pub struct Processed {
    /// The kind of the file, by its content.
    pub media: Media,
    /// In pixels, upright.
    pub width: u32,
    /// In pixels, upright.
    pub height: u32,
    /// Small, medium and large.
    pub smaller: [(Size, Bytes); 3],
}

/// The reason why a file is not accepted as a picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The content is of no supported kind.
    #[error("the file is no picture: GIF, JPEG, PNG and WebP are taken")]
    Unknown,
    /// It begins like a picture, but cannot be decoded.
    #[error("the picture cannot be read: {0}")]
    Damaged(ImageError),
    /// The structure is wrong, as found before decoding.
    #[error("the picture cannot be read: {0}")]
    Malformed(&'static str),
    /// It begins like a picture, but its end is missing.
    #[error("the file is truncated: its end is missing; upload it again as a whole")]
    Truncated,
    /// A compressed profile or text is too large.
    #[error("the picture has more in it beside the pixels than is read: at most 4 MiB")]
    TooMuchMetadata,
    /// It is too large, by its head, before decoding.
    #[error(
        "the picture has {width} x {height} pixels; {pixels_max} in all are allowed, \
         and {EDGE_MAX} along an edge"
    )]
    TooManyPixels {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
        /// The limit of `width` times `height`.
        pixels_max: u64,
    },
    /// A file of this server cannot be read.
    #[error("a file cannot be read")]
    Read(#[source] io::Error),
    /// A smaller size cannot be encoded.
    #[error("a smaller size cannot be made")]
    Encode(#[source] ImageError),
}

/// Checks a file without decoding anything, and returns the number of its pixels.
pub(super) fn look(path: &Path, pixels_max: u64) -> Result<u64, PictureError> {
    let (_, head) = open(path, pixels_max)?;
    Ok(head.pixels())
}

/// Decodes a file and makes its smaller sizes, which takes some hundred milliseconds.
pub(super) fn process(path: &Path, pixels_max: u64) -> Result<Processed, PictureError> {
    let decoded = decode(path, pixels_max)?;
    let (mut width, mut height) = (decoded.picture.width(), decoded.picture.height());
    // Shrunk first: fewer pixels are cheaper to convert and to turn.
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

/// Returns `true` if the orientation swaps width and height.
fn is_turned(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    )
}

/// Returns the longest edge of a size, in pixels.
fn edge(size: Size) -> u32 {
    match size {
        Size::Small => 200,
        Size::Medium => 800,
        Size::Large | Size::Original => 2048,
    }
}

/// A decoded picture as stored in the file, with its orientation and colour profile.
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
    let mut decoder = reader.into_decoder().map_err(decode_error)?;
    // A decoder may find another size than `Head` did.
    let (width, height) = decoder.dimensions();
    check_size(width, height, pixels_max)?;
    Ok(Decoded {
        media,
        orientation: decoder.orientation().unwrap_or(Orientation::NoTransforms),
        profile: decoder.icc_profile().ok().flatten(),
        picture: pixels(decoder).map_err(decode_error)?,
    })
}

/// Decodes the pixels; those of most photographs into the buffer that the thread keeps.
fn pixels(decoder: impl ImageDecoder) -> Result<DynamicImage, ImageError> {
    let (width, height) = decoder.dimensions();
    let bytes = usize::try_from(decoder.total_bytes()).unwrap_or(usize::MAX);
    let is_shrunk = width.max(height) > edge(Size::Large);
    if !is_shrunk || decoder.color_type() != ColorType::Rgb8 || bytes > PIXELS_BYTES_KEPT {
        return DynamicImage::from_decoder(decoder);
    }
    let mut pixels = PIXELS.take();
    if pixels.capacity() < bytes {
        pixels = vec![0; bytes];
    } else {
        // A decoder may leave the pixels that a damaged file lacks as they are: they must not be
        // those of another picture.
        pixels.clear();
        pixels.resize(bytes, 0);
    }
    decoder.read_image(&mut pixels)?;
    let picture = RgbImage::from_raw(width, height, pixels);
    Ok(picture.expect("it is as long as its size says").into())
}

/// Keeps the buffer of a picture that is done with.
fn recycle(picture: DynamicImage) {
    if let DynamicImage::ImageRgb8(picture) = picture {
        let pixels = picture.into_raw();
        if pixels.capacity() <= PIXELS_BYTES_KEPT {
            PIXELS.set(pixels);
        }
    }
}

/// Opens a file, checks its head, and rewinds it.
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

/// Returns the limits that a decoder gets before it reads.
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

fn decode_error(error: ImageError) -> PictureError {
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

/// Shrinks fast and roughly, for the step that reads all pixels.
fn shrink(picture: DynamicImage, edge: u32) -> DynamicImage {
    if picture.width().max(picture.height()) <= edge {
        return picture;
    }
    let shrunk = picture.thumbnail(edge, edge);
    recycle(picture);
    shrunk
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

/// Puts a picture on white, since JPEG has no transparency.
fn flatten(picture: DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.into_rgb8();
    }
    let picture = picture.into_rgba8();
    let mut flat = RgbImage::new(picture.width(), picture.height());
    for (from, to) in picture.pixels().zip(flat.pixels_mut()) {
        let [red, green, blue, alpha] = from.0;
        let over_white = |channel: u8| {
            let sum = u32::from(channel) * u32::from(alpha) + 255 * (255 - u32::from(alpha));
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
