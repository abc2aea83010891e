use std::any::type_name;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::actor::{Actor, ReplyHandler};
use crate::cell::{AnyCell, Terminated};
use crate::context::Context;
use crate::id::ActorId;
use crate::recipient::Recipient;
use crate::reference::ActorRef;
use crate::reply::ReplyTo;
use crate::system::ActorSystem;
use crate::watched::Tie;

/// The number of messages that a probe holds until the test expects them. One more makes it fail.
pub const PROBE_MAX: usize = 1_024;
/// The default time that a probe waits for a message, in the time of the test.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(3);

/// An actor in the hands of a test, in the place of one that gets messages of type `M` and replies
/// with `R`.
///
/// An expected message must come within a time-out in the time of the test, 3 s by default.
/// Otherwise the expectation panics, with its place in the test.
///
/// The test sends the reply to an `ask`:
///
/// ```
/// use greenroom_actor::testing::{self, Probe};
///
/// testing::run(|system| async move {
///     let mut teller = Probe::<String, u32>::new(&system);
///     let reference = teller.reference().clone();
///     let asker = tokio::spawn(async move { reference.ask("how many?".to_owned()).await });
///
///     let (question, reply_to) = teller.expect_question().await;
///     assert_eq!(question, "how many?");
///     reply_to.send(7);
///     let reply = asker.await.expect("the task does not panic");
///     assert_eq!(reply.expect("there is one"), 7);
/// });
/// ```
pub struct Probe<M: Send + 'static, R: Send + 'static = ()> {
    actor: ActorRef<ProbeActor<M, R>>,
    received: mpsc::Receiver<(M, ReplyTo<R>)>,
    timeout: Duration,
}

/// The actor behind a [`Probe`].
pub struct ProbeActor<M: Send + 'static, R: Send + 'static> {
    received: mpsc::Sender<(M, ReplyTo<R>)>,
}

impl<M: Send + 'static, R: Send + 'static> Actor for ProbeActor<M, R> {
    fn type_name() -> &'static str {
        "Probe"
    }
}

impl<M: Send + 'static, R: Send + 'static> ReplyHandler<M> for ProbeActor<M, R> {
    type Reply = R;

    fn handle(&mut self, message: M, reply: ReplyTo<R>, _: &mut Context<Self>) {
        // Nobody expects any more when the probe is gone: then the message is dropped.
        if let Err(mpsc::error::TrySendError::Full(_)) = self.received.try_send((message, reply)) {
            panic!("a probe holds at most {PROBE_MAX} messages; expect some of them");
        }
    }
}

impl<M: Send + 'static, R: Send + 'static> Probe<M, R> {
    /// Spawns a probe at the top of the system.
    ///
    /// # Panics
    ///
    /// Never with the system of a test.
    #[must_use]
    pub fn new(system: &ActorSystem) -> Self {
        let (sender, received) = mpsc::channel(PROBE_MAX);
        let actor = system.spawn(move || ProbeActor {
            received: sender.clone(),
        });
        Self {
            actor,
            received,
            timeout: TIMEOUT_DEFAULT,
        }
    }

    /// Sets the time that it waits for a message, in the time of the test. Default: 3 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Returns a reference to the probe's actor.
    #[must_use]
    pub fn reference(&self) -> &ActorRef<ProbeActor<M, R>> {
        &self.actor
    }

    /// Returns a reference for an actor that sends it messages without knowing what it is.
    #[must_use]
    pub fn recipient(&self) -> Recipient<M> {
        self.actor.recipient()
    }

    /// Waits for the next message. The asker of one by `ask` gets an error; see
    /// [`expect_question`](Self::expect_question).
    ///
    /// # Panics
    ///
    /// If none comes in time.
    #[track_caller]
    pub fn expect_message(&mut self) -> impl Future<Output = M> {
        let place = Location::caller();
        async move { self.next(place).await.0 }
    }

    /// Waits for the next message, with the [`ReplyTo`] of its asker.
    ///
    /// # Panics
    ///
    /// If none comes in time.
    #[track_caller]
    pub fn expect_question(&mut self) -> impl Future<Output = (M, ReplyTo<R>)> {
        let place = Location::caller();
        async move { self.next(place).await }
    }

    /// Waits for the next message, which must be one that the predicate names.
    ///
    /// # Panics
    ///
    /// If none comes in time, or another one comes.
    #[track_caller]
    pub fn expect_message_where(
        &mut self,
        is_expected: impl FnOnce(&M) -> bool,
    ) -> impl Future<Output = M> {
        let place = Location::caller();
        async move {
            let (message, _) = self.next(place).await;
            assert!(
                is_expected(&message),
                "{place}: the probe got a {} that was not expected",
                type_name::<M>()
            );
            message
        }
    }

    /// Lets this much of the test's time pass, in which no message may come.
    ///
    /// # Panics
    ///
    /// If one comes, or had come before and was not expected.
    #[track_caller]
    pub fn expect_no_message(&mut self, time: Duration) -> impl Future<Output = ()> {
        let place = Location::caller();
        async move {
            if let Ok(Some(_)) = timeout(time, self.received.recv()).await {
                panic!(
                    "{place}: the probe got a {}, and expected none within {}",
                    type_name::<M>(),
                    humantime::format_duration(time)
                );
            }
        }
    }

    /// Waits for the end of an actor, and returns its ending. Of one that had failed before, that
    /// is [`Ending::Unknown`](crate::Ending::Unknown).
    ///
    /// # Panics
    ///
    /// If it does not end in time.
    #[track_caller]
    pub fn expect_terminated<A: Actor>(
        &self,
        actor: &ActorRef<A>,
    ) -> impl Future<Output = Terminated> {
        let place = Location::caller();
        let (sender, terminated) = oneshot::channel();
        let tell = move |terminated| drop(sender.send(terminated));
        AnyCell::watch(&*actor.0, ActorId(0), Tie::Watch, Box::new(tell));
        let (path, time) = (actor.path(), self.timeout);
        async move {
            let Ok(Ok(terminated)) = timeout(time, terminated).await else {
                let time = humantime::format_duration(time);
                panic!("{place}: {path} did not end within {time}");
            };
            terminated
        }
    }

    async fn next(&mut self, place: &Location<'_>) -> (M, ReplyTo<R>) {
        let Ok(Some(received)) = timeout(self.timeout, self.received.recv()).await else {
            panic!(
                "{place}: the probe expected a {} within {}, and got none",
                type_name::<M>(),
                humantime::format_duration(self.timeout)
            );
        };
        received
    }
}

impl<M: Send + 'static, R: Send + 'static> fmt::Debug for Probe<M, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe")
            .field("actor", &self.actor)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl<M: Send + 'static, R: Send + 'static> fmt::Debug for ProbeActor<M, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeActor").finish_non_exhaustive()
    }
}
