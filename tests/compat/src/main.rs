//! Small axum applications, each served by `axum::serve` and by `greenroom::serve`: the same bytes
//! are sent to both, and the responses are compared, event by event.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod cases;
mod differences;
mod harness;
mod page;

use std::collections::BTreeSet;

/// One test for each group of cases.
macro_rules! groups {
    ($($group:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $group() {
                harness::check(cases::$group::cases()).await;
            }
        )*

        /// Returns the names of all cases.
        fn names() -> Vec<&'static str> {
            let groups = [$(cases::$group::cases(),)* cases::limits::large()];
            groups.iter().flatten().map(|case| case.name).collect()
        }
    };
}

groups![
    bodies,
    connections,
    extractors,
    files,
    http2,
    layers,
    limits,
    panics,
    rejections,
    requests,
    responses,
    routing,
    sharing,
    shutdown,
    targets,
    websockets,
];

#[test]
fn each_case_has_a_name_of_its_own() {
    let names = names();
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
}

#[test]
fn each_listed_difference_names_a_case() {
    let names = names();
    let listed = harness::listed().map(|(case, _)| case);
    let unknown: Vec<_> = listed.filter(|case| !names.contains(case)).collect();
    assert!(unknown.is_empty(), "there are no cases {unknown:?}");
}

/// A quarter of a gigabyte in one request: see `make compat-large`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute in debug"]
async fn large() {
    harness::check(cases::limits::large()).await;
}
