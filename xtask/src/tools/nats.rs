//! `nats-server`. Debian's, 2.9.10, takes both of two concurrent compare-and-sets where there are
//! several servers. Needs Go 1.26 or later.

use anyhow::Result;

use super::root::{Root, Tool};
use super::{Outcome, go};

const PINS: &str = concat!(
    include_str!("pins/nats/go.mod"),
    include_str!("pins/nats/go.sum")
);

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "nats",
        pins: PINS,
        program: "nats-server",
    };
    root.unless_stamped(&tool, |directory| {
        go::install("nats", &["github.com/nats-io/nats-server/v2"], directory)
    })
}
