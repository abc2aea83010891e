use std::io::Write;

use image::codecs::png::PngEncoder;
use image::{ImageEncoder, Rgba, RgbaImage};
use moxcms::ColorProfile;
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
fn a_damaged_picture_shows_nothing_of_the_one_before() {
    let mut content = io::Cursor::new(Vec::new());
    DynamicImage::new_rgb8(2500, 1000)
        .write_to(&mut content, ImageFormat::Jpeg)
        .expect("the picture is encoded");
    let mut content = content.into_inner();
    content.truncate(content.len() / 2);
    // The end of the file is there, so that only a decoder finds what is missing.
    content.extend([0xff, 0xd9]);
    let damaged = file(&content);
    let make = |path: &Path| process(path, PIXELS_MAX).map(|processed| processed.smaller);
    let path = damaged.path().to_owned();
    let alone = std::thread::spawn(move || make(&path).ok());
    let alone = alone.join().expect("it does not panic");

    let white = RgbImage::from_pixel(2500, 1000, Rgb([255; 3]));
    let mut content = io::Cursor::new(Vec::new());
    white
        .write_to(&mut content, ImageFormat::Jpeg)
        .expect("the picture is encoded");
    make(file(content.get_ref()).path()).expect("it is a picture");
    assert_eq!(make(damaged.path()).ok(), alone);
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

/// The head of a PNG of 60,000 x 60,000 pixels, which would decode to 14 GB.
#[test]
fn a_decompression_bomb_is_refused_by_its_head() {
    let mut content = std::fs::read(picture(1, 1, ImageFormat::Png).path()).expect("it is there");
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

/// A colour profile of 64 MiB of zeros, which take 64 KiB in the file.
#[test]
fn a_profile_that_is_a_bomb_is_not_unpacked() {
    let content = png_with_profile(vec![0; 64 * 1024 * 1024]);
    assert!(content.len() < 200_000, "it packs well: {}", content.len());
    let decoded = decode(file(&content).path(), PIXELS_MAX).expect("it is a picture");
    assert_eq!(decoded.profile.map(|profile| profile.len()), None);
}

fn png_with_profile(profile: Vec<u8>) -> Vec<u8> {
    let mut content = Vec::new();
    let mut encoder = PngEncoder::new(&mut content);
    encoder.set_icc_profile(profile).expect("PNG has profiles");
    let pixels = [200, 100, 100].repeat(8 * 8);
    encoder
        .write_image(&pixels, 8, 8, image::ExtendedColorType::Rgb8)
        .expect("the picture is encoded");
    content
}

#[test]
fn smaller_sizes_have_the_colours_of_srgb() {
    let profile = ColorProfile::new_display_p3().encode().expect("a profile");
    let file = file(&png_with_profile(profile));
    let processed = process(file.path(), PIXELS_MAX).expect("it is a picture");
    let [(_, small), ..] = processed.smaller;
    let small = image::load_from_memory(&small).expect("it is JPEG");
    let [red, green, blue] = small.into_rgb8().get_pixel(4, 4).0;
    // The sRGB of 200, 100, 100 in Display P3; JPEG is not exact.
    let is_near = |found: u8, expected: u8| found.abs_diff(expected) <= 4;
    assert!(
        is_near(red, 215) && is_near(green, 92) && is_near(blue, 96),
        "{red} {green} {blue}"
    );
}

#[test]
fn a_jpeg_without_its_end_is_truncated() {
    let whole = std::fs::read(picture(300, 300, ImageFormat::Jpeg).path()).expect("it is there");
    for length in [whole.len() - 2, whole.len() / 2, 30, 5] {
        let error =
            process(file(&whole[..length]).path(), PIXELS_MAX).expect_err("it is truncated");
        assert!(
            matches!(error, PictureError::Truncated),
            "{length}: {error:?}"
        );
    }
    let mut longer = whole;
    longer.extend(b"what some telephones put behind a picture");
    process(file(&longer).path(), PIXELS_MAX).expect("it has its end");
}

/// A frame of an animation that is larger than the screen it is shown on.
#[test]
fn a_gif_is_as_large_as_its_frame() {
    let mut content = std::fs::read(picture(2, 2, ImageFormat::Gif).path()).expect("it is there");
    let screen = content[6..10].to_vec();
    assert_eq!(screen, [2, 0, 2, 0]);
    let frame = content
        .windows(9)
        .position(|bytes| bytes == [0x2c, 0, 0, 0, 0, 2, 0, 2, 0]);
    let frame = frame.expect("it has a frame");
    content[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    let error = process(file(&content).path(), PIXELS_MAX).expect_err("it is a bomb");
    assert!(
        matches!(error, PictureError::TooManyPixels { width: 65_535, .. }),
        "{error:?}"
    );
}

/// A canvas of one pixel, and on it a picture of 16,383 x 16,383, which a decoder compares with it
/// only at the end.
#[test]
fn a_webp_is_not_larger_than_its_canvas() {
    let mut content = b"RIFF\x2e\0\0\0WEBPVP8X\x0a\0\0\0".to_vec();
    content.extend([0; 10]);
    content.extend(b"VP8 \x0a\0\0\0");
    content.extend([0x10, 0, 0, 0x9d, 0x01, 0x2a, 0xff, 0x3f, 0xff, 0x3f]);
    let error = process(file(&content).path(), PIXELS_MAX).expect_err("it is a bomb");
    assert!(matches!(error, PictureError::Malformed(_)), "{error:?}");
    let whole = picture(30, 20, ImageFormat::WebP);
    process(whole.path(), PIXELS_MAX).expect("it is a picture");
    // The length of the chunk becomes four gigabytes.
    let length = content.len() - 14;
    content[length..length + 4].copy_from_slice(&[0xff; 4]);
    let error = process(file(&content).path(), PIXELS_MAX).expect_err("it is truncated");
    assert!(matches!(error, PictureError::Truncated), "{error:?}");
}

#[test]
fn a_long_edge_is_refused_though_the_pixels_are_few() {
    let mut content = std::fs::read(picture(1, 1, ImageFormat::Png).path()).expect("it is there");
    content[16..24].copy_from_slice(&[0, 0x10, 0, 0, 0, 0, 0, 1]);
    let error = process(file(&content).path(), PIXELS_MAX).expect_err("no row is so long");
    assert!(
        matches!(error, PictureError::TooManyPixels { height: 1, .. }),
        "{error:?}"
    );
}
