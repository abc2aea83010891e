//! The atomics of the accounts; `tests/loom.rs` puts loom's in their place.

pub(crate) use std::sync::atomic::{AtomicU32, Ordering};
