//! TLS between the server and its clients.

mod certificates;
mod floods;
mod handshakes;
mod streams;
mod suite;
