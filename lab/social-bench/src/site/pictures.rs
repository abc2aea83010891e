//! Pictures to upload.

use std::io::Cursor;

use anyhow::Context as _;
use image::codecs::jpeg::JpegEncoder;
use image::{ImageFormat, RgbImage};

/// Pixels of a side: 12 megapixels, as telephones take them.
const WIDTH: u32 = 4_000;
const HEIGHT: u32 = 3_000;
/// JPEG quality, up to 100.
const JPEG_QUALITY: u8 = 90;
/// Largest deviation of a pixel from the gradient below it: with 24 the file has about 5 MB.
const NOISE: u32 = 24;

/// Returns a PNG of one pixel.
pub(crate) fn small_png() -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    RgbImage::from_pixel(1, 1, image::Rgb([30, 120, 200]))
        .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)
        .context("a PNG")?;
    Ok(bytes)
}

/// Returns a JPEG of 12 megapixels that is as hard to decode as a photograph.
pub(crate) fn large_jpeg() -> anyhow::Result<Vec<u8>> {
    jpeg(WIDTH, HEIGHT)
}

fn jpeg(width: u32, height: u32) -> anyhow::Result<Vec<u8>> {
    let mut random = 0x2545_f491_u32;
    let picture = RgbImage::from_fn(width, height, |x, y| {
        random = next(random);
        let noise = [random, random >> 8, random >> 16].map(|bits| bits % NOISE);
        let gradient = [
            x * 200 / width,
            y * 200 / height,
            (x + y) * 200 / (width + height),
        ];
        let mut channels = gradient.iter().zip(noise);
        let mut channel = || {
            let sum = channels.next().map_or(0, |(base, noise)| base + noise);
            u8::try_from(sum).unwrap_or(u8::MAX)
        };
        image::Rgb([channel(), channel(), channel()])
    });
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY)
        .encode_image(&picture)
        .context("a JPEG")?;
    Ok(bytes)
}

/// Marsaglia's xorshift: the same noise each time.
fn next(mut state: u32) -> u32 {
    state ^= state << 13;
    state ^= state >> 17;
    state ^ (state << 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_picture_has_as_many_bytes_as_a_photograph() {
        let png = image::load_from_memory(&small_png().expect("a PNG")).expect("readable");
        assert_eq!((png.width(), png.height()), (1, 1));
        // A hundredth of the pixels, and so of about 5 MB.
        let bytes = jpeg(WIDTH / 10, HEIGHT / 10).expect("a JPEG").len();
        assert!((40_000..65_000).contains(&bytes), "{bytes}");
    }
}
