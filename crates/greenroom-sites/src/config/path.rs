use std::fmt;

/// The path of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RoutePath {
    /// Without a slash at the end; empty for `/`.
    pub(crate) prefix: String,
    /// True if it was written with a slash at the end: it is a directory then, and without the
    /// slash a request is redirected to it.
    pub(crate) is_directory: bool,
    /// True if nothing below it is meant.
    pub(crate) is_exact: bool,
}

impl RoutePath {
    pub(crate) fn parse(text: &str, is_exact: bool) -> Result<Self, String> {
        let allowed = "allowed are paths such as /, /blog or /static/, of visible ASCII without \
            `//`, `?`, `#`, `%`, `\\` and the segments `.` and `..`";
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"?#%\\".contains(&byte);
        let inner = text
            .strip_prefix('/')
            .map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        let is_path = inner.is_some_and(|inner| {
            let is_segment = |segment: &str| !["", ".", ".."].contains(&segment);
            text.bytes().all(is_allowed)
                && (text == "/" || !inner.is_empty() && inner.split('/').all(is_segment))
        });
        if !is_path {
            return Err(format!("`{text}` is no path of a route; {allowed}"));
        }
        Ok(Self {
            prefix: text.strip_suffix('/').unwrap_or(text).to_owned(),
            is_directory: text.ends_with('/'),
            is_exact,
        })
    }
}

impl fmt::Display for RoutePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.is_directory { "/" } else { "" };
        write!(out, "{}{slash}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_no_segments_that_are_resolved() {
        for text in ["/", "/blog", "/static/", "/a/b.c/", "/.well-known/acme"] {
            let path = RoutePath::parse(text, false).expect(text);
            assert_eq!(path.to_string(), text);
        }
        for text in [
            "", "blog", "//", "/a//b", "/a/../b", "/.", "/a?b", "/%41", "/a b", "/ä", r"/a\b",
        ] {
            let error = RoutePath::parse(text, false).expect_err(text);
            assert!(error.contains("/static/"), "{error}");
        }
    }
}
