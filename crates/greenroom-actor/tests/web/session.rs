//! The actors of the tests: they do as their messages say, and report to the test.

use axum::response::sse::Event;
use greenroom_actor::web::{Frame, Outbox};
use greenroom_actor::{Actor, AsyncHandler, BoxError, Context, Failure, Mailbox};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::yield_now;

/// The length of a line of which some hundred are more than the sockets take at once.
const BULK: usize = 60_000;

/// The actor of a connection that takes messages of type `T`.
pub(crate) struct Session<T> {
    pub(crate) outbox: Outbox<T>,
    pub(crate) says: UnboundedSender<String>,
    pub(crate) handled: u32,
}

/// A command to the actor of an event stream, whose client cannot send any.
#[derive(Clone)]
pub(crate) struct Do(pub(crate) &'static str);

impl<T: Kind> Session<T> {
    fn say(&self, text: impl Into<String>) {
        let _ = self.says.send(text.into());
    }

    async fn act(&mut self, command: &str, context: &mut Context<Self>) {
        self.handled += 1;
        match command {
            "stop" => {
                let _ = self.outbox.tell(Line("bye".to_owned()));
                context.stop();
            }
            "kill" => context.myself().kill(),
            "panic" => panic!("as the client wants"),
            "burst" => self.burst(100),
            "bulk" => self.bulk(400),
            "flood" => self.flood().await,
            "patient" => self.patient(500).await,
            other => {
                self.say(other);
                let reply = format!("{} {other}", self.handled);
                let _ = self.outbox.tell(Line(reply));
            }
        }
    }

    /// Writes without letting the connection run.
    fn burst(&self, lines: u32) {
        for line in 0..lines {
            let _ = self.outbox.tell(Line(line.to_string()));
        }
        self.say(format!("dropped {}", self.outbox.dropped()));
    }

    /// Writes more than the sockets take at once.
    fn bulk(&self, lines: u32) {
        for line in 0..lines {
            let bulk = format!("{line} {}", "x".repeat(BULK));
            let _ = self.outbox.tell(Line(bulk));
        }
        self.say(format!("dropped {}", self.outbox.dropped()));
    }

    /// Writes, and lets the connection run, until it is too much for the client.
    async fn flood(&self) {
        for line in 0_u32.. {
            let bulk = format!("{line} {}", "x".repeat(BULK));
            if self.outbox.tell(Line(bulk)).is_err() {
                return self.say("refused");
            }
            if self.outbox.dropped() > 0 {
                let _ = self.outbox.tell(Line("last".to_owned()));
                return self.say("dropping");
            }
            yield_now().await;
        }
    }

    /// Writes as fast as the client reads.
    async fn patient(&self, lines: u32) {
        for line in 0..lines {
            let bulk = format!("{line} {}", "x".repeat(BULK));
            if self.outbox.send(Line(bulk)).await.is_err() {
                return self.say("refused");
            }
        }
        self.say(format!("dropped {}", self.outbox.dropped()));
    }
}

/// A line of text, in the connection's own type of message.
pub(crate) struct Line(String);

/// A connection's type of message.
pub(crate) trait Kind: From<Line> + Send + 'static {
    /// Arranges that the actor gets its commands.
    fn begin(context: &Context<Session<Self>>);
}

impl From<Line> for Frame {
    fn from(Line(text): Line) -> Self {
        Self::text(text)
    }
}

impl Kind for Frame {
    fn begin(_: &Context<Session<Self>>) {}
}

impl From<Line> for Event {
    fn from(Line(text): Line) -> Self {
        Self::default().data(text)
    }
}

impl Kind for Event {
    fn begin(context: &Context<Session<Self>>) {
        let me = context.myself().recipient();
        context.system().events().subscribe::<Do>(me);
    }
}

impl<T: Kind> Actor for Session<T> {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(2)
    }

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        T::begin(context);
        let thread = std::thread::current();
        self.say(format!("started on {}", thread.name().unwrap_or("?")));
        Ok(())
    }

    async fn restarted(&mut self, _: &Failure, _: &mut Context<Self>) -> Result<(), BoxError> {
        self.say("restarted");
        Ok(())
    }

    async fn stopped(&mut self, _: &mut Context<Self>) {
        self.say("stopped");
    }
}

impl AsyncHandler<Frame> for Session<Frame> {
    type Reply = ();

    async fn handle(&mut self, frame: Frame, context: &mut Context<Self>) {
        match frame {
            Frame::Text(text) => self.obey(&text, context).await,
            Frame::Binary(bytes) => {
                let _ = self.outbox.tell(bytes);
            }
        }
    }
}

impl Session<Frame> {
    async fn obey(&mut self, command: &str, context: &mut Context<Self>) {
        match command.strip_prefix("close ") {
            Some(code) => {
                let code = code.parse().expect("the test sends a number");
                self.outbox.close(code, "enough").expect("it may be sent");
            }
            None => self.act(command, context).await,
        }
    }
}

impl AsyncHandler<Do> for Session<Event> {
    type Reply = ();

    async fn handle(&mut self, Do(command): Do, context: &mut Context<Self>) {
        self.act(command, context).await;
    }
}
