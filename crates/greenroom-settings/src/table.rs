//! Settings in files: a table of names and texts, as of `drain_grace = "1s"` and
//! `streams_max = 10`.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{HasSettings, Setting};

/// Writes the settings that differ from the defaults.
///
/// # Errors
///
/// The serializer's.
pub fn serialize<T: HasSettings, S: Serializer>(all: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let defaults = T::default();
    let texts = T::settings().iter().map(|setting| {
        let text = setting.text_of(all);
        (text != setting.text_of(&defaults)).then_some((setting.name(), text))
    });
    texts
        .flatten()
        .collect::<BTreeMap<_, _>>()
        .serialize(serializer)
}

/// Reads texts, as [`Setting::set`] does, and numbers; what is not there has its default.
///
/// # Errors
///
/// Names the setting that there is not, or whose value is not allowed, and what is.
pub fn deserialize<'de, T: HasSettings, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(Table(PhantomData))
}

struct Table<T>(PhantomData<T>);

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a text such as \"10s\" or \"64KiB\", or a number"
)]
enum Value {
    Number(u64),
    Text(String),
}

impl<'de, T: HasSettings> Visitor<'de> for Table<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a table of settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut all = T::default();
        while let Some(name) = map.next_key::<String>()? {
            let setting = T::setting(&name).ok_or_else(|| unknown::<T, _>(&name))?;
            let text = match map.next_value()? {
                Value::Number(number) => number.to_string(),
                Value::Text(text) => text,
            };
            setting.set(&mut all, &text).map_err(A::Error::custom)?;
        }
        Ok(all)
    }
}

fn unknown<T: HasSettings, E: Error>(name: &str) -> E {
    let names: Vec<_> = T::settings().iter().map(Setting::name).collect();
    let names = names.join(", ");
    E::custom(format_args!(
        "unknown setting `{name}`, expected one of {names}"
    ))
}
