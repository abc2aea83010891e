use crate::{Limits, Reason};

/// Longest method that is looked at; the registered ones have at most 17 bytes.
const METHOD_BYTES_MAX: usize = 32;
/// Bytes of empty lines that may precede a request (RFC 9112, 2.2): some old clients send one
/// after a body, none needs more than eight.
const EMPTY_LINES_BYTES_MAX: usize = 16;

/// Checks the limits that a request line can break before the head is complete.
///
/// The result depends on the first byte over a limit alone, not on how much follows it, so that a
/// head is refused for the same reason however its bytes arrive.
pub(super) fn within_limits(
    raw: &httparse::Request<'_, '_>,
    window: &[u8],
    limits: &Limits,
) -> Result<(), Reason> {
    let line = without_empty_lines(window);
    if !is_begun_in_time(window, line) {
        return Err(Reason::RequestLine);
    }
    let method_bytes = raw
        .method
        .map_or_else(|| count(line, is_method_byte), str::len);
    let target_bytes = match (raw.method, raw.path) {
        (None, _) => 0,
        (Some(_), Some(path)) => path.len(),
        (Some(method), None) => count(&line[method.len() + 1..], is_target_byte),
    };
    lengths_within(method_bytes, target_bytes, limits)
}

/// Checks the lengths of a method and a target, of either protocol.
pub(super) fn lengths_within(
    method_bytes: usize,
    target_bytes: usize,
    limits: &Limits,
) -> Result<(), Reason> {
    if method_bytes > METHOD_BYTES_MAX {
        return Err(Reason::MethodTooLong);
    }
    if target_bytes > limits.target_bytes_max {
        return Err(Reason::TargetTooLong);
    }
    Ok(())
}

pub(super) fn without_empty_lines(mut window: &[u8]) -> &[u8] {
    while let [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] = window {
        window = rest;
    }
    window
}

/// Returns `true` if no more empty lines precede `line` than allowed.
pub(super) fn is_begun_in_time(window: &[u8], line: &[u8]) -> bool {
    window.len() - line.len() <= EMPTY_LINES_BYTES_MAX
}

fn count(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|&&byte| belongs(byte)).count()
}

fn is_method_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte)
}

fn is_target_byte(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

/// Returns `true` for `HTTP/` and two digits around a dot: a version that is not spoken here, not
/// nonsense.
pub(super) fn has_unknown_version(window: &[u8]) -> bool {
    let version = version_of(window);
    version.len() >= 8 && is_version_prefix(&version[..8])
}

/// Returns the index of the minor version in HTTP/1.2 to HTTP/1.9.
pub(super) fn later_minor_version(window: &[u8]) -> Option<usize> {
    let minor = version_of(window).strip_prefix(b"HTTP/1.")?;
    let later = matches!(minor, [b'2'..=b'9', ..]);
    later.then(|| window.len() - minor.len())
}

/// Returns `true` if the version is incomplete, and what there is may yet become one.
pub(super) fn is_version_open(window: &[u8]) -> bool {
    let version = version_of(window);
    version.len() < 8 && is_version_prefix(version)
}

/// Returns the bytes after the method and the target.
fn version_of(window: &[u8]) -> &[u8] {
    let mut words = without_empty_lines(window).splitn(3, |&byte| byte == b' ');
    words.nth(2).unwrap_or_default()
}

fn is_version_prefix(text: &[u8]) -> bool {
    let fits = |(&byte, &form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        _ => byte == form,
    };
    text.iter().zip(b"HTTP/d.d").all(fits)
}
