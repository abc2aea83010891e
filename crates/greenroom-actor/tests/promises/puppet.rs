//! An actor that does what a test sends it, and a journal of events.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use greenroom_actor::{
    Actor, AsyncHandler, BoxError, Context, Failure, Handler, ReplyHandler, ReplyTo, Terminated,
};

/// The events, in their order.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn note(&self, entry: impl Into<String>) {
        self.0.lock().expect("no panic within").push(entry.into());
    }

    /// Returns all entries so far; the journal is empty afterwards.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic within"))
    }
}

/// Writes `NAME ...` into the journal for every event of its life.
pub(crate) struct Puppet {
    pub(crate) name: &'static str,
    pub(crate) journal: Journal,
}

impl Puppet {
    pub(crate) fn make(
        name: &'static str,
        journal: &Journal,
    ) -> impl Fn() -> Self + Send + 'static + use<> {
        let journal = journal.clone();
        move || Self {
            name,
            journal: journal.clone(),
        }
    }

    pub(crate) fn note(&self, what: impl std::fmt::Display) {
        self.journal.note(format!("{} {what}", self.name));
    }
}

impl Actor for Puppet {
    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), BoxError> {
        self.note("started");
        Ok(())
    }

    async fn restarted(&mut self, _: &Failure, _: &mut Context<Self>) -> Result<(), BoxError> {
        self.note("restarted");
        Ok(())
    }

    async fn stopped(&mut self, _: &mut Context<Self>) {
        self.note("stopped");
    }
}

/// Is noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note(pub(crate) u32);

impl Handler<Note> for Puppet {
    type Reply = u32;

    fn handle(&mut self, Note(number): Note, _: &mut Context<Self>) -> u32 {
        self.note(number);
        number
    }
}

/// Makes it panic.
pub(crate) struct Boom;

impl Handler<Boom> for Puppet {
    type Reply = ();

    fn handle(&mut self, _: Boom, _: &mut Context<Self>) {
        panic!("boom");
    }
}

/// Makes it panic after a wait.
pub(crate) struct BoomLater(pub(crate) Duration);

impl AsyncHandler<BoomLater> for Puppet {
    type Reply = ();

    async fn handle(&mut self, BoomLater(time): BoomLater, _: &mut Context<Self>) {
        tokio::time::sleep(time).await;
        panic!("boom later");
    }
}

/// Makes it wait, and notes so before and after.
pub(crate) struct Hold(pub(crate) Duration);

impl AsyncHandler<Hold> for Puppet {
    type Reply = ();

    async fn handle(&mut self, Hold(time): Hold, _: &mut Context<Self>) {
        self.note("holds");
        tokio::time::sleep(time).await;
        self.note("held");
    }
}

/// Makes it wait for ever.
pub(crate) struct Hang;

impl AsyncHandler<Hang> for Puppet {
    type Reply = ();

    async fn handle(&mut self, _: Hang, _: &mut Context<Self>) {
        self.note("hangs");
        pending::<()>().await;
    }
}

/// Gets its reply through a `ReplyTo`.
pub(crate) struct Question(pub(crate) u32);

impl ReplyHandler<Question> for Puppet {
    type Reply = u32;

    fn handle(&mut self, Question(number): Question, reply: ReplyTo<u32>, _: &mut Context<Self>) {
        self.note(format!("asked {number}"));
        reply.send(number);
    }
}

type Deed = dyn FnOnce(&mut Puppet, &mut Context<Puppet>) + Send;

/// A closure to run.
pub(crate) struct Act(Box<Deed>);

pub(crate) fn act(deed: impl FnOnce(&mut Puppet, &mut Context<Puppet>) + Send + 'static) -> Act {
    Act(Box::new(deed))
}

impl Handler<Act> for Puppet {
    type Reply = ();

    fn handle(&mut self, Act(deed): Act, context: &mut Context<Self>) {
        deed(self, context);
    }
}

type LongDeed =
    dyn for<'a> FnOnce(&'a mut Puppet, &'a mut Context<Puppet>) -> BoxFuture<'a, ()> + Send;

/// A closure to run that waits.
pub(crate) struct ActLong(Box<LongDeed>);

pub(crate) fn act_long<F>(deed: F) -> ActLong
where
    F: for<'a> FnOnce(&'a mut Puppet, &'a mut Context<Puppet>) -> BoxFuture<'a, ()>
        + Send
        + 'static,
{
    ActLong(Box::new(deed))
}

impl AsyncHandler<ActLong> for Puppet {
    type Reply = ();

    async fn handle(&mut self, ActLong(deed): ActLong, context: &mut Context<Self>) {
        deed(self, context).await;
    }
}

impl Handler<Terminated> for Puppet {
    type Reply = ();

    fn handle(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        let ending = match terminated.ending {
            greenroom_actor::Ending::Failed(_) => "Failed".to_owned(),
            ending => format!("{ending:?}"),
        };
        self.note(format!("saw {} end: {ending}", terminated.path));
    }
}
