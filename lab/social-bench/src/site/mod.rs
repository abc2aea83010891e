//! The social network and the programs around it, as processes; and the client of its API.

mod api;
mod clock;
mod cluster;
mod pictures;
mod process;
mod social;
mod third_party;

pub(crate) use api::{Client, Like, User};
pub(crate) use clock::cpu_seconds;
pub(crate) use cluster::{Balancer, Stores};
pub(crate) use pictures::{large_jpeg, small_png};
pub(crate) use process::Process;
pub(crate) use social::{Social, Storage};
pub(crate) use third_party::ThirdParty;
