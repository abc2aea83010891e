//! The cases of the actor benchmark with each library, as its documentation would have them
//! written.

pub mod actix;
pub mod greenroom;
pub mod kameo;
pub mod ractor;
pub mod tokio;
pub mod xtra;
