//! The keys of `[server]` and `[server.limits]` in a file of sites: the flags of `greenroom serve`,
//! with underscores.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};
use greenroom::Limits;
use greenroom_sites::{Entry, File, Origin, ServerKeys, ServerSetting, ServerTable};
use serde_json::{Map, Value as Json, json};

use super::{Args, demo, psgi, settings, sites};

/// Flags that are no keys: they are of the command line, or of one application.
const NO_KEYS: &[&str] = &["help", "host", "port"];

/// Flags, each with those that take its place.
const REPLACED: &[(&str, &[&str])] = &[
    ("access_log", &["no_access_log"]),
    ("access_log_format", &["no_access_log"]),
    ("access_log_sample", &["no_access_log"]),
    ("listen", &["port", "host"]),
    (
        "no_access_log",
        &["access_log", "access_log_format", "access_log_sample"],
    ),
];

/// The flags of `greenroom serve` as keys.
pub(crate) struct Flags(Command);

impl Flags {
    pub(crate) fn new() -> Self {
        let mut command = Args::command();
        command.build();
        let serve = command.find_subcommand("serve").cloned();
        Self(serve.unwrap_or_default().no_binary_name(true))
    }

    fn keys(&self, table: ServerTable) -> impl Iterator<Item = (String, &Arg)> {
        self.0.get_arguments().filter_map(move |flag| {
            let long = flag.get_long()?;
            let heading = flag.get_help_heading();
            let is_limit = heading == Some(<Limits as settings::Flags>::HEADING);
            let of_one = [demo::HEADING, psgi::HEADING, sites::HEADING].map(Some);
            let is_key = !flag.is_hide_set()
                && !NO_KEYS.contains(&long)
                && !of_one.contains(&heading)
                && is_limit == (table == ServerTable::Limits);
            is_key.then(|| (long.replace('-', "_"), flag))
        })
    }

    fn of(&self, setting: &ServerSetting) -> Option<&Arg> {
        let mut keys = self.keys(setting.table);
        keys.find(|(name, _)| *name == setting.name)
            .map(|(_, flag)| flag)
    }

    /// Returns the flags that stand for a setting.
    fn words(&self, setting: &ServerSetting, directory: &Path) -> Result<Vec<OsString>, String> {
        let Some(long) = self.of(setting).and_then(Arg::get_long) else {
            return Ok(Vec::new());
        };
        if self.of(setting).is_some_and(is_switch) {
            let is_on = matches!(&*setting.values, [value] if value == "true");
            let is_off = matches!(&*setting.values, [value] if value == "false");
            return match (is_on, is_off) {
                (true, _) => Ok(vec![format!("--{long}").into()]),
                (_, true) => Ok(Vec::new()),
                _ => Err("expected true or false".to_owned()),
            };
        }
        let values = setting.values.iter().map(|value| {
            let mut word = OsString::from(format!("--{long}="));
            match self.of(setting).filter(|flag| is_path(flag)) {
                Some(flag) => word.push(beside(directory, value, flag.get_value_delimiter())),
                None => word.push(value),
            }
            word
        });
        Ok(values.collect())
    }

    /// Returns the settings of the server that are in force, where `matches` has those of the
    /// command line and the environment without the file, and `merged` those with it.
    pub(crate) fn entries(
        &self,
        file: Option<&File>,
        matches: &ArgMatches,
        merged: &ArgMatches,
    ) -> Vec<Entry> {
        let tables = [ServerTable::Server, ServerTable::Limits];
        let keys = tables.iter().flat_map(|table| {
            let keys = self.keys(*table);
            keys.map(move |(name, flag)| (*table, name, flag))
        });
        keys.map(|(table, name, flag)| {
            let id = flag.get_id().as_str();
            let settings = file.map(File::server).unwrap_or_default();
            let setting = settings
                .iter()
                .find(|setting| setting.table == table && setting.name == name);
            let origin = match (matches.value_source(id), setting) {
                (Some(ValueSource::CommandLine), _) => {
                    Origin::Flag(format!("--{}", name.replace('_', "-")))
                }
                (Some(ValueSource::EnvVariable), _) => {
                    let variable = flag.get_env().unwrap_or_default();
                    Origin::Variable(variable.to_string_lossy().into_owned())
                }
                (_, Some(setting)) => {
                    let path = file.map_or(Path::new(""), File::path);
                    Origin::File(path.to_owned(), setting.line)
                }
                _ => Origin::Default,
            };
            let place = match table {
                ServerTable::Server => "server",
                ServerTable::Limits => "server.limits",
            };
            Entry {
                key: format!("{place}.{name}"),
                value: value(flag, merged),
                origin,
            }
        })
        .collect()
    }
}

impl ServerKeys for Flags {
    fn names(&self, table: ServerTable) -> Vec<String> {
        self.keys(table).map(|(name, _)| name).collect()
    }

