use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};

use super::{host, names};
use crate::encode::decimal;
use crate::raw::{self, Shared};
use crate::{BodyLength, Reason};

/// The facts that the fields of a head state about the connection and the body.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one head, not a state"
)]
pub(crate) struct Fields<'a> {
    version: Version,
    pub(super) host: Option<&'a [u8]>,
    /// The host is the one that was known.
    pub(super) is_host_known: bool,
    connection: Connection,
    upgrade: Option<&'a [u8]>,
    transfer_encoding: bool,
    content_length: bool,
    pub(crate) body: BodyLength,
    pub(crate) expects_continue: bool,
    pub(crate) accepts_trailers: bool,
}

/// The options of `Connection` that this server knows (RFC 9110, 7.6.1).
#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    close: bool,
    keep_alive: bool,
    upgrade: bool,
}

/// Notes the fields of a head that is already parsed.
pub(super) fn note_all(map: &HeaderMap, version: Version) -> Result<Fields<'_>, Reason> {
    let mut fields = Fields::new(version);
    for (name, value) in map {
        fields.note(name.as_str(), value.as_bytes())?;
    }
    Ok(fields)
}

impl<'a> Fields<'a> {
    /// Creates it without any.
    pub(super) fn new(version: Version) -> Self {
        Self {
            version,
            host: None,
            is_host_known: false,
            connection: Connection::default(),
            upgrade: None,
            transfer_encoding: false,
            content_length: false,
            body: BodyLength::None,
            expects_continue: false,
            accepts_trailers: false,
        }
    }

    /// Appends the raw fields to `map`, noting those that say how the message is framed. A `Host`
    /// that equals `known_host`, which was found well-formed, is taken for that.
    pub(super) fn append(
        &mut self,
        raw: raw::Fields<'_, 'a>,
        shared: &Shared<'a>,
        known_host: Option<&HeaderValue>,
        map: &mut HeaderMap,
    ) -> Result<(), Reason> {
        map.reserve(raw.as_slice().len());
        for field in raw.iter() {
            if field.name().eq_ignore_ascii_case("host")
                && let Some(known) = known_host.filter(|known| known.as_bytes() == field.bytes())
            {
                self.note_good_host(field.bytes())?;
                self.is_host_known = true;
                map.append(HOST, known.clone());
                continue;
            }
            self.note(field.name(), field.bytes())?;
            let name = field.name().as_bytes();
            let name = match names::common(name) {
                Some(name) => name,
                None => HeaderName::from_bytes(name).map_err(|_| Reason::Field)?,
            };
            map.append(name, field.value(shared));
        }
        Ok(())
    }

    /// Notes one field. The length of a name tells most fields apart without a comparison.
    fn note(&mut self, name: &str, value: &'a [u8]) -> Result<(), Reason> {
        match name.len() {
            2 if name.eq_ignore_ascii_case("te") => {
                self.accepts_trailers |= tokens(value).any(|t| t.eq_ignore_ascii_case(b"trailers"));
            }
            4 if name.eq_ignore_ascii_case("host") => self.note_host(value)?,
            6 if name.eq_ignore_ascii_case("expect") => self.note_expect(value)?,
            7 if name.eq_ignore_ascii_case("upgrade") => self.upgrade = Some(value),
            10 if name.eq_ignore_ascii_case("connection") => self.note_connection(value),
            14 if name.eq_ignore_ascii_case("content-length") => self.note_length(value)?,
            17 if name.eq_ignore_ascii_case("transfer-encoding") => self.note_coding(value)?,
            _ => {}
        }
        Ok(())
    }

    fn note_host(&mut self, value: &'a [u8]) -> Result<(), Reason> {
        if self.host.is_some() {
            return Err(Reason::HostRepeated);
        }
        if !host::is_well_formed(value) {
            return Err(Reason::Host);
        }
        self.note_good_host(value)
    }

    fn note_good_host(&mut self, value: &'a [u8]) -> Result<(), Reason> {
        if self.host.replace(value).is_some() {
            return Err(Reason::HostRepeated);
        }
        Ok(())
    }

    fn note_expect(&mut self, value: &[u8]) -> Result<(), Reason> {
        if !value.eq_ignore_ascii_case(b"100-continue") {
            return Err(Reason::Expectation);
        }
        // RFC 9110, 10.1.1: the expectation of an HTTP/1.0 client is ignored.
        self.expects_continue = self.version == Version::HTTP_11;
        Ok(())
    }

