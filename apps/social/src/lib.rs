//! The social network of the thesis, built with Greenroom. The README beside this crate describes
//! it.

pub mod albums;
pub mod api;
pub mod app;
pub mod auth;
mod body_limit;
pub mod cache;
mod completing;
pub mod config;
mod cryptography;
mod failure;
pub mod feed;
pub mod files;
pub mod images;
pub mod model;
mod node;
pub mod outbox;
pub mod passwords;
mod rejection;
mod sample;
mod secret;
pub mod server;
pub mod service;
pub mod share;
pub mod store;
pub mod turns;
pub mod web;

pub use app::App;
pub use failure::{Failure, Problem};
