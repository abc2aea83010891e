//! Entities, alone and at several nodes, with a real server.

mod account;
mod alone;
mod child;
mod faults;
mod nodes;
