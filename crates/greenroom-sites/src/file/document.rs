use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::entry::Entry;
use super::fault::{Fault, Faults, position};
use super::reading::{At, Reading};
use super::server::{self, ServerKeys, ServerSetting, ServerTable};
use crate::config::{self, Site};

/// The most bytes of a file that are read: 4 MiB.
const BYTES_MAX: u64 = 4 << 20;

/// A file of sites without a fault.
#[derive(Clone, Debug)]
pub struct File {
    path: PathBuf,
    text: String,
    pub(crate) sites: Vec<Site>,
    settings: Vec<ServerSetting>,
    entries: Vec<Entry>,
}

impl File {
    /// Reads the file, and checks it with what it names: directories and files must be there.
    ///
    /// # Errors
    ///
    /// All its faults.
    pub fn read(path: &Path, server: &dyn ServerKeys) -> Result<Self, Faults> {
        match read(path) {
            Ok(text) => Self::parse(path, text, server),
            Err(error) => {
                let fault = Fault {
                    line: 0,
                    column: 0,
                    message: error.to_string(),
                };
                Err(Faults::new(path, vec![fault]))
            }
        }
    }

    /// Like [`read`](Self::read), of a file that is already there as text.
    ///
    /// # Errors
    ///
    /// All its faults.
    pub fn parse(path: &Path, text: String, server: &dyn ServerKeys) -> Result<Self, Faults> {
        let (document, errors) = DeTable::parse_recoverable(&text);
        if !errors.is_empty() {
            let faults = errors.iter().map(|error| {
                let (line, column) = position(&text, &error.span().unwrap_or(0..0));
                let message = error.message().to_owned();
                Fault {
                    line,
                    column,
                    message,
                }
            });
            return Err(Faults::new(path, faults.collect()));
        }
        let mut reading = Reading::new(path, &text);
        let table = document.get_ref();
        reading.check_names(table, &["server", "site"]);
        let mut settings = Vec::new();
        if let Some(found) = table.get("server").map(At::new) {
            let (reading, settings) = (&mut reading, &mut settings);
            server::read(&found, ServerTable::Server, server, reading, settings);
        }
        let sites = reading.field((table, &document.span()), "site", None);
        let sites = sites.and_then(|sites: Vec<_>| config::check(&sites, &mut reading));
        let Reading {
            faults, entries, ..
        } = reading;
        match sites {
            Some(sites) if faults.is_empty() => Ok(Self {
                path: path.to_owned(),
                sites,
                settings,
                entries,
                text,
            }),
            _ => Err(Faults::new(path, faults)),
        }
    }

    /// Returns the path that it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text that was read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the file has another text by now. One that cannot be read has not.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        read(&self.path).is_ok_and(|text| text != self.text)
    }

    /// Returns what the file sets of the server.
    #[must_use]
    pub fn server(&self) -> &[ServerSetting] {
        &self.settings
    }

    /// Returns the values of all keys of the sites, with where they come from.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the hosts of all sites, in lower case; wildcards as `*.example.org`.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        let hosts = self.sites.iter().flat_map(|site| &site.hosts);
        hosts.map(ToString::to_string).collect()
    }

    /// Returns the paths of the files and directories whose change may change what is served: the
    /// file itself, and those that it names of passwords.
    #[must_use]
    pub fn watched(&self) -> Vec<PathBuf> {
        let mut paths = vec![self.path.clone()];
        paths.extend(self.sites.iter().flat_map(Site::password_files));
        paths
    }
}

fn read(path: &Path) -> io::Result<String> {
    let length = fs::metadata(path)?.len();
    if length > BYTES_MAX {
        let message = format!("the file has {length} bytes; allowed are {BYTES_MAX}");
        return Err(io::Error::other(message));
    }
    fs::read_to_string(path)
}
