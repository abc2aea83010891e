#![doc = include_str!("../README.md")]
#![expect(
    clippy::missing_panics_doc,
    reason = "whatever fails here fails the test"
)]

mod certificates;
mod nats;
#[path = "../../../crates/greenroom-acme/tests/with_pebble/ports.rs"]
mod ports;

pub use certificates::Certificates;
pub use nats::{NatsCluster, NatsServer, NatsSettings, nats_server};

/// Returns a port of the loopback that is free, and that no other test gets as long as this process
/// runs.
#[must_use]
pub fn free_port() -> u16 {
    ports::free_port()
}
