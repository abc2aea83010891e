//! Routers: one handle for many actors that do the same.

mod hash;
mod pool;
mod strategy;

pub use pool::{ROUTEES_MAX, Router};
pub use strategy::{ConsistentHash, LeastLoaded, RoundRobin, Strategy};
