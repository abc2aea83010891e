//! The types of values.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use serde_json::{Value as Json, json};

use super::key_doc::KeyDoc;
use super::reading::{At, Reading};

/// A type of values in the file.
pub(crate) trait Value: Sized {
    /// Reads a value; `None` if it has a fault, which is recorded.
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self>;

    /// Returns the value of a key that is not there; `None` if it has to be there.
    fn absent() -> Option<Self> {
        None
    }

    /// Returns the value as TOML; `None` for a table, whose keys have texts of their own.
    fn text(&self) -> Option<String> {
        None
    }

    /// Returns the JSON Schema of such values.
    fn schema() -> Json;

    /// Returns in words what is allowed.
    fn form() -> String;

    /// Returns the keys of a table.
    fn keys() -> Vec<KeyDoc> {
        Vec::new()
    }
}

impl Value for bool {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        let value = at.value.as_bool();
        value.or_else(|| reading.mistyped(at, &Self::form()))
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn schema() -> Json {
        json!({ "type": "boolean" })
    }

    fn form() -> String {
        "true or false".to_owned()
    }
}

impl Value for String {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        let value = at.value.as_str().map(str::to_owned);
        value.or_else(|| reading.mistyped(at, &Self::form()))
    }

    fn text(&self) -> Option<String> {
        Some(quoted(self))
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }

    fn form() -> String {
        "a string".to_owned()
    }
}

impl<V: Value> Value for Option<V> {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        V::read(at, reading).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn text(&self) -> Option<String> {
        match self {
            Some(value) => value.text(),
            // Only what has a text of its own is listed as not set.
            None => V::keys().is_empty().then(String::new),
        }
    }

    fn schema() -> Json {
        V::schema()
    }

    fn form() -> String {
        V::form()
    }

    fn keys() -> Vec<KeyDoc> {
        V::keys()
    }
}

impl<V: Value> Value for Vec<V> {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        let Some(array) = at.value.as_array() else {
            // One value stands for a list of one.
            return V::read(at, reading).map(|value| vec![value]);
        };
        let values = array.iter().enumerate().filter_map(|(index, value)| {
            let place = format!("[{index}]");
            reading.within(place, |reading| V::read(&At::new(value), reading))
        });
        // Those without a fault, so that theirs show as well when they are checked further.
        Some(values.collect())
    }

    fn absent() -> Option<Self> {
        Some(Vec::new())
    }

    fn text(&self) -> Option<String> {
        if !V::keys().is_empty() {
            return None;
        }
        let texts: Vec<String> = self.iter().filter_map(Value::text).collect();
        Some(format!("[{}]", texts.join(", ")))
    }

    fn schema() -> Json {
        let one = V::schema();
        json!({ "anyOf": [one, { "type": "array", "items": one }] })
    }

    fn form() -> String {
        format!("{}, or a list", V::form())
    }

    fn keys() -> Vec<KeyDoc> {
        V::keys()
    }
}

/// A value with its place, for faults that show later.
#[derive(Clone, Debug)]
pub(crate) struct Located<V> {
    pub(crate) value: V,
    pub(crate) span: Range<usize>,
}

impl<V: PartialEq> PartialEq for Located<V> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<V> From<V> for Located<V> {
    fn from(value: V) -> Self {
        Self { value, span: 0..0 }
    }
}

impl<V: Value> Value for Located<V> {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        let value = V::read(at, reading)?;
        let span = at.span.clone();
        Some(Self { value, span })
    }

    fn text(&self) -> Option<String> {
        self.value.text()
    }

    fn schema() -> Json {
        V::schema()
    }

    fn form() -> String {
        V::form()
    }

    fn keys() -> Vec<KeyDoc> {
        V::keys()
    }
}

/// A part that can be switched off where a site has it: `false`, `true` for its defaults, or its
/// table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Switch<V> {
    Off,
    On(V),
}

impl<V: Value> Value for Switch<V> {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        match at.value.as_bool() {
            Some(false) => Some(Self::Off),
            Some(true) => {
                let table = toml::de::DeValue::Table(toml::de::DeTable::new());
                let span = at.span.clone();
                let defaults = At {
                    value: &table,
                    span,
                };
                V::read(&defaults, reading).map(Self::On)
            }
            None => V::read(at, reading).map(Self::On),
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Off => Some("false".to_owned()),
            Self::On(value) => value.text(),
        }
    }

    fn schema() -> Json {
        json!({ "anyOf": [{ "type": "boolean" }, V::schema()] })
    }

    fn form() -> String {
        format!("true, false, or {}", V::form())
    }

    fn keys() -> Vec<KeyDoc> {
        V::keys()
    }
}

