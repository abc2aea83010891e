//! A loop's connection to a worker: requests go out in batches, responses come back by number.

mod call;
mod connection;
mod driver;
mod entry;
mod names;
mod parse;
mod recall;
mod receive;
mod table;

pub(crate) use call::{Call, NoResponse, Streamed, WorkerResponse};
pub(crate) use connection::Input;
pub(crate) use entry::Lost;
pub(crate) use parse::{Head, Malformed, SentFile};
