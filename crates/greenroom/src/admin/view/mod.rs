//! The state of the server as operators are shown it, as facts and tables with an explanation of
//! each: the page and the text are made of it.

mod actors;
mod admission;
mod attention;
#[cfg(feature = "bus")]
mod buses;
#[cfg(any(feature = "tls", feature = "tls-ring"))]
mod certificates;
mod charts;
#[cfg(feature = "cluster")]
mod clusters;
mod format;
mod loops;
#[cfg(feature = "psgi")]
mod perl;
#[cfg(feature = "proxy")]
mod proxies;
mod routes;
mod stages;
mod text;
mod upgrades;

use std::time::{SystemTime, UNIX_EPOCH};

use super::Admin;
use super::actions::{ActionShown, AdminActions};
use crate::Status;
pub(super) use attention::Warning;
pub(super) use charts::Chart;

/// The address of the book, to whose pages links go.
const BOOK: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/");

/// The rows of a table that are shown, those first that matter most.
const ROWS_MAX: usize = 50;

/// All that is shown at one moment.
pub(super) struct View {
    pub(super) state: &'static str,
    pub(super) version: &'static str,
    pub(super) pid: u32,
    pub(super) uptime: String,
    pub(super) warnings: Vec<Warning>,
    pub(super) charts: Vec<Chart>,
    pub(super) sections: Vec<Section>,
    pub(super) actions: Vec<ActionShown>,
}

/// One subject.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// The page of the book that tells more, and its place there.
    pub(super) page: &'static str,
    pub(super) blocks: Vec<Block>,
    /// The text that stands there if there are no blocks.
    pub(super) empty: &'static str,
}

pub(super) enum Block {
    Facts(Facts),
    Table(Table),
}

/// The values of one thing.
pub(super) struct Facts {
    pub(super) title: String,
    pub(super) facts: Vec<Fact>,
}

pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) value: Value,
}

pub(super) struct Table {
    pub(super) caption: String,
    pub(super) columns: &'static [Column],
    pub(super) rows: Vec<Vec<Value>>,
    /// Rows beyond [`ROWS_MAX`].
    pub(super) left_out: usize,
}

pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
}

/// The content of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// Sentences.
    Long,
    Number,
}

/// A value, as it is shown.
pub(super) struct Value {
    pub(super) text: String,
    pub(super) tone: Tone,
    /// The part of its limit that it takes, in percent.
    pub(super) fill: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    Plain,
    Warn,
    Bad,
}

impl View {
    pub(super) fn of(admin: &Admin) -> Self {
        let status = admin.shown.status();
        let history = admin.history.shown();
        let state = match &*status.not_ready {
            [] => "ready",
            [reason, ..] if reason.starts_with("draining") => "draining",
            [reason, ..] if reason.starts_with("starting") => "starting",
            _ => "not ready",
        };
        Self {
            state,
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            uptime: format::seconds(admin.begun.elapsed().as_secs()),
            warnings: attention::warnings(&status, &history, now()),
            charts: charts::charts(&history),
            sections: sections(&status),
            actions: admin
                .actions
                .as_ref()
                .map_or_else(Vec::new, AdminActions::shown),
        }
    }

    /// Returns the state as the name of a class.
    pub(super) fn state_class(&self) -> String {
        self.state.replace(' ', "-")
    }
}

fn sections(status: &Status) -> Vec<Section> {
    vec![
        loops::section(status),
        stages::section(status),
        routes::section(status),
        admission::section(status),
        actors::section(status),
        #[cfg(feature = "bus")]
        buses::section(status),
        #[cfg(feature = "cluster")]
        clusters::section(status),
        #[cfg(feature = "psgi")]
        perl::section(status),
        #[cfg(any(feature = "tls", feature = "tls-ring"))]
        certificates::section(status, now()),
        #[cfg(feature = "proxy")]
        proxies::section(status),
        upgrades::section(status, now()),
    ]
}

/// Returns the seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

impl Section {
    pub(super) fn url(&self) -> String {
        in_book(self.page)
    }
}

/// Returns the address of a page of the book.
fn in_book(page: &str) -> String {
    format!("{BOOK}{page}")
}

impl Fact {
    fn new(name: &'static str, help: &'static str, value: impl Into<Value>) -> Self {
        let value = value.into();
        Self { name, help, value }
    }
}

impl Table {
    fn new(
        caption: impl Into<String>,
        columns: &'static [Column],
        mut rows: Vec<Vec<Value>>,
    ) -> Self {
        let left_out = rows.len().saturating_sub(ROWS_MAX);
        rows.truncate(ROWS_MAX);
        Self {
            caption: caption.into(),
            columns,
            rows,
            left_out,
        }
    }

    /// Returns it as the blocks of a section; none if it has no rows.
    fn into_blocks(self) -> Vec<Block> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        vec![Block::Table(self)]
    }
}

impl Column {
    const fn text(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            kind: Kind::Text,
        }
    }

    const fn long(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            kind: Kind::Long,
        }
    }

    const fn number(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            kind: Kind::Number,
        }
    }
}

impl<T: Into<String>> From<T> for Value {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            tone: Tone::Plain,
            fill: None,
        }
    }
}

impl Value {
    /// Makes it stand out if something is so.
    fn warn_if(self, is_so: bool) -> Self {
        self.at_least(Tone::Warn, is_so)
    }

    fn bad_if(self, is_so: bool) -> Self {
        self.at_least(Tone::Bad, is_so)
    }

    fn at_least(mut self, tone: Tone, is_so: bool) -> Self {
        if is_so {
            self.tone = self.tone.max(tone);
        }
        self
    }

    /// Shows the part of a limit that it takes.
    fn of_limit(mut self, used: u64, limit: u64) -> Self {
        self.fill = Some(percent(used, limit));
        self
    }
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Long => "long",
            Self::Number => "number",
        }
    }
}

impl Tone {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

fn percent(part: u64, whole: u64) -> u8 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u8::try_from(percent.min(100)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Asserts that a page is in the book, and has the heading.
    pub(super) fn assert_in_book(page: &str) {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let (file, heading) = page.split_once('#').unwrap_or((page, ""));
        let text = std::fs::read_to_string(docs.join(file)).expect(page);
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let mut headings = headings.map(|line| {
            let heading = line.trim_start_matches(['#', ' ']).to_lowercase();
            heading.replace(' ', "-")
        });
        let is_there = heading.is_empty() || headings.any(|each| each == heading);
        assert!(is_there, "{page}");
    }

    #[test]
    fn the_pages_of_sections_are_in_the_book() {
        let sections = sections(&Status::of_process());
        assert!(sections.len() >= 6, "{}", sections.len());
        for section in sections {
            assert_in_book(section.page);
        }
    }
}
