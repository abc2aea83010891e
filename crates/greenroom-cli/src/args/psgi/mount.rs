//! `/blog=blog/app.psgi workers=4`: a further application.

use std::path::PathBuf;
use std::str::FromStr;

use greenroom::psgi::is_mount;

use super::pool::PoolChanges;

/// An application below a path, as far as it differs from the main one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mount {
    /// The path, which begins with a slash and does not end with one.
    pub(super) prefix: String,
    pub(super) file: PathBuf,
    pub(super) changes: PoolChanges,
}

const FORM: &str = "a mount is written '/prefix=FILE workers=4'; \
    behind the file may stand workers=N, concurrency=M, preload=yes|no, \
    timeout=TIME, max-requests=R and max-rss=SIZE";

impl FromStr for Mount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = shlex::split(text).ok_or_else(|| format!("a quote is not closed; {FORM}"))?;
        let (place, words) = words.split_first().ok_or(FORM)?;
        let (prefix, file) = place.split_once('=').ok_or(FORM)?;
        if file.is_empty() {
            return Err(format!("the file is missing; {FORM}"));
        }
        check_prefix(prefix)?;
        let mut changes = PoolChanges::default();
        for word in words {
            let set = word
                .split_once('=')
                .and_then(|(key, value)| changes.set(key, value));
            let set = set.unwrap_or_else(|| Err(FORM.to_owned()));
            set.map_err(|error| format!("{word}: {error}"))?;
        }
        Ok(Self {
            prefix: prefix.to_owned(),
            file: file.into(),
            changes,
        })
    }
}

fn check_prefix(prefix: &str) -> Result<(), String> {
    if !prefix.is_empty() && is_mount(prefix) {
        return Ok(());
    }
    Err(format!(
        "`{prefix}` is no prefix: allowed are paths such as /blog or /a/b, of ASCII, without a \
         slash at the end, blanks, `?`, `#`, `%`, `.` and `..`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(text: &str) -> Mount {
        text.parse().expect(text)
    }

    #[test]
    fn a_mount_has_its_prefix_its_file_and_what_differs() {
        let plain = mount("/blog=blog/app.psgi");
        assert_eq!(plain.prefix, "/blog");
        assert_eq!(plain.file, PathBuf::from("blog/app.psgi"));
        assert_eq!(plain.changes, PoolChanges::default());
        let keys = [
            "workers=2",
            "concurrency=8",
            "preload=yes",
            "timeout=5s",
            "max-requests=9",
            "max-rss=64MiB",
        ];
        for key in keys {
            let changed = mount(&format!("/blog=app.psgi {key}"));
            assert_ne!(changed.changes, PoolChanges::default(), "{key}");
        }
    }

    #[test]
    fn a_file_may_have_spaces_and_equals_signs() {
        let quoted = mount("/a/b='my app=1.psgi' workers=2");
        assert_eq!(quoted.prefix, "/a/b");
        assert_eq!(quoted.file, PathBuf::from("my app=1.psgi"));
    }

    #[test]
    fn what_is_no_mount_is_told() {
        let cases = [
            ("", "a mount is written"),
            ("app.psgi", "a mount is written"),
            ("/blog=", "the file is missing"),
            ("/blog='a", "a quote is not closed"),
            ("blog=a", "`blog` is no prefix"),
            ("/=a", "`/` is no prefix"),
            ("/blog/=a", "`/blog/` is no prefix"),
            ("/a/../b=a", "`/a/../b` is no prefix"),
            ("/%41=a", "`/%41` is no prefix"),
            ("/blog=a workers=0", "workers=0: 0 is not allowed"),
            (
                "/blog=a preload=maybe",
                "preload=maybe: allowed are yes and no",
            ),
            ("/blog=a speed=1", "speed=1: a mount is written"),
            ("/blog=a b", "b: a mount is written"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Mount>().expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
