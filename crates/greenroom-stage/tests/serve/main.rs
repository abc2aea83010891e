//! Placement and stages under plain `axum::serve`, as a client sees them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bodies;
mod bodies_kept;
mod destructors;
mod dropping;
mod fairness;
mod isolation;
mod moving;
mod overload;
mod rig;
