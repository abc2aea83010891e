//! The locks of the scheduler; `tests/loom.rs` puts loom's in their place.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
