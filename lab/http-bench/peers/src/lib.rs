//! A minimal epoll server: the physical limit of one thread, and the upstream of the proxy case.

mod connection;
mod heads;
mod server;

pub use server::{Response, Server};
