use serde_json::Value as Json;

use super::value::Value;

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
