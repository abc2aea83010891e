//! The path of a request, in the form in which routes are compared with it.

use std::borrow::Cow;

/// A path as its client sent it, and decoded. Routes are compared with the latter, so that no
/// spelling of a path leads around a route: `%XX` is decoded, also to a slash, and slashes in a row
/// are one.
#[derive(Debug)]
pub(super) struct Target<'a> {
    raw: &'a str,
    normal: Cow<'a, [u8]>,
}

impl<'a> Target<'a> {
    /// Parses the path; `None` if it does not begin with a slash, if `%` stands before anything
    /// else than two hexadecimal digits, or if the decoded path has a zero byte or a segment `.` or
    /// `..`: clients resolve these, and what does not is after something.
    pub(super) fn parse(raw: &'a str) -> Option<Self> {
        let bytes = raw.as_bytes();
        if bytes.first() != Some(&b'/') {
            return None;
        }
        let is_normal = !bytes.contains(&b'%') && !raw.contains("//");
        let normal = if is_normal {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned(Decoded(bytes).normal()?)
        };
        let is_dots = |segment: &[u8]| segment == b"." || segment == b"..";
        let is_resolved = normal.contains(&0) || normal.split(|byte| *byte == b'/').any(is_dots);
        (!is_resolved).then_some(Self { raw, normal })
    }

    /// Returns the path, decoded.
    pub(super) fn normal(&self) -> &[u8] {
        &self.normal
    }

    /// Returns what follows these first bytes of the decoded path, as the client sent it.
    pub(super) fn rest(&self, bytes: usize) -> &'a str {
        let raw = match &self.normal {
            Cow::Borrowed(_) => bytes,
            Cow::Owned(_) => Decoded(self.raw.as_bytes()).raw_length(bytes),
        };
        self.raw.get(raw..).unwrap_or_default()
    }
}

/// The bytes of a path, decoded one by one.
struct Decoded<'a>(&'a [u8]);

impl Decoded<'_> {
    /// Returns all, with slashes in a row as one.
    fn normal(mut self) -> Option<Vec<u8>> {
        let mut normal = Vec::with_capacity(self.0.len());
        while !self.0.is_empty() {
            let byte = self.step()?;
            if byte != b'/' || normal.last() != Some(&b'/') {
                normal.push(byte);
            }
        }
        Some(normal)
    }

    /// Returns the length of what stands for the first bytes of [`normal`](Self::normal).
    fn raw_length(mut self, bytes: usize) -> usize {
        let whole = self.0.len();
        let (mut count, mut last) = (0, None);
        while count < bytes {
            let Some(byte) = self.step() else { break };
            if byte != b'/' || last != Some(b'/') {
                count += 1;
            }
            last = Some(byte);
        }
        whole - self.0.len()
    }

    fn step(&mut self) -> Option<u8> {
        let (byte, rest) = match self.0 {
            [b'%', high, low, rest @ ..] => (16 * digit(*high)? + digit(*low)?, rest),
            [b'%', ..] | [] => return None,
            [byte, rest @ ..] => (*byte, rest),
        };
        self.0 = rest;
        Some(byte)
    }
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(raw: &str) -> Option<String> {
        let target = Target::parse(raw)?;
        Some(String::from_utf8_lossy(target.normal()).into_owned())
    }

    #[test]
    fn spellings_of_a_path_are_one() {
        for (raw, expected) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("//a///b/", "/a/b/"),
            ("/%61%2fb", "/a/b"),
            ("/a%2F%2f/b", "/a/b"),
            ("/%C3%A4", "/ä"),
            ("/...", "/..."),
        ] {
            assert_eq!(normal(raw).as_deref(), Some(expected), "{raw}");
        }
    }

    #[test]
    fn what_nobody_sends_is_refused() {
        for raw in [
            "",
            "*",
            "a",
            "/%",
            "/%4",
            "/%zz",
            "/a%00",
            "/..",
            "/a/../b",
            "/%2e%2e/a",
            "/a/.",
            "/a%2f..%2fb",
            "/.%2e",
        ] {
            assert_eq!(normal(raw), None, "{raw}");
        }
    }

    #[test]
    fn the_rest_is_what_the_client_sent() {
        for (raw, bytes, rest) in [
            ("/blog/a%20b", 5, "/a%20b"),
            ("/bl%6Fg//x", 5, "//x"),
            ("//blog", 5, ""),
            ("/blog%2Fx", 5, "%2Fx"),
            ("/a//b/c", 4, "/c"),
        ] {
            let target = Target::parse(raw).expect(raw);
            assert_eq!(target.rest(bytes), rest, "{raw}");
        }
    }
}
