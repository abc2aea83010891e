//! The applications that the benchmark's servers serve: the same handlers, run in different places.

mod application;
mod handlers;

pub use application::{Application, Shape, method_router};
