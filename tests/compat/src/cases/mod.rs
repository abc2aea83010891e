//! The cases, by subject.

pub(crate) mod bodies;
pub(crate) mod connections;
pub(crate) mod extractors;
pub(crate) mod files;
pub(crate) mod http2;
pub(crate) mod layers;
pub(crate) mod limits;
pub(crate) mod panics;
pub(crate) mod rejections;
pub(crate) mod requests;
pub(crate) mod responses;
pub(crate) mod routing;
pub(crate) mod sharing;
pub(crate) mod shutdown;
pub(crate) mod targets;
pub(crate) mod websockets;
