//! Pebble, a certificate authority for tests that speaks ACME, and the DNS server that it asks.

use anyhow::Result;

use super::root::{Root, Tool};
use super::{Outcome, go};

/// Needs Go 1.24 or later.
const PACKAGES: &[&str] = &[
    "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv",
    "github.com/letsencrypt/pebble/v2/cmd/pebble",
];

const PINS: &str = concat!(
    include_str!("pins/pebble/go.mod"),
    include_str!("pins/pebble/go.sum")
);

pub(super) fn install(root: &Root) -> Result<Outcome> {
    let tool = Tool {
        directory: "pebble",
        pins: PINS,
        program: "pebble",
    };
    root.unless_stamped(&tool, |directory| {
        go::install("pebble", PACKAGES, directory)
    })
}
