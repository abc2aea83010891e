//! Pictures painted by code, so that none have to be shipped.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::{ImageResult, Rgb, RgbImage};

/// Pixels.
const WIDTH: u32 = 960;
/// Pixels.
const HEIGHT: u32 = 640;
/// JPEG quality, from 1 to 100.
const QUALITY: u8 = 88;

type Colour = [f32; 3];

/// The subject of a picture; the seed makes each one different.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scene {
    Forest { seed: u32 },
    Hills { seed: u32 },
    Night { seed: u32 },
    Snow { seed: u32 },
    Sunset { seed: u32 },
    Tiles { seed: u32 },
    Waves { seed: u32 },
}

impl Scene {
    /// Paints the picture as a JPEG file.
    ///
    /// # Errors
    /// Those of the encoder.
    pub(super) fn paint_jpeg(self) -> ImageResult<Vec<u8>> {
        let picture = RgbImage::from_fn(WIDTH, HEIGHT, |x, y| self.pixel(x, y));
        let mut file = Cursor::new(Vec::new());
        JpegEncoder::new_with_quality(&mut file, QUALITY).encode_image(&picture)?;
        Ok(file.into_inner())
    }

    #[expect(clippy::cast_precision_loss, reason = "coordinates are small")]
    fn pixel(self, x: u32, y: u32) -> Rgb<u8> {
        let (across, down) = (x as f32 / HEIGHT as f32, y as f32 / HEIGHT as f32);
        let colour = match self {
            Self::Forest { seed } => forest(across, down, seed),
            Self::Hills { seed } => hills(across, down, seed),
            Self::Night { seed } => night(across, down, (x, y), seed),
            Self::Snow { seed } => snow(across, down, seed),
            Self::Sunset { seed } => sunset(across, down, seed),
            Self::Tiles { seed } => tiles(across, down, seed),
            Self::Waves { seed } => waves(across, down, seed),
        };
        let grain = (random(x, y, 1) - 0.5) * 0.018;
        Rgb(colour.map(|part| to_byte(part + grain)))
    }
}

fn hills(x: f32, y: f32, seed: u32) -> Colour {
    let sky = mix([0.99, 0.87, 0.72], [0.55, 0.75, 0.88], 1.0 - y * 1.6);
    let glow = glow(x, y, (0.95, 0.30), 0.35);
    let (far, near) = ([0.62, 0.74, 0.78], [0.09, 0.27, 0.20]);
    ridges(x, y, seed, 6, (0.38, 0.11), (far, near)).unwrap_or(mix(sky, [1.0, 0.96, 0.85], glow))
}

fn snow(x: f32, y: f32, seed: u32) -> Colour {
    let sky = mix([0.93, 0.90, 0.93], [0.45, 0.62, 0.80], 1.0 - y * 1.5);
    let (far, near) = ([0.70, 0.77, 0.86], [0.97, 0.98, 1.0]);
    ridges(x, y, seed, 5, (0.36, 0.13), (far, near)).unwrap_or(sky)
}

fn sunset(x: f32, y: f32, seed: u32) -> Colour {
    let horizon = 0.62;
    let sun = (0.55 + unit(seed) * 0.5, horizon - 0.06);
    if y < horizon {
        let sky = mix(
            [1.0, 0.62, 0.32],
            [0.30, 0.17, 0.40],
            (horizon - y) / horizon * 1.25,
        );
        let disc = step(0.085 - distance((x, y), sun), 0.004);
        return mix(
            mix(sky, [1.0, 0.85, 0.5], glow(x, y, sun, 0.3)),
            [1.0, 0.95, 0.78],
            disc,
        );
    }
    let depth = (y - horizon) / (1.0 - horizon);
    let ripple = noise(x * 6.0 / (depth + 0.08), depth * 60.0, seed);
    let path = (1.0 - (x - sun.0).abs() / (0.10 + depth * 0.30)).max(0.0);
    let sea = mix([0.78, 0.42, 0.35], [0.12, 0.10, 0.26], depth.sqrt());
    mix(
        sea,
        [1.0, 0.82, 0.55],
        path * step(ripple - 0.48, 0.12) * 0.85,
    )
}

fn night(x: f32, y: f32, pixel: (u32, u32), seed: u32) -> Colour {
    let sky = mix([0.10, 0.16, 0.30], [0.02, 0.03, 0.10], 1.0 - y);
    let band = (1.0 - ((x * 0.6 + y - 0.95) * 3.2).abs()).max(0.0);
    let cloud = layered(x * 3.0, y * 3.0, seed) * band;
    let is_star = random(pixel.0 / 2, pixel.1 / 2, seed) > 0.9985 - band * 0.002;
    let bright = random(pixel.0 / 2, pixel.1 / 2, seed + 1) * 0.8 + 0.2;
    let sky = mix(sky, [0.55, 0.55, 0.75], cloud * 0.55);
    let sky = if is_star {
        mix(sky, [1.0, 0.98, 0.9], bright)
    } else {
        sky
    };
    let (far, near) = ([0.05, 0.09, 0.16], [0.01, 0.02, 0.05]);
    ridges(x, y, seed, 3, (0.74, 0.09), (far, near)).unwrap_or(sky)
}

fn forest(x: f32, y: f32, seed: u32) -> Colour {
    let fog = mix([0.90, 0.93, 0.88], [0.62, 0.74, 0.70], y);
    let mut colour = fog;
    for layer in 0..5_u16 {
        let near = f32::from(layer) / 4.0;
        let trees = 16.0 - near * 9.0;
        let place = x * trees + unit(seed + u32::from(layer)) * 9.0;
        let tall = 0.30 + unit(seed ^ (floor_to_u32(place) * 7 + u32::from(layer) * 131)) * 0.22;
        let top = 0.50 - tall + near * 0.28;
        let across = (place.fract() - 0.5).abs();
        let jagged = ((y - top) * 26.0).fract() * 0.09;
        if y > top && across < (y - top) * (0.85 - near * 0.2) - jagged {
            colour = mix(fog, [0.05, 0.17, 0.13], 0.22 + near * 0.74);
        }
    }
    colour
}

