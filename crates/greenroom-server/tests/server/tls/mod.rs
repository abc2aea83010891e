//! TLS between the server and its clients.

mod certificates;
mod floods;
mod handshakes;
mod redirecting;
mod streams;
mod suite;
