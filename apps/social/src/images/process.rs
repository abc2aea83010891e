use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::{self, FilterType};
use image::metadata::Orientation;
use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, Rgb, RgbImage,
};

use crate::files::Size;
use crate::model::Media;

/// JPEG quality of the smaller sizes, from 1 to 100.
const QUALITY: u8 = 82;
/// What a decoder may allocate for each pixel that is allowed, in bytes: 8 for the widest kind of pixel, and as much again for its own use.
const BYTES_PER_PIXEL: u64 = 16;

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
    /// By what its head says, before it was decoded.
    #[error("the picture has {width} x {height} pixels; {pixels_max} in all are allowed")]
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

/// Computes for some hundred milliseconds.
pub(super) fn process(path: &Path, pixels_max: u64) -> Result<Processed, PictureError> {
    let (media, picture) = decode(path, pixels_max)?;
    let (width, height) = (picture.width(), picture.height());
    let large = flatten(shrink(picture, edge(Size::Large)));
    let medium = shrink_finely(&large, edge(Size::Medium));
    let small = shrink_finely(&medium, edge(Size::Small));
    let smaller = [
        (Size::Small, encode(&small)?),
        (Size::Medium, encode(&medium)?),
        (Size::Large, encode(&large)?),
    ];
    Ok(Processed {
        media,
        width,
        height,
        smaller,
    })
}

/// The longest edge in pixels.
fn edge(size: Size) -> u32 {
    match size {
        Size::Small => 200,
        Size::Medium => 800,
        Size::Large | Size::Original => 2048,
    }
}

fn decode(path: &Path, pixels_max: u64) -> Result<(Media, DynamicImage), PictureError> {
    let file = BufReader::new(File::open(path).map_err(PictureError::Read)?);
    let reader = ImageReader::new(file)
        .with_guessed_format()
        .map_err(PictureError::Read)?;
    let media = reader
        .format()
        .and_then(media)
        .ok_or(PictureError::Unknown)?;
    let mut decoder = reader.into_decoder().map_err(PictureError::Damaged)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > pixels_max {
        return Err(PictureError::TooManyPixels {
            width,
            height,
            pixels_max,
        });
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(pixels_max.saturating_mul(BYTES_PER_PIXEL));
    decoder.set_limits(limits).map_err(PictureError::Damaged)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(PictureError::Damaged)?;
    picture.apply_orientation(orientation);
    Ok((media, picture))
}

fn media(format: ImageFormat) -> Option<Media> {
    match format {
        ImageFormat::Gif => Some(Media::Gif),
        ImageFormat::Jpeg => Some(Media::Jpeg),
        ImageFormat::Png => Some(Media::Png),
        ImageFormat::WebP => Some(Media::Webp),
        _ => None,
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
mod tests {
    use std::io::Write;

    use image::{Rgba, RgbaImage};
    use tempfile::NamedTempFile;

    use super::*;

    const PIXELS_MAX: u64 = 4_000_000;

    fn file(content: &[u8]) -> NamedTempFile {
        let mut file = NamedTempFile::new().expect("there is room for a file");
        file.write_all(content)
            .expect("there is room for its content");
        file
    }

    fn picture(width: u32, height: u32, format: ImageFormat) -> NamedTempFile {
        let mut content = io::Cursor::new(Vec::new());
        let picture = DynamicImage::new_rgb8(width, height);
        picture
            .write_to(&mut content, format)
            .expect("the picture is encoded");
        file(content.get_ref())
    }

    fn dimensions(jpeg: &Bytes) -> (u32, u32) {
        let picture = image::load_from_memory_with_format(jpeg, ImageFormat::Jpeg);
        let picture = picture.expect("a smaller size is JPEG");
        (picture.width(), picture.height())
    }

    #[test]
    fn three_sizes_keep_the_proportions() {
        let file = picture(2500, 1000, ImageFormat::Jpeg);
        let processed = process(file.path(), PIXELS_MAX).expect("it is a picture");
        assert_eq!(
            (processed.media, processed.width, processed.height),
            (Media::Jpeg, 2500, 1000)
        );
        let sizes = processed
            .smaller
            .each_ref()
            .map(|(_, jpeg)| dimensions(jpeg));
        assert_eq!(sizes, [(200, 79), (800, 319), (2048, 819)]);
    }

    #[test]
    fn a_small_picture_stays_as_large_as_it_is() {
        let file = picture(50, 3, ImageFormat::Png);
        let processed = process(file.path(), PIXELS_MAX).expect("it is a picture");
        assert_eq!(
            processed.smaller.map(|(_, jpeg)| dimensions(&jpeg)),
            [(50, 3); 3]
        );
    }

    #[test]
    fn the_type_is_by_content() {
        for (format, media) in [
            (ImageFormat::Gif, Media::Gif),
            (ImageFormat::Png, Media::Png),
            (ImageFormat::WebP, Media::Webp),
        ] {
            let file = picture(2, 2, format);
            assert_eq!(
                process(file.path(), PIXELS_MAX)
                    .expect("it is a picture")
                    .media,
                media
            );
        }
        let error = process(file(b"<svg/>").path(), PIXELS_MAX).expect_err("no type is known");
        assert!(matches!(error, PictureError::Unknown), "{error:?}");
    }

    /// The head of a PNG of 60,000 x 60,000 pixels: decoded it would be 14 GB.
    #[test]
    fn a_decompression_bomb_is_refused_by_its_head() {
        let mut content =
            std::fs::read(picture(1, 1, ImageFormat::Png).path()).expect("it is there");
        content[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
        let checksum = png_checksum(&content[12..29]);
        content[29..33].copy_from_slice(&checksum.to_be_bytes());
        let error = process(file(&content).path(), PIXELS_MAX).expect_err("it is a bomb");
        assert!(
            matches!(error, PictureError::TooManyPixels { width: 60_000, .. }),
            "{error:?}"
        );
    }

    fn png_checksum(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
                (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
            })
        })
    }

    #[test]
    fn what_begins_like_a_picture_and_ends_early_is_damaged() {
        let whole = std::fs::read(picture(300, 300, ImageFormat::Png).path()).expect("it is there");
        let error = process(file(&whole[..whole.len() / 2]).path(), PIXELS_MAX)
            .expect_err("half of it is missing");
        assert!(matches!(error, PictureError::Damaged(_)), "{error:?}");
    }

    #[test]
    fn transparency_becomes_white() {
        let clear = RgbaImage::from_pixel(4, 4, Rgba([0, 0, 0, 0]));
        let flat = flatten(DynamicImage::ImageRgba8(clear));
        assert!(flat.pixels().all(|pixel| pixel.0 == [255; 3]));
    }
}
