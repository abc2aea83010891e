#![doc = include_str!("../README.md")]

pub mod compare;
mod http1;
pub mod plan;
pub mod plot;
pub mod record;
pub mod report;
pub mod run;
mod session;
mod tls;
pub mod verdict;
