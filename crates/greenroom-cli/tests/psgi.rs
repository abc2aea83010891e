//! The program with PSGI applications and a real Perl, for those who run and use them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "psgi/ending.rs"]
mod ending;
#[path = "psgi/evaluated.rs"]
mod evaluated;
#[path = "psgi/examples.rs"]
mod examples;
#[path = "psgi/http.rs"]
mod http;
#[path = "psgi/operating.rs"]
mod operating;
#[path = "psgi/plackup.rs"]
mod plackup;
#[allow(dead_code, reason = "these tests use a part of it")]
mod program;
#[path = "psgi/reloading.rs"]
mod reloading;
#[path = "psgi/site.rs"]
mod site;
#[path = "psgi/starter.rs"]
mod starter;
#[path = "psgi/starting.rs"]
mod starting;
#[path = "psgi/suites.rs"]
mod suites;
#[path = "psgi/user.rs"]
mod user;
#[path = "psgi/wire.rs"]
mod wire;
