//! Groups: actors of several nodes under one name, with a real server.

mod alone;
mod counter;
mod delivery;
mod gate;
mod moves;
mod nodes;
mod permissions;
mod programs;
mod tls;
