//! The parts that the eight programs share: requests, responses, sockets, a bounded queue, a loop.
//!
//! A request is a wait and some work after it. The models differ in who waits and who works.

mod blocking;
mod connection;
mod counter;
mod event_loop;
mod listen;
mod queue;
mod request;
mod sockets;

pub use blocking::{accept, converse};
pub use connection::Connection;
pub use counter::Counter;
pub use event_loop::{Done, EventLoop, Id};
pub use listen::{Model, announce, cores, listen};
pub use queue::Queue;
pub use request::{Input, MILLIS_MAX, N_MAX, Request, Response, Work, fibonacci};
pub use sockets::{Ready, Sockets};

/// Open connections, in every model that does not give each a thread.
pub const CONNECTIONS_MAX: usize = 16_384;
/// Requests or connections in a queue before threads.
pub const QUEUE_MAX: usize = 1_024;
/// Threads of a pool or a stage; 200 is the default of Tomcat, a pool of that kind.
pub const POOL_THREADS_MAX: usize = 200;
