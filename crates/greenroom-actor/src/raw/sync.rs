//! The atomics of the lane; `tests/loom.rs` puts loom's in their place.

pub(crate) use std::sync::atomic::{AtomicPtr, Ordering};
