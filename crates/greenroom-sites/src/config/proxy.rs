//! The settings of a proxy, whose keys are those of `greenroom-proxy`.

use std::collections::BTreeMap;

use greenroom::proxy::{CheckedSettings, Settings, UpstreamAddressError};
use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Value as Json, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::file::{At, KeyDoc, Origin, Reading, Value};

/// The one key without a default, which a value that is no table stands for.
const SHORT: &str = "to";

/// The meaning of each key, for those who write the file.
const TEXTS: [(&str, &str); 23] = [
    (
        SHORT,
        "The upstreams, 1 to 256: HTTP/1.1, with TLS or without, by address or name, or a Unix \
         socket.",
    ),
    (
        "strip_prefix",
        "Prefix that is taken off the path, segment by segment: of `/api/users` with `/api` \
         `/users` is left.",
    ),
    (
        "add_prefix",
        "Prefix that is put before the path, after `strip_prefix`.",
    ),
    (
        "host",
        "The `Host` that upstreams get: `\"client\"` or `\"upstream\"`, by its address.",
    ),
    (
        "forwarded",
        "Fields that tell of the client: `\"x-forwarded\"`, `\"forwarded\"` (RFC 7239), \
         `\"both\"` or `\"none\"`.",
    ),
    (
        "tls_ca",
        "File of the authorities (PEM) that vouch for upstreams with `https`; by default those \
         that the system trusts.",
    ),
    (
        "tls_certificate",
        "File of the certificate (PEM) by which upstreams know the proxy.",
    ),
    (
        "tls_key",
        "File of its private key (PEM), which must not be encrypted.",
    ),
    (
        "tls_server_name",
        "Name that upstreams with `https` are asked for, and that their certificates must be for; \
         by default the host of each address.",
    ),
    (
        "connect_timeout",
        "Time to resolve and connect, TLS included; another upstream, or 504, beyond.",
    ),
    (
        "response_head_timeout",
        "Time without progress until the response begins; another upstream, or 504, beyond.",
    ),
    (
        "body_idle_timeout",
        "Time between two parts of a response's body; aborted beyond.",
    ),
    (
        "tunnel_idle_timeout",
        "Time without a byte in a WebSocket or other tunnel; closed beyond.",
    ),
    (
        "idle_timeout",
        "Time for which idle connections are kept: less than the upstream keeps them.",
    ),
    (
        "connection_age_max",
        "Age from which on a connection gets no further request; closed behind the response.",
    ),
    (
        "idle_max",
        "Idle connections to each upstream of each loop; 0 keeps none.",
    ),
    (
        "in_flight_max",
        "Requests and tunnels at an upstream at once; 503 beyond.",
    ),
    (
        "tries_max",
        "Times that a request is sent, 1 to 16, where that is safe.",
    ),
    (
        "retry_body_bytes_max",
        "Bytes of an idempotent request's body that are kept for another try.",
    ),
    (
        "failures_max",
        "Failures in a row after which an upstream rests.",
    ),
    (
        "failure_statuses",
        "Statuses that count as failures, such as `[502, 503, 504]`.",
    ),
    (
        "rest_first",
        "Time of the first rest, which doubles with each trial that fails.",
    ),
    ("rest_longest", "Longest time of a rest."),
];

/// The settings of a proxy, with the files that they name.
#[derive(Clone, Debug)]
pub(crate) struct ProxyTable(pub(crate) CheckedSettings);

impl PartialEq for ProxyTable {
    fn eq(&self, other: &Self) -> bool {
        self.0.settings() == other.0.settings()
    }
}

