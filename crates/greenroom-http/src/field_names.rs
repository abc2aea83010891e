use bytes::Bytes;

/// The byte between two names; no name has it (RFC 9110, 5.1).
const SEPARATOR: u8 = b':';

/// The spelling of the field names of a response. Found among the response's extensions, HTTP/1
/// sends names as spelled here, not in lower case as [`http::HeaderName`] keeps them.
///
/// Names are the same in any case (RFC 9110, 5.1), but not every client knows. A name that is not
/// among these is sent in lower case, and those that the response does not have are ignored. HTTP/2
/// has lower case only (RFC 9113, 8.2.1).
///
/// A clone shares the names. Keep them for the next response with the same fields: to put a clone
/// among the extensions costs one allocation, and those of the extensions themselves if there were
/// none.
///
/// ```
/// use greenroom_http::FieldNames;
/// use http::Response;
///
/// let mut response = Response::new(());
/// let tag = http::HeaderValue::from_static("\"1\"");
/// response.headers_mut().insert("etag", tag);
/// response.extensions_mut().insert(FieldNames::new([b"ETag"]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldNames(Bytes);

impl FieldNames {
    /// Creates a list of these names, best in the order in which the response has them.
    pub fn new<N: AsRef<[u8]>>(names: impl IntoIterator<Item = N>) -> Self {
        let mut spelled = Vec::new();
        for name in names {
            spelled.extend_from_slice(name.as_ref());
            spelled.push(SEPARATOR);
        }
        Self(spelled.into())
    }

    /// True if they are these names, in this order.
    pub fn are<'a>(&self, names: impl IntoIterator<Item = &'a [u8]>) -> bool {
        let mut left = &self.0[..];
        for name in names {
            match left.strip_prefix(name).and_then(<[u8]>::split_first) {
                Some((&SEPARATOR, rest)) => left = rest,
                _ => return false,
            }
        }
        left.is_empty()
    }

    /// Returns the number of bytes that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Spells the names in `head`, an encoded one, in place. What precedes its first line end is
    /// its status line. The names of fields that a server adds are spelled as ours are.
    pub fn respell(&self, head: &mut [u8]) {
        let mut at = 0;
        let mut lines = head.split_mut(|&byte| byte == b'\n');
        let _status_line = lines.next();
        for line in lines {
            let Some(end) = line.iter().position(|&byte| byte == b':') else {
                continue;
            };
            let name = line[..end].to_ascii_lowercase();
            let found = self.find(&name, &mut at);
            let spelled = found.unwrap_or_else(|| own_spelling(&name));
            line[..end].copy_from_slice(spelled);
        }
    }

    /// Returns the spelling of `name`. `at` is where the search begins, and then where the next
    /// name's should; at first it is 0.
    pub(crate) fn spelling<'a>(&'a self, name: &'a [u8], at: &mut usize) -> &'a [u8] {
        self.find(name, at).unwrap_or(name)
    }

    fn find(&self, name: &[u8], at: &mut usize) -> Option<&[u8]> {
        let (before, behind) = self.0.split_at_checked(*at).unwrap_or((&self.0, b""));
        for (names, start) in [(behind, *at), (before, 0)] {
            let mut end = start;
            for spelled in names.split(|&byte| byte == SEPARATOR) {
                end += spelled.len() + 1;
                if spelled.eq_ignore_ascii_case(name) {
                    *at = end;
                    return Some(spelled);
                }
            }
        }
        None
    }
}

/// The spelling of the names of a server's own fields.
fn own_spelling(name: &[u8]) -> &[u8] {
    match name {
        b"connection" => b"Connection",
        b"content-length" => b"Content-Length",
        b"date" => b"Date",
        b"transfer-encoding" => b"Transfer-Encoding",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_order() {
        let names = FieldNames::new(["X-One", "ETag", "WWW-Authenticate"]);
        let mut at = 0;
        let cases = [
            ("x-one", "X-One"),
            ("x-one", "X-One"),
            ("www-authenticate", "WWW-Authenticate"),
            ("x-other", "x-other"),
            ("etag", "ETag"),
        ];
        for (name, spelled) in cases {
            let spelling = names.spelling(name.as_bytes(), &mut at);
            assert_eq!(spelling, spelled.as_bytes());
        }
    }

    #[test]
    fn they_are_the_same_in_the_same_order_and_case_only() {
        let are = |one: &[&str], other: &[&str]| {
            let other = other.iter().map(|name| name.as_bytes());
            FieldNames::new(one).are(other)
        };
        assert!(are(&[], &[]));
        assert!(are(&["ETag", "Link"], &["ETag", "Link"]));
        for other in [&["ETag"][..], &["Link", "ETag"], &["ETag", "Link", "X"]] {
            assert!(!are(&["ETag", "Link"], other), "{other:?}");
        }
        assert!(!are(&["ETag"], &["etag"]) && !are(&["ETag"], &["ETa"]));
    }

    #[test]
    fn nothing_but_the_name_itself_is_sent_for_it() {
        let names = FieldNames::new(["X-A\r\nX-B", "", "X", "X-A:X-C"]);
        assert_eq!(names.spelling(b"x-a", &mut 0), b"X-A");
        assert_eq!(FieldNames::default().spelling(b"x-a", &mut 7), b"x-a");
    }

    #[test]
    fn an_encoded_head_is_respelled_in_place() {
        let names = FieldNames::new(["ETag", "Set-Cookie", "SET-cookie", "HTTP/1.1 200 A"]);
        let mut head = *b"HTTP/1.1 200 a: b\r\nset-cookie: etag: 1\r\nset-cookie: b\r\nx: \r\n\
            etag: 1\r\ndate: date: \r\n\r\n";
        names.respell(&mut head);
        let respelled = "HTTP/1.1 200 a: b\r\nSet-Cookie: etag: 1\r\nSET-cookie: b\r\nx: \r\n\
            ETag: 1\r\nDate: date: \r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&head), respelled);
    }
}
