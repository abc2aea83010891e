//! The promises of the crate's documentation, each by the name of its test.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by a panic, and so do the actors that they make fail"
)]

mod chains;
mod deadlines;
mod dispatchers;
mod escalations;
mod hostile;
mod limits;
mod links;
mod mailboxes;
mod memory;
mod messages;
mod puppet;
mod restarts;
mod supervision;
mod system;
mod test_kit;
mod timers;
