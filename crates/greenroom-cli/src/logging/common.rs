//! Lines for requests in the common log format, and in the combined one, as Apache's
//! `mod_log_config` and nginx define them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
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
        let mut request = Request::default();
        event.record(&mut request);
        request.write(*self, second::now(), &mut out)
    }
}

/// The fields of an event for a request.
#[derive(Debug, Default)]
struct Request {
    /// The address that is connected, with its port.
    peer: Option<String>,
    /// The address that a trusted proxy has named.
    client: Option<String>,
    method: Option<String>,
    target: Option<String>,
    version: Option<String>,
    status: Option<u64>,
    bytes: Option<u64>,
    referer: Option<String>,
    user_agent: Option<String>,
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
        self.take(field, || value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field, || format!("{value:?}"));
    }
}

impl Request {
    fn take(&mut self, field: &Field, value: impl FnOnce() -> String) {
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
        *place = Some(value());
    }

    fn write(&self, format: CommonFormat, now: Duration, out: &mut impl fmt::Write) -> fmt::Result {
        let address = self.client.as_deref().or(self.peer.as_deref());
        escaped(&address.map_or_else(|| "-".to_owned(), without_port), out)?;
        out.write_str(" - - [")?;
        second::write(now, "%d/%b/%Y:%H:%M:%S +0000", out)?;
        out.write_str("] \"")?;
        match (&self.method, &self.target, &self.version) {
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
                escaped(value.as_deref().unwrap_or("-"), out)?;
                out.write_char('"')?;
            }
        }
        out.write_char('\n')
    }
}

fn without_port(address: &str) -> String {
    let ip = address.parse().map(|address: SocketAddr| address.ip());
    let ip: Result<IpAddr, _> = ip.or_else(|_| address.parse());
    ip.map_or_else(|_| address.to_owned(), |ip| ip.to_string())
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

    fn request() -> Request {
        let text = |text: &str| Some(text.to_owned());
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
            client: Some("203.0.113.9".to_owned()),
            status: None,
            ..request()
        };
        let line = line(&left, CommonFormat::COMMON);
        assert!(line.starts_with("203.0.113.9 - - "), "{line}");
        assert!(line.ends_with("\" 499 12\n"), "{line}");
    }
}
