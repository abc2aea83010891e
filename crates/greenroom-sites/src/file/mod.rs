//! The file: read into typed tables, with all its faults.

mod document;
mod entry;
mod fault;
mod key_doc;
mod nearest;
mod reading;
mod schema;
mod server;
mod table;
mod value;

pub use document::File;
pub use entry::{Entry, Origin};
pub use fault::{Fault, Faults};
pub use key_doc::KeyDoc;
pub(crate) use reading::{At, Reading};
pub use schema::{keys, schema};
pub use server::{NoServerKeys, ServerKeys, ServerSetting, ServerTable};
pub(crate) use table::table;
pub(crate) use value::{
    Count, Directory, ExistingFile, Located, Lookup, Pairs, Size, Switch, Time, Value,
};
