//! One definition of each limit: its field, its unit, its default, what is allowed, and its text.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;

use super::Limits;

/// The text of a limit that is off.
const UNLIMITED: &str = "unlimited";

/// One of the [limits](Limits), known by its name: for flags, files and pages that have one of
/// each.
///
/// ```
/// use std::time::Duration;
///
/// use greenroom_server::Limits;
///
/// let setting = Limits::setting("head_timeout").expect("there is such a limit");
/// let mut limits = Limits::default();
/// setting.set(&mut limits, "5s")?;
/// assert_eq!(limits.head_timeout, Duration::from_secs(5));
/// assert_eq!(setting.text_of(&limits), "5s");
/// let error = setting.set(&mut limits, "0s").unwrap_err();
/// assert!(error.to_string().starts_with("head_timeout: 0s is not allowed"));
/// # Ok::<(), greenroom_server::LimitError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Setting {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) lines: &'static [&'static str],
    pub(super) computed: Option<&'static str>,
    pub(super) read: fn(&mut Limits, &str) -> Result<(), String>,
    pub(super) write: fn(&Limits) -> String,
    pub(super) check: fn(&Limits) -> Result<(), String>,
    pub(super) allowed: fn() -> String,
}

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A whole number, such as `100`.
    Number,
    /// Bytes, such as `512B`, `64KiB` (of 1,024) or `64kB` (of 1,000).
    Size,
    /// A time, such as `250ms`, `10s` or `1m 30s`.
    Time,
}

/// A limit that is not allowed, or a text that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {fault}")]
pub struct LimitError {
    name: &'static str,
    fault: String,
}

impl LimitError {
    /// Returns what is wrong, and what is allowed, without the name of the limit.
    #[must_use]
    pub fn fault(&self) -> &str {
        &self.fault
    }
}

impl Setting {
    /// Returns the name of the field, such as `head_bytes_max`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its unit.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Returns the first sentence of its text.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.lines[0].trim().trim_end_matches('.')
    }

    /// Returns the rest of its text: lines, of which empty ones end a paragraph.
    pub fn details(&self) -> impl Iterator<Item = &'static str> {
        let rest = self.lines[1..].iter();
        rest.map(|line| line.trim())
            .skip_while(|line| line.is_empty())
    }

    /// Returns its default as text: a value, or in words how it is computed.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.computed {
            Some(words) => words.to_owned(),
            None => self.text_of(&Limits::default()),
        }
    }

    /// Returns `true` if the default depends on the machine.
    #[must_use]
    pub fn is_computed(&self) -> bool {
        self.computed.is_some()
    }

    /// Returns the values that are allowed, as text.
    #[must_use]
    pub fn allowed(&self) -> String {
        (self.allowed)()
    }

    /// Returns its value in `limits` as text, which [`set`](Self::set) reads.
    #[must_use]
    pub fn text_of(&self, limits: &Limits) -> String {
        (self.write)(limits)
    }

    /// Sets it to the value of a text.
    ///
    /// # Errors
    ///
    /// If the text is no value of its [unit](Self::unit), or one that is not
    /// [allowed](Self::allowed).
    pub fn set(&self, limits: &mut Limits, text: &str) -> Result<(), LimitError> {
        (self.read)(limits, text.trim()).map_err(|fault| self.error(fault))
    }

    pub(super) fn check(&self, limits: &Limits) -> Result<(), LimitError> {
        (self.check)(limits).map_err(|fault| self.error(fault))
    }

    fn error(&self, fault: String) -> LimitError {
        LimitError {
            name: self.name,
            fault,
        }
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Setting")
            .field("name", &self.name)
            .field("unit", &self.unit)
            .finish_non_exhaustive()
    }
}

/// Texts of values of the type `T` in a unit.
pub(super) trait Texts<T> {
    /// Texts that can be read, for an error.
    const EXAMPLES: &str;
    const LARGEST: T;

    fn read(text: &str) -> Option<T>;
    fn write(value: &T) -> String;
}

pub(super) struct Number;
pub(super) struct Size;
pub(super) struct Time;

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
    let units = [("MiB", 1 << 20), ("KiB", 1 << 10), ("kB", 1_000)];
    let unit = units
        .iter()
        .find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size));
    match unit {
        Some((name, size)) => format!("{}{name}", bytes / size),
        None => format!("{bytes}B"),
    }
}

pub(super) fn read<U: Texts<T>, T: PartialOrd>(
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

pub(super) fn write<U: Texts<T>, T: PartialEq>(value: &T) -> String {
    if *value == U::LARGEST {
        return UNLIMITED.to_owned();
    }
    U::write(value)
}

pub(super) fn check<U: Texts<T>, T: PartialOrd>(
    value: &T,
    range: &RangeInclusive<T>,
) -> Result<(), String> {
    if range.contains(value) {
        return Ok(());
    }
    let (value, allowed) = (write::<U, T>(value), allowed::<U, T>(range));
    Err(format!("{value} is not allowed; allowed: {allowed}"))
}

pub(super) fn allowed<U: Texts<T>, T: PartialEq>(range: &RangeInclusive<T>) -> String {
    let (least, most) = (range.start(), range.end());
    if *most == U::LARGEST {
        return format!("{} or more, {UNLIMITED}", U::write(least));
    }
    format!("{} to {}", U::write(least), U::write(most))
}

/// Defines [`Limits`], its defaults and its [settings](Setting), each in one place:
/// `name: type as Unit = default, allowed;`, and after a default that is computed, `=> "in words"`.
macro_rules! limits {
    (
        $(#[$of_struct:meta])*
        pub struct $Limits:ident {
            $(
                $(#[doc = $line:literal])+
                $name:ident: $type:ty as $unit:ident
                    = $default:expr $(=> $words:literal)?, $range:expr;
            )+
        }
    ) => {
        $(#[$of_struct])*
        pub struct $Limits {
            $(
                $(#[doc = $line])+
                #[doc = ""]
                #[doc = concat!(
                    "Default: ", limits!(@default $default $(=> $words)?),
                    "; allowed: `", stringify!($range), "`."
                )]
                pub $name: $type,
            )+
        }

        impl Default for $Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        const SETTINGS: &[Setting] = &[$(
            Setting {
                name: stringify!($name),
                unit: Unit::$unit,
                lines: &[$($line),+],
                computed: limits!(@computed $($words)?),
                read: |limits, text| {
                    limits.$name = setting::read::<setting::$unit, $type>(text, &$range)?;
                    Ok(())
                },
                write: |limits| setting::write::<setting::$unit, $type>(&limits.$name),
                check: |limits| {
                    setting::check::<setting::$unit, $type>(&limits.$name, &$range)
                },
                allowed: || setting::allowed::<setting::$unit, $type>(&$range),
            },
        )+];
    };
    (@default $default:expr) => { concat!("`", stringify!($default), "`") };
    (@default $default:expr => $words:literal) => { $words };
    (@computed) => { None };
    (@computed $words:literal) => { Some($words) };
}

pub(super) use limits;