    fn check(&self, setting: &ServerSetting) -> Result<(), String> {
        let words = self.words(setting, Path::new("/"))?;
        let parsed = self.0.clone().try_get_matches_from(words);
        match parsed {
            // Whether the settings go together is found out when all are known.
            Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => Ok(()),
            parsed => parsed.map(|_| ()).map_err(|error| fault(&error)),
        }
    }

    fn schema(&self) -> Option<Json> {
        let keys = |table| {
            let keys = self.keys(table).map(|(name, flag)| (name, schema(flag)));
            keys.collect::<Map<String, Json>>()
        };
        let mut server = keys(ServerTable::Server);
        let table = |keys: Map<String, Json>| {
            let mut table = json!({ "type": "object", "additionalProperties": false });
            table["properties"] = keys.into();
            table
        };
        server.insert("limits".to_owned(), table(keys(ServerTable::Limits)));
        Some(table(server))
    }
}

/// Adds the settings of the file that neither `words` nor the environment set, behind `serve`: who
/// wrote `--` has no more flags behind it.
pub(crate) fn with_file(
    mut words: Vec<OsString>,
    matches: &ArgMatches,
    file: &File,
) -> Vec<OsString> {
    let flags = Flags::new();
    let directory = file.path().parent().unwrap_or(Path::new(""));
    let is_said = |id: &str| {
        let source = matches.value_source(id);
        matches!(
            source,
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        )
    };
    let mut of_file = Vec::new();
    for setting in file.server() {
        let Some(flag) = flags.of(setting) else {
            continue;
        };
        let id = flag.get_id().as_str();
        let by = REPLACED.iter().find(|(replaced, _)| *replaced == id);
        let mut by = by.into_iter().flat_map(|(_, by)| *by);
        if !is_said(id) && !by.any(|flag| is_said(flag)) {
            of_file.extend(flags.words(setting, directory).unwrap_or_default());
        }
    }
    let serve = words.iter().position(|word| word == "serve");
    let behind = serve.map_or(words.len(), |serve| serve + 1);
    words.splice(behind..behind, of_file);
    words
}

fn is_switch(flag: &Arg) -> bool {
    matches!(flag.get_action(), ArgAction::SetTrue)
}

fn is_path(flag: &Arg) -> bool {
    flag.get_value_parser().type_id() == TypeId::of::<PathBuf>()
}

/// Returns a path that is relative to the file as one of the process, or several with this sign
/// between them. An empty one stays empty: it is no name of the directory.
fn beside(directory: &Path, value: &str, delimiter: Option<char>) -> OsString {
    let one = |path: &str| match path {
        "" => OsString::new(),
        path => directory.join(path).into_os_string(),
    };
    let Some(delimiter) = delimiter else {
        return one(value);
    };
    let parts: Vec<OsString> = value.split(delimiter).map(one).collect();
    parts.join(OsStr::new(delimiter.encode_utf8(&mut [0; 4])))
}

/// Returns what is wrong with a value, without the name of the flag.
fn fault(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::ValueValidation
        && let Some(source) = std::error::Error::source(error)
    {
        return source.to_string();
    }
    if let (Some(ContextValue::String(value)), Some(ContextValue::Strings(allowed))) = (
        error.get(ContextKind::InvalidValue),
        error.get(ContextKind::ValidValue),
    ) {
        if value.is_empty() && allowed.is_empty() {
            return "the value is empty; leave the key out".to_owned();
        }
        return format!("`{value}` is not allowed; allowed: {}", allowed.join(", "));
    }
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn value(flag: &Arg, matches: &ArgMatches) -> String {
    let id = flag.get_id().as_str();
    if is_switch(flag) {
        return matches.get_flag(id).to_string();
    }
    let values = matches.get_raw(id).into_iter().flatten();
    let values: Vec<String> = values
        .map(|value| format!("{:?}", value.to_string_lossy()))
        .collect();
    match (&*values, flag.get_action()) {
        (values, ArgAction::Append) => format!("[{}]", values.join(", ")),
        ([value], _) => value.clone(),
        _ => String::new(),
    }
}

fn schema(flag: &Arg) -> Json {
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let possible: Vec<String> = flag
        .get_possible_values()
        .iter()
        .map(|value| value.get_name().to_owned())
        .collect();
    let one = match (is_switch(flag), possible.is_empty()) {
        (true, _) => json!({ "type": "boolean" }),
        (_, false) => json!({ "enum": possible }),
        _ => json!({ "type": ["string", "integer"] }),
    };
    let mut schema = match flag.get_action() {
        ArgAction::Append => json!({ "anyOf": [one, { "type": "array", "items": one }] }),
        _ => one,
    };
    schema["description"] = help.into();
    schema
}
