//! The accepted differences from axum. The page `docs/from-axum.md` is generated from them.

mod connections;
mod rejections;
mod responses;

/// A lasting difference of Greenroom from axum.
#[derive(Debug)]
pub(crate) struct Difference {
    /// Its behaviour, as a heading.
    pub(crate) title: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) seen: &'static [Seen],
}

/// Lines of transcripts that differ in the same way for all of these cases.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) cases: &'static [&'static str],
    pub(crate) axum: &'static [&'static str],
    pub(crate) ours: &'static [&'static str],
}

/// Returns all differences, in the order of the page.
pub(crate) fn differences() -> impl Iterator<Item = &'static Difference> {
    let groups = [
        responses::RESPONSES,
        connections::CONNECTIONS,
        rejections::REJECTIONS,
    ];
    groups.into_iter().flatten()
}
