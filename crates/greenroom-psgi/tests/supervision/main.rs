//! Supervision of real Perl processes: started, killed, replaced, reloaded, ended.

mod ending;
mod reloading;
mod rig;
mod starting;
