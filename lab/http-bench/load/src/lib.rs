//! A small HTTP/1.1 client for load: one thread, edge-triggered epoll, one request under way per connection.
//!
//! It shares two cores with the server under test and perhaps its upstream, so it does no more than it must.

mod connection;
mod engine;
mod response;
mod summary;
mod target;

pub use engine::{Engine, Outcome};
pub use summary::{Latencies, print_line};
pub use target::Target;
