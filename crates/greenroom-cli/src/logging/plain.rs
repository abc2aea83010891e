//! Time and fields of lines for people without colours.
//!
//! The lines are those of `tracing_subscriber`, whose own formatter writes each name, each sign and
//! each number with a style that is none. Beside a short request that was a third of its time: with
//! each there is a line, written by its loop.

use std::error::Error;
use std::fmt;

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};
use tracing_subscriber::fmt::time::FormatTime;

use super::second;

/// The time, such as `2026-11-29T08:56:15.678327Z`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        let now = second::now();
        second::write(now, "%FT%T", out)?;
        write!(out, ".{:06}Z", now.subsec_micros())
    }
}

/// The fields, such as `method=GET status=200`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields;

impl<'a> FormatFields<'a> for Fields {
    fn format_fields<R: RecordFields>(&self, out: Writer<'a>, fields: R) -> fmt::Result {
        let mut visitor = Visitor {
            out,
            is_first: true,
            result: Ok(()),
        };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct Visitor<'a> {
    out: Writer<'a>,
    is_first: bool,
    /// An error ends the line.
    result: fmt::Result,
}

impl Visitor<'_> {
    fn write(&mut self, name: &str, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        // Those of records of the crate `log` are parts of the line already.
        if self.result.is_err() || name.starts_with("log.") {
            return;
        }
        let separator = if self.is_first { "" } else { " " };
        self.is_first = false;
        let out = &mut self.out;
        self.result = out
            .write_str(separator)
            .and_then(|()| out.write_str(name))
            .and_then(|()| out.write_char('='))
            .and_then(|()| value(out));
    }

    /// Has the library write what it knows better: messages and errors, whose escapes it removes.
    fn leave(&mut self, write: impl FnOnce(&mut DefaultVisitor<'_>)) {
        if self.result.is_ok() {
            write(&mut DefaultVisitor::new(self.out.by_ref(), self.is_first));
            self.is_first = false;
        }
    }
}

impl Visit for Visitor<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write(field.name(), |out| write!(out, "{value}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            return self.leave(|library| library.record_str(field, value));
        }
        self.write(field.name(), |out| quoted(value, out));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.leave(|library| library.record_error(field, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = field.name();
        if name == MESSAGE || name.starts_with("r#") {
            return self.leave(|library| library.record_debug(field, value));
        }
        self.write(name, |out| write!(out, "{value:?}"));
    }
}

const MESSAGE: &str = "message";

/// Returns `true` for what is as it is within quotes: visible ASCII and spaces, but no quotes and
/// backslashes.
pub(super) fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Writes a text as `Debug` does, which looks at each character's properties.
fn quoted(text: &str, out: &mut Writer<'_>) -> fmt::Result {
    if !text.bytes().all(is_plain) {
        return write!(out, "{text:?}");
    }
    out.write_char('"')?;
    out.write_str(text)?;
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing::Dispatch;
    use tracing::dispatcher::with_default;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    fn events() {
        let error = io::Error::other("an \u{1b}[31merror");
        let span = tracing::info_span!("outer", number = 7_u64, name = "a b");
        let _entered = span.enter();
        tracing::info!(
            target: "greenroom::access",
            peer = %"127.0.0.1:80",
            method = "GET",
            agent = "a\"b\\c\r\n\u{7f}ä\u{1b}[31m",
            version = ?http::Version::HTTP_11,
            status = 200_u16,
            difference = -1_i64,
            part = 0.5,
            cut = Some(true),
            nothing = None::<u64>,
            r#type = "raw",
        );
        tracing::warn!(
            error = &error as &dyn Error,
            code = 1_u64,
            "it \u{1b}[31mfailed: {error}"
        );
        tracing::warn!(
            log.target = "rustls::conn",
            log.line = 7_u64,
            log.part = ?1,
            message = "of the crate `log`",
        );
        tracing::error!("alone");
        tracing::info!(only = "a field");
        tracing::info!({ message = "as a field" });
    }

    fn lines(subscriber: impl FnOnce(Lines) -> Dispatch) -> String {
        let written = Lines::default();
        with_default(&subscriber(written.clone()), events);
        String::from_utf8(written.0.lock().clone()).expect("text")
    }

    #[test]
    fn lines_are_those_of_the_library() {
        let layer = || tracing_subscriber::fmt().with_ansi(false).without_time();
        let library = lines(|written| layer().with_writer(written).into());
        let ours = lines(|written| layer().fmt_fields(Fields).with_writer(written).into());
        assert_eq!(ours, library);
        assert!(
            ours.contains("outer{number=7 name=\"a b\"}: greenroom::access: peer=127.0.0.1:80")
        );
        assert_eq!(ours.lines().count(), 6);
    }

    #[test]
    fn times_are_those_of_the_library() {
        let mut times = Vec::new();
        let clocks: [&dyn FormatTime; 3] = [&Clock, &tracing_subscriber::fmt::time::time(), &Clock];
        for clock in clocks {
            let mut text = String::new();
            let formatted = clock.format_time(&mut Writer::new(&mut text));
            formatted.expect("a string grows");
            times.push(text);
        }
        let lengths: Vec<_> = times.iter().map(String::len).collect();
        assert_eq!(lengths, [27; 3]);
        // Of the same form, they are in the order of the alphabet as in that of time.
        assert!(times.is_sorted(), "{times:?}");
    }
}
