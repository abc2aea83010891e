//! Limits in files: a table of names and texts, as of `drain_grace = "1s"` and `streams_max = 10`.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Limits, Setting};

/// Writes what differs from the defaults.
impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let defaults = Self::default();
        let texts = Self::settings().iter().map(|setting| {
            let text = setting.text_of(self);
            (text != setting.text_of(&defaults)).then_some((setting.name(), text))
        });
        texts
            .flatten()
            .collect::<BTreeMap<_, _>>()
            .serialize(serializer)
    }
}

/// Reads texts, as [`Setting::set`](super::Setting::set) does, and numbers; what is not there has
/// its default.
impl<'de> Deserialize<'de> for Limits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Table)
    }
}

struct Table;

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a text such as \"10s\" or \"64KiB\", or a number"
)]
enum Value {
    Number(u64),
    Text(String),
}

impl<'de> Visitor<'de> for Table {
    type Value = Limits;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a table of limits")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Limits, A::Error> {
        let mut limits = Limits::default();
        while let Some(name) = map.next_key::<String>()? {
            let setting = Limits::setting(&name).ok_or_else(|| unknown(&name))?;
            let text = match map.next_value()? {
                Value::Number(number) => number.to_string(),
                Value::Text(text) => text,
            };
            setting.set(&mut limits, &text).map_err(A::Error::custom)?;
        }
        Ok(limits)
    }
}

fn unknown<E: Error>(name: &str) -> E {
    let names = Limits::settings().iter().map(Setting::name);
    let names: Vec<&str> = names.collect();
    E::custom(format_args!(
        "unknown limit `{name}`, expected one of {}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_table_of_texts_and_numbers_makes_limits_and_the_other_way_round() {
        let json = r#"{"drain_grace": "1s", "streams_max": 10, "body_bytes_max": "1MiB"}"#;
        let limits: Limits = serde_json::from_str(json).expect("these are limits");
        let expected = Limits {
            drain_grace: Duration::from_secs(1),
            streams_max: 10,
            body_bytes_max: 1 << 20,
            ..Limits::default()
        };
        assert_eq!(limits, expected);
        let written = serde_json::to_string(&limits).expect("it can be written");
        assert_eq!(
            written,
            r#"{"body_bytes_max":"1MiB","drain_grace":"1s","streams_max":"10"}"#
        );
    }

    #[test]
    fn names_and_values_that_are_none_are_told() {
        for (json, told) in [
            (
                r#"{"grace": "1s"}"#,
                "unknown limit `grace`, expected one of head_bytes_max,",
            ),
            (
                r#"{"drain_grace": 1}"#,
                "drain_grace: `1` is none of the times",
            ),
            (r#"{"drain_grace": true}"#, "a text such as \"10s\""),
        ] {
            let error = serde_json::from_str::<Limits>(json).expect_err(json);
            assert!(error.to_string().starts_with(told), "{error}");
        }
    }
}
