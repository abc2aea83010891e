use http::HeaderName;

/// The byte between two names; no name has it (RFC 9110, 5.1).
const SEPARATOR: u8 = b':';

/// The spelling of the field names of a response. Found among the response's extensions, HTTP/1
/// sends names as spelled here, not in lower case as [`HeaderName`] keeps them.
///
/// Names are the same in any case (RFC 9110, 5.1), but not every client knows. A name that is not
/// among these is sent in lower case, and those that the response does not have are ignored. HTTP/2
/// has lower case only (RFC 9113, 8.2.1).
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
pub struct FieldNames(Vec<u8>);

impl FieldNames {
    /// Creates a list of these names, best in the order in which the response has them.
    pub fn new<N: AsRef<[u8]>>(names: impl IntoIterator<Item = N>) -> Self {
        let mut spelled = Self::default();
        for name in names {
            spelled.push(name.as_ref());
        }
        spelled
    }

    /// Adds a name.
    pub fn push(&mut self, name: &[u8]) {
        self.0.extend_from_slice(name);
        self.0.push(SEPARATOR);
    }

    /// Returns the spelling of `name`. `at` is where the search begins, and then where the next
    /// name's should; at first it is 0.
    pub(crate) fn spelling<'a>(&'a self, name: &'a HeaderName, at: &mut usize) -> &'a [u8] {
        let name = name.as_str().as_bytes();
        let (before, behind) = self.0.split_at_checked(*at).unwrap_or((&self.0, b""));
        for (names, start) in [(behind, *at), (before, 0)] {
            let mut end = start;
            for spelled in names.split(|&byte| byte == SEPARATOR) {
                end += spelled.len() + 1;
                if spelled.eq_ignore_ascii_case(name) {
                    *at = end;
                    return spelled;
                }
            }
        }
        name
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
            let name = HeaderName::from_static(name);
            assert_eq!(names.spelling(&name, &mut at), spelled.as_bytes());
        }
    }

    #[test]
    fn nothing_but_the_name_itself_is_sent_for_it() {
        let names = FieldNames::new(["X-A\r\nX-B", "", "X", "X-A:X-C"]);
        let name = HeaderName::from_static("x-a");
        assert_eq!(names.spelling(&name, &mut 0), b"X-A");
        assert_eq!(FieldNames::default().spelling(&name, &mut 7), b"x-a");
    }
}
