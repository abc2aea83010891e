//! Conversion of colour profiles (ICC.1) to sRGB, which browsers assume of a picture without a
//! profile.

use image::{DynamicImage, RgbImage, RgbaImage};
use moxcms::{ColorProfile, DataColorSpace, Layout, TransformOptions};

/// The longest profile that is used, in bytes. Those of cameras and screens have some kilobytes.
const PROFILE_BYTES_MAX: usize = 1024 * 1024;

/// Converts a picture from the colours of its profile.
///
/// Without a profile it is taken for sRGB, and so it is with one that is too long, malformed, or of
/// other inks: CMYK pictures come from their decoder as sRGB.
pub(super) fn to_srgb(picture: DynamicImage, profile: Option<&[u8]>) -> DynamicImage {
    let profile = profile.filter(|profile| profile.len() <= PROFILE_BYTES_MAX);
    let profile = profile.and_then(|profile| ColorProfile::new_from_slice(profile).ok());
    let converted = profile.and_then(|profile| convert(&picture, &profile));
    converted.unwrap_or(picture)
}

/// Converts a picture; `None` if the profile is not for pictures of its kind.
fn convert(picture: &DynamicImage, profile: &ColorProfile) -> Option<DynamicImage> {
    let has_alpha = picture.color().has_alpha();
    let is_gray = !picture.color().has_color();
    let (layout, samples) = match (profile.color_space, has_alpha) {
        (DataColorSpace::Rgb, false) => (Layout::Rgb, picture.to_rgb8().into_raw()),
        (DataColorSpace::Rgb, true) => (Layout::Rgba, picture.to_rgba8().into_raw()),
        (DataColorSpace::Gray, false) if is_gray => (Layout::Gray, picture.to_luma8().into_raw()),
        (DataColorSpace::Gray, true) if is_gray => {
            (Layout::GrayAlpha, picture.to_luma_alpha8().into_raw())
        }
        _ => return None,
    };
    let (width, height) = (picture.width(), picture.height());
    if has_alpha {
        let mut converted = RgbaImage::new(width, height);
        transform(profile, layout, &samples, Layout::Rgba, &mut converted)?;
        Some(converted.into())
    } else {
        let mut converted = RgbImage::new(width, height);
        transform(profile, layout, &samples, Layout::Rgb, &mut converted)?;
        Some(converted.into())
    }
}

fn transform(
    profile: &ColorProfile,
    from: Layout,
    samples: &[u8],
    to: Layout,
    converted: &mut [u8],
) -> Option<()> {
    let srgb = ColorProfile::new_srgb();
    let transform = profile.create_transform_8bit(from, &srgb, to, TransformOptions::default());
    transform.ok()?.transform(samples, converted).ok()
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, Luma, Rgb, Rgba};

    use super::*;

    fn is_near(found: &[u8], expected: &[u8]) -> bool {
        let near = |(one, other): (&u8, &u8)| one.abs_diff(*other) <= 2;
        found.len() == expected.len() && found.iter().zip(expected).all(near)
    }

    /// The numbers follow from the primaries of both spaces (CSS Color 4, 10.9).
    #[test]
    fn display_p3_becomes_srgb() {
        let profile = ColorProfile::new_display_p3().encode().expect("a profile");
        let picture = RgbImage::from_pixel(2, 2, Rgb([200, 100, 100]));
        let converted = to_srgb(picture.into(), Some(&profile)).into_rgb8();
        let pixel = converted.get_pixel(1, 1);
        assert!(is_near(&pixel.0, &[215, 92, 96]), "{pixel:?}");
        let clear = RgbaImage::from_pixel(2, 2, Rgba([200, 100, 100, 77]));
        let converted = to_srgb(clear.into(), Some(&profile)).into_rgba8();
        let pixel = converted.get_pixel(0, 1);
        assert!(is_near(&pixel.0, &[215, 92, 96, 77]), "{pixel:?}");
    }

    #[test]
    fn a_gray_picture_has_a_gray_profile_or_one_of_colours() {
        let gray = GrayImage::from_pixel(2, 2, Luma([128]));
        let linear = ColorProfile::new_gray_with_gamma(1.0).encode();
        let linear = linear.expect("a profile");
        let converted = to_srgb(gray.clone().into(), Some(&linear)).into_rgb8();
        // Half of the light is 188 in sRGB.
        assert!(is_near(&converted.get_pixel(0, 0).0, &[188; 3]));
        let srgb = ColorProfile::new_srgb().encode().expect("a profile");
        let converted = to_srgb(gray.into(), Some(&srgb)).into_rgb8();
        assert!(is_near(&converted.get_pixel(0, 0).0, &[128; 3]));
    }

    #[test]
    fn a_profile_that_cannot_be_used_is_none() {
        let picture = DynamicImage::from(RgbImage::from_pixel(2, 2, Rgb([200, 100, 100])));
        let mut damaged = ColorProfile::new_display_p3().encode().expect("a profile");
        damaged.truncate(damaged.len() / 3);
        let mut long = ColorProfile::new_display_p3().encode().expect("a profile");
        long.resize(PROFILE_BYTES_MAX + 1, 0);
        let gray = ColorProfile::new_gray_with_gamma(1.0).encode();
        for profile in [damaged, long, gray.expect("a profile"), vec![0; 200]] {
            assert_eq!(to_srgb(picture.clone(), Some(&profile)), picture);
        }
    }
}
