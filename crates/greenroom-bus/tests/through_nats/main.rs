//! The bus through a real NATS, which every test starts for itself.

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
mod replay;
mod server;
mod subjects;
#[path = "../shared/tls.rs"]
mod tls;
mod users;
mod wire;
