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
