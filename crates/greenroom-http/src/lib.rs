//! HTTP/1.1 as a state machine: bytes in, events out. No socket, no runtime, no clock.
//!
//! A [`Connection`] is one client's connection seen from the server. Its owner offers the bytes
//! that it reads to [`Connection::receive`], which returns one [`Event`] at a time and the number
//! of bytes used up. Responses are encoded by [`Connection::respond`], [`Connection::data`] and
//! [`Connection::finish`] into a buffer that the owner sends; [`informational`] ones may precede
//! them.
//!
//! State that many connections can share (limits, the cached `Date`, recycled header maps) is in a
//! [`Context`]; a server keeps one for each loop.
//!
//! ```
//! use greenroom_http::{BodySize, Connection, Context, Event};
//!
//! let mut context = Context::default();
//! let mut connection = Connection::new();
//! let input = b"GET /hello HTTP/1.1\r\nHost: example.org\r\n\r\n";
//!
//! let received = connection.receive(input, &mut context).expect("a well-formed request");
//! assert_eq!(received.consumed, input.len());
//! let Event::Head(head) = received.event else { panic!("expected a head") };
//! assert_eq!(head.request.uri().path(), "/hello");
//!
//! let mut out = Vec::new();
//! let response = http::Response::new(());
//! connection.respond(&response, BodySize::Exact(5), &context, &mut out);
//! let part = connection.data(5, &mut out);
//! out.extend_from_slice(&b"hello"[..part.length]);
//! out.extend_from_slice(part.end);
//! connection.finish(None, &mut out).expect("five bytes were promised and sent");
//! assert!(out.starts_with(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"));
//! assert!(connection.keeps_alive());
//! ```
//!
//! [`check_http2`] holds a request that is already parsed from HTTP/2 to the same rules.
//!
//! A message that a lax reading would let two parties end at different places is refused: see
//! [`Reason`] for the list, with the section of RFC 9110 or RFC 9112 of each.

mod body;
mod connection;
mod context;
mod date;
mod encode;
mod field_names;
mod head;
mod limits;
mod raw;
mod reason_phrase;
mod rejected;

pub use body::BodyLength;
pub use connection::{CONTINUE, Connection, Event, Part, Received, Truncated};
pub use context::Context;
pub use date::DateCache;
pub use encode::{BodySize, NotInformational, informational};
pub use field_names::FieldNames;
pub use head::{RequestHead, check_http2};
pub use limits::{FIELDS_CEILING, Limits};
pub use reason_phrase::ReasonPhrase;
pub use rejected::{Reason, Rejected};
