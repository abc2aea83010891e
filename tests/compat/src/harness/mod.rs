//! The harness: serves a case by both servers, talks to them, and compares.

mod case;
mod client;
mod compare;
mod rig;
mod server;
mod talk;
mod wire;

pub(crate) use case::{App, Case, Script, Step, ask, get, http10, raw};
pub(crate) use client::{Client, Log};
pub(crate) use compare::{check, listed};
pub(crate) use rig::Rig;
pub(crate) use wire::{Ending, PATIENCE, Wire, shown};
