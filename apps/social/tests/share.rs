//! Sharing with a third party that may hang, fail and lie.

#[expect(dead_code, reason = "each test uses some of the fakes")]
#[path = "fakes/mod.rs"]
mod fakes;

#[path = "share/faults.rs"]
mod faults;
#[path = "share/token.rs"]
mod token;
