//! The protocol as its clients and its applications see it, in the order of RFC 9110 and RFC 9112:
//! each test's name begins with the section that it is about.

mod driver;
mod rfc9110_fields;
mod rfc9110_informational;
mod rfc9110_methods;
mod rfc9110_statuses;
mod rfc9112_bodies;
mod rfc9112_chunks;
mod rfc9112_connections;
mod rfc9112_fields;
mod rfc9112_messages;
mod rfc9112_targets;
mod rfc9113_requests;
mod split;
mod support;
