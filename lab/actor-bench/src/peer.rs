//! The libraries and systems that are compared.

use clap::ValueEnum;

/// An actor library, or what people use instead of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    Greenroom,
    Tokio,
    Ractor,
    Kameo,
    Xtra,
    Actix,
    Pekko,
    Erlang,
}

impl Peer {
    /// The name in the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Greenroom => "Greenroom",
            Self::Tokio => "tokio task",
            Self::Ractor => "ractor",
            Self::Kameo => "kameo",
            Self::Xtra => "xtra",
            Self::Actix => "actix",
            Self::Pekko => "Pekko",
            Self::Erlang => "Erlang",
        }
    }

    /// Returns the note beside its numbers.
    pub(crate) fn note(self) -> &'static str {
        match self {
            Self::Greenroom => {
                "supervision on, mailboxes of 1,024 messages, questions with a deadline of 5 s"
            }
            Self::Tokio => {
                "a task behind an mpsc channel of 1,024 messages: no supervision, no deadline"
            }
            Self::Ractor => {
                "0.16.5: mailboxes without a bound, so fan-in knows no back-pressure; no \
                 deadline; all handlers are async"
            }
            Self::Kameo => {
                "0.22.2: mailboxes of 1,024 messages; no deadline; all handlers are async"
            }
            Self::Xtra => {
                "0.6.0: mailboxes of 1,024 messages, no supervision, no deadline; all handlers \
                 are async; topics are one mailbox that the subscribers share"
            }
            Self::Actix => {
                "0.13.5: mailboxes of 1,024 messages (16 where one message is in flight), no \
                 deadline; actors stay on the thread that they were started on: with two, every \
                 second pair of ping-pong is divided, and a sender that finds the mailbox full \
                 waits for the reply, too"
            }
            Self::Pekko => {
                "typed 1.7.0: mailboxes without a bound; questions with a deadline of 5 s; warmed \
                 up three times as long; its compiler and garbage collector share the cores; \
                 memory is the heap after a collection"
            }
            Self::Erlang => {
                "mailboxes without a bound; questions are calls of a gen_server, with a deadline \
                 of 5 s"
            }
        }
    }
}
