//! Values of settings as texts, each by its unit.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;

/// The text of a limit that is off.
const UNLIMITED: &str = "unlimited";

/// Texts of values of the type `T` in a unit.
pub trait Texts<T> {
    /// Texts that can be read, for an error.
    const EXAMPLES: &str;
    /// The value that is no limit.
    const LARGEST: T;

    /// Reads a text; `None` if it is no value.
    fn read(text: &str) -> Option<T>;
    /// Writes a value as [`read`](Self::read) takes it.
    fn write(value: &T) -> String;
}

/// The unit [`Unit::Number`](crate::Unit::Number).
#[derive(Debug)]
pub struct Number;

/// The unit [`Unit::Size`](crate::Unit::Size).
#[derive(Debug)]
pub struct Size;

/// The unit [`Unit::Time`](crate::Unit::Time).
#[derive(Debug)]
pub struct Time;

macro_rules! integers {
    ($($integer:ty)+) => { $(
        impl Texts<$integer> for Number {
            const EXAMPLES: &str = "whole numbers";
            const LARGEST: $integer = <$integer>::MAX;

            fn read(text: &str) -> Option<$integer> {
                text.parse().ok()
            }

            fn write(value: &$integer) -> String {
                value.to_string()
            }
        }

        impl Texts<$integer> for Size {
            const EXAMPLES: &str = "sizes such as 512B, 64KiB (of 1,024) or 64kB (of 1,000)";
            const LARGEST: $integer = <$integer>::MAX;

            fn read(text: &str) -> Option<$integer> {
                let size: ByteSize = text.parse().ok()?;
                size.as_u64().try_into().ok()
            }

            fn write(value: &$integer) -> String {
                let bytes = u64::try_from(*value).unwrap_or(u64::MAX);
                size_text(bytes)
            }
        }
    )+ };
}

integers! { u16 u32 u64 usize }

impl Texts<Duration> for Time {
    const EXAMPLES: &str = "times such as 250ms, 10s or 1m 30s";
    const LARGEST: Duration = Duration::MAX;

    fn read(text: &str) -> Option<Duration> {
        humantime::parse_duration(text).ok()
    }

    fn write(value: &Duration) -> String {
        humantime::format_duration(*value).to_string()
    }
}

/// Writes a size in the largest unit that gives a whole number.
fn size_text(bytes: u64) -> String {
    let units = [
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("kB", 1_000),
    ];
    let unit = units
        .iter()
        .find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size));
    match unit {
        Some((name, size)) => format!("{}{name}", bytes / size),
        None => format!("{bytes}B"),
    }
}

/// Reads a value that is in the range.
///
/// # Errors
///
/// Says what is allowed.
pub fn read<U: Texts<T>, T: PartialOrd>(
    text: &str,
    range: &RangeInclusive<T>,
) -> Result<T, String> {
    let value = match text {
        UNLIMITED => Some(U::LARGEST),
        text => U::read(text),
    };
    let value = value.ok_or_else(|| {
        let allowed = allowed::<U, T>(range);
        format!(
            "`{text}` is none of the {}; allowed: {allowed}",
            U::EXAMPLES
        )
    })?;
    check::<U, T>(&value, range)?;
    Ok(value)
}

/// Writes a value, or that there is no limit.
pub fn write<U: Texts<T>, T: PartialEq>(value: &T) -> String {
    if *value == U::LARGEST {
        return UNLIMITED.to_owned();
    }
    U::write(value)
}

/// Checks a value against its range.
///
/// # Errors
///
/// Says what is allowed.
pub fn check<U: Texts<T>, T: PartialOrd>(
    value: &T,
    range: &RangeInclusive<T>,
) -> Result<(), String> {
    if range.contains(value) {
        return Ok(());
    }
    let (value, allowed) = (write::<U, T>(value), allowed::<U, T>(range));
    Err(format!("{value} is not allowed; allowed: {allowed}"))
}

/// Returns the values of a range, as text.
#[must_use]
pub fn allowed<U: Texts<T>, T: PartialEq>(range: &RangeInclusive<T>) -> String {
    let (least, most) = (range.start(), range.end());
    if *most == U::LARGEST {
        return format!("{} or more, {UNLIMITED}", U::write(least));
    }
    format!("{} to {}", U::write(least), U::write(most))
}
