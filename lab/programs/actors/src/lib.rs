//! The cases of the actor benchmark, and their measurement within a program.
//!
//! A program parses [`Arguments`], runs the case that they name with the library that they name,
//! and prints an [`Outcome`] as a line of JSON ([`print`]). A library repeats a batch of messages
//! ([`Options::batches`]), plays ping-pong for a time ([`Options::play`]), or starts many actors
//! ([`Options::crowd`]). Actors report by a [`Countdown`] that a batch is done.

mod batches;
mod case;
mod countdown;
mod crowd;
mod game;
mod options;
mod outcome;
mod peers;
mod stopwatch;

pub use case::Case;
pub use countdown::{Countdown, Finish};
pub use game::{Game, Rally};
pub use options::{Options, on_tokio, print};
pub use outcome::{Outcome, Sample};
pub use peers::Arguments;

/// Messages that a mailbox holds, where the library bounds it.
pub const MAILBOX_MESSAGES: usize = 1_024;
/// Tells in a batch of [`Case::Tell`] and [`Case::Async`]: they fit into a mailbox.
pub const TELLS: u64 = 1_000;
/// Actors in the ring of [`Case::Hop`].
pub const RING: usize = 503;
/// Hops in a batch of [`Case::Hop`]: two hundred times around.
pub const HOPS: u64 = 200 * RING as u64;
/// Senders of the fan-in.
pub const SENDERS: usize = 8;
/// Messages of each sender in a batch of the fan-in.
pub const SENDER_MESSAGES: u64 = 10_000;
/// Messages of all senders in a batch.
pub const FAN_IN: u64 = SENDERS as u64 * SENDER_MESSAGES;
/// Questions in a batch of [`Case::Ask`] and [`Case::AskInline`].
pub const ASKS: u64 = 1_000;
/// Pairs that play ping-pong.
pub const PAIRS: usize = 64;
/// Pairs beside them that compute for each ball.
pub const BUSY_PAIRS: usize = 4;
/// Subscribers of [`Case::Bus`].
pub const SUBSCRIBERS: usize = 1_000;
/// Messages published in a batch of [`Case::Bus`].
pub const PUBLICATIONS: u64 = 10;
