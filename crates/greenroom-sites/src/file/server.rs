//! The tables `[server]` and `[server.limits]`, whose keys belong to the program that serves.

use std::ops::Range;

use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};

use super::reading::{At, Reading};

/// The table that a setting of the server stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTable {
    /// `[server]`
    Server,
    /// `[server.limits]`
    Limits,
}

/// A key of `[server]` or of `[server.limits]` that the file sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSetting {
    /// The table that it stands in.
    pub table: ServerTable,
    /// The name of the key.
    pub name: String,
    /// The values, as text: several of a list.
    pub values: Vec<String>,
    /// True if it was written as an array.
    pub is_list: bool,
    /// The line of the value, from 1.
    pub line: usize,
}

/// The settings of a server that can stand in the file, as the program that serves defines them.
pub trait ServerKeys {
    /// Returns the names of the keys of a table.
    fn names(&self, table: ServerTable) -> Vec<String>;

    /// Checks a setting whose name is one of the table's.
    ///
    /// # Errors
    ///
    /// What is wrong with its values, and what is allowed.
    fn check(&self, setting: &ServerSetting) -> Result<(), String>;

    /// Returns the JSON Schema of `[server]`, if there are keys.
    fn schema(&self) -> Option<Json>;
}

/// No settings: the program that serves takes them from elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoServerKeys;

impl ServerKeys for NoServerKeys {
    fn names(&self, _: ServerTable) -> Vec<String> {
        Vec::new()
    }

    fn check(&self, _: &ServerSetting) -> Result<(), String> {
        Ok(())
    }

    fn schema(&self) -> Option<Json> {
        None
    }
}

/// Reads a table, into `settings`.
pub(super) fn read(
    at: &At<'_, '_>,
    table: ServerTable,
    keys: &dyn ServerKeys,
    reading: &mut Reading<'_>,
    settings: &mut Vec<ServerSetting>,
) {
    let Some(found) = at.value.as_table() else {
        reading.mistyped::<()>(at, "a table");
        return;
    };
    let names = keys.names(table);
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    if table == ServerTable::Server {
        names.push("limits");
    }
    reading.check_names(found, &names);
    let known = |name: &str| names.contains(&name) && name != "limits";
    for (name, value) in found {
        let at = At::new(value);
        if known(name.get_ref()) {
            settings.extend(one((name.get_ref(), table), &at, keys, reading));
        }
    }
    if let Some(limits) = limits(found, table) {
        read(&limits, ServerTable::Limits, keys, reading, settings);
    }
}

fn limits<'a, 'i>(found: &'a DeTable<'i>, table: ServerTable) -> Option<At<'a, 'i>> {
    let limits = found.get("limits").map(At::new);
    limits.filter(|_| table == ServerTable::Server)
}

fn one(
    (name, table): (&str, ServerTable),
    at: &At<'_, '_>,
    keys: &dyn ServerKeys,
    reading: &mut Reading<'_>,
) -> Option<ServerSetting> {
    let texts = match at.value {
        DeValue::Array(array) => {
            let values = array.iter().map(|value| text(&At::new(value), reading));
            values.collect::<Option<Vec<String>>>()?
        }
        _ => vec![text(at, reading)?],
    };
    let setting = ServerSetting {
        table,
        name: name.to_owned(),
        values: texts,
        is_list: at.value.is_array(),
        line: reading.line(&at.span),
    };
    if let Err(message) = keys.check(&setting) {
        return faulty(&at.span, &message, reading);
    }
    Some(setting)
}

fn faulty<T>(span: &Range<usize>, message: &str, reading: &mut Reading<'_>) -> Option<T> {
    reading.fault(span, message)
}

fn text(at: &At<'_, '_>, reading: &mut Reading<'_>) -> Option<String> {
    match at.value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Boolean(value) => Some(value.to_string()),
        _ => reading.mistyped(at, "a string, a number, or true or false"),
    }
}
