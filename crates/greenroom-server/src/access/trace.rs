//! The place of a request in a trace (W3C Recommendation, Trace Context).

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The longest `tracestate` that is passed on, in bytes: the least that Trace Context, 3.3.1.5,
/// asks for. A longer one is left out as a whole.
pub const TRACE_STATE_BYTES_MAX: usize = 512;
/// The most members of a `tracestate` that is passed on (W3C, Trace Context, 3.3.1.1).
pub const TRACE_STATE_MEMBERS_MAX: usize = 32;

pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(super) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The place of a request in a trace: the server's span for it, and the span that it came from. In
/// its extensions if the server traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) parent_id: Option<u64>,
    pub(super) link: Option<(u128, u64)>,
    pub(super) is_sampled: bool,
    pub(super) state: Option<HeaderValue>,
}

impl TraceContext {
    /// Returns the id of the trace, as 16 bytes of which one is not zero.
    #[must_use]
    pub fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// Returns the id of the server's span, the parent of what the application does, as 8 bytes of
    /// which one is not zero.
    #[must_use]
    pub fn span_id(&self) -> u64 {
        self.span_id
    }

    /// Returns the id of the span that the request came from, if it came with one that was
    /// [taken](crate::ServerBuilder::trace_parents).
    #[must_use]
    pub fn parent_id(&self) -> Option<u64> {
        self.parent_id
    }

    /// Returns the trace and the span that the request says it came from, if that was not taken.
    #[must_use]
    pub fn link(&self) -> Option<(u128, u64)> {
        self.link
    }

    /// Returns `true` if the trace is recorded.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Returns the `tracestate` that the request came with, if it was well-formed.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_ref().and_then(|state| state.to_str().ok())
    }

    /// Returns the field `traceparent` for requests to others, with the server's span as parent.
    #[must_use]
    pub fn traceparent(&self) -> String {
        let flags = u8::from(self.is_sampled);
        format!(
            "00-{:032x}-{:016x}-{flags:02x}",
            self.trace_id, self.span_id
        )
    }
}

/// The span that a request came from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) is_sampled: bool,
}

impl Parent {
    /// Reads the field `traceparent`; `None` if there is none, or several, or it is malformed.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        Self::parse(value.to_str().ok()?)
    }

    /// Parses `version-trace_id-parent_id-flags` (Trace Context, 3.2). Of a later version the part
    /// that this one has is read, if what follows is set apart.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '-');
        let mut next = |digits| parts.next().and_then(|part| hexadecimal(part, digits));
        let version = next(2).filter(|version| *version != 0xff)?;
        let trace_id = next(32).filter(|id| *id != 0)?;
        let span_id = next(16).filter(|id| *id != 0)?;
        let flags = next(2)?;
        if version == 0 && parts.next().is_some() {
            return None;
        }
        Some(Self {
            trace_id,
            span_id: u64::try_from(span_id).ok()?,
            is_sampled: flags & 1 == 1,
        })
    }
}

/// Parses exactly so many hexadecimal digits, in lower case.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_fit = text.len() == digits && text.bytes().all(is_digit);
    is_fit
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
}

/// Reads the fields `tracestate` as one; `None` if there is none, or it is malformed or too long.
pub(super) fn state(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut text = String::new();
    for value in headers.get_all(TRACESTATE) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(value.to_str().ok()?);
        if text.len() > TRACE_STATE_BYTES_MAX {
            return None;
        }
    }
    let is_fit = is_state(&text);
    is_fit.then(|| HeaderValue::try_from(text).ok()).flatten()
}

fn is_state(text: &str) -> bool {
    let members = text
        .split(',')
        .map(|member| member.trim_matches([' ', '\t']));
    let mut keys = Vec::new();
    for member in members.filter(|member| !member.is_empty()) {
        let Some((key, value)) = member.split_once('=') else {
            return false;
        };
        if !is_key(key) || !is_value(value) || keys.contains(&key) {
            return false;
        }
        keys.push(key);
    }
    (1..=TRACE_STATE_MEMBERS_MAX).contains(&keys.len())
}

fn is_key(key: &str) -> bool {
    let is_first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_next = |byte: &u8| is_first(byte) || b"_-*/@".contains(byte);
    let bytes = key.as_bytes();
    bytes.len() <= 256 && bytes.first().is_some_and(is_first) && bytes.iter().all(is_next)
}

fn is_value(value: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, 0x20..=0x7e) && byte != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| {
            let value = HeaderValue::try_from(*value).expect("a value");
            (name.clone(), value)
        });
        values.collect()
    }

    #[test]
    fn trace_context_3_2_a_parent_is_read() {
        let parent = Parent::parse(PARENT).expect("it is well-formed");
        assert_eq!(parent.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(parent.span_id, 0x00f0_67aa_0ba9_02b7);
        assert!(parent.is_sampled);
        let context = TraceContext {
            trace_id: parent.trace_id,
            span_id: parent.span_id,
            parent_id: None,
            link: None,
            is_sampled: true,
            state: None,
        };
        assert_eq!(context.traceparent(), PARENT);
        let unsampled = PARENT.replace("-01", "-02");
        assert!(!Parent::parse(&unsampled).expect("other flags").is_sampled);
        let later = format!("{}-more", PARENT.replacen("00", "cc", 1));
        assert_eq!(Parent::parse(&later), Some(parent));
    }

    #[test]
    fn trace_context_3_2_a_malformed_parent_is_ignored() {
        for malformed in [
            "",
            "00",
            &PARENT[..54],
            &format!("{PARENT}-"),
            &format!("{PARENT}0"),
            &format!(" {PARENT}"),
            &PARENT.to_uppercase(),
            &PARENT.replacen("00", "ff", 1),
            &PARENT.replacen("00", "0", 1),
            &PARENT.replace('-', "_"),
            &PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &PARENT.replace("4bf9", "+bf9"),
            &format!("{}0", PARENT.replacen("00", "01", 1)),
        ] {
            assert_eq!(Parent::parse(malformed), None, "{malformed}");
        }
        assert!(Parent::read(&headers(&TRACEPARENT, &[PARENT])).is_some());
        assert_eq!(
            Parent::read(&headers(&TRACEPARENT, &[PARENT, PARENT])),
            None
        );
    }

    #[test]
    fn trace_context_3_3_a_state_is_passed_on_if_it_is_well_formed() {
        let read = |values: &[&str]| state(&headers(&TRACESTATE, values));
        let long = format!("a={}", "b".repeat(256));
        let members = |count| (0..count).map(|n| format!("k{n}=v")).collect::<Vec<_>>();
        for (values, expected) in [
            (&["rojo=1"][..], Some("rojo=1")),
            (
                &["rojo=1, 2@x=b c", "congo=2"],
                Some("rojo=1, 2@x=b c,congo=2"),
            ),
            (&["rojo=1,,"], Some("rojo=1,,")),
            (&[&long], Some(&*long)),
            (&[&members(32).join(",")], Some(&*members(32).join(","))),
            (&[&members(33).join(",")], None),
            (&[], None),
            (&[""], None),
            (&["rojo"], None),
            (&["Rojo=1"], None),
            (&["rojo=1=2"], None),
            (&["rojo=1", "rojo=2"], None),
            (&[&long, &long.replace('a', "c")], None),
        ] {
            let read = read(values);
            let read = read.as_ref().map(|state| state.to_str().expect("visible"));
            assert_eq!(read, expected, "{values:?}");
        }
    }
}
