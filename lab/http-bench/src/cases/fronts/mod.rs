//! Servers as their operators run them at the edge: files from a disk, and another server behind.

mod files;
mod forward;
mod servers;

pub(crate) use files::files;
pub(crate) use forward::forward;
