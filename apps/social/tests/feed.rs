//! The live feed over real connections, and the cache: on `SQLite`, on a bus in the process and on
//! Redis.

#[path = "kit/wait.rs"]
mod wait;

mod feed {
    mod cache;
    mod catching_up;
    mod client;
    mod outage;
    mod pacing;
    #[path = "../../../../crates/greenroom-acme/tests/with_pebble/ports.rs"]
    mod ports;
    mod redis;
    mod rejections;
    mod renewal;
    mod replicas;
    mod sessions;
    mod topologies;
    mod world;
}
