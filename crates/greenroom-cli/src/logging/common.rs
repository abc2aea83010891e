//! Lines for requests in the common log format, and in the combined one, as Apache's
//! `mod_log_config` and nginx define them.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::plain::is_plain;
use super::second;

/// The status of a request whose client left before there was a response, as in nginx' logs.
const CLIENT_LEFT: u64 = 499;

/// The format of the lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommonFormat {
    is_combined: bool,
}

impl CommonFormat {
    pub(super) const COMMON: Self = Self { is_combined: false };
    pub(super) const COMBINED: Self = Self { is_combined: true };
}

impl<S, N> FormatEvent<S, N> for CommonFormat
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
        let mut write = |request: &mut Request| {
            request.clear();
            event.record(request);
            request.write(*self, second::now(), &mut out)
        };
        // A thread that ends may have none any more.
        let written = REQUEST.try_with(|request| write(&mut request.borrow_mut()));
        written.unwrap_or_else(|_| write(&mut Request::default()))
    }
}

thread_local! {
    /// The last request of this thread: the next one's texts go where its were.
    static REQUEST: RefCell<Request> = RefCell::default();
}

/// The fields of an event for a request.
#[derive(Debug, Default)]
struct Request {
    /// The address that is connected, with its port.
    peer: Text,
    /// The address that a trusted proxy has named.
    client: Text,
    method: Text,
    target: Text,
    version: Text,
    status: Option<u64>,
    bytes: Option<u64>,
    referer: Text,
    user_agent: Text,
}

/// A text that may be there.
#[derive(Debug, Default)]
struct Text {
    is_there: bool,
    text: String,
}

impl Text {
    fn get(&self) -> Option<&str> {
        self.is_there.then_some(&*self.text)
    }

    fn clear(&mut self) {
        self.is_there = false;
        self.text.clear();
    }
}

impl Visit for Request {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "status" => self.status = Some(value),
            "bytes" => self.bytes = Some(value),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field, format_args!("{value:?}"));
    }
}

impl Request {
    fn clear(&mut self) {
        (self.status, self.bytes) = (None, None);
        self.peer.clear();
        self.client.clear();
        self.method.clear();
        self.target.clear();
        self.version.clear();
        self.referer.clear();
        self.user_agent.clear();
    }

    fn take(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let place = match field.name() {
            "peer" => &mut self.peer,
            "client" => &mut self.client,
            "method" => &mut self.method,
            "target" => &mut self.target,
            "version" => &mut self.version,
            "referer" => &mut self.referer,
            "user_agent" => &mut self.user_agent,
            _ => return,
        };
        // Writing to a string cannot fail.
        place.is_there = place.text.write_fmt(value).is_ok();
    }

    fn write(&self, format: CommonFormat, now: Duration, out: &mut impl fmt::Write) -> fmt::Result {
        match self.client.get().or(self.peer.get()) {
            Some(address) => without_port(address, out)?,
            None => out.write_char('-')?,
        }
        out.write_str(" - - [")?;
        second::write(now, "%d/%b/%Y:%H:%M:%S +0000", out)?;
        out.write_str("] \"")?;
        match (self.method.get(), self.target.get(), self.version.get()) {
            (Some(method), Some(target), Some(version)) => {
                escaped(method, out)?;
                out.write_char(' ')?;
                escaped(target, out)?;
                write!(out, " {version}")?;
            }
            _ => out.write_char('-')?,
        }
        write!(out, "\" {} ", self.status.unwrap_or(CLIENT_LEFT))?;
        match self.bytes {
            Some(bytes) => write!(out, "{bytes}")?,
            None => out.write_char('-')?,
        }
        if format.is_combined {
            for value in [&self.referer, &self.user_agent] {
                out.write_str(" \"")?;
                escaped(value.get().unwrap_or("-"), out)?;
                out.write_char('"')?;
            }
        }
        out.write_char('\n')
    }
}

fn without_port(address: &str, out: &mut impl fmt::Write) -> fmt::Result {
    let ip = address.parse().map(|address: SocketAddr| address.ip());
    match ip {
        Ok(ip) => write!(out, "{ip}"),
        Err(_) => escaped(address, out),
    }
}

/// Writes a text of a client, so that it can end neither its quotes nor its line: as nginx does,
/// with `\xHH` for quotes, backslashes and all that is no visible ASCII.
fn escaped(text: &str, out: &mut impl fmt::Write) -> fmt::Result {
    // Nearly always, and far quicker than one by one.
    if text.bytes().all(is_plain) {
        return out.write_str(text);
    }
    for byte in text.bytes() {
        if is_plain(byte) {
            out.write_char(char::from(byte))?;
        } else {
            write!(out, "\\x{byte:02X}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(request: &Request, format: CommonFormat) -> String {
        let (mut line, now) = (String::new(), Duration::ZERO);
        request
            .write(format, now, &mut line)
            .expect("a string grows");
        line
    }

    fn text(text: &str) -> Text {
        Text {
            is_there: true,
            text: text.to_owned(),
        }
    }

    fn request() -> Request {
        Request {
            peer: text("[2001:db8::1]:4711"),
            method: text("GET"),
            target: text("/a?b=c"),
            version: text("HTTP/1.1"),
            status: Some(200),
            bytes: Some(12),
            referer: text("http://example.org/"),
            user_agent: text("a\"b\\c\r\n\u{7f}ä"),
            ..Request::default()
        }
    }

    #[test]
    fn lines_are_those_of_apache_and_nginx() {
        let common = "2001:db8::1 - - [01/Jan/1970:00:00:00 +0000] \"GET /a?b=c HTTP/1.1\" 200 12";
        assert_eq!(
            line(&request(), CommonFormat::COMMON),
            format!("{common}\n")
        );
        let agent = "a\\x22b\\x5Cc\\x0D\\x0A\\x7F\\xC3\\xA4";
        assert_eq!(
            line(&request(), CommonFormat::COMBINED),
            format!("{common} \"http://example.org/\" \"{agent}\"\n")
        );
    }

    #[test]
    fn what_is_not_known_is_a_hyphen() {
        let refused = Request {
            status: Some(400),
            ..Request::default()
        };
        assert_eq!(
            line(&refused, CommonFormat::COMBINED),
            "- - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 - \"-\" \"-\"\n"
        );
        let left = Request {
            client: text("203.0.113.9"),
            status: None,
            ..request()
        };
        let line = line(&left, CommonFormat::COMMON);
        assert!(line.starts_with("203.0.113.9 - - "), "{line}");
        assert!(line.ends_with("\" 499 12\n"), "{line}");
    }
}