impl Value for ProxyTable {
    fn read(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<Self> {
        let mut short = DeTable::new();
        let table = reading.table(at, Some(SHORT), &mut short)?;
        let names = names();
        reading.check_names(table, names);
        let mut texts = Some(Vec::new());
        for name in names {
            let Some(value) = table.get(*name) else {
                continue;
            };
            let text = one(name, value, reading);
            texts = texts.zip(text).map(|(mut texts, text)| {
                texts.push(text);
                texts
            });
        }
        if !table.contains_key(SHORT) {
            return reading.fault(&at.span, format!("`{SHORT}` is missing"));
        }
        let mut settings: Settings = toml::from_str(&texts?.join("\n")).ok()?;
        let directory = reading.resolve("");
        let to = settings.to.into_iter();
        settings.to = match to.map(|upstream| upstream.below(&directory)).collect() {
            Ok(to) => to,
            Err(error) => {
                let error: UpstreamAddressError = error;
                return reading.fault(&at.span, error.to_string());
            }
        };
        let files = [
            &mut settings.tls_ca,
            &mut settings.tls_certificate,
            &mut settings.tls_key,
        ];
        for file in files.into_iter().flatten() {
            *file = directory.join(&*file);
        }
        let checked = match CheckedSettings::new(settings) {
            Ok(checked) => checked,
            Err(error) => {
                let place = table.get(error.setting()).map(Spanned::span);
                return reading.fault(&place.unwrap_or(at.span.clone()), error.to_string());
            }
        };
        let values = values(checked.settings());
        for name in names {
            let line = table.get(*name).map(|value| reading.origin(&value.span()));
            let value = values.get(*name).map(ToString::to_string);
            reading.list(
                name,
                value.unwrap_or_default(),
                line.unwrap_or(Origin::Default),
            );
        }
        Some(Self(checked))
    }

    fn schema() -> Json {
        let keys = Self::keys();
        let keys = keys.into_iter().map(|key| (key.name, key.schema));
        let keys: serde_json::Map<String, Json> = keys.collect();
        let to = keys[SHORT].clone();
        let table = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": keys,
            "required": [SHORT],
        });
        json!({ "anyOf": [to, table] })
    }

    fn form() -> String {
        "a table, or URLs of upstreams".to_owned()
    }

    fn keys() -> Vec<KeyDoc> {
        let defaults = values(&Settings::default());
        let key = |name: &&'static str| {
            let default = defaults.get(*name);
            let (form, schema) = form(name, default);
            KeyDoc {
                name: (*name).to_owned(),
                text: text(name).to_owned(),
                form: form.to_owned(),
                default: default.map(ToString::to_string).unwrap_or_default(),
                is_required: *name == SHORT,
                schema,
                below: Vec::new(),
            }
        };
        names().iter().map(key).collect()
    }
}

/// Reads one key, and returns it as a line of TOML.
fn one(name: &str, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>) -> Option<String> {
    let at = At::new(value);
    let mut text = reading.text_at(&at.span).to_owned();
    if name == SHORT && at.value.is_str() {
        text = format!("[{text}]");
    }
    let line = format!("{name} = {text}");
    match toml::from_str::<Settings>(&line) {
        Ok(_) => Some(line),
        Err(error) => reading.fault(&at.span, error.message().trim_end()),
    }
}

fn text(name: &str) -> &'static str {
    let found = TEXTS.iter().find(|(key, _)| *key == name);
    found.map_or("", |(_, text)| text)
}

fn values(settings: &Settings) -> BTreeMap<String, Json> {
    let values = serde_json::to_value(settings).and_then(serde_json::from_value);
    // Settings are a table of plain values.
    values.unwrap_or_default()
}

/// Returns what a key's values look like, by its default.
fn form(name: &str, default: Option<&Json>) -> (&'static str, Json) {
    let strings = json!({ "type": "array", "items": { "type": "string" } });
    match default {
        _ if name == SHORT => (
            "URLs such as \"http://127.0.0.1:9000\", \"https://api.example\" or \"unix:/run/api.sock\"",
            json!({ "anyOf": [{ "type": "string" }, strings] }),
        ),
        Some(Json::Array(_)) => ("a list", json!({ "type": "array" })),
        Some(Json::Number(_)) => ("a whole number", json!({ "type": "integer", "minimum": 0 })),
        _ => ("a string", json!({ "type": "string" })),
    }
}

/// Returns the names of all settings.
fn names() -> &'static [&'static str] {
    let mut names = Names(&[]);
    // It always fails, as soon as it has the names.
    let _no_settings = Settings::deserialize(&mut names);
    names.0
}

/// Takes the names of the fields from a struct that asks for them.
struct Names(&'static [&'static str]);

impl<'de> Deserializer<'de> for &mut Names {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom(""))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[test]
fn each_key_is_explained() {
    let texts: Vec<_> = TEXTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(texts, names());
}
