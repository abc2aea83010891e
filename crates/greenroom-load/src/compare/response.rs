//! Comparison of the servers' first responses.

use crate::record::FirstResponse;

/// Bytes of each response that are shown around a difference.
const EXCERPT_BYTES: usize = 40;
/// Bytes of the excerpt that stand before the difference.
const BEFORE_BYTES: usize = 12;

/// The comparable part of a response: its status and the kept bytes of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Response {
    /// The status code; `None` for a WebSocket.
    status: Option<String>,
    /// The body, as much of it as [`FirstResponse`] keeps.
    body: Vec<u8>,
    length: u64,
}

impl From<FirstResponse> for Response {
    fn from(first: FirstResponse) -> Self {
        let head = String::from_utf8_lossy(&first.head);
        let line = head.lines().next().unwrap_or_default();
        Self {
            status: line.split_whitespace().nth(1).map(ToOwned::to_owned),
            body: first.body,
            length: first.body_bytes,
        }
    }
}

impl Response {
    /// Describes the first difference, if there is one.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if self.status != other.status {
            let name = |response: &Self| response.status.clone().unwrap_or_else(|| "none".into());
            return Some(format!("status {} and {}", name(self), name(other)));
        }
        let pairs = self.body.iter().zip(&other.body);
        let common = pairs.take_while(|(one, other)| one == other).count();
        if self.length == other.length && common == self.body.len().max(other.body.len()) {
            return None;
        }
        Some(format!(
            "the bodies of {} and {} bytes differ at byte {common}: \"{}\" and \"{}\"",
            self.length,
            other.length,
            excerpt(&self.body, common),
            excerpt(&other.body, common),
        ))
    }
}

fn excerpt(body: &[u8], at: usize) -> String {
    let begin = at.saturating_sub(BEFORE_BYTES);
    let end = body.len().min(begin + EXCERPT_BYTES);
    body[begin.min(end)..end].escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: &str, body: &str) -> Response {
        Response::from(FirstResponse {
            head: format!("HTTP/1.1 {status}\r\nDate: now\r\n\r\n").into_bytes(),
            body: body.as_bytes().to_vec(),
            body_bytes: body.len() as u64,
            tls: None,
        })
    }

    #[test]
    fn the_first_different_byte_is_shown_with_its_surroundings() {
        let one = response("200 OK", "the quick brown fox jumps");
        let other = response("200 Fine", "the quick brown dog\njumps");
        assert_eq!(one.difference(&one), None);
        assert_eq!(
            one.difference(&other).as_deref(),
            Some(
                "the bodies of 25 and 25 bytes differ at byte 16: \"quick brown fox jumps\" and \
                \"quick brown dog\\njumps\""
            )
        );
    }

    #[test]
    fn a_longer_body_differs_behind_the_shorter_one() {
        let text = response("200 OK", "abc").difference(&response("200 OK", ""));
        assert!(text.is_some_and(|text| text.contains("byte 0: \"abc\" and \"\"")));
    }

    #[test]
    fn a_status_differs_before_a_body_does() {
        let text = response("200 OK", "abc").difference(&response("404 Not Found", "x"));
        assert_eq!(text.as_deref(), Some("status 200 and 404"));
    }
}
