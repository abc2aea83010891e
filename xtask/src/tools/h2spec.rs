//! h2spec, the conformance suite of HTTP/2.

use anyhow::Result;

use super::root::{Root, Tool};
use super::{Outcome, go};

const PINS: &str = concat!(
    include_str!("pins/h2spec/go.mod"),
    include_str!("pins/h2spec/go.sum")
);

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "bin",
        pins: PINS,
        program: "h2spec",
    };
    root.unless_stamped(&tool, |bin| {
        go::install("h2spec", &["github.com/summerwind/h2spec/cmd/h2spec"], bin)
    })
}
