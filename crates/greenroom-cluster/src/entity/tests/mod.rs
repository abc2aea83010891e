//! Hosts, without and with servers.

mod account;
mod activation;
mod durable;
mod fencing;
mod jet_stream;
mod limits;
