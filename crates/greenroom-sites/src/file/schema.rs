//! The schema for editors and the table of the documentation, made of the definition of the
//! keys.

use serde_json::{Map, Value as Json, json};

use super::key_doc::KeyDoc;
use super::server::ServerKeys;
use super::value::Value;
use crate::config::SiteTable;

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
