//! The example of the guide (docs/actors.md), run with its own tests.
#![cfg(feature = "actor")]
#![allow(dead_code, reason = "an example has a `main`, which is not run here")]

#[path = "../examples/feeder.rs"]
mod feeder;
