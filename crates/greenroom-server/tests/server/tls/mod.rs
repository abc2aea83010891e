//! TLS between the server and its clients.

mod certificates;
mod floods;
mod fragments;
mod handshakes;
mod http2;
mod redirecting;
mod streams;
mod suite;
