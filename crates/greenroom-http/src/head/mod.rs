//! A request's head: request line and fields, checked as strictly as RFC 9112 allows.

mod fields;
mod host;
mod http2;
mod names;
mod request_line;
mod searched;
mod target;

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::{Method, Request, Uri, Version};

use fields::Fields;
pub use http2::check_http2;
pub(crate) use searched::Searched;

use crate::limits::FIELDS_CEILING;
use crate::raw::{self, Shared};
use crate::{BodyLength, Context, Reason, Rejected};

/// A request's head, parsed and found well-formed.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one head, not a state"
)]
pub struct RequestHead {
    /// Method, target, version and fields.
    pub request: Request<()>,
    /// The target as it was sent, by which the request can be named when it is gone.
    pub target: Bytes,
    /// The framing of the body.
    pub body: BodyLength,
    /// `true` if the client waits for `100 Continue` before it sends the body (RFC 9110, 10.1.1).
    pub expects_continue: bool,
    /// `true` if the client asks to leave HTTP/1.1 on this connection: by `Upgrade`, for another
    /// protocol than `h2c` and without a body (RFC 9110, 7.8), or by `CONNECT` (RFC 9110, 9.3.6).
    pub upgrade: bool,
    pub(crate) keep_alive: bool,
    pub(crate) accepts_trailers: bool,
}

impl RequestHead {
    /// Creates a head in whose place one is built.
    pub(crate) fn blank() -> Self {
        Self {
            request: Request::new(()),
            target: Bytes::new(),
            body: BodyLength::None,
            expects_continue: false,
            upgrade: false,
            keep_alive: false,
            accepts_trailers: false,
        }
    }
}

/// Parses the head at the beginning of `input`. Returns the head and its length in bytes, or `None`
/// if more input is needed.
pub(crate) fn parse(
    input: &[u8],
    context: &mut Context,
) -> Result<Option<(Box<RequestHead>, usize)>, Rejected> {
    let limits = context.limits;
    let window = &input[..input.len().min(limits.head_bytes_max)];
    let mut storage = [const { MaybeUninit::uninit() }; FIELDS_CEILING];
    let fields = &mut storage[..limits.fields_max.min(FIELDS_CEILING)];
    let mut line = httparse::Request::new(&mut []);
    let (parsed, fields) = raw::parse(&mut line, window, fields);
    request_line::within_limits(&line, window, &limits)?;
    match parsed {
        Ok(httparse::Status::Complete(length)) => {
            let head = build(&line, fields, &window[..length], context)?;
            Ok(Some((head, length)))
        }
        Ok(httparse::Status::Partial) if window.len() >= limits.head_bytes_max => {
            Err(Reason::HeadTooLarge.into())
        }
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::Version) if request_line::is_version_open(window) => Ok(None),
        Err(httparse::Error::Version) => match request_line::later_minor_version(window) {
            Some(digit) => parse_as_1_1(window, digit, context),
            None => Err(reason_of(httparse::Error::Version, window).into()),
        },
        Err(error) => Err(reason_of(error, window).into()),
    }
}

/// Parses the head of a version after 1.1, which is read as 1.1 (RFC 9110, 2.5). `digit` is the
/// index of its minor version. No known client sends one, so it may cost a copy.
fn parse_as_1_1(
    window: &[u8],
    digit: usize,
    context: &mut Context,
) -> Result<Option<(Box<RequestHead>, usize)>, Rejected> {
    let mut read_as = window.to_vec();
    read_as[digit] = b'1';
    let parsed = parse(&read_as, context)?;
    // The server that takes over the connection reads the head as it was sent, and knows no such
    // version.
    if parsed.as_ref().is_some_and(|(head, _)| head.upgrade) {
        return Err(Reason::Version.into());
    }
    Ok(parsed)
}

/// Returns `true` if a malformed head asks by `HEAD`, so that its rejection carries no content (RFC
/// 9110, 9.3.2).
pub(crate) fn is_head_method(input: &[u8]) -> bool {
    let line = request_line::without_empty_lines(input);
    line.starts_with(b"HEAD ") && request_line::is_begun_in_time(input, line)
}

fn build<'b>(
    line: &httparse::Request<'_, 'b>,
    fields: raw::Fields<'_, 'b>,
    head: &'b [u8],
    context: &mut Context,
) -> Result<Box<RequestHead>, Rejected> {
    let (Some(method), Some(target)) = (line.method, line.path) else {
        return Err(Reason::RequestLine.into());
    };
    refuse_bare_line_ends(head, method.as_ptr() as usize, fields.as_slice())?;
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| Reason::RequestLine)?;
    let version = if line.version == Some(0) {
        Version::HTTP_10
    } else {
        Version::HTTP_11
    };
    let shared = Shared::new(head, context);

    // Built where it stays until it is the application's: a request is 240 bytes long.
    let mut built = context.head();
    let request = &mut built.request;
    *request.uri_mut() = target::parse(&method, shared.slice(target.as_bytes()))?;
    let mut noted = Fields::new(version);
    let map = request.headers_mut();
    noted.append(fields, &shared, context.known_host(), map)?;
    noted.agree_with(&method, request.uri())?;
    if !noted.is_host_known {
        context.know_host(noted.host);
    }
    let connects = method == Method::CONNECT;

    *request.method_mut() = method;
    *request.version_mut() = version;
    built.target = shared.narrowed_to(target.as_bytes());
    built.body = noted.body;
    built.expects_continue = noted.expects_continue;
    built.upgrade = connects || noted.upgrades();
    built.keep_alive = noted.keeps_alive();
    built.accepts_trailers = noted.accepts_trailers;
    Ok(built)
}

/// Refuses a lone LF as a line's end, which httparse takes: RFC 9112, 2.2 only lets a recipient do
/// so, and two recipients that differ in it can be played against each other.
///
/// No other LF can be in a head that httparse accepts than those before `first_line`, those before
/// each field, and those at the end, so only these are looked at.
pub(crate) fn refuse_bare_line_ends(
    head: &[u8],
    first_line: usize,
    fields: &[httparse::Header<'_>],
) -> Result<(), Reason> {
    let start = head.as_ptr() as usize;
    let (before, rest) = head.split_at(first_line - start);
    let ends_lines = |bytes: &[u8]| bytes.ends_with(b"\r\n");
    let mut line_starts = fields
        .iter()
        .map(|field| &head[..field.name.as_ptr() as usize - start]);
    let whole = rest.ends_with(b"\r\n\r\n") && before.chunks(2).all(ends_lines);
    if whole && line_starts.all(|before| before.is_empty() || ends_lines(before)) {
        return Ok(());
    }
    Err(Reason::BareLineEnd)
}

fn reason_of(error: httparse::Error, window: &[u8]) -> Reason {
    match error {
        httparse::Error::TooManyHeaders => Reason::TooManyFields,
        httparse::Error::Version if request_line::has_unknown_version(window) => Reason::Version,
        httparse::Error::NewLine => Reason::BareLineEnd,
        httparse::Error::HeaderName | httparse::Error::HeaderValue => Reason::Field,
        _ => Reason::RequestLine,
    }
}

pub(crate) fn uri_from(bytes: Bytes) -> Result<Uri, Reason> {
    Uri::from_maybe_shared(bytes).map_err(|_| Reason::Target)
}
