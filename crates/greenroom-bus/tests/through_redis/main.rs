//! The bus through a real Redis, which every test starts for itself.

#[path = "../shared/away.rs"]
mod away;
mod cluster;
#[path = "../shared/delivery.rs"]
mod delivery;
#[path = "../shared/gaps.rs"]
mod gaps;
#[path = "../shared/kit.rs"]
mod kit;
#[path = "../../../greenroom-acme/tests/with_pebble/ports.rs"]
mod ports;
mod pubsub;
mod sentinel;
mod server;
#[path = "../shared/tls.rs"]
mod tls;
mod users;