fn tiles(x: f32, y: f32, seed: u32) -> Colour {
    const PALETTE: [Colour; 4] = [
        [0.93, 0.90, 0.82],
        [0.13, 0.35, 0.40],
        [0.80, 0.42, 0.25],
        [0.90, 0.68, 0.32],
    ];
    let (column, row) = (floor_to_u32(x * 8.0), floor_to_u32(y * 8.0));
    let (mut left, mut top) = ((x * 8.0).fract(), (y * 8.0).fract());
    let is_odd = (column, row) == (7, 3);
    if (column + row) % 2 == u32::from(is_odd) {
        left = 1.0 - left;
    }
    if row % 2 == 1 {
        top = 1.0 - top;
    }
    let ring = floor_to_u32(distance((left, top), (0.0, 0.0)) * 3.0);
    let colour = PALETTE[(ring + seed) as usize % PALETTE.len()];
    let edge = left.min(top).min(1.0 - left).min(1.0 - top);
    let worn = layered(x * 9.0, y * 9.0, seed) * 0.16;
    mix(
        mix(colour, [0.35, 0.30, 0.26], worn),
        [0.30, 0.28, 0.26],
        step(0.012 - edge, 0.006),
    )
}

fn waves(x: f32, y: f32, seed: u32) -> Colour {
    let bend = layered(x * 1.6, y * 1.6, seed) * 1.4;
    let wave = f32::midpoint((y * 9.0 + bend * 4.0 + (x * 3.0).sin() * 0.4).sin(), 1.0);
    let deep = mix([0.04, 0.22, 0.34], [0.16, 0.52, 0.58], y + bend * 0.2);
    mix(deep, [0.80, 0.93, 0.90], wave.powi(6) * 0.8)
}

/// Returns the layer of mountains at a point, the nearest in front; `None` above all of them.
/// `from` is the height of the farthest and the distance from one to the next.
fn ridges(
    x: f32,
    y: f32,
    seed: u32,
    count: u16,
    from: (f32, f32),
    colours: (Colour, Colour),
) -> Option<Colour> {
    let near = |layer: u16| f32::from(layer) / f32::from(count - 1);
    let edge = |layer: u16| {
        let rough = 2.2 - near(layer);
        let height = layered(
            x * rough + f32::from(layer) * 5.3,
            0.5,
            seed + u32::from(layer),
        );
        from.0 + f32::from(layer) * from.1 - (height - 0.4) * 0.28
    };
    let layer = (0..count).rev().find(|layer| y > edge(*layer))?;
    let haze = ((y - edge(layer)) * 2.2).min(0.45);
    let colour = mix(colours.0, colours.1, near(layer));
    Some(mix(colour, colours.0, haze))
}

/// Returns noise of several sizes, from 0 to 1.
fn layered(x: f32, y: f32, seed: u32) -> f32 {
    let octave = |times: f32, share: f32| noise(x * times, y * times, seed) * share;
    octave(1.0, 0.52) + octave(2.1, 0.26) + octave(4.3, 0.13) + octave(8.7, 0.09)
}

/// Returns value noise, from 0 to 1: random at whole coordinates, smooth between them.
fn noise(x: f32, y: f32, seed: u32) -> f32 {
    let (column, row) = (floor_to_u32(x + 64.0), floor_to_u32(y + 64.0));
    let smooth = |part: f32| part * part * (3.0 - 2.0 * part);
    let (across, down) = (smooth((x + 64.0).fract()), smooth((y + 64.0).fract()));
    let line = |row| {
        let (left, right) = (random(column, row, seed), random(column + 1, row, seed));
        left + (right - left) * across
    };
    let (upper, lower) = (line(row), line(row + 1));
    upper + (lower - upper) * down
}

/// Returns a hash from 0 to 1, always the same for the same numbers.
#[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
fn random(x: u32, y: u32, seed: u32) -> f32 {
    let mut bits =
        x.wrapping_mul(0x9E37_79B1) ^ y.wrapping_mul(0x85EB_CA77) ^ seed.wrapping_mul(0xC2B2_AE3D);
    for _ in 0..2 {
        bits = (bits ^ (bits >> 15)).wrapping_mul(0x2C1B_3C6D);
        bits ^= bits >> 13;
    }
    (bits >> 8) as f32 / 16_777_216.0
}

fn unit(seed: u32) -> f32 {
    random(seed, seed, seed)
}

fn glow(x: f32, y: f32, at: (f32, f32), reach: f32) -> f32 {
    (1.0 - distance((x, y), at) / reach).max(0.0).powi(2)
}

fn distance(one: (f32, f32), other: (f32, f32)) -> f32 {
    (one.0 - other.0).hypot(one.1 - other.1)
}

/// Returns 0 below 0, 1 above `width`, and smooth values between, so that edges have no steps.
fn step(value: f32, width: f32) -> f32 {
    (value / width).clamp(0.0, 1.0)
}

fn mix(one: Colour, other: Colour, share: f32) -> Colour {
    let share = share.clamp(0.0, 1.0);
    std::array::from_fn(|part| one[part] + (other[part] - one[part]) * share)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is clamped"
)]
fn floor_to_u32(value: f32) -> u32 {
    value.max(0.0) as u32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is clamped"
)]
fn to_byte(part: f32) -> u8 {
    (part.clamp(0.0, 1.0) * 255.0) as u8
}