/// Defines a type whose values are written as strings with a unit.
macro_rules! unit {
    ($(#[$doc:meta])* $Name:ident($type:ty), $form:literal, $read:expr, $write:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $Name(pub(crate) $type);

        impl Value for $Name {
            fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
                let Some(text) = at.value.as_str() else {
                    return reading.mistyped(at, $form);
                };
                let read: fn(&str) -> Option<$type> = $read;
                let value = read(text).map(Self);
                value.or_else(|| {
                    reading.fault(&at.span, format!("{} is not {}", quoted(text), $form))
                })
            }

            fn text(&self) -> Option<String> {
                let write: fn($type) -> String = $write;
                Some(quoted(&write(self.0)))
            }

            fn schema() -> Json {
                json!({ "type": "string" })
            }

            fn form() -> String {
                $form.to_owned()
            }
        }
    };
}

unit! {
    /// A time of more than 0.
    Time(Duration), "a time above 0, such as \"250ms\", \"10s\" or \"1m 30s\"",
    |text| humantime::parse_duration(text).ok().filter(|time| !time.is_zero()),
    |time| humantime::format_duration(time).to_string()
}

unit! {
    /// A number of bytes, more than 0.
    Size(NonZeroU64),
    "a size above 0, such as \"512B\", \"64KiB\" (of 1,024) or \"64kB\" (of 1,000)",
    |text| NonZeroU64::new(text.parse::<ByteSize>().ok()?.as_u64()),
    |size| size_text(size.get())
}

/// Writes a size in the largest unit that gives a whole number.
fn size_text(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, size)| bytes.is_multiple_of(*size)) {
        Some((name, size)) => format!("{}{name}", bytes / size),
        None => format!("{bytes}B"),
    }
}

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count<const LEAST: u64, const MOST: u64>(pub(crate) u64);

impl<const LEAST: u64, const MOST: u64> Value for Count<LEAST, MOST> {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        let Some(number) = at.value.as_integer() else {
            return reading.mistyped(at, &Self::form());
        };
        let value = u64::from_str_radix(number.as_str(), number.radix()).ok();
        match value.filter(|value| (LEAST..=MOST).contains(value)) {
            Some(value) => Some(Self(value)),
            None => reading.fault(&at.span, format!("{number} is not {}", Self::form())),
        }
    }

    fn text(&self) -> Option<String> {
        Some(self.0.to_string())
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
    }

    fn form() -> String {
        if MOST >= u32::MAX.into() {
            return format!("a whole number, at least {LEAST}");
        }
        format!("a whole number from {LEAST} to {MOST}")
    }
}

/// Names with their values, such as header fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pairs(pub(crate) BTreeMap<String, Located<String>>);

impl Value for Pairs {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        let Some(table) = at.value.as_table() else {
            return reading.mistyped(at, &Self::form());
        };
        let mut pairs = Some(BTreeMap::new());
        for (name, value) in table {
            let value = Located::<String>::read(&At::new(value), reading);
            pairs = pairs.zip(value).map(|(mut pairs, value)| {
                pairs.insert(name.get_ref().to_string(), value);
                pairs
            });
        }
        pairs.map(Self)
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }

    fn text(&self) -> Option<String> {
        let pairs = self.0.iter();
        let pairs =
            pairs.map(|(name, value)| format!("{} = {}", quoted(name), quoted(&value.value)));
        Some(format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", ")))
    }

    fn schema() -> Json {
        json!({ "type": "object", "additionalProperties": { "type": "string" } })
    }

    fn form() -> String {
        "a table of strings".to_owned()
    }
}

/// Defines a type of paths that are relative to the file, and must be there.
macro_rules! path {
    ($(#[$doc:meta])* $Name:ident, $form:literal, $is_one:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) struct $Name(pub(crate) PathBuf);

        impl Value for $Name {
            fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
                let Some(text) = at.value.as_str() else {
                    return reading.mistyped(at, &format!("the path of {}", $form));
                };
                let path = reading.resolve(text);
                let is_one: fn(&fs::Metadata) -> bool = $is_one;
                match fs::metadata(&path) {
                    Ok(found) if is_one(&found) => Some(Self(path)),
                    Ok(_) => {
                        let message = format!("{} is not {}", path.display(), $form);
                        reading.fault(&at.span, message)
                    }
                    Err(error) => {
                        let message = format!("{}: {error}; expected {}", path.display(), $form);
                        reading.fault(&at.span, message)
                    }
                }
            }

            fn text(&self) -> Option<String> {
                Some(quoted(&self.0.to_string_lossy()))
            }

            fn schema() -> Json {
                json!({ "type": "string" })
            }

            fn form() -> String {
                concat!("the path of ", $form).to_owned()
            }
        }
    };
}

path! {
    /// A directory.
    Directory, "a directory", fs::Metadata::is_dir
}

path! {
    /// A file.
    ExistingFile, "a file", fs::Metadata::is_file
}

/// A file, by a path relative to the file, or a program by a name that is looked up in `PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lookup(pub(crate) PathBuf);

impl Value for Lookup {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        let text = String::read(at, reading)?;
        if text.contains('/') {
            return ExistingFile::read(at, reading).map(|file| Self(file.0));
        }
        Some(Self(text.into()))
    }

    fn text(&self) -> Option<String> {
        Some(quoted(&self.0.to_string_lossy()))
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }

    fn form() -> String {
        "the path or the name of a program".to_owned()
    }
}

/// Returns a string as TOML.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
