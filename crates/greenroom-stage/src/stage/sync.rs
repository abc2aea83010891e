//! The locks of the scheduler: the standard library's, because `tests/loom.rs` puts loom's in their
//! place, whose methods are those.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
