//! Clients of the live feed: thousands of cheap ones, or a few that reconnect.

mod board;
mod crowd;
mod frames;
mod likers;
mod returning;
mod topics;

pub(crate) use board::Board;
pub(crate) use crowd::{Crowd, Received};
pub(crate) use likers::{Likers, rate_max};
pub(crate) use returning::{Returned, Returning};
pub(crate) use topics::{Message, likes_topic, watch};
