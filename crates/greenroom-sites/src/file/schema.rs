//! The schema for editors and the table of the documentation, made of the definition of the
//! keys.

use serde_json::{Map, Value as Json, json};

use super::server::ServerKeys;
use super::value::Value;
use crate::config::SiteTable;

/// A key of a table, for documentation.
#[derive(Clone, Debug)]
pub struct KeyDoc {
    /// The name of the key.
    pub name: String,
    /// Its text: sentences in Markdown.
    pub text: String,
    /// In words, the values that are allowed.
    pub form: String,
    /// The default as TOML; empty if nothing is set.
    pub default: String,
    /// True if there is no default.
    pub is_required: bool,
    pub(crate) schema: Json,
    pub(crate) below: Vec<Self>,
}

impl KeyDoc {
    /// Makes the documentation of a key of this type.
    pub(crate) fn of<V: Value>(name: &str, lines: &[&str], default: Option<V>) -> Self {
        let text = lines.iter().map(|line| line.trim());
        let text = text.collect::<Vec<_>>().join(" ");
        let default = default.or_else(V::absent);
        let mut schema = V::schema();
        if let Json::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), text.replace('`', "").into());
        }
        Self {
            name: name.to_owned(),
            text,
            form: V::form(),
            is_required: default.is_none(),
            default: default.and_then(|value| value.text()).unwrap_or_default(),
            schema,
            below: V::keys(),
        }
    }
}

/// Returns all keys of a site, those of tables within tables included: each with the tables that it
/// is in, as in `site.route.files.index`, in the order of their definition.
#[must_use]
pub fn keys() -> Vec<KeyDoc> {
    let mut all = Vec::new();
    add("site", SiteTable::keys(), &mut all);
    all
}

fn add(table: &str, keys: Vec<KeyDoc>, all: &mut Vec<KeyDoc>) {
    for mut key in keys {
        key.name = format!("{table}.{}", key.name);
        let below = std::mem::take(&mut key.below);
        let name = key.name.clone();
        all.push(key);
        add(&name, below, all);
    }
}

/// Returns the JSON Schema of the file, with these keys of its tables `[server]` and
/// `[server.limits]`.
#[must_use]
pub fn schema(server: &dyn ServerKeys) -> Json {
    let mut site = SiteTable::schema();
    site["properties"]["route"]["description"] = "A path, and what responds there.".into();
    let mut properties = Map::new();
    if let Some(server) = server.schema() {
        properties.insert("server".to_owned(), server);
    }
    let sites = json!({ "type": "array", "items": site });
    properties.insert("site".to_owned(), sites);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sites of greenroom serve",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}
