//! `nats-server`, alone and in a cluster.

mod cluster;
mod log;
mod server;
mod settings;

pub use cluster::NatsCluster;
pub use server::{NatsServer, nats_server};
pub use settings::NatsSettings;
