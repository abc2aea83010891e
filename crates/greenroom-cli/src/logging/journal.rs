//! Log lines for the journal of systemd, by its native protocol
//! (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>).
//!
//! The crate tracing-journald sends on the thread that logs, and waits there while the journal is
//! behind: a loop must not. Here a line is put together by its thread, and sent by another.

use std::fmt;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;

use anyhow::Context;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::losses::Place;

const SOCKET: &str = "/run/systemd/journal/socket";
/// Longer values are cut: a line is one datagram, for which the system has some 200 KiB.
const VALUE_BYTES_MAX: usize = 8_192;
/// Further fields of a line are left out.
const FIELDS_MAX: usize = 32;

/// The journal's socket. Each write is one line.
pub(super) struct Journal(UnixDatagram);

impl Journal {
    /// Opens it.
    pub(super) fn open() -> anyhow::Result<Self> {
        let open = || {
            let socket = UnixDatagram::unbound()?;
            // So that a journal that is not there is told of at the start.
            socket.connect(SOCKET)?;
            UnixDatagram::unbound()
        };
        let socket = open().with_context(|| {
            format!("--log-format journald: the journal cannot be reached at {SOCKET}")
        })?;
        Ok(Self(socket))
    }
}

impl Write for Journal {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // By its name each time, as the journal may be started again.
        self.0.send_to(line, SOCKET)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Place for Journal {}

/// The format of the lines: `MESSAGE` for people, and each field as `GREENROOM_…` for searches.
#[derive(Clone, Copy, Debug)]
pub(super) struct JournalFormat;

impl<S, N> FormatEvent<S, N> for JournalFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Line::default();
        event.record(&mut line);
        let metadata = event.metadata();
        line.write(*metadata.level(), metadata.target(), &mut out)
    }
}

/// The fields of an event.
#[derive(Debug, Default)]
struct Line {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field.name(), format!("{value:?}"));
    }
}

impl Line {
    fn take(&mut self, name: &'static str, value: String) {
        let value = plain(value);
        if name == "message" {
            self.message = value;
        } else if self.fields.len() < FIELDS_MAX {
            self.fields.push((name, value));
        }
    }

    fn write(&self, level: Level, target: &str, out: &mut impl fmt::Write) -> fmt::Result {
        let priority = match level {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        writeln!(out, "PRIORITY={priority}\nSYSLOG_IDENTIFIER=greenroom")?;
        write!(out, "GREENROOM_TARGET={target}\nMESSAGE={}", self.message)?;
        for (index, (name, value)) in self.fields.iter().enumerate() {
            let is_first = index == 0 && self.message.is_empty();
            let separator = if is_first { "" } else { " " };
            write!(out, "{separator}{name}={value}")?;
        }
        out.write_char('\n')?;
        for (name, value) in &self.fields {
            let name = name.replace('.', "_").to_ascii_uppercase();
            writeln!(out, "GREENROOM_{name}={value}")?;
        }
        Ok(())
    }
}

/// Returns a value as one line, cut if it is too long: an end of line would end the field.
fn plain(value: String) -> String {
    let mut value = if value.contains('\n') {
        value.replace('\n', "\\n")
    } else {
        value
    };
    value.truncate(value.floor_char_boundary(VALUE_BYTES_MAX));
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_ends_no_field_and_fills_no_datagram() {
        let mut line = Line::default();
        line.take("message", "a slow request".to_owned());
        line.take("path", "/a\nPRIORITY=0".to_owned());
        line.take("user_agent", "ä".repeat(VALUE_BYTES_MAX));
        for _ in 0..2 * FIELDS_MAX {
            line.take("one.more", "1".to_owned());
        }
        let mut text = String::new();
        line.write(Level::WARN, "greenroom::slow", &mut text)
            .expect("a string grows");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "PRIORITY=4");
        assert_eq!(lines[1], "SYSLOG_IDENTIFIER=greenroom");
        assert_eq!(lines[2], "GREENROOM_TARGET=greenroom::slow");
        let message = "MESSAGE=a slow request path=/a\\nPRIORITY=0 user_agent=ä";
        assert!(lines[3].starts_with(message), "{}", lines[3]);
        assert_eq!(lines[4], "GREENROOM_PATH=/a\\nPRIORITY=0");
        assert_eq!(
            lines[5].len(),
            "GREENROOM_USER_AGENT=".len() + VALUE_BYTES_MAX
        );
        assert_eq!(lines[6], "GREENROOM_ONE_MORE=1");
        assert_eq!(lines.len(), 4 + FIELDS_MAX);
    }
}