    fn note_connection(&mut self, value: &[u8]) {
        for token in tokens(value) {
            self.connection.close |= token.eq_ignore_ascii_case(b"close");
            self.connection.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
            self.connection.upgrade |= token.eq_ignore_ascii_case(b"upgrade");
        }
    }

    fn note_length(&mut self, value: &[u8]) -> Result<(), Reason> {
        if self.content_length {
            return Err(Reason::ContentLengthRepeated);
        }
        if self.transfer_encoding {
            return Err(Reason::ContentLengthWithTransferEncoding);
        }
        self.content_length = true;
        let length = std::str::from_utf8(value)
            .ok()
            .and_then(decimal)
            .ok_or(Reason::ContentLength)?;
        self.body = match length {
            0 => BodyLength::None,
            length => BodyLength::Exact(length),
        };
        Ok(())
    }

    /// Notes a `Transfer-Encoding`. An empty member of the list (`, chunked` or `chunked,`) is
    /// refused, although RFC 9110, 5.6.1 has lists read without theirs: parties differ in which of
    /// the two they still take for chunked, no client sends either, and one that passes over the
    /// field finds another end.
    fn note_coding(&mut self, value: &[u8]) -> Result<(), Reason> {
        if self.content_length {
            return Err(Reason::ContentLengthWithTransferEncoding);
        }
        if self.transfer_encoding || self.version != Version::HTTP_11 {
            return Err(Reason::TransferEncoding);
        }
        self.transfer_encoding = true;
        if value.eq_ignore_ascii_case(b"chunked") {
            self.body = BodyLength::Chunked;
            return Ok(());
        }
        let mut codings = tokens(value).rev();
        let last_is_chunked = codings.next().is_some_and(is_chunked);
        let may_come_before = |coding: &[u8]| !coding.is_empty() && !is_chunked(coding);
        if last_is_chunked && codings.all(may_come_before) {
            return Err(Reason::TransferCodingUnknown);
        }
        Err(Reason::TransferEncoding)
    }

    /// Checks the rules for a head of either protocol that go beyond the syntax of its fields: it
    /// names one server, and a `CONNECT` has no body.
    pub(super) fn agree_with(&self, method: &Method, uri: &Uri) -> Result<(), Reason> {
        self.host_agrees(uri)?;
        if *method == Method::CONNECT && self.body != BodyLength::None {
            return Err(Reason::Connect);
        }
        Ok(())
    }

    /// Checks `Host` against the version and the target (RFC 9112, 3.2 and 3.2.2; RFC 9113, 8.3.1;
    /// RFC 9114, 4.3.1).
    fn host_agrees(&self, uri: &Uri) -> Result<(), Reason> {
        let is_multiplexed = self.version >= Version::HTTP_2;
        let Some(host) = self.host else {
            return match self.version {
                Version::HTTP_10 => Ok(()),
                _ if is_multiplexed && uri.authority().is_some() => Ok(()),
                _ => Err(Reason::HostMissing),
            };
        };
        let scheme = uri.scheme_str().or(is_multiplexed.then_some(""));
        match (scheme, uri.authority()) {
            (Some(scheme), Some(name)) if !host::agrees(host, scheme, name.as_str()) => {
                Err(Reason::HostDisagrees)
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if the connection persists. HTTP/1.1 does unless it says `close`, HTTP/1.0
    /// only if it asks to (RFC 9112, 9.3).
    pub(super) fn keeps_alive(&self) -> bool {
        let asked = self.version == Version::HTTP_11 || self.connection.keep_alive;
        asked && !self.connection.close
    }

    /// Returns `true` if the request asks for an upgrade that is honoured (RFC 9110, 7.8). One to
    /// `h2c` is obsolete (RFC 9113, 3.1) and is ignored, so that its connection stays on the fast
    /// path. So is one with a body, which the next protocol's server might frame otherwise; a
    /// server may ignore any `Upgrade`.
    pub(super) fn upgrades(&self) -> bool {
        let asked = self.connection.upgrade
            && self.version == Version::HTTP_11
            && self.body == BodyLength::None;
        let other = |value| tokens(value).any(|t| !t.eq_ignore_ascii_case(b"h2c"));
        asked && self.upgrade.is_some_and(other)
    }
}

fn is_chunked(coding: &[u8]) -> bool {
    coding.eq_ignore_ascii_case(b"chunked")
}

/// Splits a comma-separated list into its members, without the whitespace around them.
fn tokens(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}
