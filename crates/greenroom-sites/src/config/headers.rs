use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::file::{Located, Pairs, Reading, table};

table! {
    /// Changes of the header fields of responses: first what is removed, then what is set, then
    /// what is added.
    pub(crate) struct HeadersTable {
        /// Fields that responses get in place of those of that name.
        set: Pairs;
        /// Fields that responses get in addition to those of that name.
        add: Pairs;
        /// Names of fields that responses do not have.
        remove: Vec<Located<String>>;
    }
}

/// Fields of the connection and of the framing, which are the server's.
const OF_THE_SERVER: [HeaderName; 5] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TRAILER,
    header::UPGRADE,
];

/// Changes of header fields, checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderChanges {
    set: Vec<(HeaderName, HeaderValue)>,
    add: Vec<(HeaderName, HeaderValue)>,
    remove: Vec<HeaderName>,
}

impl HeaderChanges {
    pub(super) fn of(table: &HeadersTable, reading: &mut Reading<'_>) -> Self {
        let remove = table.remove.iter();
        Self {
            set: fields(&table.set, reading),
            add: fields(&table.add, reading),
            remove: remove
                .filter_map(|located| name(&located.value, located, reading))
                .collect(),
        }
    }

    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        for name in &self.remove {
            headers.remove(name);
        }
        for (name, value) in &self.set {
            headers.insert(name, value.clone());
        }
        for (name, value) in &self.add {
            headers.append(name, value.clone());
        }
    }
}

fn fields(pairs: &Pairs, reading: &mut Reading<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let pairs = pairs.0.iter();
    pairs
        .filter_map(|(field, located)| {
            let name = name(field, located, reading);
            let value = value(located, reading);
            name.zip(value)
        })
        .collect()
}

/// Parses the name of a field of responses, which is at `located` or has it as its value.
fn name(text: &str, located: &Located<String>, reading: &mut Reading<'_>) -> Option<HeaderName> {
    let Ok(name) = text.parse::<HeaderName>() else {
        return reading.fault(
            &located.span,
            format!("`{text}` is no name of a header field"),
        );
    };
    if OF_THE_SERVER.contains(&name) {
        return reading.fault(&located.span, format!("`{name}` is set by the server only"));
    }
    Some(name)
}

/// Parses the value of a field.
pub(super) fn value(located: &Located<String>, reading: &mut Reading<'_>) -> Option<HeaderValue> {
    let value = located.value.parse().ok();
    value.or_else(|| {
        let message = "no value of a header field; allowed is visible ASCII, with blanks between";
        reading.fault(&located.span, message)
    })
}
