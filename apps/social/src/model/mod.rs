//! The records of the network: plain data, without I/O.

mod event;
mod id;
mod people;
mod pictures;
mod task;
mod text;

pub use event::{Effects, Event, Head, NewEvent, topic};
pub use id::{Id, ParseIdError};
pub use people::{
    ApiKey, Author, PushSubscription, Session, Ticket, TicketPurpose, User, UserChange,
};
pub use pictures::{Album, Comment, Media, Picture, StorageUsed};
pub use task::{NewTask, Outcome, Task, TaskKind};
pub use text::{TextError, check_email, check_name, check_password, check_text};
