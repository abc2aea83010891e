//! Perl processes under supervision, with the real Perl: started, killed, replaced, reloaded, ended.

mod ending;
mod reloading;
mod rig;
mod starting;
