use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::entry::{Entry, Origin};
use super::fault::{Fault, position};
use super::nearest::unknown;
use super::value::Value;

/// A value of the document, and where it is.
pub(crate) struct At<'a, 'i> {
    pub(crate) value: &'a DeValue<'i>,
    pub(crate) span: Range<usize>,
}

impl<'a, 'i> At<'a, 'i> {
    pub(crate) fn new(value: &'a Spanned<DeValue<'i>>) -> Self {
        Self {
            value: value.get_ref(),
            span: value.span(),
        }
    }
}

/// The state of reading a file: the faults and the values so far.
pub(crate) struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
    /// The tables that are being read, as in `site[0].route[2]`.
    place: Vec<String>,
    pub(super) faults: Vec<Fault>,
    pub(super) entries: Vec<Entry>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(path: &'a Path, text: &'a str) -> Self {
        Self {
            path,
            text,
            place: Vec::new(),
            faults: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Records a fault. Returns `None`, the value of what is at fault.
    pub(crate) fn fault<T>(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
    ) -> Option<T> {
        let (line, column) = position(self.text, span);
        self.faults.push(Fault {
            line,
            column,
            message: message.into(),
        });
        None
    }

    pub(crate) fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Records that a value of another type was expected.
    pub(crate) fn mistyped<T>(&mut self, at: &At<'_, '_>, expected: &str) -> Option<T> {
        let found = at.value.type_str();
        self.fault(
            &at.span,
            format!("expected {expected}, found {}", article(found)),
        )
    }

    /// Returns a path of the file, which is relative to the file's directory.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        let directory = self.path.parent().unwrap_or(Path::new(""));
        let joined = directory.join(path);
        std::path::absolute(&joined).unwrap_or(joined)
    }

    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        position(self.text, span).0
    }

    /// Reads what is within a table or an element of an array.
    pub(crate) fn within<T>(&mut self, place: String, read: impl FnOnce(&mut Self) -> T) -> T {
        self.place.push(place);
        let result = read(self);
        self.place.pop();
        result
    }

    /// Returns a table. A value that is none is put into `store`, as the key `short` if there is
    /// one.
    pub(crate) fn table<'t, 'i>(
        &mut self,
        at: &At<'t, 'i>,
        short: Option<&str>,
        store: &'t mut DeTable<'i>,
    ) -> Option<&'t DeTable<'i>> {
        if let Some(table) = at.value.as_table() {
            return Some(table);
        }
        let Some(short) = short else {
            return self.mistyped(at, "a table");
        };
        let key = Spanned::new(at.span.clone(), short.to_owned().into());
        store.insert(key, Spanned::new(at.span.clone(), at.value.clone()));
        Some(store)
    }

    /// Records the keys of a table that it cannot have.
    pub(crate) fn check_names(&mut self, table: &DeTable<'_>, names: &[&str]) {
        for key in table.keys() {
            if !names.contains(&key.get_ref().as_ref()) {
                self.fault::<()>(&key.span(), unknown(key.get_ref(), names));
            }
        }
    }

    /// Reads a key of a table; `None` if there is a fault. Without the key it has its default, and
    /// it is a fault if it has none.
    pub(crate) fn field<V: Value>(
        &mut self,
        table: (&DeTable<'_>, &Range<usize>),
        key: &str,
        default: Option<V>,
    ) -> Option<V> {
        self.within(key.to_owned(), |reading| {
            let Some(value) = table.0.get(key) else {
                let Some(default) = default.or_else(V::absent) else {
                    return reading.fault(table.1, format!("`{key}` is missing"));
                };
                reading.record(&default, Origin::Default);
                return Some(default);
            };
            let at = At::new(value);
            let value = V::read(&at, reading)?;
            let origin = reading.origin(&at.span);
            reading.record(&value, origin);
            Some(value)
        })
    }

    fn record<V: Value>(&mut self, value: &V, origin: Origin) {
        if let Some(value) = value.text() {
            self.entries.push(Entry {
                key: self.place.join(".").replace(".[", "["),
                value,
                origin,
            });
        }
    }

    /// Records the value of a key of the table that is being read.
    pub(crate) fn list(&mut self, key: &str, value: String, origin: Origin) {
        let key = format!("{}.{key}", self.place.join(".")).replace(".[", "[");
        self.entries.push(Entry { key, value, origin });
    }

    pub(crate) fn origin(&self, span: &Range<usize>) -> Origin {
        Origin::File(self.path.to_owned(), self.line(span))
    }

    /// Returns the text of the file there.
    pub(crate) fn text_at(&self, span: &Range<usize>) -> &'a str {
        self.text.get(span.clone()).unwrap_or_default()
    }
}

fn article(kind: &str) -> String {
    let an = if kind.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("{an} {kind}")
}
