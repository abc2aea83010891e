//! The atomics of a worker's sleep; `tests/loom.rs` puts loom's in their place.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
