//! The nodes of a cluster: who lives, and what each offers.

mod id;
mod membership;
mod record;
mod table;

pub use id::NodeId;
pub(crate) use membership::{Membership, Watcher, WriteError};
pub(crate) use record::{Offer, Record};
pub use table::{MemberChange, MemberEvent};
pub(crate) use table::{MemberEvents, Table};
