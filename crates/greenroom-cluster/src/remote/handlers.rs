use std::collections::BTreeMap;
use std::fmt;
use std::future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_actor::{ActorRef, AskError, Reason, Receive, TellError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{RemoteActor, RemoteMessage};
use crate::codec;
use crate::wire::Rejection;

#[cfg(test)]
mod tests;

/// The messages that other processes may send to an actor, by name.
pub struct Handlers<A: RemoteActor>(BTreeMap<&'static str, Handle<A>>);

/// Decodes a message, gives it to the actor, and encodes the reply. Without a time-out nobody waits
/// for the reply, and none is encoded.
type Handle<A> =
    fn(ActorRef<A>, Bytes, Option<Duration>) -> BoxFuture<'static, Result<Bytes, Rejection>>;

impl<A: RemoteActor> Handlers<A> {
    pub(crate) fn of_actor() -> Self {
        let mut handlers = Self(BTreeMap::new());
        A::register(&mut handlers);
        handlers
    }

    /// Registers a message.
    ///
    /// # Panics
    ///
    /// If another message of this actor has the name already.
    pub fn add<M, K>(&mut self)
    where
        A: Receive<M, K> + RemoteMessage<M>,
        A::Reply: Serialize + DeserializeOwned,
        M: Serialize + DeserializeOwned + Send + 'static,
        K: 'static,
    {
        let name = <A as RemoteMessage<M>>::NAME;
        let before = self.0.insert(name, |actor, payload, timeout| {
            Box::pin(guarded(handle::<A, M, K>(actor, payload, timeout)))
        });
        let actor = <A as RemoteActor>::NAME;
        assert!(before.is_none(), "{actor} has two messages `{name}`");
    }

    /// Returns the names of the messages, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// Returns `true` if there is a message of this name.
    pub(crate) fn has(&self, message: &str) -> bool {
        self.0.contains_key(message)
    }

    /// Handles a message. It is in the mailbox after the first poll.
    pub(crate) fn handle(
        &self,
        actor: ActorRef<A>,
        message: &str,
        payload: Bytes,
        timeout: Option<Duration>,
    ) -> BoxFuture<'static, Result<Bytes, Rejection>> {
        if let Some(handle) = self.0.get(message) {
            return handle(actor, payload, timeout);
        }
        let known = self.names().map(str::to_owned).collect();
        future::ready(Err(Rejection::NoSuchMessage { known })).boxed()
    }
}

impl<A: RemoteActor> fmt::Debug for Handlers<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// Takes a panic as a failure of the message: code that encodes and decodes is a user's, and the
/// same task may do more.
async fn guarded(
    handling: impl Future<Output = Result<Bytes, Rejection>>,
) -> Result<Bytes, Rejection> {
    let handled = AssertUnwindSafe(handling).catch_unwind().await;
    let handled = handled.unwrap_or_else(|_| {
        let error = "it panicked outside of the actor".to_owned();
        Err(Rejection::Failed { error })
    });
    handled.map_err(Rejection::cut)
}

async fn handle<A, M, K>(
    actor: ActorRef<A>,
    payload: Bytes,
    timeout: Option<Duration>,
) -> Result<Bytes, Rejection>
where
    A: Receive<M, K>,
    A::Reply: Serialize,
    M: DeserializeOwned + Send + 'static,
    K: 'static,
{
    let message: M = codec::decode(&payload).map_err(|error| Rejection::NotDecoded {
        error: error.to_string(),
    })?;
    let Some(timeout) = timeout else {
        let told = actor.tell(message);
        return told.map(|()| Bytes::new()).map_err(|error| match error {
            TellError::Full(_) => Rejection::busy(None),
            TellError::Closed(_) => Rejection::Ended,
        });
    };
    let reply = actor.ask(message).timeout(timeout).await;
    let reply = reply.map_err(|error| rejection(&error))?;
    codec::encode(&reply).map_err(|error| Rejection::Failed {
        error: format!("the reply cannot be encoded: {error}"),
    })
}

fn rejection(error: &AskError) -> Rejection {
    match error {
        AskError::TimedOut { .. } => Rejection::Late,
        AskError::Full { .. } => Rejection::busy(None),
        AskError::Closed { .. } => Rejection::Ended,
        AskError::Unhandled { reason, .. } if *reason == Reason::Ended => Rejection::Ended,
        AskError::Unhandled { .. } | AskError::NoReply { .. } => Rejection::Failed {
            error: error.to_string(),
        },
    }
}
